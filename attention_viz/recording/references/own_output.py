"""Runs the model with its own attention: the reference of every output."""

import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import torch
from torch import Tensor, nn

from attention_viz.errors import UnsupportedModel, first_line
from attention_viz.recording.differences import Difference, Real, cut, kept_rows
from attention_viz.recording.implementation import FLEX
from attention_viz.recording.runner import Pass, Runner
from attention_viz.recording.twin import Twin
from attention_viz.sources.huggingface import ALL_ATTENTION_FUNCTIONS, ALL_MASK_ATTENTION_FUNCTIONS

_T = TypeVar("_T")

# Seconds between tries, about 10 in all: other threads turn a model to our attention for the time of a run.
_PAUSES = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 3.0)
# Up to so many numbers an output is kept for what is asked afterwards: 64 MiB in float32.
_KEPT = 2**24
# Beyond so many rows an output is made piece by piece.
ROWS_AT_ONCE = 128


def run_itself(runner: Runner, twin: Twin, run: Callable[[Twin], _T]) -> _T:
    """Run the model itself, not its twin."""
    itself = replace(twin, model=runner.model)
    for pause in (*_PAUSES, None):
        with runner.door, torch.no_grad(), runner.switch.own() as turned:
            try:
                found = run(itself)
            except Exception:
                if not turned():
                    raise
            else:
                if not turned():
                    return found
        if pause is not None:
            time.sleep(pause)
    raise UnsupportedModel("it can't run by itself while other threads record it; try again once they are done")


@dataclass(eq=False)
class OwnOutput:
    """Compares the recorded output with that of the model's own attention.

    Attributes:
        given: the model's output, if it has run already.
        cannot: why its own attention can't run, so that eager attention does; "" if it can.
    """

    recorded: Pass
    runner: Runner
    twin: Twin
    inputs: Mapping[str, Tensor]
    real: Real
    given: Tensor | None = None
    cannot: str = ""
    _error: float | None = None
    _pieces: list[tuple[slice, Tensor]] = field(default_factory=list[tuple[slice, Tensor]])

    @property
    def names(self) -> tuple[str, ...]:
        """The recorded modules' own attention implementations."""
        return self.twin.implementations(self.recorded.modules)

    @property
    def foreign(self) -> list[str]:
        """The names that aren't transformers'. Such code may know the model's modules, not the twin's."""
        return [name for name in self.names if not builtin(name)]

    @property
    def words(self) -> str:
        """The reference, in words."""
        names = " and ".join(f"{name}, not compiled" if name == FLEX else name for name in self.names)
        if self.cannot:
            return (
                f"the same model with transformers' eager attention (its own, {names}, can't run here: {self.cannot})"
            )
        return f"the same model with its own attention ({names})" if names else "the same model, not recorded"

    def measure(self) -> float:
        """Return the error against the model's own attention, run once."""
        if self._error is None:
            self._error = self._run_own() if self.given is None else self.take(self.given)
        return self._error

    def _run_own(self) -> float:
        try:
            return self._run(None)
        except Exception as error:
            if self.twin.is_eager or isinstance(error, UnsupportedModel):
                raise
            cannot = f"{type(error).__name__}: {first_line(error)}"
            if others := self.foreign:
                raise UnsupportedModel(
                    f"its attention {quoted(others)} can't run here for comparison ({cannot}); choose another with "
                    'model.set_attn_implementation("sdpa") or ("eager")'
                ) from error
            self.cannot = cannot
            return self._run("eager")

    def take(self, output: Tensor) -> float:
        """Compare with a twin's output; for foreign attention the model's own run takes precedence."""
        if self.given is None and self.foreign:
            return self.measure()
        output = output if self.given is None else self.given
        rows, found = slice(0, len(self.recorded.output)), Difference()
        self._pieces = [(rows, output)] if output.numel() <= _KEPT else []
        found.add(*self._cut(self.recorded.output[rows], output, rows))
        self._error = found.relative
        return self._error

    def is_copied(self, bound: float) -> bool:
        """Return whether a twin computes the same as the model, so that a more exact copy describes it."""
        if not self.foreign:
            return True
        off = self.off(self.twin.run(self.inputs)) if self._pieces else None
        return off is not None and off <= bound

    def off(self, other: Tensor) -> float | None:
        """Return another output's error; None if the model's own wasn't kept."""
        found = Difference()
        for rows, theirs in self._pieces:
            found.add(*self._cut(other[rows], theirs, rows))
        return found.relative if self._pieces else None

    def from_exact(self, exact: Tensor) -> tuple[float, float]:
        """Return our error and the model's own against a more exact run."""
        ours, theirs = Difference(), Difference()

        def add(rows: slice, own: Tensor) -> None:
            ours.add(*self._cut(self.recorded.output[rows].to(exact.dtype), exact[rows], rows))
            theirs.add(*self._cut(own.to(exact.dtype), exact[rows], rows))

        if self._pieces:
            for rows, own in self._pieces:
                add(rows, own)
        else:
            self._in_pieces(add, "eager" if self.cannot else None)
        return ours.relative, theirs.relative

    def _run(self, implementation: str | None) -> float:
        if implementation is None and self.foreign:
            return run_itself(self.runner, self.twin, self._run_as_turned)
        return self._found(lambda add: self._in_pieces(add, implementation))

    def _run_as_turned(self, itself: Twin) -> float:
        return self._found(lambda add: itself.pieces(self.inputs, len(self.recorded.output), add))

    def _found(self, run: Callable[[Callable[[slice, Tensor], None]], None]) -> float:
        """Return the error against an output in pieces."""
        ours, found = self.recorded.output, Difference()
        keep = ours.shape[0] * ours.shape[-1] <= _KEPT
        self._pieces = []

        def add(rows: slice, theirs: Tensor) -> None:
            found.add(*self._cut(ours[rows], theirs, rows))
            if keep:
                self._pieces.append((rows, theirs))

        run(add)
        return found.relative

    def _in_pieces(self, take: Callable[[slice, Tensor], None], implementation: str | None) -> None:
        rows = len(self.recorded.output)
        if rows <= ROWS_AT_ONCE:
            take(slice(0, rows), self.twin.run(self.inputs, implementation))
        else:
            self.twin.run_in_pieces(self.inputs, rows, take, implementation)

    def _cut(self, one: Tensor, other: Tensor, rows: slice) -> tuple[Tensor, Tensor]:
        real = kept_rows(self.real.output, len(self.recorded.output), other.device)
        if real is None or one.shape != other.shape:
            return one, other
        return cut(one.to(other.device), real[rows]), cut(other, real[rows])


def builtin(name: str) -> bool:
    """Return whether an attention implementation and its masks are transformers' own."""
    functions = [table[name] for table in (ALL_ATTENTION_FUNCTIONS, ALL_MASK_ATTENTION_FUNCTIONS) if name in table]
    modules = [getattr(inspect.unwrap(one), "__module__", None) or "" for one in functions]
    return all(one.partition(".")[0] == "transformers" for one in modules) and (name == "eager" or bool(functions))


def steps_alike(runner: Runner, modules: Sequence[nn.Module]) -> bool:
    """Return whether steps compute as a whole run does: foreign code may treat one query differently."""
    return all(map(builtin, runner.twin().implementations(modules)))


def quoted(names: Sequence[str]) -> str:
    """Join quoted names for a message."""
    return " and ".join(f"“{name}”" for name in names)
