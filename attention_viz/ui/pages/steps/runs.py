"""What the Step by step page opens: the run on the screen, the learned matrices around it, and its variants."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import streamlit as st
from torch import Tensor

from attention_viz.operation.projection import Projection
from attention_viz.scratch.model import Scratch, sinusoidal, word_vectors
from attention_viz.scratch.variants import run_variant
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


@st.cache_resource(max_entries=SETTINGS.traces_kept, show_spinner=False)
def _own(text: str, d_model: int, heads: int, seed: int, positions: str, variant: str) -> Run:
    trace, known = run_variant(Scratch(d_model, heads, seed, positions), text, variant)
    words = trace.query_tokens().labels
    parts = {"word vector": word_vectors(words, d_model, seed)}
    if positions == "sinusoidal":
        parts["position"] = sinusoidal(len(words), d_model)
    return Run(trace, known, parts)


@st.cache_resource(max_entries=SETTINGS.traces_kept, show_spinner=False)
def widths(text: str, heads: int, seed: int, positions: str) -> tuple[Trace, ...]:
    """The text through our own module with heads that double in width, as far as it goes."""
    sizes = [2**power for power in range(10) if 2**power * heads <= LARGEST_WIDTH]
    return tuple(Scratch(size * heads, heads, seed, positions).trace(text) for size in sizes)
