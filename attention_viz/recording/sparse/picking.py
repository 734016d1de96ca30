"""Hears the keys that a model's indexers pick, and their scores.

An indexer scores keys, blocks of keys or keys made of several tokens, and picks the highest. It runs again to show its
scores. Which tokens they belong to isn't assumed: the picked ones must be exactly the cells that the layer's attention
allows.
"""

import contextlib
import threading
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Bool
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from attention_viz.operation.masks import causal
from attention_viz.recording.hooks import hooked
from attention_viz.recording.recorder import Call, Recorder, recording
from attention_viz.trace.picking import Picking

# Longer texts' scores aren't kept: a layer's take 4 bytes per query and key, 4 MiB here.
MOST_PICKED = 1024

# Masked scores are below this.
_BLOCKED = -1e30
_TOPK = {torch.topk, Tensor.topk}


class _TopK(TorchFunctionMode):
    """Notes the scores of each choice of the highest, and the places chosen."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[Tensor, Tensor]] = []

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run one torch call."""
        result = func(*args, **(kwargs or {}))
        if func in _TOPK:
            self.found.append((args[0].detach().float(), result[1]))
        return result


@dataclass(frozen=True, eq=False)
class HeardIndexer:
    """One indexer's run: scores and places picked, in its calls' order; the sizes of blocks it may use."""

    module: nn.Module
    choices: Sequence[tuple[Tensor, Tensor]]

    @property
    def sizes(self) -> list[int]:
        """The whole numbers among its settings; any may be the size of its blocks."""
        found = {value for value in vars(self.module).values() if type(value) is int and value > 0}
        return sorted(found | {1})


@dataclass(eq=False)
class PickingListener:
    """Hears a pass's indexers, and finds each call's selection.

    Attributes:
        keys: the text's tokens that aren't padding.
    """

    keys: Bool[Tensor, " key"]
    _heard: dict[int, HeardIndexer] = field(default_factory=dict[int, HeardIndexer])

    @classmethod
    def of(cls, inputs: Mapping[str, object]) -> "PickingListener":
        """Return a listener; it hears nothing without a text, or if that is too long."""
        ids, mask = inputs.get("input_ids"), inputs.get("attention_mask")
        if not isinstance(ids, Tensor) or len(ids) != 1 or ids.shape[1] > MOST_PICKED:
            return cls(torch.ones(0).bool())
        if isinstance(mask, Tensor) and mask.shape == ids.shape:
            return cls(mask[0].bool().cpu())
        return cls(torch.ones(ids.shape[1]).bool())

    @contextlib.contextmanager
    def listening(self, modules: Iterable[nn.Module], recorder: Recorder) -> Generator[None]:
        """Hear the indexers among a model's modules, in this thread, during the block."""
        if not len(self.keys):
            yield
            return
        thread = threading.get_ident()

        def hear(module: nn.Module, inputs: tuple[Any, ...], named: Mapping[str, Any], _output: object) -> None:
            if threading.get_ident() != thread or recording.get() is not recorder:
                return
            with torch.no_grad(), _TopK() as found:
                module.forward(*inputs, **named)
            if found.found:
                self._heard[recorder.count] = HeardIndexer(module, found.found)

        with hooked([one for one in modules if "Indexer" in type(one).__name__], hear):
            yield

    def picks(self, calls: Mapping[int, Call]) -> dict[int, Picking]:
        """Return the selections of calls by number; a layer may use the one before it again."""
        found, last = dict[int, Picking](), None
        for number in sorted({*self._heard, *calls}):
            last = self._heard.get(number, last)
            call = calls.get(number)
            if call is not None and last is not None:
                picking = next((one for one in self._ways(last, call) if self._fits(one, call)), None)
                if picking is not None and bool(picking.left_out.any()):
                    found[number] = picking
        return found

    def _fits(self, picking: Picking, call: Call) -> bool:
        """Return whether a selection's keys are those that a call allows, in all rows but padding's."""
        heads, queries, keys = call.attention.shape
        allowed = call.attention.allowed
        if allowed is None or queries != len(self.keys) or picking.picked.shape[-1] != keys:
            return False
        made = torch.ones(keys - queries, dtype=torch.bool)
        allowed, picked = allowed.cpu().expand(heads, queries, keys), picking.picked & torch.cat([self.keys, made])
        picked = picked.repeat_interleave(heads // len(picked), 0)
        return picked.shape == allowed.shape and bool((picked == allowed)[:, self.keys].all())

    def _ways(self, heard: HeardIndexer, call: Call) -> Iterator[Picking]:
        """Return the selections that an indexer's choices may mean."""
        if call.attention.shape[-1] > len(self.keys):
            yield from _of_spans(heard, call, len(self.keys))
            return
        before = causal(len(self.keys))
        open_keys = before & self.keys
        for size in heard.sizes:
            with contextlib.suppress(RuntimeError, IndexError, ValueError):
                scores, picked = self._of_blocks(heard.choices, size, open_keys)
                # Some indexers pick padding, too, which moves their cut.
                known = open_keys | (picked & before & (scores > _BLOCKED))
                if call.attention.shape[0] % len(scores) == 0:
                    yield Picking(scores.masked_fill(~known, -torch.inf), picked & known)

    def _of_blocks(
        self, choices: Sequence[tuple[Tensor, Tensor]], size: int, open_keys: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return scores and picks, (head, query, key), if blocks have that size."""
        count = len(self.keys)
        if choices[0][0].ndim > 1:
            ((scores, places),) = choices
            scores, places = (one.cpu().reshape(-1, *one.shape[-2:]) for one in (scores, places))
            picked = torch.zeros_like(scores, dtype=torch.bool).scatter(-1, places.long(), True)
            return _spread(scores, size, count, torch.inf), _spread(picked, size, count, True)
        return _by_query(choices, size, open_keys)


def _of_spans(heard: HeardIndexer, call: Call, count: int) -> Iterator[Picking]:
    """Return the selection of an indexer that chooses among the keys after a text's own `count`.

    It has no say in the text's own keys: those that the mask allows count as always picked.
    """
    allowed = call.attention.allowed
    if allowed is None or len(heard.choices) != 1:
        return
    scores, places = (one.cpu().reshape(-1, *one.shape[-2:]) for one in heard.choices[0])
    if scores.shape[1:] != (count, call.attention.shape[-1] - count) or call.attention.shape[0] % len(scores):
        return
    own = allowed.cpu().expand(call.attention.shape)[: len(scores), :, :count]
    known = scores > _BLOCKED
    picked = known & torch.zeros_like(known).scatter(-1, places.long(), True)
    without = torch.zeros(own.shape).masked_fill(own, torch.inf).masked_fill(~own, -torch.inf)
    scores = scores.masked_fill(~known, -torch.inf)
    yield Picking(torch.cat([without, scores], dim=-1), torch.cat([own, picked], dim=-1))


def _spread(blocks: Tensor, size: int, count: int, rest: float | bool) -> Tensor:
    """Give all keys of a block its number; keys behind the last whole one, which are always picked, get `rest`."""
    found = blocks.repeat_interleave(size, -1)
    if blocks.shape[-1] not in (count // size, -(-count // size)):
        raise ValueError(f"{blocks.shape[-1]} blocks of {size} aren't {count} keys")
    more = blocks.new_full((*found.shape[:-1], max(0, count - found.shape[-1])), rest)
    return torch.cat([found[..., :count], more], dim=-1)


def _by_query(choices: Sequence[tuple[Tensor, Tensor]], size: int, open_keys: Tensor) -> tuple[Tensor, Tensor]:
    """Return scores and picks of an indexer that chooses query by query among whole blocks of visible keys."""
    scores = torch.full((1, *open_keys.shape), torch.inf)
    picked, left = torch.ones(1, *open_keys.shape, dtype=torch.bool), iter(choices)
    for query, row in enumerate(open_keys):
        keys = row.nonzero().flatten()
        blocks = keys[: len(keys) // size * size].reshape(-1, size)
        if len(blocks):
            own, places = next(left)
            if own.shape != (len(blocks),):
                raise ValueError(f"{len(own)} blocks were scored, not {len(blocks)}")
            scores[0, query, blocks] = own.cpu()[:, None].expand(blocks.shape)
            picked[0, query, blocks] = False
            picked[0, query, blocks[places.cpu()]] = True
    if next(left, None) is not None:
        raise ValueError("more queries chose than the text has")
    return scores, picked
