"""What is known of a run only by running once more: its fidelity, what stood around its calls, its gradients."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from jaxtyping import Float
from torch import Tensor

from attention_viz.errors import TraceError
from attention_viz.operation.short_repr import ShortRepr
from attention_viz.trace.layers import Layer
from attention_viz.trace.provenance import Fidelity

if TYPE_CHECKING:
    from attention_viz.trace.trace import Trace

__all__ = ["Relevance", "Rerun", "attach", "behind"]


@dataclass(frozen=True, eq=False, repr=False)
class Relevance(ShortRepr):
    """How far each weight of a run raised one number of its output.

    Attributes:
        layers: by stream, of each layer the part of weight times gradient that is above 0, (head, query, key).
        of: the number that was raised, in words.
    """

    layers: Mapping[str, tuple[Float[Tensor, "head query key"], ...]]
    of: str


class Along(NamedTuple):
    """How far a model's output goes in a direction.

    Attributes:
        vector: (width,), as wide as a row of the output.
        position: the row of the output; None for the mean over all that aren't padding.
    """

    vector: Tensor
    position: int | None


@dataclass(frozen=True, eq=False)
class Rerun:
    """What stands behind a trace that was recorded: each answer costs a pass, and is only made when asked for.

    Attributes:
        measure: makes the comparison behind a trace's fidelity.
        complete: finds what stands around the attention calls, by stream; None where the layers have all that is known.
            Keeping it from the start would slow every run down for the few that look at it.
        differentiate: finds the gradients of one number of the output, that of a (position, token id), of a direction
            or, given None, of what the model says; None where no model stands behind the trace.
        zero: finds how far each layer's output turns without the value of each key, of a stream; None as well.
        repeat: runs random tokens twice through the same model; None where that makes no sense, or nobody can.
        run: what stands behind the trace, for whoever made it.
        seconds: what the recorded run took; 0 where nobody measured it.
        check: raises `TraceError` if the model isn't the one that ran any more; the others do so themselves.
        confirm: as `check`, but runs once more, which shows what `check` may miss.
    """

    measure: Callable[[], Fidelity]
    complete: Callable[[], Mapping[str, tuple[Layer, ...]]] | None = None
    differentiate: Callable[[tuple[int, int] | Along | None], Relevance] | None = None
    zero: Callable[[str], tuple[Float[Tensor, "query key"], ...]] | None = None
    repeat: "Callable[[], Trace] | None" = None
    run: object = None
    seconds: float = 0.0
    check: Callable[[], object] = lambda: None
    confirm: Callable[[], object] = lambda: None

    def relevance(self, of: tuple[int, int] | Along | None) -> Relevance:
        """What `differentiate` finds."""
        if self.differentiate is None:
            raise TraceError(
                "gradients were asked for of a trace without a trained model behind it: it comes from a file, was made "
                "of another trace, or is of our own module, whose random weights were never trained to say anything"
            )
        return self.differentiate(of)

    def repeated_random(self) -> "Trace":
        """What `repeat` finds."""
        if self.repeat is None:
            raise TraceError(
                "random tokens were to be said twice to the model behind a trace that has none: it comes from a file, "
                "was made of another trace, or is of our own module or an encoder–decoder; model.repeated_random() of "
                "an encoder or decoder is that test by itself"
            )
        self.check()
        return self.repeat()

    def without_values(self, stream: str) -> tuple[Float[Tensor, "query key"], ...]:
        """What `zero` finds."""
        if self.zero is None:
            raise TraceError(
                "value zeroing was asked for of a trace without a pretrained model behind it, and it runs the model's "
                "layers once more: this trace comes from a file, was made of another, or is of our own module"
            )
        return self.zero(stream)


def attach(trace: "Trace", rerun: Rerun) -> "Trace":
    """Put a run behind a trace that was just made, before anybody else has it; hands the trace back."""
    vars(trace)[_NAME] = rerun
    return trace


def behind(trace: "Trace") -> Rerun:
    """The run behind a trace; of one that was put together by hand, one that knows nothing."""
    return vars(trace).get(_NAME, _NOTHING)


def _refuse() -> Fidelity:
    raise TraceError(
        "fidelity was asked for of a trace that was put together without one, and no model stands behind it: give "
        "Trace(…, fidelity=…)"
    )


_NOTHING = Rerun(_refuse)
# Where a trace keeps it, out of sight of its fields and its equals.
_NAME = "_run behind"
