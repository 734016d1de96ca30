"""Patch each head or MLP: estimate by gradient, confirm by runs."""

import threading
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

from torch import Tensor

from attention_viz.circuits.asked import Direction, Logit, Probability
from attention_viz.circuits.patching.bench import Bench, parts_of, shared_beginning
from attention_viz.circuits.patching.first_order import keeping, numbers_of, same, to_first_order, with_slopes
from attention_viz.circuits.patching.pairing import Pairs, counterpart, paired, plain_run, settled
from attention_viz.errors import ShapeError, UnsupportedModel
from attention_viz.operation.numerics import REORDERED, close
from attention_viz.recording.gradients import ModelRun
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
    _pairs: Mapping[int, Pairs]
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
        count = len(runs[0].tokens)
        other_of = counterpart(of, text, dict(_of_output(runs[0], spots)), count, other.output_shape[0])
        if direction == "denoising":
            if other_of is None:
                raise ShapeError(
                    f"position {of.position} has no counterpart in the other text, which is patched; choose another "
                    "position"
                )
            runs, text, other, of, other_of = runs[::-1], other, text, other_of, of
            spots = {stream: tuple((yours, mine) for mine, yours in pairs) for stream, pairs in spots.items()}
        bench = Bench.of(runs[0], mlps=parts == "mlps")
        if bench.parts != parts_of(runs[1]):
            raise ShapeError(
                f"{runs[0].name} attends to the two images in other chunks, so their positions can't be paired; give "
                "both one shape, in pixels"
            )
        number, there, slopes = with_slopes(bench, text, of)
        theirs: dict[int, Tensor] = {}
        fetched = same(bench.outputs(runs[1].inputs, 1, keeping(theirs, bench.sites)), other)
        pairs = {site: _within(bench, site, there[site], text, spots) for site in bench.sites}
        estimates = {site: to_first_order(there[site], theirs[site], slopes[site], pairs[site]) for site in bench.sites}
        places = _places(bench, estimates)
        several = len({stream for stream, *_ in places}) > 1
        puts = tuple(
            Put(layer, head, at, stream if several else None)
            for stream, layer, head in places
            for at in ([None] if by == "head" else sorted(one for one, _ in spots[stream]))
        )
        return cls(
            of,
            number,
            None if other_of is None else float(numbers_of(fetched, other_of, runs[1].tokens.padding)[0]),
            puts,
            {put: _estimate(bench, put, estimates) for put in puts},
            bench,
            pairs,
            {site: output[0] for site, output in theirs.items()},
            text.output if of.position is None else text.output_at(of.position),
            _start(bench, of, other, _of_output(runs[0], spots), (there, theirs)),
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
        tokens = sum(map(len, self.bench.run.queries.values())) - (0 if self._whole else self._start)
        size = self._row.numel()
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
                only_at = None if put.position is None else put.position - bench.start(site)
                pairs = [(at, to) for at, to in self._pairs[site] if only_at in (None, at) and at >= start]
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
    if of.position is None or not bench.can_limit or len(bench.run.queries) > 1:
        return 0
    start = shared_beginning(bench.run, other.query_tokens(), spots, of.position)
    there, theirs = handed
    apart = [float((there[site][:, :, :start] - theirs[site][:, :, :start]).abs().amax()) for site in there if start]
    sizes = [float(there[site].abs().amax()) for site in there if start]
    return start if all(gap <= REORDERED * size for gap, size in zip(apart, sizes, strict=True)) else 0


def _of_output(run: ModelRun, spots: Mapping[str, Pairs]) -> Pairs:
    """Return the pairs of the output's positions."""
    return next(pairs for stream, pairs in spots.items() if run.queries.get(stream) is run.tokens)


def _within(bench: Bench, site: int, output: Tensor, text: Trace, spots: Mapping[str, Pairs]) -> Pairs:
    """Return a site's own pairs, counted from its first position."""
    (stream, layer), start, count = bench.place(site), bench.start(site), output.shape[2]
    whole = len(text.query_tokens(stream))
    if bench.mlps and count != whole:
        raise UnsupportedModel(
            f"can't patch the MLP of layer {layer} in the {stream} of {bench.run.name}: it has {count} outputs for "
            f"{whole} positions; patch its heads"
        )
    return tuple((at - start, to - start) for at, to in spots[stream] if start <= at < start + count)


def _places(bench: Bench, estimates: Mapping[int, Tensor]) -> list[tuple[str, int, int | None]]:
    """Return each patch's stream, layer and head, None for all of an MLP or of channels."""
    places = [(site, *bench.place(site)) for site in bench.sites]
    found = [
        (stream, layer, head)
        for site, stream, layer in places
        for head in ([None] if bench.mlps or site in bench.channels else range(len(estimates[site])))
    ]
    found = list(dict.fromkeys(found))
    streams = list(bench.run.queries)
    return sorted(found, key=lambda place: (streams.index(place[0]), place[1])) if bench.mlps else found


def _sites(bench: Bench, put: Put) -> list[int]:
    return [
        site for site in bench.sites if bench.place(site)[1] == put.layer and put.stream in (None, bench.place(site)[0])
    ]


def _estimate(bench: Bench, put: Put, estimates: Mapping[int, Tensor]) -> float:
    total = 0.0
    for site in _sites(bench, put):
        found = estimates[site].sum(dim=0) if put.head is None else estimates[site][put.head]
        at = None if put.position is None else put.position - bench.start(site)
        total += float(found.sum()) if at is None else float(found[at]) if 0 <= at < len(found) else 0.0
    return total
