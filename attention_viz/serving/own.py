"""Further runs of our own module: its variants, and heads of many widths."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attention_viz.serving.cache import SharedCache
from attention_viz.serving.door import FORWARDS
from attention_viz.serving.run import OwnModule
from attention_viz.serving.settings import SETTINGS

if TYPE_CHECKING:
    from torch import Tensor

    from attention_viz.operation.modules import Projection
    from attention_viz.trace.trace import Trace

# The largest width of our own module.
LARGEST_WIDTH = 512


@dataclass(frozen=True, eq=False)
class OwnRun:
    """A run of our own module; `parts` sum to embeddings."""

    trace: "Trace"
    projections: "Mapping[str, Projection]"
    parts: "Mapping[str, Tensor]"


def run_own(text: str, own: OwnModule, variant: str) -> OwnRun:
    """Run a variant of our own module, once."""
    return _runs.get((text, own, variant), lambda: _run(text, own, variant))


def _run(text: str, own: OwnModule, variant: str) -> OwnRun:
    from attention_viz.scratch.model import Scratch
    from attention_viz.scratch.variants import run_variant
    from attention_viz.scratch.vectors import sinusoidal, word_vectors

    with FORWARDS:
        trace, known = run_variant(Scratch(own.d_model, own.heads, own.seed, own.positions), text, variant)
    words = trace.query_tokens().labels
    parts = {"word vector": word_vectors(words, own.d_model, own.seed)}
    if own.positions == "sinusoidal":
        parts["position"] = sinusoidal(len(words), own.d_model)
    return OwnRun(trace, known, parts)


def run_widths(text: str, heads: int, seed: int, positions: str) -> "tuple[Trace, ...]":
    """Run the text with doubling head widths."""
    key = (text, heads, seed, positions)
    return _widths.get(key, lambda: _run_widths(*key))


def _run_widths(text: str, heads: int, seed: int, positions: str) -> "tuple[Trace, ...]":
    from attention_viz.scratch.model import Scratch

    sizes = [2**power for power in range(10) if 2**power * heads <= LARGEST_WIDTH]
    with FORWARDS:
        return tuple(Scratch(size * heads, heads, seed, positions).trace(text) for size in sizes)


_runs: SharedCache[tuple[str, OwnModule, str], OwnRun] = SharedCache(
    SETTINGS.trace_memory * 1_000_000, lambda run: run.trace.nbytes
)
_widths: "SharedCache[tuple[str, int, int, str], tuple[Trace, ...]]" = SharedCache(
    SETTINGS.trace_memory * 1_000_000, lambda traces: sum(trace.nbytes for trace in traces)
)
