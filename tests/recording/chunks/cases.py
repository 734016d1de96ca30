"""Tiny models that attend over an image in chunks: several pictures, frames or windows."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from transformers.modeling_utils import PreTrainedModel

from scripts.seen.building import seen_families, tiny_seen
from scripts.seen.inputs import noise
from scripts.seen.reading import example_of
from scripts.tiny import scaled

WORDS = (11, 22, 33, 44, 55, 66, 77)


class Case(NamedTuple):
    """A family, its pictures as (frames, rows, columns) of patches, and each layer's chunks by length."""

    family: str
    grid: tuple[tuple[int, int, int], ...]
    chunks: tuple[tuple[int, ...], ...]

    def __str__(self) -> str:
        """Return the case's name in pytest."""
        return f"{self.family} {'+'.join('×'.join(map(str, one)) for one in self.grid)}"


TWO = ((1, 4, 4), (1, 4, 8))
# Windows of 4 × 4 patches in the first layer, the whole picture in the second.
WINDOWS = (16,) * 6
CASES = (
    Case("qwen2_vl", ((2, 4, 4),), ((16, 16), (16, 16))),
    Case("qwen2_vl", TWO, ((16, 32), (16, 32))),
    Case("qwen2_5_vl", ((1, 8, 12),), (WINDOWS, ())),
    Case("qwen3_vl", ((3, 4, 4),), ((16, 16, 16), (16, 16, 16))),
    Case("qwen3_5", ((1, 4, 4), (1, 8, 4)), ((16, 32), (16, 32))),
    Case("glm4v", ((1, 4, 4), (1, 4, 6)), ((16, 24), (16, 24))),
    Case("kimi_k25", TWO, ((16, 32), (16, 32))),
    Case("ernie4_5_vl_moe", TWO, ((16, 32), (16, 32))),
    Case("paddleocr_vl", TWO, ((16, 32), (16, 32))),
    Case("muse_spark", TWO, ((16, 32), (16, 32))),
    Case("hunyuan_vl", TWO, ((16, 32), (16, 32))),
)


def tiny(name: str) -> PreTrainedModel:
    """Return a family's tiny model, scaled so that its attention isn't uniform."""
    family = next(one for one in seen_families() if one.name == name)
    model = next(iter(tiny_seen(family)))
    if name == "qwen2_5_vl":
        model = _windowed(model)
    return scaled(model, 8)


def _windowed(model: PreTrainedModel) -> PreTrainedModel:
    tower: Any = next(one for one in model.modules() if hasattr(one, "fullatt_block_indexes"))
    tower.window_size, tower.fullatt_block_indexes = 32, [1]
    return model


def inputs_of(model: PreTrainedModel, grid: Sequence[Sequence[int]]) -> dict[str, Tensor]:
    """Return pictures of random patches, and a text with as many placeholders as the model asks for."""
    example = example_of(model)
    count = sum(frames * rows * columns for frames, rows, columns in grid)
    pixels = noise(count, *example["pixel_values"].shape[1:])
    mark = next(one for one in example["input_ids"][0].tolist() if one not in WORDS)
    for row in _texts(grid, mark):
        ids = torch.tensor([row])
        found = {**example, "pixel_values": pixels, "input_ids": ids, "attention_mask": torch.ones_like(ids)}
        found |= {name: torch.tensor(grid) for name in example if name.endswith("grid_thw")}
        if "mm_token_type_ids" in example:
            found["mm_token_type_ids"] = (ids == mark).long()
        try:
            with torch.no_grad():
                model(**found)
        except (ValueError, RuntimeError, IndexError):
            continue
        return found
    raise AssertionError("no text fits")


def _texts(grid: Sequence[Sequence[int]], mark: int) -> Iterator[list[int]]:
    """Yield texts with each picture's placeholders: one per 2 × 2 patches, one for all frames, or newlines too."""
    merged = [[frames, rows // 2, columns // 2] for frames, rows, columns in grid]
    for counts in (
        [frames * rows * columns for frames, rows, columns in merged],
        [rows * columns for _, rows, columns in merged],
        [rows * (columns + 1) + 2 for _, rows, columns in merged],
    ):
        row: list[int] = list(WORDS[:3])
        for number, count in enumerate(counts, 3):
            row += [mark] * count + [WORDS[number]]
        yield row + list(WORDS[3 + len(counts) :])
