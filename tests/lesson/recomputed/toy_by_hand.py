"""The induction toy's tensors, multiplied out: its heads' outputs through W_O, a norm, and what reads them."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch

import attention_viz as av
from attention_viz.trace.trace import Trace
from tests.lesson.recomputed import by_hand
from tests.shipped import shipped

WORDS = ("moon", "cheese", "frog", "ring")
TEXT = " ".join(WORDS * 2)
LAST = 1200


@cache
def model(step: int = LAST) -> Any:
    return shipped("induction") if step == LAST else av.load("induction", revision=f"step-{step}")


@cache
def trace(step: int = LAST) -> Trace:
    return model(step).trace(TEXT)


def places(at: int) -> tuple[int, int, int]:
    """Of a word by its place: its second position, its first, and the one after its first."""
    start = len(trace().query_tokens()) - 2 * len(WORDS)
    return start + len(WORDS) + at, start + at, start + at + 1


@cache
def reader() -> tuple[int, int]:
    """The head of the second layer that looks most at what followed last time, over all words."""
    pairs = [(places(at)[0], places(at)[2]) for at in range(len(WORDS))]
    found = {head: by_hand.weights(trace(), 1, head, causal=True) for head in range(trace().head_count(1))}
    return 1, max(found, key=lambda head: sum(found[head][pair] for pair in pairs))


def _entering(module: torch.nn.Module, step: int) -> torch.Tensor:
    """What a norm reads, (position, width)."""
    kept: list[torch.Tensor] = []
    handle = module.register_forward_pre_hook(lambda _, given: kept.append(given[0][0]))
    with torch.no_grad():
        model(step).hf_model(torch.tensor([trace(step).query_tokens().ids]))
    handle.remove()
    return kept[0]


def through(norm: torch.nn.Module, step: int, position: int) -> Callable[[torch.Tensor], torch.Tensor]:
    """A norm as a fixed factor, by what it divides by at a position."""
    entering = _entering(norm, step)[position]
    scale = norm.weight / torch.sqrt((entering * entering).mean() + norm.variance_epsilon)
    return lambda vector: vector * scale


def wrote(step: int, layer: int, head: int, position: int, source: int | None = None) -> torch.Tensor:
    """A head's output at a position times its slice of W_O; of one source alone, its weight times its value."""
    run = trace(step)
    weights = torch.tensor(by_hand.weights(run, layer, head, causal=True))[position].float()
    values = torch.tensor(by_hand.values(run, layer, head)).float()
    mixed = weights @ values if source is None else weights[source] * values[source]
    width = values.shape[-1]
    w_o = model(step).hf_model.model.layers[layer].self_attn.o_proj.weight.detach()
    return w_o[:, head * width : (head + 1) * width] @ mixed


def score_of(step: int, query: int, key: int, added: torch.Tensor) -> float:
    """What a vector added at the key gives to the reader's score, with the norm and the query held."""
    layer, head = reader()
    block, later = model(step).hf_model.model.layers[layer], trace(step).attention(layer)
    width = later.query.shape[-1]
    with torch.no_grad():
        key_vector = block.self_attn.k_proj(through(block.input_layernorm, step, key)(added)[None])
        made = key_vector[:, head * width : (head + 1) * width]
        cosine, sine = model(step).hf_model.model.rotary_emb(made[None], torch.tensor([[key]]))
    halves = torch.cat((-made[:, width // 2 :], made[:, : width // 2]), dim=-1)
    turned = (made * cosine[0] + halves * sine[0])[0]
    return float(later.query[head, query] @ turned) / width**0.5


def writer(at: int) -> tuple[int, int]:
    """The head of the first layer that gives most to the trained reader's score."""
    query, _, key = places(at)
    parts = {head: score_of(LAST, query, key, wrote(LAST, 0, head, key)) for head in range(trace().head_count(0))}
    return 0, max(parts, key=parts.__getitem__)


@contextmanager
def silenced(step: int, layer: int, head: int) -> Generator[None]:
    """Set a head's output to zero, right before W_O."""
    width = trace(step).attention(layer).value.shape[-1]
    module = model(step).hf_model.model.layers[layer].self_attn.o_proj

    def clear(_: torch.nn.Module, given: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        output = given[0].clone()
        output[..., head * width : (head + 1) * width] = 0
        return (output, *given[1:])

    handle = module.register_forward_pre_hook(clear)
    try:
        yield
    finally:
        handle.remove()


def logits(step: int, position: int) -> torch.Tensor:
    with torch.no_grad():
        return model(step).hf_model(torch.tensor([trace(step).query_tokens().ids])).logits[0, position].double()
