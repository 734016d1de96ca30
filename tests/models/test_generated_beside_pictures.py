"""Words generated beside an image: their rows are those of transformers' own generation."""

import copy
import functools
from typing import Any

import pytest
import torch

import attention_viz as av
from attention_viz.models.model import AttentionModel
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
