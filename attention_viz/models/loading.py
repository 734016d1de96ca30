"""A model from a folder: safetensors only, nothing executable, and a plain word about whatever is wrong with it."""

import contextlib
import hashlib
import json
from collections.abc import Generator
from pathlib import Path
from typing import Any, cast

import torch
import transformers
from transformers import AutoModel, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from attention_viz.errors import ModelNotFound, UnsupportedModel
from attention_viz.models.model import AttentionModel
from attention_viz.trace import Provenance

__all__ = ["load_folder"]

_PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl", "*.h5", "*.msgpack")
_TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "spiece.model")


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
    device = _device(device)
    with _quietly():
        hf_model = _read_model(folder, config, _dtype(dtype, device))
        tokenizer = _read_tokenizer(folder)
    provenance = Provenance(model=name, sha256=found)
    return AttentionModel.of(cast("PreTrainedModel", hf_model.to(device)), tokenizer, provenance)  # pyright: ignore


def _read_config(folder: Path) -> dict[str, Any]:
    path = folder / "config.json"
    if not path.is_file():
        raise ModelNotFound(f"{folder} holds no config.json; a model folder needs config.json and model.safetensors")
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise ModelNotFound(f"{path} can't be read: {error}") from None
    if not isinstance(config, dict) or "model_type" not in config:
        raise ModelNotFound(f"{path} names no model_type, so nothing says what kind of model this is")
    config = cast("dict[str, Any]", config)
    if "auto_map" in config:
        raise UnsupportedModel(
            f"{folder} brings code of its own to run (auto_map); only models without code are loaded"
        )
    return config


def _weights_file(folder: Path) -> Path | None:
    """The single weights file; None for weights in several files, which an index lists."""
    if (folder / "model.safetensors").is_file():
        return folder / "model.safetensors"
    if (folder / "model.safetensors.index.json").is_file():
        return None
    pickles = sorted(file.name for pattern in _PICKLES for file in folder.glob(pattern))
    if pickles:
        raise UnsupportedModel(
            f"{folder} has its weights as {', '.join(pickles)}, a format that can run code when it is opened; "
            "only safetensors are loaded. Convert them with model.save_pretrained"
        )
    raise ModelNotFound(f"{folder} holds no model.safetensors")


def _read_model(folder: Path, config: dict[str, Any], dtype: torch.dtype | str) -> PreTrainedModel:
    names = cast("list[str]", config.get("architectures") or [])
    architecture = getattr(transformers, names[0], None) if names else None
    kind: Any = architecture if isinstance(architecture, type) else AutoModel
    try:
        return kind.from_pretrained(
            str(folder), local_files_only=True, use_safetensors=True, trust_remote_code=False, dtype=dtype
        )
    except Exception as error:
        raise ModelNotFound(f"{folder} can't be loaded as {config['model_type']}: {error}") from error


def _read_tokenizer(folder: Path) -> PreTrainedTokenizerBase | None:
    if not any((folder / name).is_file() for name in _TOKENIZER_FILES):
        return None
    try:
        return cast(
            "PreTrainedTokenizerBase",
            AutoTokenizer.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False),
        )
    except Exception as error:
        raise ModelNotFound(f"the tokenizer in {folder} can't be loaded: {error}") from error


def _device(asked: str) -> str:
    if asked != "auto":
        return asked
    return "cuda" if torch.cuda.is_available() else "cpu"


def _dtype(asked: str, device: str) -> torch.dtype | str:
    if asked == "auto":
        return torch.float32 if device == "cpu" else "auto"
    found = getattr(torch, asked, None)
    if not isinstance(found, torch.dtype) or not found.is_floating_point:
        raise UnsupportedModel(
            f"the dtype {asked!r} was asked for; allowed are auto, float32, float16, bfloat16, float64"
        )
    return found


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
