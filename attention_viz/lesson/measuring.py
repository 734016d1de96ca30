"""Measurements on the reader's machine, made once, about a second each at most."""

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from typing import cast

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from attention_viz.operation.attention import Attention, attend
from attention_viz.operation.modules import MultiHeadAttention, SelfAttention

LENGTHS = (64, 128, 256, 512, 1024, 2048)
WIDTH = 64
# How often each is timed: at least, and at most, for so many seconds in all.
_FEWEST, _MOST, _SECONDS = 2, 6, 0.6
_LENGTH, _BLOCK, _D_MODEL, _HEADS = 512, 64, 128, 4

_lock = threading.Lock()


@dataclass(frozen=True)
class MeasuredPractice:
    """A practice measured without and with it; `apart` is the relative difference."""

    before: float
    after: float
    unit: str
    apart: float


def seconds_by_length() -> Mapping[int, float]:
    """Time one head for `LENGTHS` tokens on one processor, the fastest of several, with `WIDTH` wide queries."""
    with _lock:
        return _seconds_by_length()


def practice(name: str) -> MeasuredPractice:
    """Measure "fused", "blockwise", "checkpointing" or "mixed precision" on random vectors."""
    with _lock:
        return _practice(name)


@cache
def _seconds_by_length() -> Mapping[int, float]:
    texts = [_vectors(length, WIDTH) for length in LENGTHS]
    # Room taken once: at each call, taking it would cost more than the arithmetic.
    rooms = [(torch.empty(length, length), torch.empty(length, length)) for length in LENGTHS]
    runs = [partial(head_within, vectors, *room) for vectors, room in zip(texts, rooms, strict=True)]
    return dict(zip(LENGTHS, fastest(*runs), strict=True))


def head_within(vectors: Tensor, scores: Tensor, weights: Tensor) -> Tensor:
    """Return a head's output for queries, keys and values that are the same, computed within given matrices."""
    torch.mm(vectors, vectors.mT, out=scores)
    torch.softmax(scores.mul_(vectors.shape[-1] ** -0.5), dim=-1, out=weights)
    return weights @ vectors


@cache
def _practice(name: str) -> MeasuredPractice:
    strategies = {
        "fused": _fused,
        "blockwise": _blockwise,
        "checkpointing": _checkpointing,
        "mixed precision": _mixed_precision,
    }
    return strategies[name]()


def _fused() -> MeasuredPractice:
    torch.manual_seed(0)
    fused = SelfAttention(_D_MODEL, _HEADS).eval()
    apart, x = fused.unfused().eval(), _vectors(_LENGTH, _D_MODEL)
    with torch.no_grad():
        three, one = fastest(
            lambda: [layer(x) for layer in (apart.query, apart.key, apart.value)],
            lambda: fused.fused(x).chunk(3, dim=-1),
        )
        return MeasuredPractice(1000 * three, 1000 * one, "milliseconds", _apart(apart(x), fused(x)))


def _blockwise() -> MeasuredPractice:
    vectors = _vectors(_LENGTH, WIDTH)
    whole = attend(vectors, vectors, vectors)
    output, most = blockwise(vectors, vectors, vectors, _BLOCK)
    return MeasuredPractice(whole.weights.numel(), most, "weights in memory", _apart(whole.output, output))


def blockwise(query: Tensor, key: Tensor, value: Tensor, block: int) -> tuple[Tensor, int]:
    """Return a head's output without all weights in memory, and the most held at once.

    Each row's running sum rescales earlier blocks. Source: Dao et al. 2022, "FlashAttention", algorithm 1 (after
    Milakov & Gimelshein 2018).
    """
    rows, most = [], 0
    for asking in query.split(block):
        highest = torch.full((len(asking), 1), -torch.inf)
        total, output = torch.zeros(len(asking), 1), torch.zeros(len(asking), value.shape[-1])
        for asked, handed in zip(key.split(block), value.split(block), strict=True):
            scaled = attend(asking, asked, handed).scaled
            raised = torch.maximum(highest, scaled.amax(dim=-1, keepdim=True))
            shares, rescaled = (scaled - raised).exp(), (highest - raised).exp()
            total, output = total * rescaled + shares.sum(dim=-1, keepdim=True), output * rescaled + shares @ handed
            highest, most = raised, max(most, shares.numel())
        rows.append(output / total)
    return torch.cat(rows), most


def _checkpointing() -> MeasuredPractice:
    """Compare stored with recomputed activations."""
    torch.manual_seed(0)
    module = MultiHeadAttention(_D_MODEL, _HEADS, bias=False)
    vectors = _vectors(_LENGTH, _D_MODEL)

    def run(forward: Callable[[Tensor], Tensor]) -> tuple[int, Tensor]:
        x = vectors.clone().requires_grad_()
        saved: dict[int, int] = {}

        def keep(tensor: Tensor) -> Tensor:
            storage = tensor.untyped_storage()
            saved[storage.data_ptr()] = storage.nbytes()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            output = forward(x)
        bytes_saved = sum(saved.values())
        (gradient,) = torch.autograd.grad(output.square().sum(), x)
        return bytes_saved, gradient

    before, own = run(module)
    after, again = run(lambda x: cast(Tensor, checkpoint(module, x, use_reentrant=False)))
    return MeasuredPractice(before / 1e6, after / 1e6, "megabytes kept", _apart(own, again))


def _mixed_precision() -> MeasuredPractice:
    vectors = _vectors(_LENGTH, WIDTH)
    whole, half = (attend(x, x, x) for x in (vectors, vectors.to(torch.bfloat16)))
    return MeasuredPractice(_megabytes(whole), _megabytes(half), "megabytes", _apart(whole.output, half.output.float()))


def _megabytes(call: Attention) -> float:
    terms = (call.query, call.key, call.value, call.weights)
    return sum(term.numel() * term.element_size() for term in terms) / 1e6


def _vectors(length: int, width: int) -> Tensor:
    return torch.randn(length, width, generator=torch.Generator().manual_seed(length))


def fastest(*runs: Callable[[], object]) -> list[float]:
    """Return each run's least seconds on one processor, which other work on the machine doesn't add to."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(_timed, runs).result()


@torch.no_grad()
def _timed(runs: Sequence[Callable[[], object]]) -> list[float]:
    # Torch keeps this number for each thread by itself, but new threads take the last one set.
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    seconds, began = [math.inf] * len(runs), time.perf_counter()
    for turn in range(_MOST):
        if turn >= _FEWEST and time.perf_counter() - began > _SECONDS:
            break
        for at, run in enumerate(runs):
            # Twice: the first time fills the processor's fast memory.
            for _ in range(2):
                started = time.thread_time()
                run()
                seconds[at] = min(seconds[at], time.thread_time() - started)
    torch.set_num_threads(before)
    return seconds


def _apart(one: Tensor, other: Tensor) -> float:
    return float((one - other).abs().max() / one.abs().max())
