"""Finds the position of an image that each slot of a window shows.

Windows are rows of a batch, cut out of a layer's input. The model runs with known vectors in place of that input: four
vectors, given to positions by the digits of their numbers. Each slot attends to itself alone, so its query, key and
value show its own position's digits, whatever rolls, pads or orders them. A slot that fits none reads several
positions; one that no vector moves is padding or a class token. The layer's output is read, too, so that each slot's
output must come back at its own position.
"""

import contextlib
import re
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Protocol, cast, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attention_viz.errors import UnsupportedModel
from attention_viz.operation.attention import fused, fusible
from attention_viz.recording.call_rows import WindowOrder
from attention_viz.recording.hooks import hooked
from attention_viz.recording.layout.foreign import content_of, foreign_code
from attention_viz.recording.layout.window_sources import BASE, Source
from attention_viz.recording.recorder import Call, Recorder, RunEnded, recording

# How far what a slot shows may be from a vector's, as a share of the distance between two.
_CLOSE = 1e-3
# Vectors nearer than this share of the largest number don't move a slot.
_STILL = 1e-5
# So many numbers stand for a slot's query, key or value.
_WIDTH = 2
_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
# A source has at most so many positions for each slot: a layer may leave out a class token.
_MOST_EMPTY = 2
# Orders of so many shapes of inputs are kept.
_KEPT = 32


@runtime_checkable
class Runs(Protocol):
    """Runs a model with a recorder; see `Runner`."""

    @property
    def model(self) -> Any:
        """The model."""
        ...

    @property
    def settings(self) -> Mapping[str, Any]:
        """Arguments of each run."""
        ...

    def hearing(self, recorder: Recorder) -> AbstractContextManager[None]:
        """Run with our attention and a recorder."""
        ...


@dataclass(frozen=True)
class _Site:
    """A call that attends in windows, or beside some.

    Attributes:
        sources: the tensors that its slots may show, outermost first.
        home: the innermost module around its windows.
    """

    number: int
    pattern: str
    rows: int
    sources: tuple[Source, ...]
    home: nn.Module | None


@dataclass(eq=False)
class _Shown(Recorder):
    """Lets each slot attend to itself alone, and keeps numbers of its query, key and value, (slot, number) each."""

    shown: list[list[Tensor]] = field(default_factory=list[list[Tensor]])

    def hear(self, call: Call) -> Tensor:
        """Return each slot's own value, (row, head, query, d_v)."""
        query, key, value = (getattr(call.attention, name) for name in ("query", "key", "value"))
        self._modules.append(call.module)
        self.shown.append([_shown(one) for one in (query, key, value)])
        if query.shape[-2] != key.shape[-2] or query.ndim != 4:
            attention = call.attention
            return fused(attention, closed=False) if fusible(attention) else attention.output
        return value.repeat_interleave(query.shape[1] // value.shape[1], dim=1)


def _shown(terms: Float[Tensor, "row head slot width"]) -> Float[Tensor, "cell number"]:
    """Return a few numbers for each slot, which any of its own change."""
    heads, width = terms.shape[1], terms.shape[3]
    chance = torch.Generator().manual_seed(heads * width)
    mixed = torch.randn(heads, width, _WIDTH, generator=chance)
    terms = terms.detach() if terms.dtype == torch.float64 else terms.detach().float()
    return (terms @ mixed.to(terms)).sum(dim=1).reshape(-1, _WIDTH)


@dataclass(eq=False)
class WindowFinder:
    """Finds the orders of a model's windows, once per shape of its inputs and settings of its modules.

    With foreign code, which may go by the image, it finds them once per image, with vectors added to its own numbers.

    Attributes:
        active: whether the model attends in windows.
    """

    active: bool = False
    _found: dict[object, Mapping[int, WindowOrder]] = field(default_factory=dict[object, Any])

    def of(self, runner: Runs, inputs: Mapping[str, Any]) -> Mapping[int, WindowOrder]:
        """Return the orders of calls in windows, by number; none for a model without windows.

        Raises:
            UnsupportedModel: slots show several positions, or come back at others.
        """
        if not self.active:
            return {}
        kinds = sorted((name, _kind(one)) for name, one in inputs.items() if isinstance(one, Tensor))
        # Swin stops shifting its windows for good once an image has one window.
        key = *kinds, *(one for module in runner.model.modules() for one in _settings(module))
        foreign = [*foreign_code(runner.model.modules())]
        key = (*key, *foreign, content_of(inputs)) if foreign else key
        if key not in self._found:
            while len(self._found) >= _KEPT:
                self._found.pop(next(iter(self._found)), None)
            self._found[key] = _Search(runner, inputs, near=bool(foreign)).orders()
        return self._found[key]


def _kind(tensor: Tensor) -> tuple[object, ...]:
    """Return a tensor's shape, and of a few whole numbers, such as an image's size, these."""
    few = not tensor.is_floating_point() and tensor.numel() <= 16
    return tuple(tensor.shape), tuple(tensor.flatten().tolist()) if few else ()


def _settings(module: nn.Module) -> list[tuple[str, str]]:
    return [(name, repr(one)) for name, one in vars(module).items() if isinstance(one, int | float | str | tuple)]


class _Search:
    """Runs a model with vectors in place of its layers' inputs, or added to them if `near`, and reads its slots."""

    def __init__(self, runner: Runs, inputs: Mapping[str, Any], *, near: bool = False) -> None:
        self._runner, self._inputs, self._near = runner, inputs, near
        self._thread = threading.get_ident()

    def orders(self) -> dict[int, WindowOrder]:
        """Return each call's order, by number."""
        sites = {site.number: site for site in self._sites()}
        found, left = dict[int, WindowOrder](), {number: list(site.sources) for number, site in sites.items()}
        while left:
            if failed := [number for number, sources in left.items() if not sources]:
                raise self._refusal(sites[failed[0]])
            tried = {number: sources[0] for number, sources in left.items()}
            tried = {number: one for number, one in tried.items() if not _is_cut(one, tried)}
            for number, order in self._read([sites[number] for number in tried], tried).items():
                if order is None:
                    left[number] = left[number][1:]
                else:
                    found[number] = order
                    del left[number]
        return found

    def _refusal(self, site: _Site) -> UnsupportedModel:
        name = type(self._runner.model).__name__
        return UnsupportedModel(
            f"{name} attends in {site.rows} rows in {site.pattern}, and these aren't windows of single positions of a "
            "layer's input, each written back to its own; use a model whose rows are tiles, images or such windows"
        )

    def _sites(self) -> list[_Site]:
        """List the calls in rows, and those of equal modules, with their sources."""
        running, calls = list[tuple[nn.Module, Source | None]](), list[tuple[list[Any], Any, Call]]()
        latest = list[Source]()
        own = {id(one) for one in self._inputs.values()}
        names, near = {module: name for name, module in self._runner.model.named_modules()}, self._near

        def source(module: nn.Module, states: Tensor, *, is_output: bool = False) -> Source:
            return Source(module, states.shape, len(calls), is_output, states.clone() if self._near else None)

        def enter(module: nn.Module, inputs: tuple[Any, ...], named: Mapping[str, Any]) -> None:
            if self._is_ours(recorder):
                first = _first((*inputs, *named.values()))
                if first is None or id(first) in own or first.ndim < 3:
                    running.append((module, None))
                else:
                    running.append((module, source(module, first)))

        def end(module: nn.Module, _inputs: object, _named: object, output: object) -> None:
            if self._is_ours(recorder):
                while running and running.pop()[0] is not module:
                    pass
                if isinstance(module, _CONVOLUTIONS) and isinstance(output, Tensor):
                    latest[:] = [source(module, output, is_output=True)]

        class _Sites(_Shown):
            def hear(self, call: Call) -> Tensor:
                calls.append(([*running], [*latest], call))
                own = super().hear(call)
                return call.attention.output if near else own

        recorder = _Sites()
        with hooked(names, end, enter, named=True):
            self._run(recorder)
        patterns = [re.sub(r"\d+", "*", names.get(call.module, "")) for _, _, call in calls]
        rows = [len(call.attention.query) for _, _, call in calls]
        windowed = {pattern for pattern, count in zip(patterns, rows, strict=True) if count > 1}
        found = list[_Site]()
        for number, (around, convolutions, call) in enumerate(calls):
            if patterns[number] not in windowed:
                continue
            slots = rows[number] * call.attention.key.shape[-2]
            inputs = [one for _, one in around if one is not None and one.shape[0] < max(rows[number], 2)]
            # Rows that are all there were before are tiles or images, maybe in another order.
            convolutions = [one for one in convolutions if one.shape[0] < max(*rows, 2)]
            several = [one for one in (*convolutions, *inputs) if one.count <= _MOST_EMPTY * slots]
            home = inputs[-1].module if inputs else None
            found.append(_Site(number, patterns[number], rows[number], tuple(several), home))
        return found

    def _read(self, sites: Sequence[_Site], sources: Mapping[int, Source]) -> dict[int, WindowOrder | None]:
        """Return each call's order by its source; None if slots don't show its positions, or come back at others."""
        distinct = dict.fromkeys(sources.values())
        homes, last = {site.home: None for site in sites if site.home is not None}, max(site.number for site in sites)
        reading = _Reading([self._run_with(dict.fromkeys(distinct, digit), homes, last) for digit in range(BASE)])
        clean, power = {site.number: site for site in sites}, 1
        while clean and (power == 1 or power < max(sources[number].count for number in clean)):
            digits = {one: torch.arange(one.count) // power % BASE for one in distinct}
            run = self._run_with(digits, homes, last)
            clean = {number: site for number, site in clean.items() if reading.take(site, run, power)}
            power *= BASE
        return {
            site.number: reading.order(site, sources[site.number]) if site.number in clean else None for site in sites
        }

    def _run_with(self, digits: Mapping[Source, Tensor | int], homes: Collection[nn.Module], last: int) -> "_Run":
        """Run up to the last call's home, with vectors in place of sources, by positions' digits."""
        run, recorder = _Run(), _Shown()
        outputs = {source.module: source for source in digits if source.is_output}
        inputs = {source.module: source for source in digits if not source.is_output}

        def enter(module: nn.Module, given: tuple[Any, ...], named: Mapping[str, Any]) -> object:
            first = _first((*given, *named.values()))
            if first is None or not self._is_ours(recorder):
                return None
            source = inputs.get(module)
            if source is None or first.shape != source.shape:
                run.entered[module] = _shown(first[None, None].flatten(2, -2))
                return None
            other = source.filled(digits[source], first)
            run.entered[module] = _shown(other[None, None].flatten(2, -2))
            replaced = tuple(other if one is first else one for one in given)
            return replaced, {name: other if one is first else one for name, one in named.items()}

        def end(module: nn.Module, _inputs: object, _named: object, output: object) -> object:
            if not self._is_ours(recorder):
                return None
            source, first = outputs.get(module), _first((output,))
            if source is not None and first is output and first is not None and first.shape == source.shape:
                return source.filled(digits[source], first)
            if module in homes and first is not None:
                run.written[module] = _shown(first[None, None].flatten(2, -2))
            if module in homes and recorder.count > last:
                raise RunEnded
            return None

        with hooked({*inputs, *outputs, *homes}, end, enter, named=True):
            self._run(recorder)
        run.shown = recorder.shown
        return run

    def _run(self, recorder: Recorder) -> None:
        with contextlib.suppress(RunEnded), torch.no_grad(), self._runner.hearing(recorder):
            _ = self._runner.model(**{**self._runner.settings, **self._inputs})

    def _is_ours(self, recorder: Recorder) -> bool:
        return threading.get_ident() == self._thread and recording.get() is recorder


@dataclass(eq=False)
class _Run:
    """The numbers of one run's slots, by call, and of the inputs and outputs of modules around windows."""

    shown: list[list[Tensor]] = field(default_factory=list[list[Tensor]])
    entered: dict[nn.Module, Tensor] = field(default_factory=dict[nn.Module, Tensor])
    written: dict[nn.Module, Tensor] = field(default_factory=dict[nn.Module, Tensor])

    def of(self, site: _Site) -> list[Tensor]:
        """Return the numbers of a call's queries, keys and values, and of its home's input and output."""
        if site.number >= len(self.shown):
            raise UnsupportedModel("it makes fewer attention calls for other numbers")
        both = [one[site.home] for one in (self.entered, self.written) if site.home is not None and site.home in one]
        whole = len(both) == 2 and both[0].shape == both[1].shape
        return [*self.shown[site.number], *(both if whole else ())]


@dataclass(eq=False)
class _Reading:
    """Reads digits from runs.

    Attributes:
        whole: the runs with one vector everywhere.
    """

    whole: Sequence[_Run]
    _numbers: dict[int, list[Tensor]] = field(default_factory=dict[int, list[Tensor]])

    def take(self, site: _Site, run: _Run, power: int) -> bool:
        """Add a run's digits; return whether each slot shows one."""
        every, found = zip(*(one.of(site) for one in self.whole), strict=True), list[Tensor]()
        for known, shown in zip(every, run.of(site), strict=True):
            digits = _digits(known, shown)
            if digits is None:
                return False
            found.append(digits * power)
        before = self._numbers.get(site.number)
        self._numbers[site.number] = [
            torch.where(digits < 0, -1, digits + (0 if before is None else before[which]))
            for which, digits in enumerate(found)
        ]
        return True

    def order(self, site: _Site, source: Source) -> WindowOrder | None:
        """Return a call's order, if its queries, keys and values agree, and are written back to their positions."""
        query, key, value, *home = self._numbers[site.number]
        alike = query.shape == key.shape and torch.equal(query, key) and torch.equal(query, value)
        if not alike or bool((query >= source.count).any()) or (home and not torch.equal(*home)):
            return None
        order = torch.where(query < 0, source.count, query).sort(stable=True).indices
        return WindowOrder(order.argsort().reshape(site.rows, -1), query[order], source.count, source.module)


def _digits(vectors: Sequence[Float[Tensor, "slot number"]], shown: Float[Tensor, "slot number"]) -> Tensor | None:
    """Return the vector that each slot shows, −1 for those that none moves; None if a slot shows none."""
    if any(one.shape != shown.shape for one in vectors):
        return None
    known = torch.stack([*vectors])
    size = known.abs().max().clamp_min(1e-30)
    between = torch.stack([(one - other).norm(dim=-1) for one, other in combinations(known, 2)]).amin(dim=0)
    still = (known - known[0]).norm(dim=-1).amax(dim=0) <= _STILL * size
    off, digits = (known - shown).norm(dim=-1).min(dim=0)
    clean = off <= torch.where(still, _STILL * size, _CLOSE * between)
    return torch.where(still, -1, digits) if bool(clean.all()) else None


def _is_cut(source: Source, others: Mapping[int, Source]) -> bool:
    """Return whether a source can't be replaced in the same run as an earlier one, whose calls would show it."""
    return any(
        other.begins < source.begins <= number
        or (
            other.begins == source.begins
            and other != source
            and (other.is_output or source.module in {*other.module.modules()})
        )
        for number, other in others.items()
    )


def _first(values: Iterable[object]) -> Tensor | None:
    """Return the first tensor of numbers."""
    for one in values:
        if isinstance(one, Tensor):
            return one if one.is_floating_point() else None
        if isinstance(one, tuple | list) or hasattr(one, "to_tuple"):
            return _first(cast("Any", one).to_tuple() if hasattr(one, "to_tuple") else cast("tuple[object, ...]", one))
    return None
