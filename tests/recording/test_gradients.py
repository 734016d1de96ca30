"""Gradients of what a model says, against torch's own through plain transformers' attention weights."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close
from transformers import PreTrainedModel

import attention_viz as av
from attention_viz.errors import ShapeError, TraceError, UnsupportedModel
from attention_viz.models.model import AttentionModel
from attention_viz.trace.trace import Trace
from tests.models.families import build, eager_twin, ids, wrapped

TEXT = "The bank of the river was flooded"


def raised(model: PreTrainedModel, say: Callable[[Any], Tensor], **inputs: Tensor) -> list[Tensor]:
    """By hand: weights that keep their gradients, y backwards, and the part of their product that is above 0."""
    result = model(**inputs, output_attentions=True)
    weights = list(result.attentions if "attentions" in result else result.decoder_attentions)
    slopes = torch.autograd.grad(say(result), weights)
    return [(slope * one).clamp_min(0)[0].detach() for slope, one in zip(slopes, weights, strict=True)]


def close(ours: Tensor, theirs: list[Tensor]) -> None:
    """Equal, up to the order of sums, relative to the largest of a layer; and no comparison of nothing with nothing."""
    for one, other in zip(ours, theirs, strict=True):
        assert other.max() > 0
        assert_close(one, other, rtol=0, atol=2e-5 * float(other.max()))


def mean_squared(result: Any) -> Tensor:
    return 0.5 * result.last_hidden_state[0].mean(dim=0).square().sum()


def test_of_an_encoder_they_are_those_of_half_the_squared_length_of_its_mean_output(
    minilm: AttentionModel, eager_minilm: PreTrainedModel
) -> None:
    trace = minilm.trace(TEXT)
    read = torch.tensor([trace.query_tokens().ids])
    expected = raised(eager_minilm, mean_squared, input_ids=read)
    ours = av.gradient(minilm, TEXT)
    assert ours.shape == (6, 12, 9, 9) and ours.dtype == torch.float32 and not ours.requires_grad
    close(ours, expected)
    assert_close(av.gradient(minilm, trace, layer=3), ours[3])


@pytest.mark.parametrize("family", ["llama", "gemma2", "gpt_oss"])  # grouped heads; with a softcap; with sinks
def test_of_a_decoder_they_are_those_of_its_likeliest_next_token(family: str) -> None:
    model, read = wrapped(family), ids(8)
    trace = model.trace_ids(read)
    expected = raised(eager_twin(build(family)), lambda result: result.logits[0, -1].max(), input_ids=read)
    ours = av.gradient(model, trace)
    close(ours, expected)
    assert not ours[-1, :, :-1].any()  # in the last layer, the other rows go to other tokens
    assert ours[0, :, :-1].any()
    assert trace.differentiable
    best = int(trace.output[-1].argmax())
    assert_close(av.gradient(model, trace, of=(-1, best)), ours)
    assert not torch.equal(av.gradient(model, trace, of=(2, best)), ours)


def test_padding_has_no_part_in_them() -> None:
    model, read, mask = wrapped("llama"), ids(8), torch.tensor([[1] * 6 + [0] * 2])
    padded = av.gradient(model, model.trace_ids(read, mask))
    assert_close(padded[:, :, :6, :6], av.gradient(model, model.trace_ids(read[:, :6])), rtol=1e-4, atol=1e-5)
    assert not padded[..., 6:].any() and not padded[:, :, 6:].any()


def test_of_a_model_that_guesses_words_they_are_those_of_the_first_mask() -> None:
    guesses = av.load("coreference")
    assert isinstance(guesses, AttentionModel)
    plain = eager_twin(guesses.hf_model)
    masked = guesses.trace("the [MASK] slept because it was tired")
    read = masked.query_tokens().ids
    at = read.index(getattr(guesses.tokenizer, "mask_token_id", None))

    def likeliest(result: Any) -> Tensor:
        return result.logits[0, at].max()

    close(av.gradient(guesses, masked), raised(plain, likeliest, input_ids=torch.tensor([read])))

    def all_of_them(result: Any) -> Tensor:
        return result.logits[0].amax(dim=-1).sum()

    whole = guesses.trace("the cat slept because it was tired")
    read = torch.tensor([whole.query_tokens().ids])
    close(av.gradient(guesses, whole), raised(plain, all_of_them, input_ids=read))


def test_of_an_encoder_decoder_they_are_those_of_the_tokens_it_says() -> None:
    model = av.load("translation")
    assert isinstance(model, AttentionModel)
    trace = model.trace("the boy finds the key")
    read, heard = (torch.tensor([trace.query_tokens(stream).ids]) for stream in ("encoder", "decoder"))
    result = eager_twin(model.hf_model)(input_ids=read, decoder_input_ids=heard, output_attentions=True)
    said = trace.query_tokens("cross").ids
    y = torch.stack([result.logits[0, step, token] for step, token in enumerate(said)]).sum()
    for stream, weights in (
        ("encoder", result.encoder_attentions),
        ("decoder", result.decoder_attentions),
        ("cross", result.cross_attentions),
    ):
        (slope,) = torch.autograd.grad(y, weights, retain_graph=True)
        close(av.gradient(model, trace, stream=stream), [(slope * weights[0]).clamp_min(0)[0].detach()])


def test_an_edited_run_has_the_gradients_of_the_edited_run() -> None:
    model = wrapped("bert")
    silenced = model.trace_ids(ids(8), edits=[av.Ablate(1, 2)])
    ours = av.gradient(model, silenced)
    assert not ours[1, 2].any() and ours[1, 3].any()
    assert not torch.equal(ours[0], av.gradient(model, model.trace_ids(ids(8)))[0])


def test_the_model_stays_as_it_was_and_so_do_its_traces() -> None:
    model = av.wrap(build("llama"))
    frozen, *others = model.hf_model.parameters()
    frozen.requires_grad_(False)
    before = model.trace_ids(ids(8))
    found = av.gradient(model, before)
    assert all(one.grad is None for one in model.hf_model.parameters())
    assert not frozen.requires_grad and all(one.requires_grad for one in others)
    after = model.trace_ids(ids(8))
    assert torch.equal(before.output, after.output) and not after.output.requires_grad
    model.hf_model.requires_grad_(False)
    assert_close(av.gradient(model, before), found)
    with torch.inference_mode():
        assert_close(av.gradient(model, model.trace_ids(ids(8))), found)


def test_threads_do_not_get_into_each_others_gradients(together: Callable[..., list[object]]) -> None:
    model = wrapped("llama")
    traces = [model.trace_ids(ids(6 + number, start=number)) for number in range(4)]
    alone = [av.gradient(model, trace) for trace in traces]
    results = together(*[lambda trace=trace: av.gradient(model, trace) for trace in traces])
    for one, other in zip(alone, results, strict=True):
        assert isinstance(other, Tensor)
        assert_close(one, other)


def test_what_has_no_gradients_is_refused_by_name() -> None:
    model, bert = wrapped("llama"), wrapped("bert")
    trace = model.trace_ids(ids(5))
    with pytest.raises(UnsupportedModel, match="has random weights; load a pretrained model"):
        av.gradient(av.load("scratch"), "the cat sat")
    with pytest.raises(UnsupportedModel, match="no unembedding"):
        av.gradient(bert, bert.trace_ids(ids(5)), of=(0, 3))
    with pytest.raises(ShapeError, match="no position 5; choose -5 to 4"):
        av.gradient(model, trace, of=(5, 3))
    with pytest.raises(ShapeError, match="no token 97"):
        av.gradient(model, trace, of=(0, 97))
    with pytest.raises(TraceError, match="layer 3"):
        av.gradient(model, trace, layer=3)
    with pytest.raises(TraceError, match="only its own traces"):
        av.gradient(bert, trace)
    with pytest.raises(TraceError, match="leave out second_text and target"):
        av.gradient(model, trace, "another")


def test_a_trace_from_a_file_and_one_of_a_model_that_changed_since_are_refused(tmp_path: Any) -> None:
    model = av.wrap(build("llama"))
    trace = model.trace_ids(ids(5))
    trace.save(tmp_path / "trace.safetensors")
    with pytest.raises(TraceError, match="from a file or another trace"):
        av.gradient(model, Trace.load(tmp_path / "trace.safetensors"))
    with torch.no_grad():
        next(model.hf_model.parameters()).mul_(2)
    with pytest.raises(TraceError, match="has changed since this trace was made"):
        av.gradient(model, trace)
