"""The plan to hear a model's own attention, and our calls made from it."""

from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor, nn

from attention_viz.errors import UnsupportedModel
from attention_viz.operation.attention import attend
from attention_viz.recording.interception.following import FollowedCall, Following, memory_of
from attention_viz.recording.recorder import Call, recording, split_mask
from attention_viz.recording.sparse.hearing import in_sparse_turn, recorded_turn, sparse_turns
from attention_viz.recording.sparse.turn import SparseSite

# How far what is added to the scores may be from 0 and still be rounding, as a share of the largest logit.
_ROUNDING = 4e-6


@dataclass(frozen=True)
class CallSite:
    """One proved attention call of a model's own code.

    Attributes:
        product: which product before its softmax is query · key.
        scale: its multiplier before the softmax.
        ways: operations before the softmax, and on the weights; padding may change them.
        of_heads: each head's own factor on its queries; empty if all have the same.
        parts: each product's addition in words, "" if unknown; empty if not determined.
    """

    product: int
    count: int
    scale: float
    heads: int
    ways: frozenset[tuple[tuple[str, ...], tuple[str, ...]]]
    parts: tuple[str, ...] = ()
    of_heads: tuple[float, ...] = ()

    def merged(self, other: "CallSite") -> "CallSite | None":
        """Return a site with both ways; None if the sites differ."""
        same = (self.product, self.count, self.heads) == (other.product, other.count, other.heads)
        if not same or self.scale != other.scale or self.of_heads != other.of_heads:
            return None
        return replace(self, ways=self.ways | other.ways)


@dataclass(frozen=True)
class InterceptionPlan:
    """How to hear a model's own attention; `sites` in order of their values, none for the interface.

    Attributes:
        sparse: its modules with sparse attention; see `attention_viz.recording.sparse`.
        unless: why the model is refused unless its other keys are latents; "" for one without others.
        keeps_own: whether transformers' interface keeps the model's own function, which calls torch's.
    """

    sites: tuple[CallSite, ...] = ()
    sparse: tuple[SparseSite, ...] = ()
    unless: str = ""
    keeps_own: bool = False

    @property
    def is_own(self) -> bool:
        """Whether the model attends in code of its own."""
        return bool(self.sites or self.sparse)

    def merged(self, other: "InterceptionPlan") -> "InterceptionPlan":
        """Return a plan with both ways."""
        sites = [one.merged(two) for one, two in zip(self.sites, other.sites, strict=False)]
        if len(self.sites) != len(other.sites) or None in sites:
            raise UnsupportedModel("it computes attention differently for a text with padding")
        return replace(self, sites=tuple(site for site in sites if site is not None))

    @contextmanager
    def listening(self, model: nn.Module) -> Generator[None]:
        """Let the recorder compute the model's calls in this thread."""
        with ExitStack() as stack:
            if self.sites:
                _ = stack.enter_context(Following(parameters_of(model), Calls(self).attend, busy=computing))
            if self.sparse:
                _ = stack.enter_context(sparse_turns(model, self.sparse, recorded_turn))
            yield


# Of a model that calls transformers' attention interface everywhere.
NO_PLAN = InterceptionPlan()


def parameters_of(model: nn.Module) -> frozenset[int]:
    """Return the memory addresses of a model's parameters."""
    return frozenset(memory_of(one) for one in model.parameters())


def computing() -> bool:
    """Return whether our own function, or a module that it computes, is running in this thread."""
    recorder = recording.get()
    return in_sparse_turn() or (recorder is not None and recorder.computing)


@dataclass(eq=False)
class Calls:
    """Turns a model's own calls into ours; layers share masks and biases."""

    plan: InterceptionPlan
    _allowed: list[Tensor] = field(default_factory=list[Tensor])
    _biases: list[Tensor] = field(default_factory=list[Tensor])

    def attend(self, heard: FollowedCall) -> Tensor | None:
        """Return a call's recorded output, (…, query, d_v); None without a recorder."""
        recorder = recording.get()
        if recorder is None:
            return None
        site = self.site(heard)
        call = self.call(heard, site)
        output = recorder.compute(call)
        return output.reshape(*heard.taken.lead, *output.shape[-2:]).to(heard.taken.right.dtype)

    def site(self, heard: FollowedCall) -> CallSite:
        """Return a call's site, or refuse."""
        if heard.number < len(self.plan.sites):
            site = self.plan.sites[heard.number]
            if site.count == len(heard.logits.products) and (heard.logits.way, heard.way) in site.ways:
                return site
        raise UnsupportedModel(
            f"{type(heard.module).__name__} computes attention differently for this text than when it was proved"
        )

    def call(self, heard: FollowedCall, site: CallSite) -> Call:
        """Return our call with the model's terms."""
        product = heard.logits.products[site.product]
        scale = site.scale * product.factor
        query, key, value = terms_of_site(heard, site)
        logits = heard.logits.tensor.reshape(-1, site.heads, *heard.logits.tensor.shape[-2:])
        multiplied = product.value.to(logits.dtype).reshape(logits.shape)
        if site.of_heads:
            factors = torch.tensor(site.of_heads, dtype=query.dtype, device=query.device)[:, None, None]
            query, multiplied = query * factors, multiplied * factors.to(logits.dtype)
        added = logits - site.scale * multiplied
        allowed, bias = split_mask(added)
        if bias is not None:
            # What is added is a difference of two large numbers, so it may be off by their rounding.
            live = logits if allowed is None else logits.masked_fill(~allowed, 0)
            rounding = _ROUNDING * max(_largest(live), 1.0)
            bias = None if _largest(bias) <= rounding else bias.to(query.dtype)
            if bias is not None:
                bias = _shared(bias, self._biases, lambda one, other: _close(one, other, rounding))
        if allowed is not None:
            allowed = _shared(_narrow(allowed), self._allowed, torch.equal)
        # Some families multiply queries and keys in float32 and values in the model's own precision.
        value = value.to(query.dtype)
        return Call(heard.module, attend(query, key, value, allowed, scale=scale, bias=bias))


def terms_of_site(heard: FollowedCall, site: CallSite) -> tuple[Tensor, Tensor, Tensor]:
    """Return query, key and value, (row, head, position, width)."""
    product, taken = heard.logits.products[site.product], heard.taken
    query = _headed(product.left, product.lead, site.heads)
    key = _headed(product.right.transpose(-1, -2), product.lead, site.heads)
    value = _headed(taken.right, taken.lead, site.heads)
    return query, key, value


def _headed(tensor: Tensor, lead: torch.Size, heads: int) -> Tensor:
    return tensor.expand(*lead, *tensor.shape[-2:]).reshape(-1, heads, *tensor.shape[-2:])


def _narrow(allowed: Tensor) -> Tensor:
    """Drop the axis of heads if all share a mask."""
    first = allowed[:, :1]
    return first.clone() if torch.equal(first.expand_as(allowed), allowed) else allowed


def _shared(found: Tensor, known: list[Tensor], same: Callable[[Tensor, Tensor], bool]) -> Tensor:
    """Return the tensor, or an equal one of an earlier layer."""
    for one in known:
        if one.shape == found.shape and same(one, found):
            return one
    known[:] = [*known[-1:], found]
    return found


def _largest(numbers: Tensor) -> float:
    return float(numbers.detach().abs().max())


def _close(one: Tensor, other: Tensor, most: float) -> bool:
    return not one.requires_grad and not other.requires_grad and float((one - other).abs().max()) <= most
