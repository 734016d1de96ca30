"""A model from a folder: safetensors only, nothing executable, and a plain word about whatever is wrong with it."""

import contextlib
import hashlib
import json
from collections.abc import Generator
from pathlib import Path
from typing import Any, cast

import torch
import transformers
from torch import nn
from transformers import AutoModel, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from attention_viz.errors import ModelNotFound, UnsupportedModel
from attention_viz.models.model import AttentionModel
from attention_viz.models.probe import first_line
from attention_viz.trace import Provenance

__all__ = ["load_folder"]

_PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl", "*.h5", "*.msgpack")
_TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "spiece.model")
_DTYPES = ("float64", "float32", "bfloat16", "float16")


def load_folder(
    folder: Path, name: str, *, device: str = "auto", dtype: str = "auto", sha256: str | None = None
) -> AttentionModel:
    """Load a model and its tokenizer from a folder, and wrap it.

    Args:
        folder: where config.json, model.safetensors and the tokenizer's files are.
        name: what to call the model.
        device: "cpu", "cuda" …; "auto" takes a GPU where there is one.
        dtype: "float32", "float16", "bfloat16"; "auto" is float32 on a CPU and the model's own on a GPU.
        sha256: what the weights file has to have, where that is known.

    Raises:
        ModelNotFound: the folder lacks something, or something in it is broken.
        UnsupportedModel: the folder holds code or pickles, or the model can't be recorded exactly.
    """
    config = _read_config(folder)
    weights = _weights_file(folder)
    found = None if weights is None else _sha256(weights)
    if sha256 is not None and found != sha256:
        raise ModelNotFound(
            f"the weights of {name} have sha256 {found}, expected {sha256}: the file is damaged or another's"
        )
    place = _device(device)
    with _quietly():
        hf_model = _read_model(folder, config, _dtype(dtype, place))
        tokenizer = _read_tokenizer(folder)
    # A module is moved in place; what `to` returns is the same object, only without its type.
    nn.Module.to(hf_model, place)
    return AttentionModel.of(hf_model, tokenizer, Provenance(model=name, sha256=found))


def _read_config(folder: Path) -> dict[str, Any]:
    path = folder / "config.json"
    if not path.is_file():
        raise ModelNotFound(f"{folder} holds no config.json; a model folder needs config.json and model.safetensors")
    config = _read_json(path)
    if not isinstance(config.get("model_type"), str):
        raise ModelNotFound(f"{path} names no model_type, so nothing says what kind of model this is")
    _refuse_code(folder, config)
    return config


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError, RecursionError) as error:
        raise ModelNotFound(f"{path} can't be read: {error}") from None
    if not isinstance(content, dict):
        raise ModelNotFound(f"{path} can't be read: it holds no JSON object")
    return cast("dict[str, Any]", content)


def _refuse_code(folder: Path, config: dict[str, Any]) -> None:
    if "auto_map" in config:
        raise UnsupportedModel(
            f"{folder} brings code of its own to run (auto_map); only models without code are loaded"
        )


def _weights_file(folder: Path) -> Path | None:
    """The single weights file; None for weights in several files, which an index lists."""
    if (folder / "model.safetensors").is_file():
        return folder / "model.safetensors"
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        _check_index(index)
        return None
    pickles = sorted(file.name for pattern in _PICKLES for file in folder.glob(pattern))
    if pickles:
        raise UnsupportedModel(
            f"{folder} has its weights as {', '.join(pickles)}, a format that can run code when it is opened; "
            "only safetensors are loaded. Convert them with model.save_pretrained"
        )
    raise ModelNotFound(f"{folder} holds no model.safetensors")


def _check_index(path: Path) -> None:
    """Refuse an index that leads to anything but safetensors beside it."""
    files = _read_json(path).get("weight_map")
    if not isinstance(files, dict) or not files:
        raise ModelNotFound(f"{path} lists no weights")
    for name in {str(name) for name in cast("dict[str, object]", files).values()}:
        if Path(name).name != name or Path(name).suffix != ".safetensors":
            raise UnsupportedModel(f"{path} leads to {name!r}; only safetensors in the same folder are loaded")
        if not (path.parent / name).is_file():
            raise ModelNotFound(f"{path.parent} lacks {name}, which its index lists")


def _read_model(folder: Path, config: dict[str, Any], dtype: torch.dtype | str) -> PreTrainedModel:
    try:
        model, report = _kind(config).from_pretrained(
            str(folder),
            local_files_only=True,
            use_safetensors=True,
            trust_remote_code=False,
            dtype=dtype,
            output_loading_info=True,
        )
    except Exception as error:
        raise ModelNotFound(f"{folder} can't be loaded as {config['model_type']}: {first_line(error)}") from error
    # A pooler sums up a text beside the way to the last hidden state; many folders leave it out.
    missing = sorted(name for name in report["missing_keys"] if "pooler" not in name.split("."))
    if missing:
        raise ModelNotFound(
            f"the weights in {folder} are incomplete: {len(missing)} are missing, such as {missing[0]}; "
            "what is missing would be random numbers"
        )
    return model


def _kind(config: dict[str, Any]) -> Any:
    """The class that the folder's model is of, so that it comes with its head; the bare model where none is told."""
    names = config.get("architectures")
    name = cast("list[object]", names)[0] if isinstance(names, list) and names else None
    found = getattr(transformers, str(name), None)
    return found if isinstance(found, type) and issubclass(found, PreTrainedModel) else AutoModel


def _read_tokenizer(folder: Path) -> PreTrainedTokenizerBase | None:
    if not any((folder / name).is_file() for name in _TOKENIZER_FILES):
        return None
    if (folder / "tokenizer_config.json").is_file():
        _refuse_code(folder, _read_json(folder / "tokenizer_config.json"))
    try:
        return cast(
            "PreTrainedTokenizerBase",
            AutoTokenizer.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False),
        )
    except Exception as error:
        raise ModelNotFound(f"the tokenizer in {folder} can't be loaded: {first_line(error)}") from error


def _device(asked: str) -> torch.device:
    if asked == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        return torch.empty(0, device=asked).device
    except (RuntimeError, AssertionError) as error:
        raise UnsupportedModel(
            f"the device {asked!r} was asked for, which this machine doesn't have: {first_line(error)}"
        ) from None


def _dtype(asked: str, device: torch.device) -> torch.dtype | str:
    if asked == "auto":
        return torch.float32 if device.type == "cpu" else "auto"
    if asked not in _DTYPES:
        raise UnsupportedModel(f"the dtype {asked!r} was asked for; allowed are auto, {', '.join(_DTYPES)}")
    return cast(torch.dtype, getattr(torch, asked))


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def _quietly() -> Generator[None]:
    """Without transformers' progress bars, which belong to a terminal of its own user."""
    logging: Any = transformers.utils.logging
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
