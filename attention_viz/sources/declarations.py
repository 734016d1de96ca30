"""Check a model's files for attention kernels, quantization, adapters and other formats.

Each is decided here by name, so that nothing reaches transformers unseen, and nothing is ignored silently.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, cast

from safetensors import SafetensorError, safe_open

from attention_viz.errors import ModelNotFound, UnsupportedModel

ADAPTER = "adapter_config.json"
# Makes transformers look for an adapter inside a file, so that it finds none. It would load one by itself, and by the
# path or the id that a stranger's file names.
NO_ADAPTER = {"subfolder": "config.json"}

_ATTENTION = ("attn_implementation", "_attn_implementation", "_attn_implementation_internal")
_BUILT_IN = ("eager", "sdpa", "flex_attention", "flash_attention_2", "flash_attention_3", "flash_attention_4")
_QUANTIZED = ("quantization_config", "compression_config")
_YOURSELF = "load it with transformers and use av.wrap"
# Bytes of all headers together: 200,000 tensors take 20 million.
_LONGEST_HEADER = 40_000_000
# Models with many experts have 90,000 tensors, of a million numbers each; no tensor has as many axes.
MOST_TENSORS, _NUMBERS_A_TENSOR, _MOST_AXES = 50_000, 1_000, 8


def refuse_declared(config: Mapping[str, Any], name: str) -> None:
    """Refuse a configuration, or a part of one, with foreign attention code or quantized weights."""
    for part in _parts(config):
        for key in _ATTENTION:
            for asked in _named(part.get(key)):
                if asked.removeprefix("paged|") not in _BUILT_IN:
                    raise UnsupportedModel(
                        f"can't load {name} with the attention implementation {asked[:80]!r}. In config.json, remove "
                        f"{key} or choose {', '.join(_BUILT_IN)}; or {_YOURSELF}"
                    )
        for key in _QUANTIZED:
            if part.get(key) is not None:
                raise UnsupportedModel(
                    f"can't load {name}, which is quantized ({_method(part[key])}, by {key} in config.json); get the "
                    f'model without quantization and load it with quantization="int8" or "int4", or {_YOURSELF}'
                )


def refuse_without_config(path: Path, name: str) -> NoReturn:
    """Raise an error that says what a folder without config.json is, as far as its files show."""
    if (path / ADAPTER).is_file():
        raise UnsupportedModel(
            f"{name} is a PEFT adapter, not a whole model; load it with av.load, or save the whole model with "
            "peft_model.merge_and_unload().save_pretrained(folder)"
        )
    refuse_gguf((file.name for file in path.iterdir()), name)
    raise ModelNotFound(f"{name} has no config.json; a model folder needs config.json and model.safetensors")


def refuse_gguf(files: Iterable[str], name: str) -> None:
    """Refuse GGUF weights."""
    found = sorted(file for file in files if file.lower().endswith(".gguf"))
    if found:
        raise UnsupportedModel(
            f"can't read the GGUF weights of {name} ({found[0][:80]}) here; give the file to av.load or a command, or "
            "convert it with AutoModelForCausalLM.from_pretrained(folder, gguf_file=…).save_pretrained(other_folder)"
        )


def notes_on(path: Path) -> tuple[str, ...]:
    """Return notes for readers of a folder's traces."""
    if (path / ADAPTER).is_file():
        return (f"The folder has a whole model and an {ADAPTER}. The adapter isn't applied.",)
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
    """Return the attention implementations that an entry names; a mapping names one per part."""
    values = cast("Mapping[str, object]", value).values() if isinstance(value, Mapping) else [value]
    return [one if isinstance(one, str) else repr(one) for one in values if one is not None]


def _method(value: object) -> str:
    if not isinstance(value, Mapping):
        return "a method without a name"
    entry = cast("Mapping[str, object]", value)
    return str(entry.get("quant_method") or "a method without a name")[:40]


class Header(NamedTuple):
    """Tensors in some safetensors files, by name; dtypes are in the format's own words, such as F32."""

    shapes: dict[str, tuple[int, ...]]
    dtypes: dict[str, str]


def read_headers(files: Sequence[Path], name: str) -> Header:
    """Return the tensors' shapes and dtypes from some files' headers."""
    found, length = Header({}, {}), 0
    for file in files:
        length += _header_length(file, name)
        if length > _LONGEST_HEADER:
            raise UnsupportedModel(
                f"the weights' headers of {name} have {length:,} bytes; at most {_LONGEST_HEADER:,} are allowed"
            )
        header = _header(file, name)
        found.shapes.update(header.shapes)
        found.dtypes.update(header.dtypes)
    _check(found.shapes, name)
    return found


def _check(shapes: dict[str, tuple[int, ...]], name: str) -> None:
    axes = max(map(len, shapes.values()), default=0)
    if axes > _MOST_AXES:
        raise UnsupportedModel(f"a weight tensor of {name} has {axes:,} axes; at most {_MOST_AXES} are allowed")
    if len(shapes) <= MOST_TENSORS:
        return
    most = MOST_TENSORS + sum(map(prod, shapes.values())) // _NUMBERS_A_TENSOR
    if len(shapes) > most:
        raise UnsupportedModel(
            f"the weights of {name} are {len(shapes):,} tensors; at most {most:,} are allowed with as few numbers"
        )


def _header_length(file: Path, name: str) -> int:
    """Return the declared length of a safetensors header, at most the file's length."""
    try:
        with file.open("rb") as opened:
            return min(int.from_bytes(opened.read(8), "little"), file.stat().st_size)
    except OSError as error:  # its own words would reveal the path
        raise ModelNotFound(f"can't read {file.name} of {name}: {error.strerror}") from None


def _header(file: Path, name: str) -> Header:
    """Return a file's header; refuse a file whose length doesn't match it."""
    broken = f"{file.name} of {name} is broken or half-written"
    try:
        with safe_open(file, framework="np") as weights:
            slices = {key: weights.get_slice(key) for key in weights.keys()}
            shapes = {key: tuple(one.get_shape()) for key, one in slices.items()}
            return Header(shapes, {key: str(one.get_dtype()) for key, one in slices.items()})
    except SafetensorError as error:
        if "not fully covered" not in str(error):
            raise ModelNotFound(f"{broken}, without a readable safetensors header; get it again") from None
        size = file.stat().st_size
        raise ModelNotFound(f"{broken}, with {size:,} bytes and a header for another size; get it again") from None
    except MemoryError:
        raise UnsupportedModel(f"not enough memory to open {file.name} of {name}; use a smaller model") from None
    except OSError as error:  # its own words would reveal the path
        raise ModelNotFound(f"can't read {file.name} of {name}: {error.strerror}") from None
