"""Decompose a number into the parts that wrote it."""

import html
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from attention_viz.circuits.asked import Asked, Probability
from attention_viz.circuits.number import OpenNumber
from attention_viz.circuits.opened import check_model, open_alone
from attention_viz.errors import ShapeError
from attention_viz.operation.attention import without_autocast
from attention_viz.operation.short_repr import ShortRepr
from attention_viz.trace.trace import Trace

if TYPE_CHECKING:
    import pandas

    from attention_viz.models.model import AttentionModel

__all__ = ["HELD", "Decomposition", "decompose", "decompose_run"]

# The note beside every number from here.
HELD = "direct effect; norms and patterns held fixed"


@dataclass(frozen=True, eq=False, repr=False)
class Decomposition(ShortRepr):
    """A number as the sum of each part's direct effect, with norms and patterns held fixed.

    Attributes:
        of: the decomposed number.
        total: its value in the run.
        table: one row per part: side ("query" and "key" for a score, else "output"), kind, layer, head, position,
            token, contribution, written; largest first. Each side sums to the total, up to the remainder. If the model
            has several streams, a column names them. A layer without a softmax has rows of kind "mixer", whose position
            is that of the value's token; one with a matrix per channel has no heads.
        remainder: total minus the sum of the rows, for the side with the larger gap.
        position_bias: the distance-dependent term that the model adds to a score, not in the sum; 0 if there is none.
        softcap: the soft cap applied to a score afterwards, not in the sum; None if there is none.
        held: the meaning of the numbers in words: direct effects, and the run's edits if it has any.
    """

    of: Asked
    total: float
    table: "pandas.DataFrame"
    remainder: float
    position_bias: float = 0.0
    softcap: float | None = None
    held: str = HELD
    _work: "OpenNumber | None" = field(default=None, repr=False)

    def _repr_html_(self) -> str:
        said = f"{self.of}: {self.total:.6g}; remainder {self.remainder:.1e}; {self.held}"
        return f"<p>{html.escape(said)}</p>{self.table.to_html(max_rows=60)}"

    def joint(self, count: int = 20) -> "pandas.DataFrame":
        """Return a score's largest pairs: one part that wrote the query, one that wrote the key.

        All pairs sum to the score. This runs one backward pass per dimension of the head (d_k).

        Args:
            count: number of pairs, largest in size first.

        Returns:
            Columns query_kind, query_layer, query_head, key_kind, key_layer, key_head, contribution.

        Raises:
            ShapeError: the number isn't a score.
        """
        return self._known.joint(count)

    def sources(self, layer: int, head: int, stream: str | None = None) -> "pandas.DataFrame":
        """Return a head's contribution by source position.

        Args:
            layer: layer number, counted as the model counts.
            head: from 0; of a layer with a matrix per channel, the channel.
            stream: the layer's stream; None if the model has only one.

        Returns:
            Columns position (of the query), source, token (at the source), weight, contribution, written; sums to the
            head's rows.

        Raises:
            ShapeError: the head doesn't exist.
        """
        return self._known.sources(layer, head, stream)

    def fetched(self) -> "pandas.DataFrame":
        """Return every head's contribution by source position, in one backward pass per side.

        Returns:
            Columns side, stream, layer, head, source, token (at the source), contribution, written. Per side, a head's
            rows sum to its rows in `table`. Layers with a matrix per channel have no heads.
        """
        return self._known.fetched()

    def through(self, layer: int, head: int, stream: str | None = None) -> "pandas.DataFrame":
        """Return the parts that wrote the values a head fetched, with its pattern held fixed.

        An earlier head's row is a path: its contribution through this head.

        Args:
            layer: layer number, counted as the model counts.
            head: from 0.
            stream: the layer's stream; None if the model has only one.

        Returns:
            Columns as in `table`, summing to the head's rows there.

        Raises:
            ShapeError: the head doesn't exist.
            UnsupportedModel: the layer has no softmax, or its values pass a nonlinear step.
        """
        return self._known.through(layer, head, stream)

    @property
    def _known(self) -> "OpenNumber":
        if self._work is None:
            raise ShapeError("this Decomposition has no run behind it; create it with attention_viz.decompose")
        return self._work


@without_autocast()
def decompose(model: "AttentionModel", trace: Trace, of: Asked) -> Decomposition:
    """Decompose a number into contributions of earlier parts, which sum to the number.

    With norm statistics, attention patterns and the nonlinear steps of MLPs held fixed, everything between two
    attention calls is linear. A layer without a softmax is its weights, held fixed, times its values. So the number is
    the sum of each part's output times the number's gradient there. These are direct effects: the effect through a
    later part belongs to that part. Source: Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits".

    A copy over the same weights runs; the shared model keeps its flags and gets no hooks.

    Args:
        model: from `load` or `wrap`.
        trace: from this model; an edited trace is decomposed with its edits.
        of: a `Score`, a `Logit` or a `Direction`.

    Raises:
        TraceError: the trace is another model's, comes from a file or from another trace, or the model has changed
            since.
        ShapeError: `of` is a `Probability`, which isn't a sum of parts, or a layer, head, position or token doesn't
            exist.
        UnusableText: the token's text isn't exactly one token.
        UnsupportedModel: the model is one of our own modules, has no unembedding for a logit, or can't be decomposed:
            the rows would miss the number by more than 1e-4 of the largest row.
    """
    check_model(model, trace)
    return decompose_run(trace, of)


def decompose_run(trace: Trace, of: Asked) -> Decomposition:
    """Decompose as `decompose` does, from a trace without its model."""
    if isinstance(of, Probability):
        raise ShapeError(
            f"can't decompose the {of}, since a softmax isn't a sum of contributions; use an av.Logit, or ablate heads "
            "with attention_viz.effects"
        )
    run, opened = open_alone(trace)
    number = OpenNumber.begin(run, trace, opened, of)
    table, remainder = number.rows()
    edits = trace.provenance.edits
    held = f"{HELD}; of an edited run: {', '.join(edits)}" if edits else HELD
    return Decomposition(of, number.total, table, remainder, *number.apart(), held, number)
