"""A number opened into the rows that wrote it."""

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

# What stands beside every number that is made here.
HELD = "direct effect; norms and patterns held fixed"


@dataclass(frozen=True, eq=False, repr=False)
class Decomposition(ShortRepr):
    """A number as the sum of what each part of the model wrote: direct effects, norms and patterns held fixed.

    Attributes:
        of: what was asked.
        total: the number, as it ran.
        table: a row for each part: side ("query" and "key" of a score, else "output"), kind, layer, head, position,
            token, contribution, written; largest first. Each side sums to the total, up to the remainder. Where a
            model has several streams, a column names them, too.
        remainder: the total less the sum of the rows, of the side that misses it by more.
        position_bias: what the model adds to a score for the distance of the two, apart from the sum; 0 where nothing.
        softcap: the soft cap that a score goes through after it, apart from the sum; None where there is none.
        held: what the numbers are, in words: they stand for direct effects, and where the run was edited, how.
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
        """The largest pairs of a score: a part that wrote the query with one that wrote the key.

        The score is the sum over all pairs. Costs a backward pass for each of the head's d_k dimensions.

        Args:
            count: how many pairs, largest in size first.

        Returns:
            Columns query_kind, query_layer, query_head, key_kind, key_layer, key_head, contribution.

        Raises:
            ShapeError: it isn't a score that was opened.
        """
        return self._known.joint(count)

    def sources(self, layer: int, head: int, stream: str | None = None) -> "pandas.DataFrame":
        """A head's contribution by the position that it was taken from.

        Args:
            layer: the number of the head's layer, the model's own.
            head: from 0.
            stream: whose layer; None for the only one there is.

        Returns:
            Columns position (that looks), source, token (at the source), weight, contribution, written; sums to
            the head's rows.

        Raises:
            ShapeError: there is no such head.
        """
        return self._known.sources(layer, head, stream)

    def fetched(self) -> "pandas.DataFrame":
        """Every head's contribution by the position that it was taken from, in one backward pass a side.

        Returns:
            Columns side, stream, layer, head, source, token (at the source), contribution, written; a head's
            rows of a side sum to its rows in `table`.
        """
        return self._known.fetched()

    def through(self, layer: int, head: int, stream: str | None = None) -> "pandas.DataFrame":
        """What wrote a head's contribution: the parts that made the values it fetched, its pattern held fixed.

        The row of an earlier head in it is a path: that head's contribution through this one.

        Args:
            layer: the number of the head's layer, the model's own.
            head: from 0.
            stream: whose layer; None for the only one there is.

        Returns:
            As `table`, summing to the head's rows there.

        Raises:
            ShapeError: there is no such head.
        """
        return self._known.through(layer, head, stream)

    @property
    def _known(self) -> "OpenNumber":
        if self._work is None:
            raise ShapeError("this was put together without the run behind it; make it with attention_viz.decompose")
        return self._work


@without_autocast()
def decompose(model: "AttentionModel", trace: Trace, of: Asked) -> Decomposition:
    """What wrote a number: each earlier part of the model and what it contributed, summing to the number itself.

    Everything between two attention calls is linear once the norms' statistics, the attention patterns and the
    nonlinear steps of MLPs are held fixed; so a number is the sum of what each part wrote, times the number's slope
    there. These are direct effects: what a part does to others that write in turn is theirs. Source: Elhage et al.
    2021, "A Mathematical Framework for Transformer Circuits".

    The shared model keeps its flags and is not hooked: a twin over the same numbers runs.

    Args:
        model: from `load` or `wrap`.
        trace: of this model; an edited one is opened as it ran, with its edits.
        of: a `Score`, a `Logit` or a `Direction`.

    Raises:
        TraceError: the trace is another model's, comes from a file or was made of another trace, or the model has
            changed since.
        ShapeError: a `Probability`, which no sum of parts makes; or there is no such layer, head, position or token.
        UnusableText: a token asked for by its text is none, or several.
        UnsupportedModel: our own module, a model without a word head where a logit was asked for, or one that can't be
            opened: the rows would miss the number by more than 1e-4 of the largest of them.
    """
    check_model(model, trace)
    return decompose_run(trace, of)


def decompose_run(trace: Trace, of: Asked) -> Decomposition:
    """Decompose as `decompose` does, from a trace without its model."""
    if isinstance(of, Probability):
        raise ShapeError(
            f"the {of} was asked for, and a probability is no sum of what parts wrote, since the softmax lies between; "
            "ask for an av.Logit, or for what heads are worth to it with attention_viz.effects"
        )
    run, opened = open_alone(trace)
    number = OpenNumber.begin(run, trace, opened, of)
    table, remainder = number.rows()
    edits = trace.provenance.edits
    held = f"{HELD}; of a run that was edited: {', '.join(edits)}" if edits else HELD
    return Decomposition(of, number.total, table, remainder, *number.apart(), held, number)
