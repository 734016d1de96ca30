"""Load a folder with a PEFT LoRA adapter: its base model by name, then the adapter around it.

Both files may be untrusted. Only plain LoRA is read, and only known configuration entries: others name modules to
import, patterns that take forever to match, or models at any path. The declared sizes must equal those in the file
before anything of these sizes is made.
"""

import importlib.util
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from attention_viz.errors import ModelNotFound, UnsupportedModel, first_line
from attention_viz.sources.catalogue import CATALOGUE
from attention_viz.sources.declarations import ADAPTER, read_headers
from attention_viz.sources.folders import parse_json, refuse_code, refuse_without_safetensors, sha256_of

if TYPE_CHECKING:
    from attention_viz.models.model import AttentionModel

WEIGHTS = "adapter_model.safetensors"
_LONGEST = 1_000_000

# Entries that are read; all others have to be empty or off.
_READ = frozenset(
    "r lora_alpha target_modules use_rslora use_dora fan_in_fan_out bias modules_to_save task_type".split()
)
# Entries that change nothing once the weights are made, or are read by themselves.
_HARMLESS = frozenset(
    "peft_type base_model_name_or_path revision inference_mode lora_dropout init_lora_weights auto_mapping "
    "peft_version megatron_core qalora_group_size".split()
)
_PART = re.compile(r"[A-Za-z0-9_.-]{1,200}")
_YOURSELF = "load it with peft and pass it to av.wrap"
# How the adapter's matrices were begun, if that left the base model as it was.
_PLAIN_START = (True, False, None, "gaussian", "orthogonal")
# What an entry that isn't used has.
_OFF: tuple[object, ...] = (None, False, {}, [], "", 0)


def is_adapter(folder: Path) -> bool:
    """Return whether a folder holds an adapter, and no model of its own."""
    return (folder / ADAPTER).is_file() and not (folder / "config.json").is_file()


def load_adapter(
    folder: Path, name: str, load_base: "Callable[[str | Path, str | None], Any]", check: Callable[[], None]
) -> "AttentionModel":
    """Load an adapter's base model, and put the adapter around it; an exception in `check` ends the load."""
    config = _checked_config(folder, name)
    found, revision = _base(folder, name, config)
    base = load_base(found, revision)
    base_name = found.name if isinstance(found, Path) else found
    if not hasattr(base, "hf_model"):
        raise UnsupportedModel(
            f"{name} is an adapter around {base_name}, which isn't a transformers model; choose another adapter"
        )
    if any(parameter.is_meta for parameter in base.hf_model.parameters()):
        raise waits_elsewhere(name, str(base_name))
    check()
    model = _put_around(base.hf_model, config, folder / WEIGHTS, name)

    from attention_viz.models.model import AttentionModel
    from attention_viz.trace.trace import Provenance

    notes = (f"A LoRA adapter around {base_name}, applied by PEFT. Texts go through that model's tokenizer.",)
    provenance = Provenance(model=name, sha256=sha256_of(folder / WEIGHTS, check), notes=notes)
    return AttentionModel.of(model, base.tokenizer, provenance, base.reader)


def waits_elsewhere(name: str, base: str) -> UnsupportedModel:
    """Return the refusal of an adapter around a model whose weights come from elsewhere as it runs."""
    return UnsupportedModel(
        f"{name} is an adapter, and its base model {base} would have parts on the disk or in another memory, where "
        "PEFT adds nothing; allow more memory, quantize the model, or merge the adapter into it"
    )


def base_of(folder: Path, name: str) -> tuple[str | Path, str | None]:
    """Return an adapter's base model: a name or a folder, and a revision."""
    return _base(folder, name, _checked_config(folder, name))


def empty_adapter(folder: Path, name: str, model: Any) -> Any:
    """Put an adapter without numbers around its base model on the meta device."""
    import peft

    config = _read_config(folder, name)
    _check_sizes(model, config, read_headers([folder / WEIGHTS], name).shapes, name)
    wanted = {key: value for key, value in config.items() if key in _READ}
    try:
        return peft.get_peft_model(
            model, peft.LoraConfig(**wanted, inference_mode=True), autocast_adapter_dtype=False, low_cpu_mem_usage=True
        )
    except Exception as error:
        raise ModelNotFound(f"{name} doesn't fit its base model: {first_line(error)}") from error


def _checked_config(folder: Path, name: str) -> dict[str, Any]:
    """Return an adapter's configuration, if its weights and PEFT are there."""
    if importlib.util.find_spec("peft") is None:
        raise UnsupportedModel(
            f"{name} is a PEFT adapter, but peft isn't installed; run pip install attention-viz[peft]"
        )
    config = _read_config(folder, name)
    if not (folder / WEIGHTS).is_file():
        refuse_without_safetensors((file.name for file in folder.iterdir() if file.name != "config.json"), name)
    return config


def _read_config(folder: Path, name: str) -> dict[str, Any]:
    size = (folder / ADAPTER).stat().st_size
    if size > _LONGEST:
        raise UnsupportedModel(f"{ADAPTER} of {name} has {size:,} bytes; the limit is {_LONGEST:,}")
    config = parse_json((folder / ADAPTER).read_bytes(), ADAPTER, name)
    refuse_code(config, name)
    if config.get("peft_type") != "LORA":
        raise UnsupportedModel(
            f"{name} is an adapter of type {str(config.get('peft_type'))[:40]!r}, and only LORA is supported; "
            f"{_YOURSELF}"
        )
    if config.get("init_lora_weights", True) not in _PLAIN_START:
        raise UnsupportedModel(
            f"{name} is an adapter that also changes its base model (init_lora_weights="
            f"{str(config['init_lora_weights'])[:40]!r}); {_YOURSELF}"
        )
    strange = sorted(key for key, value in config.items() if key not in _READ | _HARMLESS and value not in _OFF)
    if strange:
        raise UnsupportedModel(
            f"{ADAPTER} of {name} sets {', '.join(strange)[:200]}, which isn't supported; {_YOURSELF}"
        )
    return config


def _base(folder: Path, name: str, config: Mapping[str, Any]) -> tuple[str | Path, str | None]:
    """Return the base model: a catalogue name, a folder beside this one, or a hub id and revision."""
    asked = config.get("base_model_name_or_path")
    if not isinstance(asked, str) or not asked:
        raise ModelNotFound(f"{ADAPTER} of {name} names no base model; set base_model_name_or_path")
    parts = asked.removeprefix("./").split("/")
    if len(parts) > 2 or not all(_PART.fullmatch(part) and part.strip(".") for part in parts):
        raise ModelNotFound(
            f"{ADAPTER} of {name} names its base model by a path, {asked[:120]!r}; put that folder beside the "
            "adapter's and only its name into base_model_name_or_path"
        )
    if asked in CATALOGUE:
        return asked, None
    beside = folder.resolve().parent / parts[0]
    if len(parts) == 1 and beside.is_dir():
        return beside, None
    revision = config.get("revision")
    return asked, revision if isinstance(revision, str) and revision else None


def _put_around(model: Any, config: Mapping[str, Any], weights: Path, name: str) -> Any:
    """Put the adapter around the model's matrices."""
    import peft
    from safetensors.torch import load_file

    _check_sizes(model, config, read_headers([weights], name).shapes, name)
    try:
        tensors = load_file(weights)
    except Exception as error:
        raise ModelNotFound(f"{weights.name} of {name} is broken or incomplete: {first_line(error)}") from None
    wanted = {key: value for key, value in config.items() if key in _READ}
    try:
        around = peft.get_peft_model(
            model, peft.LoraConfig(**wanted, inference_mode=True), autocast_adapter_dtype=False
        ).eval()
        found = peft.set_peft_model_state_dict(around, tensors)
    except Exception as error:
        raise ModelNotFound(f"{name} doesn't fit its base model: {first_line(error)}") from error
    missing = [key for key in found.missing_keys if "lora_" in key or "modules_to_save" in key]
    if missing or found.unexpected_keys:
        which = f"it lacks {missing[0]}" if missing else f"it has {found.unexpected_keys[0]} besides"
        raise ModelNotFound(f"{name} doesn't fit its base model: {which}")
    return around


def _check_sizes(model: Any, config: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]], name: str) -> None:
    """Refuse an adapter file whose matrices or rank don't match its configuration."""
    targets, rank = config.get("target_modules"), config.get("r")
    if not isinstance(targets, list) or not all(isinstance(one, str) for one in cast("list[object]", targets)):
        raise UnsupportedModel(f"target_modules in {ADAPTER} of {name} isn't a list of names; {_YOURSELF}")
    if not isinstance(rank, int) or rank < 1:
        raise ModelNotFound(f"{ADAPTER} of {name} has rank r={str(rank)[:40]}; set a whole number of at least 1")
    ends = tuple(f".{one}" for one in cast("list[str]", targets))
    made = {path for path, _ in model.named_modules() if f".{path}".endswith(ends)}
    found = {
        key.removeprefix("base_model.model.").rpartition(".lora_")[0]: shape
        for key, shape in shapes.items()
        if ".lora_A" in key or ".lora_embedding_A" in key
    }
    if made != found.keys():
        odd = sorted(made ^ found.keys())[0]
        which = "the adapter's file lacks" if odd in made else "its configuration or the base model lacks"
        raise ModelNotFound(f"{name} doesn't fit its base model: {which} {odd[:120]}")
    other = next((shape for shape in found.values() if shape[:1] != (rank,)), None)
    if other is not None:
        raise ModelNotFound(
            f"{ADAPTER} of {name} has rank {rank}, but a matrix in its file has {other[0] if other else 'no size'}"
        )
