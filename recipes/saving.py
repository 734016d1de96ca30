"""A trained model on disk: weights in half precision, its tokenizer, what was measured, and the card that tells it."""

import importlib
import json
from pathlib import Path
from typing import Any, cast

import torch
from safetensors.torch import save_file
from torch import nn
from transformers.modeling_utils import PreTrainedModel
from transformers.tokenization_utils_tokenizers import TokenizersBackend as PreTrainedTokenizerFast

from recipes.recipe import Figures, Recipe, Snapshot, Trained

__all__ = ["fill_in", "open_model", "open_tokenizer", "save"]


def save(recipe: Recipe, trained: Trained, folder: Path) -> Figures:
    """Write everything that ships, and measure it as it was written: opened again, in half precision's numbers.

    Returns:
        What was measured.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if trained.processor is not None:
        trained.processor.save_pretrained(folder)
    _save_tokenizer(trained.tokenizer, folder)
    nn.Module.to(trained.model, torch.float16)
    trained.model.save_pretrained(folder)
    (folder / "model.safetensors").chmod(0o644)  # as it is written, nobody else may read it
    if trained.snapshots:
        _save_snapshots(trained.snapshots, folder / "snapshots")
    model, tokenizer = open_model(folder), open_tokenizer(folder)
    figures = {
        "seed": recipe.seed,
        "parameters": model.num_parameters(),
        "vocabulary": len(tokenizer),
        "bytes": (folder / "model.safetensors").stat().st_size,
        **recipe.measure(model, tokenizer),
    }
    _write_json(folder / "figures.json", figures)
    (folder / "card.md").write_text(fill_in(recipe.card, figures), encoding="utf-8")
    return figures


def fill_in(card: str, figures: Figures) -> str:
    """A card with its figures: {name} becomes a number of three digits, or a whole one with its thousands apart."""
    cells = {name: f"{value:,}" if isinstance(value, int) else f"{value:.3f}" for name, value in figures.items()}
    return card.format(**cells)


def open_model(folder: Path) -> PreTrainedModel:
    """A saved model, in single precision and ready to run."""
    (kind,) = json.loads((folder / "config.json").read_text(encoding="utf-8"))["architectures"]
    model = cast(
        PreTrainedModel,
        getattr(importlib.import_module("transformers"), kind).from_pretrained(folder, local_files_only=True),
    )
    nn.Module.to(model, torch.float32)
    return model.eval()


def open_tokenizer(folder: Path) -> PreTrainedTokenizerFast:
    """The tokenizer that was saved beside a model."""
    return PreTrainedTokenizerFast.from_pretrained(folder, local_files_only=True)


def _save_tokenizer(tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    tokenizer.save_pretrained(folder)
    path = folder / "tokenizer_config.json"
    config = cast("dict[str, Any]", json.loads(path.read_text(encoding="utf-8")))
    # The newest transformers write a name that older ones don't know; both know this one.
    _write_json(path, config | {"tokenizer_class": "PreTrainedTokenizerFast"})


def _save_snapshots(snapshots: list[Snapshot], folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.safetensors"):
        old.unlink()
    for snapshot in snapshots:
        halves = {name: tensor.to(torch.float16).contiguous() for name, tensor in snapshot.weights.items()}
        path = folder / f"{snapshot.step}.safetensors"
        save_file(halves, path, metadata={"format": "pt"})
        path.chmod(0o644)
    _write_json(folder / "snapshots.json", [{"step": each.step, **each.figures} for each in snapshots])


def _write_json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
