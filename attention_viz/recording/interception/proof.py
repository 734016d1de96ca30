"""Proves how a model's own code computes attention, or refuses.

A softmax after a product need not be attention. Each product is replaced by random numbers: if all logits move by one
factor times its change, it is query · key, the factor is the scale, and the rest is added. The rest always fits, so
only that factor proves anything. Softmax and output are then compared as in every run.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from attention_viz.errors import UnsupportedModel
from attention_viz.operation.attention import Attention
from attention_viz.recording.call_chunks import CallPart
from attention_viz.recording.differences import Difference, Real, cut, kept_rows, weights_difference
from attention_viz.recording.interception.following import FollowedCall, Following, Product
from attention_viz.recording.interception.plan import CallSite, InterceptionPlan, computing, parameters_of
from attention_viz.recording.recorder import BLOCKED_BELOW

if TYPE_CHECKING:
    from attention_viz.recording.runner import Pass

# How far a moved logit may be from the factor's prediction, as a share of the largest move.
_LINEAR = 1e-4


@dataclass(eq=False)
class _ProofRun:
    """One run's calls, and each softmax's output."""

    heard: list[FollowedCall] = field(default_factory=list[FollowedCall])
    weights: list[Tensor] = field(default_factory=list[Tensor])


def prove(model: nn.Module, run: Callable[[], object], *, in_rows: bool = False) -> InterceptionPlan:
    """Find and prove attention in a model's own code; `run` runs a few tokens.

    Args:
        in_rows: whether one input may be several rows, as an image's windows or a video's frames.
    """
    first = _listened(model, run)
    if len(first.weights) != len(first.heard):
        raise UnsupportedModel(
            f"it multiplies only {len(first.heard)} of its {len(first.weights)} softmaxes of products with values; the "
            "purpose of the others is unknown"
        )
    most = max((len(heard.logits.products) for heard in first.heard), default=0)
    moved = [_moved(model, run, first, number) for number in range(most)]
    return InterceptionPlan(tuple(_site(heard, moved, in_rows=in_rows) for heard in first.heard))


def _site(heard: FollowedCall, moved: list["_ShuffledLogits"], *, in_rows: bool) -> CallSite:
    """Return the site of the only product that moves the logits by one factor, or by one per head."""
    products = heard.logits.products
    found: list[tuple[int, tuple[float, ...]]] = []
    for which in range(len(products)):
        scales = moved[which].scales(heard)
        if scales:
            found.append((which, scales))
    name = type(heard.module).__name__
    if len(found) > 1:  # of several sums of queries and keys, such as of words and of boxes, the values' own
        width = heard.taken.right.shape[-1]
        found = [(which, scales) for which, scales in found if products[which].left.shape[-1] == width]
    if not found:
        raise UnsupportedModel(f"{name} {_why_none(heard, moved)}")
    if len(found) > 1:
        raise UnsupportedModel(
            f"{name} adds {len(found)} products of two tensors before a softmax, so its queries and keys aren't known; "
            "use a model that multiplies one query by one key"
        )
    which, scales = found[0]
    lead, width = heard.logits.tensor.shape[:-2], products[which].left.shape[-1]
    # Torch's module has rows and heads on one axis.
    heads = heard.module.num_heads if isinstance(heard.module, nn.MultiheadAttention) else lead.numel()
    rows = lead[0] if len(lead) > 1 and lead[1:].numel() > 1 else lead.numel() // heads
    if rows > 1 and in_rows and len(lead) == 2:
        heads = lead[1]
    elif rows > 1 and not (in_rows and isinstance(heard.module, nn.MultiheadAttention)):
        raise UnsupportedModel(
            f"{name} splits one input into {rows} rows that attend apart, such as windows, frames or places; use a "
            "model that keeps an input in one row"
        )
    # Two factors are meant exactly: rounding alone keeps what was found from being them.
    if len(scales) == 1:
        scales = (next((exact for exact in (1.0, width**-0.5) if abs(scales[0] / exact - 1) < 1e-6), scales[0]),)
    ways = frozenset({(heard.logits.way, heard.way)})
    return CallSite(
        which,
        len(products),
        scales[0],
        heads,
        ways,
        of_heads=tuple(one / scales[0] for one in scales)[: len(scales) > 1 and len(scales)],
    )


def _why_none(heard: FollowedCall, moved: Sequence["_ShuffledLogits"]) -> str:
    """Return why no product gives a call's logits, in words."""
    logits, place = heard.logits.tensor, heard.place
    if logits.shape[-1] == 1:
        return (
            "attends to a single position of this example, which proves nothing; use a larger image or a longer text "
            "or sound"
        )
    own = [one for one in moved if place in one.steps]
    numbers = (logits, *(one.logits[place] for one in own))
    # Blocked cells are -inf.
    if any(bool((one.isnan() | one.isposinf()).any()) for one in numbers):
        return "has attention scores that overflow, to infinity or NaN; use smaller weights or inputs"
    cells = tuple(logits.shape[-2:])
    if not any(one.steps[place].shape[-2:] == cells and one.steps[place].numel() == logits.numel() for one in own):
        return (
            f"has scores of {cells[0]} queries × {cells[1]} keys, but multiplies no two tensors to that shape; use a "
            "model whose scores are query · key"
        )
    return (
        "changes query · key by more than a factor and a sum before its softmax, such as by a soft cap; use a model "
        "that doesn't"
    )


@dataclass(eq=False)
class _ShuffledLogits:
    """A run's logits, and its random products' changes."""

    logits: dict[int, Tensor]
    steps: dict[int, Tensor]

    def scales(self, heard: FollowedCall) -> tuple[float, ...]:
        """Return the factor from a product's change to the logits', or one per head; empty if there is none."""
        if heard.place not in self.steps:
            return ()
        before, after = heard.logits.tensor.double(), self.logits[heard.place].double()
        step = self.steps[heard.place].double()
        queries, keys = before.shape[-2:]
        if step.shape[-2:] != (queries, keys) or step.numel() != before.numel() or after.shape != before.shape:
            return ()
        live = ((before > BLOCKED_BELOW) & (after > BLOCKED_BELOW)).reshape(-1, queries, keys)
        move, step = _centred((after - before).reshape(live.shape), live), _centred(step.reshape(live.shape), live)
        factor = _factor(step, move)
        if factor is not None or before.ndim < 4:
            return () if factor is None else (factor,)
        # As with cosine attention, whose logits have a learned factor per head.
        heads = before.shape[-3]
        factors = [_factor(step[head::heads], move[head::heads]) for head in range(heads)]
        return () if None in factors else tuple(one for one in factors if one is not None)


def _factor(step: Tensor, move: Tensor) -> float | None:
    """Return the factor from one to the other; None if there isn't one."""
    size = float((step * step).sum())
    if size == 0:
        return None
    factor = float((step * move).sum()) / size
    off = float((move - factor * step).abs().max())
    return factor if abs(factor) > 1e-6 and off <= _LINEAR * float(move.abs().max()) else None


def _centred(numbers: Tensor, live: Tensor) -> Tensor:
    """Subtract each row's mean of live numbers, which changes no weight."""
    numbers = numbers.masked_fill(~live, 0)
    mean = numbers.sum(-1, keepdim=True) / live.sum(-1, keepdim=True).clamp_min(1)
    return (numbers - mean).masked_fill(~live, 0)


def _listened(model: nn.Module, run: Callable[[], object]) -> _ProofRun:
    found = _ProofRun()

    def attend(heard: FollowedCall) -> None:
        found.heard.append(heard)

    def softmax(_place: int, logits: Tensor, compute: Callable[[Tensor], Tensor]) -> Tensor:
        found.weights.append(compute(logits))
        return found.weights[-1].clone()

    with Following(parameters_of(model), attend, busy=computing, softmax=softmax):
        run()
    return found


def _moved(model: nn.Module, run: Callable[[], object], before: _ProofRun, which: int) -> _ShuffledLogits:
    """Run with one product of every place replaced, but each softmax's output as before."""
    found = _ShuffledLogits({}, {})
    for places in _apart(before.heard, which):
        _move(model, run, before, which, places, found)
    return found


def _apart(heard: Sequence[FollowedCall], which: int) -> list[list[FollowedCall]]:
    """Sort calls into runs, so that no softmax has two of its products replaced in one."""
    runs = list[list[FollowedCall]]()
    for call in (one for one in heard if which < len(one.logits.products)):
        fitting = next((run for run in runs if not any(_clash(call, other, which) for other in run)), None)
        if fitting is None:
            runs.append([call])
        else:
            fitting.append(call)
    return runs


def _clash(one: FollowedCall, other: FollowedCall, which: int) -> bool:
    own, theirs = (call.logits.products for call in (one, other))
    return own[which] is not theirs[which] and (own[which] in theirs or theirs[which] in own)


def _move(
    model: nn.Module,
    run: Callable[[], object],
    before: _ProofRun,
    which: int,
    calls: Sequence[FollowedCall],
    found: _ShuffledLogits,
) -> None:
    generator = torch.Generator().manual_seed(0)
    # Since all softmaxes give the same, the run's products come as they came, and are known by their number.
    wanted: dict[int, list[int]] = {}
    for heard in calls:
        wanted.setdefault(heard.logits.products[which].number, []).append(heard.place)
    moving = {heard.place for heard in calls}

    def product(made: Product) -> Tensor | None:
        places = wanted.get(made.number)
        if places is None:
            return None
        value = made.value
        noise = torch.randn(value.shape, generator=generator).to(value) * value.std().clamp_min(1e-3)
        found.steps |= dict.fromkeys(places, noise - value)
        return noise

    def softmax(place: int, logits: Tensor, _compute: Callable[[Tensor], Tensor]) -> Tensor:
        if place in moving:
            found.logits[place] = logits
        return before.weights[place].clone()

    with Following(parameters_of(model), lambda _heard: None, busy=computing, product=product, softmax=softmax):
        run()


@dataclass(eq=False)
class OwnWeights:
    """Compares each softmax's output with the record's next call, or its next chunk.

    Attributes:
        outputs: whether to compare the calls' outputs, too, as those of windows always are.
        read: calls of sparse attention among those heard.
        latest: the last weights, (head, query, key).
    """

    recorded: "Pass"
    original: Mapping[nn.Module, nn.Module]
    real: Real
    outputs: bool = False
    heard: int = 0
    read: int = 0
    error: float = 0.0
    latest: Tensor | None = None
    _parts: Sequence[CallPart] = field(init=False)

    def __post_init__(self) -> None:
        """List the chunks once."""
        self._parts = self.recorded.parts

    def hear(self, heard: FollowedCall) -> CallPart:
        """Compare one call; return which."""
        part, call = self._next(heard.module)
        if call is not None:
            self._compare(part, call, heard.module, heard.taken.left)
            if self.outputs or part.order is not None:
                real = self.real.of_call(part.number) if part.is_whole else None
                rows, apart = kept_rows(real, call.shape[-2], call.query.device), Difference()
                theirs = heard.taken.value.reshape(call.output.shape)
                apart.add(cut(call.output, rows), cut(theirs, rows))
                self.error = max(self.error, apart.relative)
        return part

    def hear_read(self, module: nn.Module, read: Callable[[int], Tensor]) -> CallPart:
        """Compare a call whose weights, (head, query, key), `read` reads for a number of heads; return which."""
        part, call = self._next(module)
        self.read += 1
        if call is not None:
            self._compare(part, call, module, read(call.shape[0]))
        return part

    def _next(self, module: nn.Module) -> tuple[CallPart, Attention | None]:
        """Return the next call in the record, and its numbers if they are kept."""
        index, self.heard = self.heard, self.heard + 1
        modules = self.recorded.modules
        known = index < len(self._parts)
        if not known or self.original.get(module) is not modules[self._parts[index].number]:
            raise UnsupportedModel(
                f"can't compare {type(module).__name__}, since our attention was called there by another module "
                "or not at all"
            )
        part, self.latest = self._parts[index], None
        if part.number not in self.recorded.numbers:
            return part, None
        return part, part.of(self.recorded.calls[self.recorded.numbers.index(part.number)].attention)

    def _compare(self, part: CallPart, call: Attention, module: nn.Module, weights: Tensor) -> None:
        if weights.numel() != call.query.shape[0] * call.query.shape[1] * call.key.shape[1]:
            raise UnsupportedModel(
                f"{type(module).__name__} has weights of shape {tuple(weights.shape)}, but ours are {call.shape}"
            )
        real = self.real.of_call(part.number) if part.is_whole else None
        self.latest = weights.reshape(call.shape)
        self.error = max(self.error, weights_difference(call, self.latest, real))

    def check_complete(self, softmaxes: int) -> None:
        """Refuse a run with other softmaxes after products."""
        if not self.heard == len(self._parts) == softmaxes + self.read:
            raise UnsupportedModel(
                f"{len(self._parts)} attention calls ran with ours, but its own code multiplies {self.heard} "
                f"of {softmaxes + self.read} softmaxes of products with values; all three must be equal"
            )
