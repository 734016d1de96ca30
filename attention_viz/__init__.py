"""attention_viz: see what attention in a transformer really computes.

The attention you see is the attention that ran: our own function computes inside the model, what it computed is kept
as one immutable `Trace`, and every picture, table and export is a function of that trace.

Names load on first use, so that `import attention_viz` costs nothing and needs neither torch nor plotly.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attention_viz import errors as errors
    from attention_viz import masks as masks
    from attention_viz import views as views
    from attention_viz.attention import Attention as Attention
    from attention_viz.attention import attend as attend
    from attention_viz.attribution import flow as flow
    from attention_viz.attribution import norm_weighted as norm_weighted
    from attention_viz.attribution import rollout as rollout
    from attention_viz.comparing import Comparison as Comparison
    from attention_viz.comparing import compare as compare
    from attention_viz.edits import Ablate as Ablate
    from attention_viz.edits import Allow as Allow
    from attention_viz.edits import Block as Block
    from attention_viz.edits import Replace as Replace
    from attention_viz.edits import Temperature as Temperature
    from attention_viz.errors import AttentionVizError as AttentionVizError
    from attention_viz.errors import DownloadCancelled as DownloadCancelled
    from attention_viz.errors import ModelNotFound as ModelNotFound
    from attention_viz.errors import ShapeError as ShapeError
    from attention_viz.errors import TextTooLong as TextTooLong
    from attention_viz.errors import TraceError as TraceError
    from attention_viz.errors import UnsupportedModel as UnsupportedModel
    from attention_viz.errors import UnusableText as UnusableText
    from attention_viz.explorer import Explorer as Explorer
    from attention_viz.explorer import explore as explore
    from attention_viz.from_scratch import scratch as scratch
    from attention_viz.likeness import similarity as similarity
    from attention_viz.merging import merge_words as merge_words
    from attention_viz.metrics import METRICS as METRICS
    from attention_viz.metrics import Metric as Metric
    from attention_viz.metrics import head_table as head_table
    from attention_viz.models import CATALOGUE as CATALOGUE
    from attention_viz.models import AttentionModel as AttentionModel
    from attention_viz.models import catalogue as catalogue
    from attention_viz.models import load as load
    from attention_viz.models import wrap as wrap
    from attention_viz.models.gradients import gradient as gradient
    from attention_viz.modules import AttentionHead as AttentionHead
    from attention_viz.modules import CrossAttention as CrossAttention
    from attention_viz.modules import MultiHeadAttention as MultiHeadAttention
    from attention_viz.modules import SelfAttention as SelfAttention
    from attention_viz.modules import from_torch as from_torch
    from attention_viz.readings import READINGS as READINGS
    from attention_viz.readings import Reading as Reading
    from attention_viz.search import find_heads as find_heads
    from attention_viz.tokens import Tokens as Tokens
    from attention_viz.trace import Fidelity as Fidelity
    from attention_viz.trace import Layer as Layer
    from attention_viz.trace import Provenance as Provenance
    from attention_viz.trace import Trace as Trace

__version__ = "0.1.0"

# Where each public name lives; `None` for a module that is itself the name.
_HOMES = {
    "errors": None,
    "masks": None,
    "views": None,
    "Attention": "attention",
    "attend": "attention",
    "flow": "attribution",
    "norm_weighted": "attribution",
    "rollout": "attribution",
    "Comparison": "comparing",
    "compare": "comparing",
    "Ablate": "edits",
    "Allow": "edits",
    "Block": "edits",
    "Replace": "edits",
    "Temperature": "edits",
    "AttentionVizError": "errors",
    "DownloadCancelled": "errors",
    "ModelNotFound": "errors",
    "ShapeError": "errors",
    "TextTooLong": "errors",
    "TraceError": "errors",
    "UnsupportedModel": "errors",
    "UnusableText": "errors",
    "Explorer": "explorer",
    "explore": "explorer",
    "similarity": "likeness",
    "merge_words": "merging",
    "METRICS": "metrics",
    "Metric": "metrics",
    "head_table": "metrics",
    "CATALOGUE": "models",
    "AttentionModel": "models",
    "catalogue": "models",
    "load": "models",
    "wrap": "models",
    "gradient": "models.gradients",
    "AttentionHead": "modules",
    "CrossAttention": "modules",
    "MultiHeadAttention": "modules",
    "SelfAttention": "modules",
    "from_torch": "modules",
    "scratch": "from_scratch",
    "READINGS": "readings",
    "Reading": "readings",
    "find_heads": "search",
    "Tokens": "tokens",
    "Fidelity": "trace",
    "Layer": "trace",
    "Provenance": "trace",
    "Trace": "trace",
}

__all__ = [*_HOMES, "__version__"]  # pyright: ignore[reportUnsupportedDunderAll] -- resolved by __getattr__


def __getattr__(name: str) -> object:
    """Load a public name on first use (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = _HOMES[name]
    module = importlib.import_module(f"{__name__}.{home or name}")
    value = module if home is None else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Every public name, loaded or not."""
    return sorted(__all__)
