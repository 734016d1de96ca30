"""A text's numbers under patched heads, each made once for all."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from attention_viz.circuits.asked import Logit
from attention_viz.serving.cache import SharedCache
from attention_viz.serving.request import Request
from attention_viz.serving.run import Run
from attention_viz.serving.runs import ask, run_request
from attention_viz.serving.things.uploads import beside
from attention_viz.serving.why import Head, pretrained

if TYPE_CHECKING:
    from attention_viz.circuits.patching.patching import Patching
    from attention_viz.protocol.model import Model

__all__ = ["Patched", "patched", "run_patches"]


@dataclass(frozen=True, eq=False)
class Patched:
    """A number, and its value with each head of another text.

    Attributes:
        other_number: in the other text; None if unpaired.
        estimates: to first order.
        runs: so far.
    """

    number: float
    other_number: float | None
    lengths: tuple[int, int]
    estimates: Mapping[Head, float]
    runs: dict[Head, float] = field(default_factory=dict[Head, float])

    @property
    def known(self) -> dict[Head, float]:
        """Of each head what is known best."""
        return {**self.estimates, **self.runs}


def patched(run: Run, request: Request, other: str, of: Logit) -> Patched:
    """Return first-order patches and runs; `other` is paired by token if lengths differ."""
    return beside(request.shown, _patched).get((request, other, of), lambda: _begun(run, request, other, of)[1])


def run_patches(
    run: Run, request: Request, other: str, of: Logit, report: Callable[[int], object] = lambda _: None
) -> Patched:
    """Run every head's patch; keep each finished batch."""
    found = patched(run, request, other, of)
    if len(found.runs) == len(found.estimates):
        return found
    made, _ = _begun(run, request, other, of)
    waiting = [put for put in made.puts if (put.layer, put.head) not in found.runs]
    batches = made.batches(waiting)
    while True:
        report(len(found.runs))
        effects = ask(request, lambda _model: next(batches, None))
        if effects is None:
            return found
        found.runs.update({(put.layer, put.head or 0): made.number + effect for put, effect in effects.items()})


def _begun(run: Run, request: Request, other: str, of: Logit) -> tuple["Patching", Patched]:
    from attention_viz.circuits.patching.patching import Patching

    theirs = run_request(replace(request, text=other)).trace
    stream = run.trace.streams[0]
    lengths = len(run.trace.query_tokens(stream)), len(theirs.query_tokens(stream))

    def begin(model: "Model") -> "Patching":
        return Patching.begin(pretrained(model), run.trace, theirs, of, aligned=lengths[0] != lengths[1])

    made = ask(request, begin)
    estimates = {(put.layer, put.head or 0): made.number + made.estimates[put] for put in made.puts}
    return made, Patched(made.number, made.other_number, lengths, estimates)


_patched: "SharedCache[tuple[Request, str, Logit], Patched]" = SharedCache(
    20_000_000, lambda one: 400 * (1 + len(one.estimates))
)
