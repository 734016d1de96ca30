"""What the Step by step page opens: the run on the screen, the learned matrices around it, and its variants."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from torch import Tensor

from attention_viz.operation.projection import Projection
from attention_viz.scratch.model import Scratch
from attention_viz.scratch.variants import run_variant
from attention_viz.scratch.vectors import sinusoidal, word_vectors
from attention_viz.serving.cache import SharedCache
from attention_viz.serving.runs import Drawn, projections
from attention_viz.serving.settings import SETTINGS
from attention_viz.steps.head import OpenHead, open_head
from attention_viz.trace.trace import Trace
from attention_viz.ui.address import State

__all__ = ["LARGEST_WIDTH", "Run", "run", "widths"]

# The widest module of our own that the width box takes.
LARGEST_WIDTH = 512


@dataclass(frozen=True, eq=False)
class Run:
    """A trace with what is known around it.

    Attributes:
        trace: what was recorded.
        projections: the chosen layer's learned matrices, as far as they are known.
        parts: what the embeddings are the sum of, where known.
    """

    trace: Trace
    projections: Mapping[str, Projection] = field(default_factory=dict[str, "Projection"])
    parts: Mapping[str, Tensor] = field(default_factory=dict[str, "Tensor"])

    def head(self, state: State, scale: str = "model", precision: str | None = None) -> OpenHead:
        """The chosen head, with a switch or as it ran; the nearest one where a variant has fewer heads."""
        stream = self.trace.streams[0]
        head = min(state.head, self.trace.head_count(state.layer, stream) - 1)
        return open_head(
            self.trace,
            state.layer,
            head,
            stream,
            scale=scale,
            precision=precision,
            projections=self.projections,
            parts=self.parts,
        )


def run(drawn: Drawn, state: State, variant: str) -> Run:
    """The run on the screen; of our own module, the variant that is chosen.

    Raises:
        AttentionVizError: what is told in place of the picture.
    """
    if drawn.fit is None:
        return Run(drawn.trace)
    if state.own:
        return _own(drawn.fit.kept, state.d_model, state.heads, state.seed, state.positions, variant)
    return Run(drawn.alone(state.stream).trace, projections(state.request, state.layer, drawn.stream(state.stream)))


def _own(text: str, d_model: int, heads: int, seed: int, positions: str, variant: str) -> Run:
    key = (text, d_model, heads, seed, positions, variant)
    return _runs.get(key, lambda: _run_own(*key))


def _run_own(text: str, d_model: int, heads: int, seed: int, positions: str, variant: str) -> Run:
    trace, known = run_variant(Scratch(d_model, heads, seed, positions), text, variant)
    words = trace.query_tokens().labels
    parts = {"word vector": word_vectors(words, d_model, seed)}
    if positions == "sinusoidal":
        parts["position"] = sinusoidal(len(words), d_model)
    return Run(trace, known, parts)


def widths(text: str, heads: int, seed: int, positions: str) -> tuple[Trace, ...]:
    """The text through our own module with heads that double in width, as far as it goes."""
    key = (text, heads, seed, positions)
    return _widths.get(key, lambda: _run_widths(*key))


def _run_widths(text: str, heads: int, seed: int, positions: str) -> tuple[Trace, ...]:
    sizes = [2**power for power in range(10) if 2**power * heads <= LARGEST_WIDTH]
    return tuple(Scratch(size * heads, heads, seed, positions).trace(text) for size in sizes)


_runs: SharedCache[tuple[str, int, int, int, str, str], Run] = SharedCache(
    SETTINGS.trace_memory * 1_000_000, lambda run: run.trace.nbytes
)
_widths: SharedCache[tuple[str, int, int, str], tuple[Trace, ...]] = SharedCache(
    SETTINGS.trace_memory * 1_000_000, lambda traces: sum(trace.nbytes for trace in traces)
)
