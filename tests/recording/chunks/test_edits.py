"""An edit sees a module's chunks as one layer, and what runs is what the trace shows."""

import copy
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers.models.qwen2_vl.modeling_qwen2_vl import apply_rotary_pos_emb_vision

import attention_viz as av
from attention_viz.errors import ShapeError
from attention_viz.trace.trace_data import behind
from tests.recording.chunks.cases import TWO, inputs_of, tiny

LENGTHS = (16, 32)
COUNT = sum(LENGTHS)
Change = Callable[[Tensor, Tensor], Tensor]


@cache
def made() -> tuple[Any, dict[str, Tensor], Any]:
    model = tiny("qwen2_vl")
    inputs = inputs_of(model, TWO)
    return model, inputs, av.wrap(model, inputs=inputs)


def tower(model: Any) -> list[Any]:
    return [one for name, one in model.named_modules() if "visual" in name and name.endswith(".attn")]


def own_blocks() -> Tensor:
    number = torch.arange(COUNT) >= LENGTHS[0]
    return number[:, None] == number


@contextmanager
def by_hand(module: Any, change: Change) -> Generator[None]:
    """Compute a module of the tower in one matrix of all positions, with changed heads' outputs.

    `change` takes the logits, −∞ between chunks, and the values, (head, position, …).
    """

    def forward(hidden_states: Tensor, position_embeddings: Any = None, **_others: Any) -> Tensor:
        states = module.qkv(hidden_states).reshape(COUNT, 3, module.num_heads, -1).permute(1, 0, 2, 3)
        query, key, value = states.unbind(0)
        query, key = apply_rotary_pos_emb_vision(query, key, *position_embeddings)
        logits = torch.einsum("qhd,khd->hqk", query, key) * module.scaling
        output = change(logits.masked_fill(~own_blocks(), -torch.inf), value.transpose(0, 1))
        return module.proj(output.transpose(0, 1).flatten(1))

    module.forward = forward
    try:
        yield
    finally:
        del module.forward


def of_head(change: Callable[[Tensor, Tensor], Tensor], head: int = 2) -> Change:
    """Change one head's output."""

    def changed(logits: Tensor, value: Tensor) -> Tensor:
        output = logits.softmax(-1) @ value
        output[head] = change(logits[head], value[head])
        return output

    return changed


def mask() -> Tensor:
    generator = torch.Generator().manual_seed(3)
    return torch.rand(COUNT, COUNT, generator=generator).gt(0.3) | torch.eye(COUNT, dtype=torch.bool)


def crossing() -> Tensor:
    """Weights from each position to one of another chunk."""
    return torch.eye(COUNT).roll(20, dims=1)


def blocked(logits: Tensor, value: Tensor) -> Tensor:
    logits = logits.clone()
    logits[20, 25] = -torch.inf
    return logits.softmax(-1) @ value


PLACE: dict[str, Any] = {"layer": 1, "head": 2, "stream": "picture"}
EDITS: dict[str, tuple[Any, Change]] = {
    "a cell": (av.Block(20, 25, **PLACE), of_head(blocked)),
    "a mask": (
        av.Allow(mask(), **PLACE),
        of_head(lambda logits, value: logits.masked_fill(~mask(), -torch.inf).softmax(-1) @ value),
    ),
    "a mask in all heads": (
        av.Allow(mask(), layer=1, stream="picture"),
        lambda logits, value: logits.masked_fill(~mask(), -torch.inf).softmax(-1) @ value,
    ),
    "zero": (av.Ablate(1, 2, stream="picture"), of_head(lambda _logits, value: torch.zeros_like(value))),
    "the mean over both pictures": (
        av.Ablate(1, 2, "mean", stream="picture"),
        of_head(lambda logits, value: (logits.softmax(-1) @ value).mean(0, keepdim=True).expand_as(value)),
    ),
    "a temperature": (
        av.Temperature(3.0, **PLACE),
        of_head(lambda logits, value: (logits / 3.0).softmax(-1) @ value),
    ),
    "weights across chunks": (
        av.Replace(1, 2, crossing(), stream="picture"),
        of_head(lambda _logits, value: crossing() @ value),
    ),
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_of_a_joined_layer_is_what_plain_code_gives(name: str) -> None:
    model, inputs, wrapped = made()
    edit, change = EDITS[name]
    plain = wrapped.trace(inputs)
    trace = wrapped.trace(inputs, edits=(edit,))
    with torch.no_grad(), by_hand(tower(model)[1], change):
        expected = model(**inputs).logits[0]
    size = float(expected.abs().max())
    assert float((trace.output[:] - expected).abs().max()) <= 1e-5 * size
    assert float((trace.output[:] - plain.output[:]).abs().max()) > 1e-4 * size
    layer = trace.layers["picture"][1].attention
    assert layer.shape == (4, COUNT, COUNT)
    assert trace.fidelity.ok


def test_an_edit_of_a_cell_between_chunks_changes_nothing() -> None:
    _, inputs, wrapped = made()
    trace = wrapped.trace(inputs, edits=(av.Block(3, 40, **PLACE),))
    assert torch.equal(trace.output[:], wrapped.trace(inputs).output[:])


@pytest.mark.parametrize(
    "edit",
    [av.Block(COUNT, 0, **PLACE), av.Allow(torch.ones(16, 16, dtype=torch.bool), **PLACE)],
    ids=["beyond the last", "the first chunk's size"],
)
def test_an_edit_has_to_fit_the_joined_layer(edit: Any) -> None:
    _, inputs, wrapped = made()
    with pytest.raises(ShapeError, match=str(COUNT)):
        wrapped.trace(inputs, edits=(edit,))


def test_gradients_of_a_joined_layer_are_those_of_plain_code() -> None:
    model, inputs, wrapped = made()
    trace = wrapped.trace(inputs, edits=(av.Temperature(3.0, **PLACE),))
    differentiate = behind(trace).differentiate
    assert differentiate is not None
    found = differentiate(None).layers["picture"]
    kept = list[Tensor]()

    def change(logits: Tensor, value: Tensor) -> Tensor:
        logits = logits.clone()
        logits[2] = logits[2] / 3.0
        weights = logits.softmax(-1)
        weights.retain_grad()
        kept.append(weights)
        return weights @ value

    twin = copy.deepcopy(model)
    first, second = tower(twin)
    with by_hand(first, lambda logits, value: logits.softmax(-1) @ value), by_hand(second, change):
        logits = twin(**inputs).logits[0]
        logits[-1].max().backward()
    (weights,) = kept
    assert weights.grad is not None
    expected = (weights * weights.grad).clamp_min(0).detach()
    assert float(expected.max()) > 0
    assert float((found[1] - expected).abs().max()) <= 1e-4 * float(expected.max())


def test_what_joins_the_heads_is_the_edited_turns() -> None:
    _, inputs, wrapped = made()
    edit = av.Ablate(1, 2, stream="picture")
    plain, trace = wrapped.trace(inputs), wrapped.trace(inputs, edits=(edit,))
    before, after = (one.layer(1, "picture") for one in (plain, trace))
    assert before.joined is not None and after.joined is not None and after.embeddings is not None
    assert before.joined.shape == after.joined.shape == (COUNT, 32)
    assert not torch.allclose(before.joined, after.joined)
    proj = tower(made()[0])[1].proj
    with torch.no_grad():
        assert torch.allclose(proj(after.attention.output.transpose(0, 1).flatten(1)), after.joined, atol=1e-5)


def test_threads_share_a_tower_of_chunks() -> None:
    _, inputs, wrapped = made()
    edit = av.Ablate(1, 2, stream="picture")
    expected = {edits: wrapped.trace(inputs, edits=edits).output[:] for edits in ((), (edit,))}
    assert not torch.equal(*expected.values())

    def run(number: int) -> bool:
        edits = (edit,) if number % 2 else ()
        return torch.equal(wrapped.trace(inputs, edits=edits).output[:], expected[edits])

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(run, range(24)))
    hooks = ("_forward_hooks", "_forward_pre_hooks")
    assert not any(getattr(one, name) for one in made()[0].modules() for name in hooks)
