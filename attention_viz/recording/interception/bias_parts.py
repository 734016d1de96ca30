"""Splits a bias into the parts of each product beside query · key, and a given part.

One product at a time is set to zero while everything else stays as it ran; the logits' move is its part. Viewers
compare the parts' sum with the bias that ran.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from attention_viz.edits.edit import Edit
from attention_viz.recording.interception.following import FollowedCall, Following, Product
from attention_viz.recording.interception.plan import (
    Calls,
    CallSite,
    InterceptionPlan,
    computing,
    parameters_of,
)
from attention_viz.recording.interface import OURS
from attention_viz.recording.recorder import Call, Recorder, heard_by, split_mask
from attention_viz.recording.runner import Runner
from attention_viz.recording.twin import Twin

# Of one product of two, whose content and whose position: DeBERTa's words.
CONTENT_TO_POSITION, POSITION_TO_CONTENT = "content to position", "position to content"
# Of a product whose factors can't be told, and of what no product gave.
FURTHER, GIVEN = "a further product", "given"
# How far a moved logit may be from staying, as a share of the largest move.
_STILL = 1e-4

# Given a product, what it gives in a run; None for what it is.
_Change = Callable[[Product], Tensor | None]


@dataclass(eq=False)
class _BiasRun:
    """One run's calls, by number."""

    heard: dict[int, FollowedCall] = field(default_factory=dict[int, FollowedCall])
    calls: dict[int, Call] = field(default_factory=dict[int, Call])

    def logits(self, number: int) -> Tensor:
        """Return (head, query, key)."""
        tensor = self.heard[number].logits.tensor
        return tensor.reshape(-1, *tensor.shape[-2:])


@dataclass(frozen=True, eq=False)
class _Runs:
    """Runs of one text that differ only in products: each call returns its first output."""

    twin: Twin
    plan: InterceptionPlan
    inputs: Mapping[str, Tensor]
    edits: Sequence[Edit]
    places: Sequence[tuple[str, int]]

    def first(self) -> _BiasRun:
        """Run unchanged."""
        calls = Calls(self.plan)
        return self._run(lambda heard, _number: calls.call(heard, calls.site(heard)), lambda _product: None)

    def again(self, first: _BiasRun, change: _Change) -> _BiasRun:
        """Run with some products changed."""
        return self._run(lambda _heard, number: first.calls[number], change)

    def _run(self, called: Callable[[FollowedCall, int], Call], change: _Change) -> _BiasRun:
        found, recorder = _BiasRun(), Recorder(self.edits, self.places, frozenset())

        def attend(heard: FollowedCall) -> Tensor:
            number = recorder.count
            call = called(heard, number)
            found.heard[number], found.calls[number] = heard, call
            output = recorder.compute(call)
            return output.reshape(*heard.taken.lead, *output.shape[-2:]).to(heard.taken.right.dtype)

        following = Following(parameters_of(self.twin.model), attend, busy=computing, product=change)
        with heard_by(recorder), following:
            self.twin.run(self.inputs, OURS)
        return found


def bias_parts(
    runner: Runner, inputs: Mapping[str, Tensor], edits: Sequence[Edit], places: Sequence[tuple[str, int]]
) -> dict[int, dict[str, Tensor]]:
    """Return each call's bias parts by name, (head, query, key), 0 if blocked.

    "given" comes from no product; calls with only one product are omitted.
    """
    runs = _runs_of(runner, inputs, edits, places)
    first = runs.first()
    sites = _with_parts(runner.switch.plan, first)
    if not sites:
        return {}
    found: dict[int, dict[str, Tensor]] = {number: {} for number in sites}
    allowed = {number: split_mask(first.logits(number))[0] for number in sites}
    for which in range(max(site.count for site in sites.values())):
        numbers = {
            first.heard[number].logits.products[which].number: number
            for number, site in sites.items()
            if which < site.count and which != site.product
        }
        moved = runs.again(first, lambda made, numbers=numbers: _zeros(made) if made.number in numbers else None)
        for number in numbers.values():
            part = _live(first.logits(number) - moved.logits(number), allowed[number])
            name = sites[number].parts[which] or FURTHER
            found[number][name] = found[number][name] + part if name in found[number] else part
    every = {product.number for number in sites for product in first.heard[number].logits.products}
    bare = runs.again(first, lambda made: _zeros(made) if made.number in every else None)
    for number in sites:
        given = _live(bare.logits(number), allowed[number])
        if bool(given.any()):
            found[number][GIVEN] = given
    return found


def named_parts(
    runner: Runner, inputs: Mapping[str, Tensor], places: Sequence[tuple[str, int]], others: Mapping[str, Tensor]
) -> InterceptionPlan:
    """Return the plan with a name for each product beside query · key.

    A factor that is equal for another text knows positions only; the other is content. Zeroing the product's row shows
    whose: a row of logits moves for the query's, a column for the key's.
    """
    plan = runner.switch.plan
    if all(site.count < 2 for site in plan.sites):
        return plan
    runs = _runs_of(runner, inputs, (), places)
    first, other = runs.first(), replace(runs, inputs=others).first()
    heard = {one.number: number for number, one in first.heard.items()}
    named = list(plan.sites)
    for at, site in enumerate(plan.sites):
        number = heard[at]
        pairs = zip(first.heard[number].logits.products, other.heard[number].logits.products, strict=True)
        parts = ["" if which == site.product else _name(runs, first, number, *pair) for which, pair in enumerate(pairs)]
        named[at] = replace(site, parts=tuple(parts))
    return replace(plan, sites=tuple(named))


def _runs_of(
    runner: Runner, inputs: Mapping[str, Tensor], edits: Sequence[Edit], places: Sequence[tuple[str, int]]
) -> _Runs:
    plan = runner.switch.plan
    return _Runs(replace(runner.twin(), plan=InterceptionPlan(keeps_own=plan.keeps_own)), plan, inputs, edits, places)


def _with_parts(plan: InterceptionPlan, first: _BiasRun) -> dict[int, CallSite]:
    sites = {number: plan.sites[heard.number] for number, heard in first.heard.items()}
    return {number: site for number, site in sites.items() if site.count > 1 and site.parts}


def _name(runs: _Runs, first: _BiasRun, number: int, product: Product, other: Product) -> str:
    stays = [_same(product.left, other.left), _same(product.right, other.right)]
    if stays != [False, True]:
        return ""

    def without_a_row(made: Product) -> Tensor | None:
        if made.number != product.number:
            return None
        value = made.value.clone()
        value[..., 1, :] = 0
        return value

    moved = runs.again(first, without_a_row)
    change = (moved.logits(number) - first.logits(number)).nan_to_num(0, 0, 0).abs().sum(dim=0)
    there = change > _STILL * float(change.max())
    rows, columns = there.any(dim=1).nonzero().flatten().tolist(), there.any(dim=0).nonzero().flatten().tolist()
    if rows == [1]:
        return CONTENT_TO_POSITION
    return POSITION_TO_CONTENT if columns == [1] else ""


def _same(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and bool(torch.equal(one, other))


def _zeros(made: Product) -> Tensor:
    return torch.zeros_like(made.value)


def _live(numbers: Tensor, allowed: Tensor | None) -> Tensor:
    return numbers if allowed is None else numbers.masked_fill(~allowed, 0)
