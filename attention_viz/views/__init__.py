"""Pictures: one function each, from a trace to a figure; `VIEWS` lists them.

Names load on first use, so that the colours in `views.theme` can be read without plotly.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attention_viz.views.aligned import alignment as alignment
    from attention_viz.views.atlas import head_grid as head_grid
    from attention_viz.views.atlas import head_map as head_map
    from attention_viz.views.atlas import head_scatter as head_scatter
    from attention_viz.views.calculation import angles as angles
    from attention_viz.views.calculation import learned as learned
    from attention_viz.views.calculation import steps as steps
    from attention_viz.views.changed import changed_heads as changed_heads
    from attention_viz.views.changed import changed_outputs as changed_outputs
    from attention_viz.views.changed import difference as difference
    from attention_viz.views.effects import head_effects as head_effects
    from attention_viz.views.likely import candidates as candidates
    from attention_viz.views.matrix import heatmap as heatmap
    from attention_viz.views.pictures import VIEWS as VIEWS
    from attention_viz.views.softmax import saturation as saturation
    from attention_viz.views.svg import heatmap_svg as heatmap_svg

# No module here may bear the name of a picture: importing it would put the module where the function belongs.
_HOMES = {
    "VIEWS": "pictures",
    "alignment": "aligned",
    "angles": "calculation",
    "candidates": "likely",
    "changed_heads": "changed",
    "changed_outputs": "changed",
    "difference": "changed",
    "head_effects": "effects",
    "head_grid": "atlas",
    "head_map": "atlas",
    "head_scatter": "atlas",
    "heatmap": "matrix",
    "heatmap_svg": "svg",
    "learned": "calculation",
    "saturation": "softmax",
    "steps": "calculation",
}

__all__ = list(_HOMES)  # pyright: ignore[reportUnsupportedDunderAll] -- resolved by __getattr__


def __getattr__(name: str) -> object:
    """Load a public name on first use (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
