"""Patch each head or MLP: estimate by gradient, confirm by runs."""

import threading
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

from torch import Tensor

from attention_viz.circuits.asked import Direction, Logit, Probability
from attention_viz.circuits.patching.bench import Bench, shared_beginning
from attention_viz.circuits.patching.first_order import keeping, numbers_of, same, to_first_order, with_slopes
from attention_viz.circuits.patching.pairing import counterpart, paired, plain_run, settled
from attention_viz.errors import ShapeError, UnsupportedModel
from attention_viz.operation.numerics import REORDERED, close
from attention_viz.trace.trace import Trace

if TYPE_CHECKING:
    from attention_viz.models.model import AttentionModel

# The note beside every number from here.
TOTAL = "total effect; everything after the patch is computed again"
# A batch of so many tokens fills the processor, and one of so many numbers doesn't fill the memory.
_TOKENS, _ROWS, _NUMBERS = 400, 64, 20_000_000


class Put(NamedTuple):
    """A patch between texts; position (in the patched text) None for all.

    Attributes:
        head: None for the MLP, or all channels of a layer without a softmax.
        stream: None if there is only one.
    """

    layer: int
    head: int | None
    position: int | None = None
    stream: str | None = None


@dataclass(eq=False)
class Patching:
    """Two texts and a number, ready for patches.

    Attributes:
        other_number: in the source run; None if the position is unpaired.
        estimates: first order, (put minus present) times gradient.
    """

    of: Logit | Probability | Direction
    number: float
    other_number: float | None
    puts: tuple[Put, ...]
    estimates: Mapping[Put, float]
    bench: Bench
    _spots: tuple[tuple[int, int], ...]
    _theirs: Mapping[int, Tensor]
    # The logits, or whatever the output is made of, of the asked position.
    _row: Tensor
    # Where the texts begin to differ, and runs may begin.
    _start: int
    _lock: threading.Lock = field(default_factory=threading.Lock)
    # Where passes that begin at a later layer or position gave something else, none does any more.
    _whole: bool = False

    @classmethod
    def begin(
        cls,
        model: "AttentionModel",
        text: Trace,
        other: Trace,
        of: Logit | Probability | Direction,
        *,
        direction: Literal["noising", "denoising"] = "noising",
        parts: Literal["heads", "mlps"] = "heads",
        by: Literal["head", "position"] = "head",
        aligned: bool = False,
    ) -> "Patching":
        """Run both texts and estimate all effects by one gradient; `of` counts in `text`."""
        runs = [plain_run(model, trace) for trace in (text, other)]
        of = settled(runs[0], text, of)
        spots = paired(text, other, aligned=aligned)
        other_of = counterpart(of, text, dict(spots), other.output_shape[0])
        if direction == "denoising":
            if other_of is None:
                raise ShapeError(
                    f"position {of.position} has no counterpart in the other text, which is patched; choose another "
                    "position"
                )
            runs, text, other, of, other_of = runs[::-1], other, text, other_of, of
            spots = tuple((yours, mine) for mine, yours in spots)
        bench = Bench.of(runs[0], mlps=parts == "mlps")
        number, there, slopes = with_slopes(bench, text, of)
        theirs: dict[int, Tensor] = {}
        fetched = same(bench.outputs(runs[1].inputs, 1, keeping(theirs, bench.sites)), other)
        estimates = {site: to_first_order(there[site], theirs[site], slopes[site], spots) for site in bench.sites}
        positions = [None] if by == "head" else sorted(one for one, _ in spots)
        puts = tuple(
            Put(layer, head, at, stream) for stream, layer, head in _places(bench, estimates) for at in positions
        )
        return cls(
            of,
            number,
            None if other_of is None else float(numbers_of(fetched, other_of, runs[1].tokens.padding)[0]),
            puts,
            {put: _estimate(bench, put, estimates) for put in puts},
            bench,
            spots,
            {site: output[0] for site, output in theirs.items()},
            text.output if of.position is None else text.output_at(of.position),
            _start(bench, of, other, spots, (there, theirs)),
        )

    def batches(self, puts: Sequence[Put] | None = None) -> Generator[dict[Put, float]]:
        """Yield each patch's effect by batch; a lock lets threads share it."""
        waiting = list(self.puts if puts is None else puts)
        while waiting:
            some, waiting = waiting[: self.at_once], waiting[self.at_once :]
            with self._lock:
                found = self._effects(some)
            yield found

    @property
    def at_once(self) -> int:
        """Return the patched runs per batch, without the unpatched one."""
        tokens, size = len(self.bench.run.tokens) - (0 if self._whole else self._start), self._row.numel()
        if self.of.position is not None and not self.bench.can_limit:
            size *= len(self.bench.run.tokens)
        return max(1, min(_ROWS, _TOKENS // tokens - 1, _NUMBERS // size))

    def _effects(self, puts: Sequence[Put]) -> dict[Put, float]:
        for only, first, start in self._ways(puts) if len(puts) > 1 else ():
            found = self._together(puts, only, first, start)
            if found is not None:
                return dict(zip(puts, found, strict=True))
            self._whole = self._whole or first + start > 0
        # What gives something else in a batch runs one after the other.
        return {put: float(self._run([put], None)[0]) - self.number for put in puts}

    def _ways(self, puts: Sequence[Put]) -> Generator[tuple[int | None, int, int]]:
        first = self._first(puts)
        for only in dict.fromkeys((self.of.position, None)):
            if only is not None and not self.bench.can_limit:
                continue
            # What stands before the first layer, or the first position, that something is put into is in every row the
            # same.
            start = 0 if only is None or self._whole else self._start
            yield from dict.fromkeys([(only, first, start), (only, 0, 0)])

    def _first(self, puts: Sequence[Put]) -> int:
        if self._whole or self.bench.mlps or not self.bench.layers:
            return 0
        first = min(put.layer for put in puts)
        return sum(layer < first for _, layer in self.bench.run.anatomy.places)

    def _together(self, puts: Sequence[Put], only: int | None, first: int, start: int) -> list[float] | None:
        """Return a batch's effects; None if its unpatched row differs from the single run."""
        try:
            numbers = self._run([None, *puts], only, first, start)
        except UnsupportedModel:
            return None
        size = max(abs(self.number), float(numbers.abs().max()), 1e-6)
        if abs(float(numbers[0]) - self.number) > REORDERED * size:
            return None
        return (numbers[1:] - numbers[0]).tolist()

    def _is_own(self, output: Tensor) -> bool:
        return close(output, self._row.to(output)[None], REORDERED)

    def _run(self, puts: Sequence[Put | None], only: int | None, first: int = 0, start: int = 0) -> Tensor:
        bench, wanted = self.bench, dict[int, list[tuple[int, Put]]]()
        for row, put in enumerate(puts):
            if put is not None:
                for site in _sites(bench, put):
                    wanted.setdefault(site, []).append((row, put))

        def change(site: int, output: Tensor) -> Tensor:
            if site not in wanted:
                return output
            output = output.clone()
            for row, put in wanted.pop(site):
                pairs = [(at, to) for at, to in self._spots if put.position in (None, at) and at >= start]
                mine, yours = [at - start for at, _ in pairs], [to for _, to in pairs]
                head = slice(None) if put.head is None else put.head
                output[row][head][..., mine, :] = self._theirs[site][head][..., yours, :]
            return output

        outputs = bench.outputs(bench.run.inputs, len(puts), change, only=only, first=first, start=start)
        if start and not self._is_own(outputs[0]):
            raise UnsupportedModel(f"{bench.run.name} gives another result when it starts in the middle of a text")
        if wanted:
            raise UnsupportedModel(f"{bench.run.name} ran differently from before and left out a patched position")
        return numbers_of(outputs, self.of, bench.run.tokens.padding, limited=only is not None)


def _start(
    bench: Bench,
    of: Logit | Probability | Direction,
    other: Trace,
    spots: Sequence[tuple[int, int]],
    handed: tuple[Mapping[int, Tensor], Mapping[int, Tensor]],
) -> int:
    """Return the first position where texts differ and runs may begin; 0 if runs differ earlier."""
    if of.position is None or not bench.can_limit:
        return 0
    start = shared_beginning(bench.run, other.query_tokens(), spots, of.position)
    there, theirs = handed
    apart = [float((there[site][:, :, :start] - theirs[site][:, :, :start]).abs().amax()) for site in there if start]
    sizes = [float(there[site].abs().amax()) for site in there if start]
    return start if all(gap <= REORDERED * size for gap, size in zip(apart, sizes, strict=True)) else 0


def _places(bench: Bench, estimates: Mapping[int, Tensor]) -> list[tuple[str | None, int, int | None]]:
    """Return each patch's stream, None for the only one, layer, and head, None for all of an MLP or of channels."""
    if bench.mlps:
        return [(None, layer, None) for layer in dict.fromkeys(sorted(one.layer for one in bench.mlps))]
    places = [(site, *bench.place(site)) for site in bench.sites]
    several = len({stream for _, stream, _ in places}) > 1
    return [
        (stream if several else None, layer, head)
        for site, stream, layer in places
        for head in ([None] if site in bench.channels else range(len(estimates[site])))
    ]


def _sites(bench: Bench, put: Put) -> list[int]:
    if bench.mlps:
        return [bench.calls + at for at, mlp in enumerate(bench.mlps) if mlp.layer == put.layer]
    return [
        site for site in bench.sites if bench.place(site)[1] == put.layer and put.stream in (None, bench.place(site)[0])
    ]


def _estimate(bench: Bench, put: Put, estimates: Mapping[int, Tensor]) -> float:
    found = [estimates[site] for site in _sites(bench, put)]
    rows = [one.sum(dim=0) if put.head is None else one[put.head] for one in found]
    return float(sum(row.sum() if put.position is None else row[put.position] for row in rows))
