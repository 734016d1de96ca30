"""Edits of layers without a softmax against the same change made to plain transformers by hand."""

import functools
import inspect
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor

import attention_viz as av
from attention_viz.errors import ShapeError, UnsupportedModel
from tests.recording.mixers.hybrids import build

COUNT, TOKEN = 24, 9
IDS = (torch.arange(COUNT)[None] * 7) % 97
Change = Callable[[Callable[..., Any], dict[str, Any]], Tensor]


@contextmanager
def changed_kernel(model: Any, name: str, change: Change) -> Generator[None]:
    """Put another function for a kernel into the family's own module."""
    layer = next(one for one in model.modules() if name in inspect.unwrap(type(one).forward).__globals__)
    namespace: dict[str, Any] = inspect.unwrap(type(layer).forward).__globals__
    kernel = namespace[name]
    signature = inspect.signature(kernel)

    def run(*arguments: Any, **named: Any) -> Any:
        bound = signature.bind(*arguments, **named)
        rest = bound.arguments.pop("kwargs", {})
        values = {**bound.arguments, **rest}
        output = change(functools.partial(kernel, **values), values)
        return (output, None) if isinstance(kernel(*arguments, **named), tuple) else output

    namespace[name] = run
    try:
        yield
    finally:
        namespace[name] = kernel


def own(found: Any) -> Tensor:
    return found[0] if isinstance(found, tuple) else found


def without(tensor: Tensor, token: int) -> Tensor:
    changed = tensor.clone()
    changed[:, token] = 0
    return changed


def ablated(kernel: Callable[..., Any], values: dict[str, Any]) -> Tensor:
    output = own(kernel()).clone()
    output[:, :, 2] = 0
    return output


def blocked_cell(kernel: Callable[..., Any], values: dict[str, Any]) -> Tensor:
    alone = torch.zeros_like(values["value"])
    alone[:, TOKEN] = values["value"][:, TOKEN]
    output = own(kernel()).clone()
    output[:, 11, 1] -= own(kernel(value=alone))[:, 11, 1]
    return output


def blocked_key(kernel: Callable[..., Any], values: dict[str, Any]) -> Tensor:
    return own(kernel(value=without(values["value"], TOKEN)))


def skipped(kernel: Callable[..., Any], values: dict[str, Any]) -> Tensor:
    return own(kernel(g=without(values["g"], TOKEN), beta=without(values["beta"], TOKEN)))


def slower(kernel: Callable[..., Any], values: dict[str, Any]) -> Tensor:
    return own(kernel(g=values["g"] * 0.25))


def closed_column() -> Tensor:
    allowed = torch.ones(COUNT, COUNT, dtype=torch.bool)
    allowed[:, TOKEN] = False
    return allowed


@pytest.mark.parametrize(
    ("edit", "change"),
    [
        (av.Ablate(0, 2, stream="mixer"), ablated),
        (av.Ablate(0, 2), ablated),
        (av.Block(11, TOKEN, layer=0, head=1, stream="mixer"), blocked_cell),
        (av.Allow(closed_column(), layer=0, stream="mixer"), blocked_key),
        (av.Skip(TOKEN), skipped),
        (av.Decay(0.25, layer=0), slower),
    ],
    ids=["ablate", "ablate without a stream", "block a cell", "block a key", "skip", "decay"],
)
def test_an_edit_is_the_same_change_of_the_plain_model(edit: Any, change: Change) -> None:
    model = build("qwen3_next")
    wrapped = av.wrap(model)
    trace = wrapped.trace_ids(IDS, edits=[edit])
    with torch.no_grad():
        plain = model(input_ids=IDS, use_cache=False)[0][0]
        with changed_kernel(model, "torch_chunk_gated_delta_rule", change):
            expected = model(input_ids=IDS, use_cache=False)[0][0]
    size = float(expected.abs().max())
    assert float((plain - expected).abs().max()) > 1e-3 * size
    assert float((trace.output - expected).abs().max()) < 1e-5 * size
    assert str(edit) in trace.provenance.edits


def test_the_edited_weights_are_in_the_trace() -> None:
    wrapped = av.wrap(build("qwen3_next"))
    before = wrapped.trace_ids(IDS)
    after = wrapped.trace_ids(IDS, edits=[av.Block(11, TOKEN, layer=0, stream="mixer")])
    for head in range(4):
        weights = before.weights(0, head, stream="mixer").clone()
        assert float(weights[11, TOKEN]) != 0
        weights[11, TOKEN] = 0
        assert torch.equal(after.weights(0, head, stream="mixer"), weights)
    skipped = wrapped.trace_ids(IDS, edits=[av.Skip(TOKEN, head=3)])
    assert not skipped.weights(0, 3, stream="mixer")[:, TOKEN].any()
    assert torch.equal(skipped.weights(0, 2, stream="mixer"), before.weights(0, 2, stream="mixer"))


@pytest.mark.parametrize("name", ["bamba", "jamba", "kimi_linear", "minimax", "recurrent_gemma"])
def test_a_skipped_token_never_came_in_any_kind_with_a_state(name: str) -> None:
    wrapped = av.wrap(build(name))
    layer = wrapped.trace_ids(IDS).layer_numbers("mixer")[0]
    trace = wrapped.trace_ids(IDS, edits=[av.Skip(TOKEN)])
    column = trace.weights(layer, 1, stream="mixer")[:, TOKEN]
    assert not column[TOKEN + 1 :].any()


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (av.Ablate(0, 9, stream="mixer"), "head 9"),
        (av.Ablate(0, 1, "mean", stream="mixer"), "no mean"),
        (av.Ablate(1, 1, stream="mixer"), "layer of the mixer, 0; got 1"),
        (av.Temperature(2.0, layer=0, stream="mixer"), "can't change layer 0"),
        (av.Skip(COUNT), f"has {COUNT}"),
        (av.Skip(1, stream="decoder"), "layers without a softmax"),
        (av.Block(1, COUNT, stream="mixer"), "keys"),
    ],
)
def test_what_a_mixer_can_not_do_is_refused(edit: Any, message: str) -> None:
    wrapped = av.wrap(build("qwen3_next"))
    with pytest.raises(ShapeError, match=message):
        wrapped.trace_ids(IDS, edits=[edit])


@pytest.mark.parametrize("factor", [-1.0, float("nan"), float("inf"), True])
def test_a_decay_is_multiplied_by_a_finite_number(factor: float) -> None:
    with pytest.raises(ShapeError, match="factor"):
        av.Decay(factor)


def test_a_convolution_has_no_state_to_skip_a_token_in() -> None:
    wrapped = av.wrap(build("lfm3"))
    with pytest.raises(UnsupportedModel, match="keeps no state"):
        wrapped.trace_ids(IDS, edits=[av.Skip(TOKEN)])
