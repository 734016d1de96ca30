"""Compares the outputs of joined chunks or rows with their use in the model, and a followed run with the plain one."""

import contextlib
from collections.abc import Generator, Mapping
from dataclasses import dataclass

from torch import Tensor, nn

from attention_viz.errors import UnsupportedModel
from attention_viz.operation.kernel import BOUNDS
from attention_viz.recording.call_chunks import CallPart
from attention_viz.recording.differences import Difference
from attention_viz.recording.hooks import hooked
from attention_viz.recording.runner import Pass
from attention_viz.recording.twin import Twin
from attention_viz.recording.wiring import entering, rows

# Further apart than this, relative to the largest number, it isn't a call's output that a module takes.
_OTHER = 1e-2


@dataclass(eq=False)
class JoinedOutputs:
    """Compares the outputs of joined chunks or rows with the input of the module behind them, which proves their order.

    Attributes:
        original: the model's module by the twin's.
        windows: whether windows are compared here; else they are compared one by one.
        error: the largest error relative to the largest number.
    """

    recorded: Pass
    original: Mapping[nn.Module, nn.Module]
    windows: bool = True
    error: float = 0.0
    _open: int | None = None
    _ended: bool = False

    def hear(self, part: CallPart) -> None:
        """Await the module behind a call after its last chunk."""
        if part.order is not None and not self.windows:
            return
        lengths = self.recorded.chunks[part.number] if self.recorded.chunks else ()
        if part.in_rows or (part.stop is not None and part.stop == sum(lengths)):
            if self._open is not None:
                raise self._refusal(self._open)
            self._open = part.number

    @contextlib.contextmanager
    def listening(self) -> Generator[None]:
        """Hook the twin's modules, if some attend in chunks or rows: the next one takes their joined outputs.

        In a Q-Former, it isn't inside of the module that attends.
        """
        joins = {self.recorded.modules[part.number] for part in self.recorded.parts if not part.is_whole}
        if not joins:
            yield
            return
        outer = [twin for twin, one in self.original.items() if one in joins]

        def enter(_module: nn.Module, inputs: tuple[object, ...], named: Mapping[str, object]) -> None:
            self._take(entering(inputs, named))

        def end(*_: object) -> None:
            self._ended = self._open is not None

        with hooked(self.original, lambda *_: None, enter, named=True), hooked(outer, end):
            yield
        if self._open is not None:
            raise self._refusal(self._open)

    def _refusal(self, number: int) -> UnsupportedModel:
        name = type(self.recorded.modules[number]).__name__
        return UnsupportedModel(
            f"can't verify {name}, which attends in parts: no module in it, or right behind it, takes their joined "
            "outputs"
        )

    def _take(self, entered: Tensor | None) -> None:
        (number, ended), self._open, self._ended = (self._open, self._ended), None, False
        if number is None or number not in self.recorded.numbers:
            return
        call = self.recorded.calls[self.recorded.numbers.index(number)]
        ours = call.attention.output.transpose(0, 1).flatten(1)
        theirs = rows(entered, len(ours), call.order)
        apart = Difference()
        if theirs is not None and theirs.shape == ours.shape:
            apart.add(ours, theirs)
        elif not ended:
            got = "nothing" if entered is None else tuple(entered.shape)
            raise UnsupportedModel(
                f"can't verify {type(call.module).__name__}, which attends in parts: the module behind them takes "
                f"{got}, not their joined outputs, {tuple(ours.shape)}"
            )
        if ended and (theirs is None or theirs.shape != ours.shape or apart.relative > _OTHER):
            raise self._refusal(number)
        self.error = max(self.error, apart.relative)


def check_same_run(twin: Twin, inputs: Mapping[str, Tensor], followed: Tensor) -> None:
    """Refuse a followed run that isn't the plain eager one, bit by bit, or as close as two plain runs."""
    plain = twin.run(inputs, "eager")
    if _same(plain, followed):
        return
    apart = Difference()
    apart.add(followed, plain)
    repeats = _same(plain, twin.run(inputs, "eager"))
    if repeats or apart.relative > BOUNDS.get(plain.dtype, 0.0):
        raise UnsupportedModel(
            f"can't verify {type(twin.model).__name__}: followed, it runs differently, by {apart.relative:.1e} relative"
        )


def _same(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and bool(((one == other) | (one.isnan() & other.isnan())).all())
