"""T5Gemma 2's decoder and DiffusionGemma's canvas attend to their own tokens and to another text's in one softmax."""

import copy
import functools
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close
from transformers import PreTrainedModel

import attention_viz as av
from attention_viz.errors import UnsupportedModel
from attention_viz.recording.layout import merged
from scripts.tiny import Family, tiny
from tests.models.families import ids, padding

SOURCE, TARGET = 12, 6


@functools.cache
def t5gemma2() -> tuple[PreTrainedModel, Any]:
    model = tiny(Family("t5gemma2", "T5Gemma2ForConditionalGeneration"), scale=4)
    return model, av.wrap(model)


@pytest.mark.parametrize("padded", [0, 3, -3])
def test_weights_over_both_texts_are_those_that_the_model_hands_out(padded: int) -> None:
    model, wrapped = t5gemma2()
    mask = padding(SOURCE, padded)
    trace = wrapped.trace_ids(ids(SOURCE), mask, decoder_input_ids=ids(TARGET))
    assert trace.streams == ("encoder", "decoder")
    assert trace.fidelity.ok
    eager = copy.deepcopy(model)
    eager.set_attn_implementation("eager")
    with torch.no_grad():
        theirs = eager(
            input_ids=ids(SOURCE), attention_mask=mask, decoder_input_ids=ids(TARGET), output_attentions=True
        )
    for number in trace.layer_numbers("decoder"):
        both = torch.cat([theirs.decoder_attentions[number], theirs.cross_attentions[number]], dim=-1)[0]
        assert_close(trace.attention(number, "decoder").weights, both, rtol=0, atol=1e-5)
    keys, read = trace.key_tokens("decoder"), trace.query_tokens("decoder")
    assert keys.labels == (*read.labels, *trace.query_tokens("encoder").labels)
    assert keys.sentence == (*[0] * TARGET, *[1] * SOURCE)
    assert keys.padding[TARGET:] == tuple(not one for one in mask[0].tolist())
    assert not bool(
        trace.attention(0, "decoder").weights[..., [at for at, one in enumerate(keys.padding) if one]].any()
    )


def test_the_first_keys_follow_the_decoders_tokens_and_the_others_the_encoders() -> None:
    wrapped = t5gemma2()[1]
    key = lambda **named: wrapped.trace_ids(**named).attention(0, "decoder").key  # noqa: E731
    given = {"input_ids": ids(SOURCE), "decoder_input_ids": ids(TARGET)}
    for at in range(TARGET):
        other = given["decoder_input_ids"].clone()
        other[0, at] += 1
        moved = (key(**given) - key(**{**given, "decoder_input_ids": other})).abs().amax(dim=(0, 2)) > 1e-5
        assert moved.nonzero().flatten().tolist() == [at]
    other = given["input_ids"].clone()
    other[0, 4] += 1
    far = (key(**given) - key(**{**given, "input_ids": other})).abs().amax(dim=(0, 2))
    assert not bool(far[:TARGET].any())
    assert int(far.argmax()) == TARGET + 4


def test_keys_in_another_order_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    model = t5gemma2()[0]
    right = merged.moving
    monkeypatch.setattr(merged, "moving", lambda call, leaf, keys: right(call, leaf, keys).flip(1))
    with pytest.raises(UnsupportedModel, match="aren't the decoder's 7 tokens and then the encoder's 11"):
        _ = av.wrap(model)


def test_questions_of_an_encoder_decoder_have_answers() -> None:
    model, wrapped = t5gemma2()
    trace = wrapped.trace_ids(ids(SOURCE), decoder_input_ids=ids(TARGET))
    assert wrapped.answers
    chances = wrapped.chances(trace)
    with torch.no_grad():
        logits = model(input_ids=ids(SOURCE), decoder_input_ids=ids(TARGET)).logits[0]
    wanted = logits.softmax(-1)[torch.arange(TARGET - 1), ids(TARGET)[0, 1:]]
    assert chances["probability"].tolist() == pytest.approx(wanted.tolist(), rel=1e-4)
    table = av.head_table(trace, "decoder")
    weights = trace.attention(0, "decoder").weights
    assert table["previous"].iloc[0] == pytest.approx(float(weights[0].diagonal(-1)[: TARGET - 1].mean()), rel=1e-5)
    edited = wrapped.trace_ids(ids(SOURCE), decoder_input_ids=ids(TARGET), edits=[av.Ablate(0, 1, stream="decoder")])
    assert not torch.equal(edited.output, trace.output)
    assert float(av.gradient(wrapped, trace, layer=0, stream="decoder").abs().max()) > 0


CONTEXT, CANVAS = 11, 7


def read(count: int = CONTEXT, padded: int = 0) -> dict[str, Tensor]:
    mask = torch.ones(1, count, dtype=torch.long)
    mask[:, slice(None, padded) if padded > 0 else slice(count + padded, None) if padded else slice(0)] = 0
    both = torch.cat([mask, torch.ones(1, CANVAS, dtype=torch.long)], dim=1)
    canvas = ids(CANVAS) + 2
    return {
        "input_ids": ids(count),
        "attention_mask": mask,
        "decoder_input_ids": canvas,
        "decoder_attention_mask": both,
    }


@functools.cache
def diffusion() -> tuple[PreTrainedModel, Any]:
    model = tiny(Family("diffusion_gemma", "DiffusionGemmaModel"), scale=4)
    return model, av.wrap(model, inputs=read())


@pytest.mark.parametrize("padded", [0, 2, -2])
def test_a_canvas_reads_the_prompts_last_keys_and_its_own(padded: int) -> None:
    model, wrapped = diffusion()
    given = read(padded=padded)
    trace = wrapped.trace(given)
    assert trace.fidelity.ok
    assert trace.streams == ("encoder", "cross", "cross 2")
    eager = copy.deepcopy(model)
    eager.set_attn_implementation("eager")
    with torch.no_grad():
        theirs = eager(**given, output_attentions=True).attentions
    labels = tuple(map(str, ids(CONTEXT)[0].tolist())), tuple(map(str, given["decoder_input_ids"][0].tolist()))
    for stream, last in (("cross", 3), ("cross 2", CONTEXT)):
        (number,) = trace.layer_numbers(stream)
        weights, keys = trace.attention(number, stream).weights, trace.key_tokens(stream)
        assert_close(weights, theirs[number][0], rtol=0, atol=1e-5)
        assert keys.labels == (*labels[0][-last:], *labels[1])
        assert trace.query_tokens(stream).labels == labels[1]
        filling = [at for at, one in enumerate(keys.padding) if one]
        assert len(filling) == (2 if padded and (stream == "cross 2" or padded < 0) else 0)
        assert not bool(weights[..., filling].any())


@pytest.mark.parametrize("count", [1, 3, 30])
def test_a_canvas_reads_a_prompt_of_any_length(count: int) -> None:
    trace = diffusion()[1].trace(read(count))
    assert trace.fidelity.ok
    assert [len(trace.key_tokens(one)) - CANVAS for one in ("cross", "cross 2")] == [min(count, 3), count]


def test_a_canvas_with_other_keys_or_without_one_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    model = diffusion()[0]
    with pytest.raises(UnsupportedModel, match="refines a canvas"):
        _ = av.wrap(model)
    monkeypatch.setattr(merged, "is_cached", lambda *_: False)
    with pytest.raises(UnsupportedModel, match="attends over"):
        _ = av.wrap(model, inputs=read())
    with pytest.raises(UnsupportedModel, match="doesn't read the last 3 keys"):
        _ = diffusion()[1].trace(read())
