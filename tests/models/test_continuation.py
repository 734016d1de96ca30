"""A decoder going on with a text in steps: each trace is that of the same ids alone, with the text of transformers."""

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.testing import assert_close

import attention_viz as av
from attention_viz.models.model import AttentionModel
from tests.inputs.test_text import byte_tokenizer
from tests.models.families import POSITIONS, build, eager_twin
from tests.shipped import shipped

REPEATED = "moon cheese frog ring moon cheese"


def decoder(family: str = "gpt2", **options: Any) -> AttentionModel:
    return av.wrap(build(family, vocab_size=300, eos_token_id=None, bos_token_id=None, **options), byte_tokenizer())


def assert_alike(trace: av.Trace, other: av.Trace) -> None:
    """Equal up to the order in which sums are added."""
    for layer in trace.layer_numbers():
        assert_close(trace.attention(layer).weights, other.attention(layer).weights, rtol=1e-5, atol=1e-5)
        assert_close(trace.attention(layer).output, other.attention(layer).output, rtol=1e-4, atol=1e-4)
    assert_close(trace.output, other.output, rtol=1e-4, atol=1e-3)


class Forwards:
    """Hears each forward of a model: how many tokens it was given. The model itself has no code of ours."""

    def __init__(self, model: AttentionModel, patch: pytest.MonkeyPatch) -> None:
        self.lengths: list[int] = []
        words: Any = model.hf_model.get_input_embeddings()
        own = torch.nn.functional.embedding

        def hear(ids: torch.Tensor, weight: torch.Tensor, *given: Any, **named: Any) -> torch.Tensor:
            if weight is words.weight:
                self.lengths.append(ids.shape[-1])
            return own(ids, weight, *given, **named)

        patch.setattr("torch.nn.functional.embedding", hear)


@pytest.mark.parametrize("family", ["gpt2", "llama", "gemma2", "gpt_oss"])
def test_each_trace_is_that_of_the_same_ids_alone(family: str) -> None:
    model = decoder(family)
    traces = list(model.generate("the bank of", 4))
    assert [trace.provenance.generated for trace in traces] == [0, 1, 2, 3, 4]
    for shorter, trace in itertools.pairwise(traces):
        ids = trace.query_tokens().ids
        assert ids[:-1] == shorter.query_tokens().ids
        assert ids[-1] == int(shorter.output[-1].argmax())
        alone = model.trace_ids(torch.tensor([ids]))
        assert_alike(trace, alone)
        assert trace.fidelity.ok


@pytest.mark.parametrize("name", ["past_key_values", "cache"])
def test_a_step_hands_the_cache_over_by_the_name_that_this_transformers_has_for_it(name: str) -> None:
    runner = replace(decoder()._parts.growing.stepping.runner, named=frozenset({"input_ids", name}))
    assert set(runner.step_inputs(1, 0, 0, object())) == {"input_ids", name}


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
    with pytest.raises(av.ShapeError, match="can't generate -1 tokens"):
        shipped("induction").generate(REPEATED, -1)


@pytest.mark.parametrize("model", ["all-MiniLM-L6-v2", "translation", "coreference"])
def test_only_a_decoder_that_chooses_words_goes_on(model: str) -> None:
    with pytest.raises(av.UnsupportedModel, match=r"use a decoder|it is an encoder–decoder"):
        next(shipped(model).generate("the river", 1))


def test_a_step_reads_one_token_and_nothing_before_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    model = decoder("llama")
    _ = list(model.generate("the", 1))  # finds out whether the model can be run in steps
    forwards = Forwards(model, monkeypatch)
    traces = list(model.generate("the bank of", 4))
    assert forwards.lengths == [len(traces[0].query_tokens()), 1, 1, 1, 1]
    forwards.lengths.clear()
    _ = list(model.extend(traces[0], 2))
    assert forwards.lengths == [1, 1]


def test_what_was_handed_out_stays_as_it_was_while_the_text_grows() -> None:
    model = decoder("llama")
    traces, seen = [], []
    for trace in model.generate("the bank of", 5):
        traces.append(trace)
        seen.append((trace.attention(1).weights.clone(), trace.output.clone()))
    for trace, (weights, output) in zip(traces, seen, strict=True):
        assert torch.equal(trace.attention(1).weights, weights)
        assert torch.equal(trace.output, output)


def test_a_text_of_one_token_grows() -> None:
    model = decoder("llama")
    start = model.trace_ids(torch.tensor([[7]]))
    *_, last = model.extend(start, 3)
    assert_alike(last, model.trace_ids(torch.tensor([last.query_tokens().ids])))
    assert last.fidelity.ok


def test_going_on_from_a_trace_is_going_on_with_its_text(tmp_path: Path) -> None:
    model = decoder("gpt2")
    *_, five = model.generate("the bank of", 5)
    first, *_ = model.generate("the bank of", 2)
    *_, two = model.extend(first, 2)
    two.save(tmp_path / "two")
    *_, again = model.extend(av.Trace.load(tmp_path / "two"), 3)
    assert again.provenance == five.provenance
    assert again.query_tokens() == five.query_tokens()
    assert_alike(again, five)


def test_a_step_knows_what_stands_around_its_calls_and_its_gradients() -> None:
    model = decoder("llama")
    *_, trace = model.generate("the bank of", 3)
    alone = model.trace_ids(torch.tensor([trace.query_tokens().ids]))
    assert_close(trace.layer(1).embeddings, alone.layer(1).embeddings, rtol=1e-4, atol=1e-4)
    ours, theirs = trace.relevance().layers["decoder"], alone.relevance().layers["decoder"]
    assert_close(ours[1], theirs[1], rtol=1e-3, atol=1e-4)


def test_a_model_that_keeps_more_than_keys_and_values_reads_the_whole_text_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = decoder("jamba")
    *_, last = model.generate("the bank", 2)
    assert_alike(last, model.trace_ids(torch.tensor([last.query_tokens().ids])))
    forwards = Forwards(model, monkeypatch)
    traces = list(model.generate("the bank", 2))
    assert forwards.lengths == [len(trace.query_tokens()) for trace in traces]


@pytest.mark.parametrize("family", ["gpt2", "llama", "opt"])
def test_keys_thrown_away_are_keys_that_nobody_may_look_at(family: str) -> None:
    model, evict = decoder(family), av.Evict(first=2, last=3)
    first, *_, last = model.generate("the bank of", 6, evict=evict)
    typed, n = len(first.query_tokens()), len(last.query_tokens())
    allowed = torch.ones(n, n).tril().bool()
    for row in range(typed, n):
        allowed[row, 2 : row - 3] = False
    whole = model.trace_ids(torch.tensor([last.query_tokens().ids]), edits=[av.Allow(allowed)])
    assert_alike(last, whole)
    for layer in last.layer_numbers():
        assert not last.attention(layer).weights[:, ~allowed].any()
    # Not what the model would have computed with all its keys.
    assert (last.output[-1] - model.trace_ids(torch.tensor([last.query_tokens().ids])).output[-1]).abs().max() > 1e-2


def test_an_eviction_says_so_and_its_fidelity_is_that_of_the_run_without_it() -> None:
    model, evict = decoder("llama"), av.Evict(first=1, last=2)
    first, *_, last = model.generate("the bank of", 4, evict=evict)
    assert first.provenance.edits == ()
    assert last.provenance.edits == (str(evict),)
    assert "first 1 and the last 2 keys, at their own positions" in str(evict)
    assert last.fidelity.ok
    assert last.fidelity.reference.endswith("before the edits") and "blocked" in last.fidelity.reference
    assert last.layer(1).embeddings is not None


def test_an_eviction_goes_on_in_the_same_way_or_not_at_all() -> None:
    model, evict = decoder("llama"), av.Evict(first=1, last=2)
    first, *_, last = model.generate("the bank of", 4, evict=evict)
    *_, again = model.extend(first, 2, evict=evict)
    *_, again = model.extend(again, 2, evict=evict)
    assert_alike(again, last)
    for other in (None, av.Evict(first=2, last=2)):
        with pytest.raises(av.UnsupportedModel, match="only with the changes it was made with"):
            model.extend(last, 1, evict=other)
    *_, free = model.extend(first, 1)
    with pytest.raises(av.UnsupportedModel, match="this one had all its keys"):
        model.extend(free, 1, evict=evict)


def test_a_model_that_drops_keys_itself_refuses_another_eviction() -> None:
    with pytest.raises(av.UnsupportedModel, match="can't evict keys"):
        decoder("mistral").generate("the bank", 1, evict=av.Evict())


@pytest.mark.parametrize(("first", "last"), [(-1, 4), (4, 0), (True, 4), (2, 1.5)])
def test_an_eviction_that_leaves_nothing_is_refused(first: int, last: int) -> None:
    wrong = last if first is not True and first > 0 else first
    with pytest.raises(av.ShapeError, match=str(wrong)):
        av.Evict(first, last)


@pytest.mark.parametrize(("count", "kept"), [(3, [0, 1, 2]), (5, [0, 1, 2, 3, 4]), (8, [0, 1, 5, 6, 7])])
def test_the_first_and_the_last_keys_stay(count: int, kept: list[int]) -> None:
    assert list(av.Evict(first=2, last=3).kept(count)) == kept


def test_another_models_trace_and_one_that_was_changed_are_refused() -> None:
    model = decoder("llama")
    trace = model.trace("the bank")
    with pytest.raises(av.UnsupportedModel, match="only its own"):
        shipped("induction").extend(trace)
    with pytest.raises(av.UnsupportedModel, match="only with the changes it was made with"):
        model.extend(model.trace("the bank", edits=[av.Ablate(0, 0)]))
    with pytest.raises(av.UnsupportedModel, match="only with the changes it was made with"):
        model.extend(av.merge_words(trace))


def test_a_long_text_whose_trace_rests_in_a_file_grows_too() -> None:
    model = decoder("llama", max_position_embeddings=2_100)
    start = model.trace_ids((torch.arange(2_060) * 7 % 290 + 3)[None])
    assert start.resting_bytes
    *_, last = model.extend(start, 2)
    whole = model.trace_ids(torch.tensor([last.query_tokens().ids]))
    for layer in last.layer_numbers():
        ours, theirs = (trace.attention(layer).tile(0, slice(2_040, None), slice(None)) for trace in (last, whole))
        assert_close(ours, theirs, rtol=1e-5, atol=1e-5)
    assert last.fidelity.ok
