"""Finds the position of an image that each slot of a window shows.

Windows are rows of a batch, cut out of a layer's input. The model runs with known vectors in place of that input: four
vectors, given to positions by the digits of their numbers. Each slot attends to itself alone, so its query, key and
value show its own position's digits, whatever rolls, pads or orders them. A slot that fits none reads several
positions; one that no vector moves is padding or a class token. The layer's output is read, too, and its difference
from a run whose slots output zeros. Each slot's output must come back at its own position.
"""

import contextlib
import re
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol, cast, runtime_checkable

import torch
from torch import Tensor, nn

from attention_viz.errors import UnsupportedModel
from attention_viz.recording.call_rows import WindowOrder
from attention_viz.recording.hooks import hooked
from attention_viz.recording.layout.digits import digits_shown, mixed
from attention_viz.recording.layout.foreign import content_of, foreign_code
from attention_viz.recording.layout.window_digits import SlotRecorder, SlotRun, added_factor
from attention_viz.recording.layout.window_sites import BASE, WindowSite, WindowSource, is_cut, separate
from attention_viz.recording.recorder import Call, Recorder, RunEnded, recording

_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
# Of a call's numbers, the first that shows what its slots add: after its terms, and its home's input and output.
_ADDED = 5
# A source has at most so many positions for each slot: a layer may leave out a class token.
_MOST_EMPTY = 2
# Orders of so many shapes of inputs are kept.
_KEPT = 32
# Held while an order is kept.
_KEEPING = threading.Lock()


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
        orders = self._found.get(key)
        if orders is None:
            orders = _Search(runner, inputs, near=bool(foreign)).orders()
            with _KEEPING:
                while len(self._found) >= _KEPT:
                    del self._found[next(iter(self._found))]
                self._found[key] = orders
        return orders

    def adopt(self, other: "WindowFinder") -> None:
        """Find windows from here on, as another does that has found the first."""
        self._found.update(other._found)
        self.active = other.active


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
            tried = {number: one for number, one in tried.items() if not is_cut(one, tried)}
            for number, order in self._read([sites[number] for number in tried], tried).items():
                if order is None:
                    left[number] = left[number][1:]
                else:
                    found[number] = order
                    del left[number]
        for several in separate(sites.values()):
            wrong = self._added_elsewhere([one.replaced for one in several])
            if wrong is not None and self._near:
                # Code that goes by a layer's numbers may do otherwise with the vectors alone.
                wrong = self._added_elsewhere(several)
            if wrong is not None:
                raise self._refusal(wrong)
        return found

    def _refusal(self, site: WindowSite) -> UnsupportedModel:
        name = type(self._runner.model).__name__
        return UnsupportedModel(
            f"{name} attends in {site.rows} rows in {site.pattern}, and these aren't windows of single positions of a "
            "layer's input, each written back to its own; use a model whose rows are tiles, images or such windows"
        )

    def _sites(self) -> list[WindowSite]:
        """List the calls in rows, and those of equal modules, with their sources."""
        running, calls = list[tuple[nn.Module, WindowSource | None]](), list[tuple[list[Any], Any, Call]]()
        latest = list[WindowSource]()
        own = {id(one) for one in self._inputs.values()}
        names, near = {module: name for name, module in self._runner.model.named_modules()}, self._near

        def source(module: nn.Module, states: Tensor, *, is_output: bool = False) -> WindowSource:
            return WindowSource(module, states.shape, len(calls), is_output, states.clone() if near else None)

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

        class _Sites(SlotRecorder):
            def hear(self, call: Call) -> Tensor:
                calls.append(([*running], [*latest], call))
                shown = super().hear(call)
                return call.attention.output if near else shown

        recorder = _Sites()
        with hooked(names, end, enter, named=True):
            self._run(recorder)
        patterns = [re.sub(r"\d+", "*", names.get(call.module, "")) for _, _, call in calls]
        rows = [len(call.attention.query) for _, _, call in calls]
        windowed = {pattern for pattern, count in zip(patterns, rows, strict=True) if count > 1}
        found = list[WindowSite]()
        for number, (around, convolutions, call) in enumerate(calls):
            if patterns[number] not in windowed:
                continue
            slots = rows[number] * call.attention.key.shape[-2]
            inputs = [one for _, one in around if one is not None and one.shape[0] < max(rows[number], 2)]
            # Rows that are all there were before are tiles or images, maybe in another order.
            convolutions = [one for one in convolutions if one.shape[0] < max(*rows, 2)]
            several = [one for one in (*convolutions, *inputs) if one.count <= _MOST_EMPTY * slots]
            entry = inputs[-1] if inputs else None
            found.append(WindowSite(number, patterns[number], rows[number], tuple(several), entry))
        return found

    def _read(self, sites: Sequence[WindowSite], sources: Mapping[int, WindowSource]) -> dict[int, WindowOrder | None]:
        """Return each call's order by its source; None if slots don't show its positions, or come back at others."""
        distinct = dict.fromkeys(sources.values())
        homes, last = {site.home: None for site in sites if site.home is not None}, max(site.number for site in sites)
        whole = [self._run_with(dict.fromkeys(distinct, digit), homes, last) for digit in range(BASE)]
        reading = _Reading(whole)
        clean, power = {site.number: site for site in sites}, 1
        while clean and (power == 1 or power < max(sources[number].count for number in clean)):
            digits = {one: torch.arange(one.count) // power % BASE for one in distinct}
            run = self._run_with(digits, homes, last)
            clean = {number: site for number, site in clean.items() if reading.take(site, run, power)}
            power *= BASE
        return {
            site.number: reading.order(site, sources[site.number]) if site.number in clean else None for site in sites
        }

    def _added_elsewhere(self, sites: Sequence[WindowSite]) -> WindowSite | None:
        """Return a call whose slots' outputs are added at other positions of its layer; None if there is none.

        The layers' own inputs are replaced, so that no call shows another's outputs.
        """
        entries = {site.number: site.entry for site in sites if site.entry is not None}
        homes, last = {one.module: None for one in entries.values()}, max(entries)

        def both(digits: Mapping[WindowSource, Tensor | int], factors: Mapping[int, float]) -> SlotRun:
            silent = self._run_with(digits, homes, last, dict.fromkeys(entries, 0.0))
            return self._run_with(digits, homes, last, factors).beside(silent)

        def known(factors: Mapping[int, float]) -> list[SlotRun]:
            return [both(dict.fromkeys(entries.values(), digit), factors) for digit in range(BASE)]

        whole = known({})
        factors = {number: added_factor(whole, one.module) for number, one in entries.items()}
        reading, power = _Reading(whole if all(one == 1 for one in factors.values()) else known(factors)), 1
        while power == 1 or power < max(one.count for one in entries.values()):
            run = both({one: torch.arange(one.count) // power % BASE for one in entries.values()}, factors)
            if wrong := [site for site in sites if not reading.take(site, run, power)]:
                return wrong[0]
            power *= BASE
        return next((site for site in sites if not reading.is_added_in_place(site)), None)

    def _run_with(
        self,
        digits: Mapping[WindowSource, Tensor | int],
        homes: Collection[nn.Module],
        last: int,
        factors: Mapping[int, float] | None = None,
    ) -> SlotRun:
        """Run up to the last call's home, with vectors in place of sources, by positions' digits.

        Args:
            factors: what calls' outputs are multiplied by, by number.
        """
        recorder = SlotRecorder(factors=factors or {})
        run = SlotRun(recorder.shown)
        outputs = {source.module: source for source in digits if source.is_output}
        inputs = {source.module: source for source in digits if not source.is_output}

        def enter(module: nn.Module, given: tuple[Any, ...], named: Mapping[str, Any]) -> object:
            first = _first((*given, *named.values()))
            if first is None or not self._is_ours(recorder):
                return None
            source = inputs.get(module)
            if source is None or first.shape != source.shape:
                run.entered[module] = mixed(first[None, None].flatten(2, -2))
                return None
            other = source.filled(digits[source], first)
            run.entered[module] = mixed(other[None, None].flatten(2, -2))
            replaced = tuple(other if one is first else one for one in given)
            return replaced, {name: other if one is first else one for name, one in named.items()}

        def end(module: nn.Module, _inputs: object, _named: object, output: object) -> object:
            if not self._is_ours(recorder):
                return None
            source, first = outputs.get(module), _first((output,))
            if source is not None and first is output and first is not None and first.shape == source.shape:
                return source.filled(digits[source], first)
            if module in homes and first is not None:
                run.written[module] = mixed(first[None, None].flatten(2, -2))
                run.precision[module] = torch.finfo(first.dtype).eps
            if module in homes and recorder.count > last:
                raise RunEnded
            return None

        with hooked({*inputs, *outputs, *homes}, end, enter, named=True):
            self._run(recorder)
        return run

    def _run(self, recorder: Recorder) -> None:
        with contextlib.suppress(RunEnded), torch.no_grad(), self._runner.hearing(recorder):
            _ = self._runner.model(**{**self._runner.settings, **self._inputs})

    def _is_ours(self, recorder: Recorder) -> bool:
        return threading.get_ident() == self._thread and recording.get() is recorder


@dataclass(eq=False)
class _Reading:
    """Reads digits from runs.

    Attributes:
        whole: the runs with one vector everywhere.
    """

    whole: Sequence[SlotRun]
    _numbers: dict[int, list[Tensor]] = field(default_factory=dict[int, list[Tensor]])

    def take(self, site: WindowSite, run: SlotRun, power: int) -> bool:
        """Add a run's digits; return whether each slot shows one."""
        number, home, found = site.number, site.home, list[Tensor]()
        every = zip(*(one.of(number, home) for one in self.whole), strict=True)
        for known, shown in zip(every, run.of(number, home), strict=True):
            rounding = 0.0 if len(found) < _ADDED else run.rounding(home)
            digits, clean = digits_shown(known, shown, rounding=rounding)
            if not clean:
                return False
            found.append(digits * power)
        before = self._numbers.get(site.number)
        self._numbers[site.number] = [
            torch.where(digits < 0, -1, digits + (0 if before is None else before[which]))
            for which, digits in enumerate(found)
        ]
        return True

    def is_added_in_place(self, site: WindowSite) -> bool:
        """Return whether each slot's output is added at the position of its layer's input that the slot shows."""
        query, _, _, *home = self._numbers[site.number]
        if not home:
            return True
        *_, added = home
        moved, positions = added >= 0, torch.arange(len(added), device=added.device)
        # Slots that add nothing at all are written nowhere else; what they add to small vectors may be too little.
        nothing = not bool(moved.any()) and (site.entry is None or site.entry.own is None)
        whole = bool(moved[query[query >= 0]].all()) or nothing
        return whole and torch.equal(added[moved], positions[moved])

    def order(self, site: WindowSite, source: WindowSource) -> WindowOrder | None:
        """Return a call's order, if its queries, keys and values agree, and are written back to their positions."""
        query, key, value, *home = self._numbers[site.number]
        alike = query.shape == key.shape and torch.equal(query, key) and torch.equal(query, value)
        if not alike or bool((query >= source.count).any()) or (home and not torch.equal(*home)):
            return None
        order = torch.where(query < 0, source.count, query).sort(stable=True).indices
        return WindowOrder(order.argsort().reshape(site.rows, -1), query[order], source.count, source.module)


def _first(values: Iterable[object]) -> Tensor | None:
    """Return the first tensor of numbers."""
    for one in values:
        if isinstance(one, Tensor):
            return one if one.is_floating_point() else None
        if isinstance(one, tuple | list) or hasattr(one, "to_tuple"):
            return _first(cast("Any", one).to_tuple() if hasattr(one, "to_tuple") else cast("tuple[object, ...]", one))
    return None
