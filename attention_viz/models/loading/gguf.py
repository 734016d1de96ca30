"""Load a GGUF file through transformers, after a trial in a bounded process.

A GGUF file holds numbers, a vocabulary and a chat template, and nothing that runs. transformers unpacks its blocks, so
the model takes as much memory as unpacked ones do.
"""

import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from attention_viz.errors import ModelNotFound, UnsupportedModel, first_line
from attention_viz.models.loading.gguf_trial import read_gguf_config
from attention_viz.models.loading.placement import place_whole
from attention_viz.sources.bounded import process
from attention_viz.sources.bounded.framing import Message
from attention_viz.sources.bounded.limits import Limits
from attention_viz.sources.building import in_turn, quietly
from attention_viz.sources.folders import sha256_of
from attention_viz.sources.huggingface import AutoTokenizer, PreTrainedModel, transformers
from attention_viz.sources.load_options import LoadOptions

if TYPE_CHECKING:
    from attention_viz.models.model import AttentionModel

__all__ = ["empty_gguf", "load_gguf"]

_MODULE = "attention_viz.models.loading.gguf_trial"
# The largest published vocabularies take some seconds to read.
_LIMITS = Limits(memory=2_000_000_000, seconds=90.0, processor=45.0, answer=1_000_000)


def load_gguf(file: Path, name: str, options: LoadOptions, check: Callable[[], None]) -> "AttentionModel":
    """Load a model and its tokenizer from a GGUF file, and wrap it; an exception in `check` ends the load."""
    _check_wanted(name, options)
    kind, words = _tried(file, name, check)
    where = place_whole(name, options)
    before = file.stat()
    sha256 = sha256_of(file, check)
    with quietly():
        model = _read(file, name, kind, where, check)
        tokenizer = _tokenizer(file, name) if words else None
    check()
    after = file.stat()
    if (before.st_mtime_ns, before.st_size) != (after.st_mtime_ns, after.st_size):
        raise ModelNotFound(f"{file.name} changed while it was read; open it again once it is written")

    from attention_viz.models.model import AttentionModel
    from attention_viz.trace.trace import Provenance

    notes = (f"Read from the GGUF file {file.name}, with its numbers unpacked by transformers.",)
    return AttentionModel.of(model, tokenizer, Provenance(model=name, sha256=sha256, notes=notes))


def empty_gguf(file: Path, name: str, options: LoadOptions, check: Callable[[], None]) -> Any:
    """Build the model of a GGUF file without numbers, after the same trial."""
    _check_wanted(name, options)
    kind, _ = _tried(file, name, check)
    found: Any = getattr(transformers, kind)
    with quietly(), in_turn(check), torch.device("meta"):
        model = found(read_gguf_config(file))
    model.tie_weights()
    return model


def _check_wanted(name: str, options: LoadOptions) -> None:
    """Refuse options that a GGUF file can't be loaded with, and missing packages."""
    missing = [package for package in ("gguf", "accelerate") if importlib.util.find_spec(package) is None]
    if missing:
        raise UnsupportedModel(
            f'{name} is a GGUF file, which needs {" and ".join(missing)}; run pip install "attention-viz[large]"'
        )
    if options.quantization is not None:
        raise UnsupportedModel(f"{name} is a GGUF file, whose numbers are quantized already; leave out quantization")


def _tried(file: Path, name: str, check: Callable[[], None]) -> tuple[str, bool]:
    """Return the name of the model's class, and whether there is a vocabulary, from a trial in a process of its own."""
    request = Message({"path": str(file.resolve()), "name": name})
    if not process.isolates():
        from attention_viz.models.loading.gguf_trial import try_gguf

        return _known(name, try_gguf(file, name))
    one = process.Process(_MODULE, _LIMITS)
    try:
        return _known(name, one.ask(request, check).values)
    except process.Broken as broken:
        raise ModelNotFound(f"can't load {name}: {broken}") from None
    except process.ProcessEnded as stopped:
        raise UnsupportedModel(f"can't load {name}: reading its metadata and building the model {stopped}") from None
    finally:
        one.end()


def _known(name: str, values: Mapping[str, object]) -> tuple[str, bool]:
    kind = values.get("kind")
    found = getattr(transformers, kind, None) if isinstance(kind, str) else None
    if isinstance(kind, str) and isinstance(found, type) and issubclass(found, PreTrainedModel):
        return kind, values.get("words") is True
    raise UnsupportedModel(f"the process that tests {name} before loading gave no result; load the model again")


def _read(file: Path, name: str, kind: str, where: Any, check: Callable[[], None]) -> Any:
    found: Any = getattr(transformers, kind)
    try:
        with in_turn(check):
            config = read_gguf_config(file)
            model, report = found.from_pretrained(
                str(file.parent),
                gguf_file=file.name,
                config=config,
                local_files_only=True,
                trust_remote_code=False,
                dtype=where.dtype,
                device_map={"": str(where.device)},
                output_loading_info=True,
                quantization_config=transformers.GgufConfig(dequantize=True),
            )
    except Exception as error:
        raise ModelNotFound(f"can't load {name}: {first_line(error)}") from error
    missing = sorted(report["missing_keys"])
    if missing:
        raise ModelNotFound(f"{name} lacks {len(missing)} tensors, such as {missing[0]}, which would be random")
    return model.eval()


def _tokenizer(file: Path, name: str) -> Any:
    """Return the file's own tokenizer."""
    try:
        return AutoTokenizer.from_pretrained(
            str(file.parent), gguf_file=file.name, local_files_only=True, trust_remote_code=False
        )
    except Exception as error:
        raise ModelNotFound(f"can't load the tokenizer of {name}: {first_line(error)}") from error
