"""Make other attention viewers' pages of the same weights."""

import importlib
import importlib.util
from collections.abc import Callable, Sequence
from typing import Any
from unittest import mock

from torch import Tensor

__all__ = ["PAGES", "bertviz_head_view", "bertviz_model_view", "inspectus_page"]

# One tensor a layer, (1, head, query, key), as transformers hands weights over; and the tokens.
Page = Callable[[Sequence[Tensor], Sequence[str]], str]


def bertviz_model_view(weights: Sequence[Tensor], tokens: Sequence[str]) -> str:
    """All layers and heads at once. The page takes d3, jQuery and require.js from the internet when it is opened."""
    return importlib.import_module("bertviz").model_view(list(weights), list(tokens), html_action="return").data


def bertviz_head_view(weights: Sequence[Tensor], tokens: Sequence[str]) -> str:
    """All heads of one layer over each other; the page holds every layer, and needs the internet as well."""
    return importlib.import_module("bertviz").head_view(list(weights), list(tokens), html_action="return").data


def inspectus_page(weights: Sequence[Tensor], tokens: Sequence[str]) -> str:
    """All layers and heads, in one page that needs nothing else."""
    shown: list[Any] = []
    with mock.patch("IPython.display.display", shown.append):
        importlib.import_module("inspectus").attention(tuple(weights), list(tokens))
    return "".join(part.data for part in shown)


def _installed(pages: dict[str, tuple[str, Page]]) -> dict[str, Page | None]:
    return {name: page if importlib.util.find_spec(package) else None for name, (package, page) in pages.items()}


# None for what is not installed: these come with benchmarks/requirements.txt only.
PAGES: dict[str, Page | None] = _installed(
    {
        "bertviz model_view": ("bertviz", bertviz_model_view),
        "bertviz head_view": ("bertviz", bertviz_head_view),
        "inspectus": ("inspectus", inspectus_page),
    }
)
