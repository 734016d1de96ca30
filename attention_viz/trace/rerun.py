"""Rerun the model for fidelity, calls' surroundings and gradients."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from jaxtyping import Float
from torch import Tensor

from attention_viz.errors import TraceError
from attention_viz.operation.short_repr import ShortRepr
from attention_viz.trace.layers import Layer
from attention_viz.trace.provenance import Fidelity

__all__ = ["Along", "Relevance", "Rerun"]


@dataclass(frozen=True, eq=False, repr=False)
class Relevance(ShortRepr):
    """How far each weight of a run raised one number of its output.

    Attributes:
        layers: by stream, each layer's positive part of weight times gradient, (head, query, key).
        of: the raised number, in words.
    """

    layers: Mapping[str, tuple[Float[Tensor, "head query key"], ...]]
    of: str


class Along(NamedTuple):
    """An output's component along a direction.

    Attributes:
        vector: (width,), like an output row.
        position: the output row; None for the mean without padding.
    """

    vector: Tensor
    position: int | None


@dataclass(frozen=True, eq=False)
class Rerun:
    """The run behind a recorded trace; each answer costs a pass.

    Attributes:
        measure: compares runs for the fidelity.
        complete: returns layers with the tensors around their calls, by stream; None if the trace has all. Late, since
            it slows runs.
        differentiate: returns gradients of an output number at (position, token id), of a direction or, for None, of
            the model's prediction; None without a model.
        zero: returns each layer's output change without each key's value, by stream; None without a model.
        repeat: makes a `Trace` of random tokens twice; None if impossible or senseless.
        seconds: the recorded run's duration; 0 if not measured.
        check: raises `TraceError` if the model has changed, as the others do.
        confirm: like `check`, with another run, which finds more.
    """

    measure: Callable[[], Fidelity]
    complete: Callable[[], Mapping[str, tuple[Layer, ...]]] | None = None
    differentiate: Callable[[tuple[int, int] | Along | None], Relevance] | None = None
    zero: Callable[[str], tuple[Float[Tensor, "query key"], ...]] | None = None
    repeat: Callable[[], Any] | None = None
    run: object = None
    seconds: float = 0.0
    check: Callable[[], object] = lambda: None
    confirm: Callable[[], object] = lambda: None

    def relevance(self, of: tuple[int, int] | Along | None) -> Relevance:
        """Call `differentiate`, or raise `TraceError` without one."""
        if self.differentiate is None:
            raise TraceError(
                "gradients need a trained model behind the trace; files, derived traces and our own random-weight "
                "module have none. Trace a text with av.load"
            )
        return self.differentiate(of)

    def repeated_random(self) -> Any:
        """Call `check` and `repeat`, or raise `TraceError` without one."""
        if self.repeat is None:
            raise TraceError(
                "random tokens need a model behind the trace; files, derived traces, our own module and "
                "encoder–decoders have none. Call model.repeated_random() of an encoder or decoder"
            )
        self.check()
        return self.repeat()

    def without_values(self, stream: str) -> tuple[Float[Tensor, "query key"], ...]:
        """Call `zero`, or raise `TraceError` without one."""
        if self.zero is None:
            raise TraceError(
                "value zeroing needs a pretrained model behind the trace; files, derived traces and our own module "
                "have none. Trace a text with av.load"
            )
        return self.zero(stream)
