"""Words generated beside an image: their rows are those of transformers' own generation."""

import copy
import functools
from dataclasses import replace
from typing import Any

import pytest
import torch
from PIL import Image

import attention_viz as av
from attention_viz.models.model import AttentionModel
from attention_viz.trace.trace import Trace
from tests.models import test_text_beside_picture as beside
from tests.models.picture_families import IMAGE, PIXELS, WHOLE, tensors_of, text_of, tiny_of

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
PICTURE = av.Picture(PIXELS)


@functools.cache
def wrapped(family: str) -> AttentionModel:
    return av.wrap(copy.deepcopy(tiny_of(family)), WHOLE[family]())


def own(family: str, tokens: int) -> Any:
    """What transformers generates by eager attention with its own KV cache, placeholders forbidden."""
    model = copy.deepcopy(tiny_of(family))
    model.set_attn_implementation("eager")
    tensors = tensors_of(WHOLE[family](), text_of(family), [PIXELS])
    with torch.no_grad():
        return model.generate(
            **tensors, max_new_tokens=tokens, do_sample=False, bad_words_ids=[[IMAGE]], pad_token_id=0,
            output_attentions=True, output_logits=True, return_dict_in_generate=True,
        )  # fmt: skip


def test_fifteen_families_are_tried() -> None:
    assert len(WHOLE) >= 15


@pytest.mark.parametrize("family", WHOLE)
def test_each_generated_words_row_is_that_of_transformers_own_generation(family: str) -> None:
    traces = list(wrapped(family).generate(text_of(family), 3, picture=PICTURE))
    theirs = own(family, 3)
    whole, stream = traces[-1], traces[-1].streams[-1]
    typed, made = len(traces[0].query_tokens(stream)), len(traces) - 1
    assert made == len(theirs.attentions) or made < 3  # it may end a text
    for at, trace in enumerate(traces):
        if at < len(theirs.logits):
            size = float(theirs.logits[at].abs().max())
            assert torch.allclose(trace.output[-1], theirs.logits[at][0], atol=1e-5 * max(size, 1))
    rows = 0
    for at, step in enumerate(theirs.attentions[1 : made + 1]):
        found = [one for one in step if one is not None]
        for layer, weights in zip(whole.layer_numbers(stream), found, strict=True):
            row = whole.attention(layer, stream).weights[:, typed + at, : typed + at + 1]
            keys = weights.shape[-1]  # a sliding window's cache keeps its last ones
            assert torch.allclose(row[:, -keys:], weights[0, :, 0], atol=1e-6)
            assert not bool(row[:, :-keys].any()) or keys == row.shape[-1]
            rows += 1
    assert rows or made < 2
    assert whole.fidelity.ok
    assert whole.provenance.generated == made


def uncached(model: Any, tensors: dict[str, Any], tokens: int) -> Any:
    """What transformers generates by eager attention without a KV cache: each word by a run of the whole."""
    model = copy.deepcopy(model)
    model.set_attn_implementation("eager")
    model.generation_config.use_cache = False
    with torch.no_grad():
        return model.generate(
            **tensors, max_new_tokens=tokens, do_sample=False, use_cache=False, bad_words_ids=[[IMAGE]], pad_token_id=0,
            output_attentions=True, output_logits=True, return_dict_in_generate=True,
        )  # fmt: skip


def same_as_whole_runs(traces: list[Trace], theirs: Any) -> int:
    """Compare all weights of each trace with one full run of the same length; return how many runs were compared."""
    stream = traces[0].streams[-1]
    compared = 0
    for trace, logits, step in zip(traces, theirs.logits, theirs.attentions, strict=False):
        assert torch.allclose(trace.output[-1], logits[0], atol=1e-5 * max(1, float(logits.abs().max())))
        for layer, weights in zip(trace.layer_numbers(stream), step, strict=True):
            own = trace.attention(layer, stream).weights
            assert own.shape == weights[0].shape
            assert torch.allclose(own, weights[0], atol=1e-6)
            # Control: queries that are 0.1 % longer aren't.
            longer = replace(trace.attention(layer, stream), query=trace.attention(layer, stream).query * 1.001)
            assert float((longer.weights - weights[0]).abs().max()) > 1e-6
        compared += 1
    return compared


@pytest.mark.parametrize("family", ["llava", "qwen2_vl", "gemma3", "idefics3"])
def test_without_a_kv_cache_each_word_is_one_full_run(family: str) -> None:
    model = copy.deepcopy(tiny_of(family))
    for config in (model.config, model.config.get_text_config()):
        config.use_cache = False
    traces = list(av.wrap(model, WHOLE[family]()).generate(text_of(family), 3, picture=PICTURE))
    tensors = tensors_of(WHOLE[family](), text_of(family), [PIXELS])
    assert same_as_whole_runs(traces, uncached(tiny_of(family), tensors, 3)) >= min(3, len(traces))


def test_a_model_that_puts_the_picture_before_the_words_generates_too() -> None:
    model, plain, processor = beside.wrapped(beside.git)
    traces = list(model.generate("a cat on", 3, picture=beside.PICTURE))
    made = processor(text="a cat on", images=Image.fromarray(beside.PICTURE.pixels), return_tensors="pt")
    tensors = {name: one for name, one in made.items() if isinstance(one, torch.Tensor)}
    assert len(traces) == 4 and traces[-1].provenance.generated == 3
    assert same_as_whole_runs(traces, uncached(plain, tensors, 3)) == 3
    tokens, before = traces[-1].query_tokens("encoder"), traces[0].query_tokens("encoder")
    assert tokens.place == (*before.place, None, None, None)
    said = [int(one.output[-1].argmax()) for one in traces[:3]]
    assert tokens.labels[-3:] == model.labels(said)


@pytest.mark.parametrize("family", ["llava", "paligemma", "gemma3"])
def test_the_prompts_rows_stay_as_they_were(family: str) -> None:
    first, *_, last = wrapped(family).generate(text_of(family), 2, picture=PICTURE)
    stream = first.streams[-1]
    count = len(first.query_tokens(stream))
    for layer in first.layer_numbers(stream):
        before, after = (one.attention(layer, stream).weights for one in (first, last))
        assert torch.allclose(after[:, :count, :count], before, atol=1e-6)
        assert not bool(after[:, :count, count:].any())
    looks_ahead = bool(first.attention(0, stream).weights.triu(1).any())
    assert looks_ahead == (family != "llava")


def test_generation_goes_on_from_a_trace() -> None:
    model = wrapped("llava")
    first, second, third = model.generate(text_of("llava"), 2, picture=PICTURE)
    (again,) = model.extend(second)
    assert torch.equal(again.output, third.output)
    assert again.query_tokens("decoder") == third.query_tokens("decoder")
    assert again.query_tokens("decoder").regions[: len(first.query_tokens("decoder"))] == (
        first.query_tokens("decoder").regions
    )


def test_what_cant_be_generated_is_refused() -> None:
    model = wrapped("llava")
    with pytest.raises(av.UnsupportedModel, match="can't evict keys of a text with an image"):
        model.generate("<image> a cat", picture=PICTURE, evict=av.Evict(2, 2))
    with pytest.raises(av.ShapeError, match="whole number of at least 0"):
        model.generate("<image> a cat", -1, picture=PICTURE)
    with pytest.raises(av.UnusableText, match="got a text alone"):
        next(model.generate("a cat"))
    edited = model.trace("<image> a cat", picture=PICTURE, edits=[av.Ablate(0, 0, stream="decoder")])
    with pytest.raises(av.UnsupportedModel, match="whole run without edits"):
        model.extend(edited)
