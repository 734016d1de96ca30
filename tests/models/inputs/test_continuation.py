"""A decoder going on with a text: each trace is that of the same ids alone, and the text is what transformers write."""

import itertools
from typing import Any

import pytest
import torch
from torch.testing import assert_close

import attention_viz as av
from attention_viz.models.model import AttentionModel
from tests.models.families import POSITIONS, build, eager_twin
from tests.models.inputs.test_text import byte_tokenizer
from tests.shipped import shipped

REPEATED = "moon cheese frog ring moon cheese"


def decoder(family: str = "gpt2", **options: Any) -> AttentionModel:
    return av.wrap(build(family, vocab_size=300, eos_token_id=None, bos_token_id=None, **options), byte_tokenizer())


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_each_trace_is_that_of_the_same_ids_alone(family: str) -> None:
    model = decoder(family)
    traces = list(model.generate("the bank of", 4))
    assert [trace.provenance.generated for trace in traces] == [0, 1, 2, 3, 4]
    for shorter, trace in itertools.pairwise(traces):
        ids = trace.query_tokens().ids
        assert ids[:-1] == shorter.query_tokens().ids
        assert ids[-1] == int(shorter.output[-1].argmax())
        alone = model.trace_ids(torch.tensor([ids]))
        for layer in range(trace.layer_count()):
            assert_close(trace.attention(layer).weights, alone.attention(layer).weights, rtol=0, atol=0)
        assert_close(trace.output, alone.output, rtol=0, atol=0)
        assert trace.fidelity.ok


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_the_tokens_are_those_that_transformers_choose_with_their_cache(family: str) -> None:
    model = decoder(family)
    *_, last = model.generate("the bank of", 12)
    start = torch.tensor([next(model.generate("the bank of", 0)).query_tokens().ids])
    theirs: Any = eager_twin(model.hf_model)
    said = theirs.generate(start, do_sample=False, max_new_tokens=12, use_cache=True, pad_token_id=0)
    assert last.query_tokens().ids == tuple(said[0].tolist())


def test_what_the_model_adds_belongs_to_no_sentence_of_the_text() -> None:
    *_, trace = shipped("induction").generate(REPEATED, 3)
    tokens = trace.query_tokens()
    assert tokens.labels[-3:] == ("frog", "ring", "moon")
    assert tokens.sentence == (None, *[0] * 6, None, None, None)


def test_it_ends_where_the_model_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    model = shipped("induction")
    *_, free = model.generate(REPEATED, 4)
    # With "moon" for the end, two tokens are said.
    assert free.query_tokens().labels[-4:] == ("frog", "ring", "moon", "cheese")
    monkeypatch.setattr(model.hf_model.generation_config, "eos_token_id", free.query_tokens().ids[-2])
    *_, ended = model.generate(REPEATED, 4)
    assert ended.provenance.generated == 2
    assert ended.query_tokens().ids == free.query_tokens().ids[:-2]


def test_it_ends_where_the_model_is_full() -> None:
    traces = list(decoder("gpt2").generate("the bank of", 100))
    assert len(traces[-1].query_tokens()) == POSITIONS
    assert traces[-1].provenance.generated == len(traces) - 1 < 100


def test_fewer_tokens_than_none_are_refused() -> None:
    with pytest.raises(av.ShapeError, match="-1 more tokens were asked for"):
        shipped("induction").generate(REPEATED, -1)


@pytest.mark.parametrize("model", ["all-MiniLM-L6-v2", "translation", "coreference"])
def test_only_a_decoder_that_chooses_words_goes_on(model: str) -> None:
    with pytest.raises(av.UnsupportedModel, match="no decoder"):
        next(shipped(model).generate("the river", 1))
