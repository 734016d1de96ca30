"""Edits of layers without a softmax against the same change made to plain transformers by hand."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import attention_viz as av
from attention_viz.errors import ShapeError, UnsupportedModel
from attention_viz.recording.batches import batched_edits
from tests.models.test_hybrids import wrapped
from tests.recording.mixers.by_hand import IDS, Change, changed_kernel, own
from tests.recording.mixers.hybrids import build

COUNT, TOKEN = IDS.shape[1], 9


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
        (av.Temperature(2.0, layer=0, stream="mixer"), "a temperature can't change layer 0"),
        (av.Replace(0, 1, torch.eye(COUNT), stream="mixer"), "a replacement can't change layer 0"),
        (av.Replace(0, 1, torch.eye(COUNT)), "a replacement can't change layer 0"),
        (av.Ablate(1, None), "needs a head; layer 1"),
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


def test_rows_of_a_batch_have_their_own_edits_of_mixers(monkeypatch: pytest.MonkeyPatch) -> None:
    model, text = wrapped("Qwen3-Next"), "the cat sat on the mat"
    trace = model.trace(text)
    count = len(trace.query_tokens("decoder"))
    allowed = torch.ones(count, count, dtype=torch.bool)
    allowed[:, 4] = False
    tries = [
        [av.Skip(4)],
        [av.Decay(0.25, layer=2)],
        [av.Allow(allowed, layer=2, stream="mixer")],
        [av.Block(4, 4, layer=0, head=1, stream="mixer")],
        [av.Ablate(2, None, stream="mixer"), av.Ablate(1, 2, stream="decoder")],
    ]
    alone = [model.trace(text, edits=edits).output for edits in tries]
    monkeypatch.setattr(batched_edits, "_alone", lambda *_: pytest.fail("a run of its own"))
    for own_run, row in zip(alone, batched_edits.try_each(model, trace, tries), strict=True):
        assert float((own_run - trace.output).abs().max()) > 1e-3
        torch.testing.assert_close(row, own_run, atol=2e-5, rtol=0)
    with pytest.raises(ShapeError, match="needs a layer of the mixer"):
        batched_edits.try_each(model, trace, [[av.Skip(4)], [av.Decay(0.5, layer=9)]])


def test_what_runs_an_edited_trace_again_keeps_its_edits_of_mixers() -> None:
    model, edit = wrapped("Qwen3-Next"), av.Ablate(0, 2, stream="mixer")
    before, after = (model.trace("the cat sat on the mat", edits=edits) for edits in ((), (edit,)))
    layer = before.layer_numbers("decoder")[-1]
    for read in (lambda one: av.gradient(model, one, layer=layer), lambda one: one.value_zeroing("decoder")[-1]):
        old, new = read(before), read(after)
        assert float((new - old).abs().max()) > 1e-2 * float(old.abs().max())
    assert after.layer(layer, "decoder").embeddings is not None
