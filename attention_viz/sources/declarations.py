"""What a model's files ask for beyond weights and sizes: attention kernels, quantization, adapters, other formats.

Each is decided here by name, so that nothing is handed to transformers unseen, and nothing is ignored in silence.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn, cast

from attention_viz.errors import ModelNotFound, UnsupportedModel

__all__ = ["ADAPTER", "NO_ADAPTER", "notes_on", "refuse_declared", "refuse_gguf", "refuse_without_config"]

ADAPTER = "adapter_config.json"
# Makes transformers look for an adapter inside a file, so that it finds none. It would load one by itself, and by the
# path or the id that a stranger's file names.
NO_ADAPTER = {"subfolder": "config.json"}

_ATTENTION = ("attn_implementation", "_attn_implementation", "_attn_implementation_internal")
_BUILT_IN = ("eager", "sdpa", "flex_attention", "flash_attention_2", "flash_attention_3", "flash_attention_4")
_QUANTIZED = ("quantization_config", "compression_config")
_YOURSELF = "load it with transformers and give it to av.wrap"


def refuse_declared(config: Mapping[str, Any], name: str) -> None:
    """Refuse a configuration, or a part of one, that asks for foreign attention code or for quantized weights."""
    for part in _parts(config):
        for key in _ATTENTION:
            for asked in _named(part.get(key)):
                if asked.removeprefix("paged|") not in _BUILT_IN:
                    raise UnsupportedModel(
                        f"{name}: config.json asks for the attention implementation {asked[:80]!r}, code from "
                        f"elsewhere that isn't loaded here; allowed are {', '.join(_BUILT_IN)}. Take {key} out of "
                        f"config.json, or {_YOURSELF}"
                    )
        for key in _QUANTIZED:
            if part.get(key) is not None:
                raise UnsupportedModel(
                    f"{name} is quantized ({_method(part[key])}, by {key} in config.json), and quantized weights "
                    f"aren't loaded here; get the model without quantization, or {_YOURSELF}"
                )


def refuse_without_config(path: Path, name: str) -> NoReturn:
    """Say what a folder without config.json is, as far as its files tell."""
    if (path / ADAPTER).is_file():
        raise UnsupportedModel(
            f"{name} is an adapter of PEFT, not a whole model: it can be loaded by av.load. To open it here, save the "
            "model with it: peft_model.merge_and_unload().save_pretrained(folder)"
        )
    refuse_gguf((file.name for file in path.iterdir()), name)
    raise ModelNotFound(f"{name} holds no config.json; a model folder needs config.json and model.safetensors")


def refuse_gguf(files: Iterable[str], name: str) -> None:
    """Refuse weights as GGUF."""
    found = sorted(file for file in files if file.lower().endswith(".gguf"))
    if found:
        raise UnsupportedModel(
            f"{name} has its weights as GGUF ({found[0][:80]}), which isn't read here; get the model as safetensors, "
            "or convert it: AutoModelForCausalLM.from_pretrained(folder, gguf_file=…).save_pretrained(other_folder)"
        )


def notes_on(path: Path) -> tuple[str, ...]:
    """Return what a reader of a folder's traces has to know."""
    if (path / ADAPTER).is_file():
        return (f"The folder has an {ADAPTER} beside the whole model. That adapter isn't applied.",)
    return ()


def _parts(config: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield a configuration and all that are nested in it."""
    waiting: list[Any] = [config]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Mapping):
            yield cast("Mapping[str, Any]", part)
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part


def _named(value: object) -> list[str]:
    """List the attention implementations that an entry names; a mapping names one per part of the model."""
    values = cast("Mapping[str, object]", value).values() if isinstance(value, Mapping) else [value]
    return [one if isinstance(one, str) else repr(one) for one in values if one is not None]


def _method(value: object) -> str:
    if not isinstance(value, Mapping):
        return "a method without a name"
    entry = cast("Mapping[str, object]", value)
    return str(entry.get("quant_method") or "a method without a name")[:40]
