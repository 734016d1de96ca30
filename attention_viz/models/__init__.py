"""Pretrained models: finding, loading, refusing, and recording what attention does inside them.

Names load on first use, so that the catalogue can be listed without importing transformers.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attention_viz.models.entries import CATALOGUE as CATALOGUE
    from attention_viz.models.entries import Entry as Entry
    from attention_viz.models.entries import catalogue as catalogue
    from attention_viz.models.entries import load as load
    from attention_viz.models.fetching import download as download
    from attention_viz.models.hub import Plan as Plan
    from attention_viz.models.hub import plan as plan
    from attention_viz.models.model import AttentionModel as AttentionModel
    from attention_viz.models.snapshots import SNAPSHOTS as SNAPSHOTS
    from attention_viz.models.snapshots import moments as moments
    from attention_viz.models.wrapping import wrap as wrap

_HOMES = {
    "CATALOGUE": "entries",
    "Entry": "entries",
    "catalogue": "entries",
    "load": "entries",
    "download": "fetching",
    "Plan": "hub",
    "plan": "hub",
    "AttentionModel": "model",
    "SNAPSHOTS": "snapshots",
    "moments": "snapshots",
    "wrap": "wrapping",
}

__all__ = list(_HOMES)  # pyright: ignore[reportUnsupportedDunderAll] -- resolved by __getattr__


def __getattr__(name: str) -> object:
    """Load a public name on first use (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
