"""Sampled tokens: their distribution is that of transformers, their rows are those of a run of the whole."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.testing import assert_close
from transformers.generation.logits_process import TemperatureLogitsWarper, TopPLogitsWarper

import attention_viz as av
from attention_viz.models.next_token import NextToken, sampled_from
from tests.inputs.test_text import byte_tokenizer
from tests.models.families import eager_twin
from tests.models.test_continuation import REPEATED, decoder
from tests.shipped import shipped

DRAWS = 20_000


def logits(count: int = 300, seed: int = 0) -> torch.Tensor:
    return torch.randn(count, generator=torch.Generator().manual_seed(seed)) * 4


def theirs(scores: torch.Tensor, temperature: float, top_p: float) -> torch.Tensor:
    """The probabilities that transformers samples from."""
    ids: Any = torch.zeros(1, 1, dtype=torch.int64)
    scores = TemperatureLogitsWarper(temperature)(ids, scores[None].float())
    if top_p < 1:
        scores = TopPLogitsWarper(top_p)(ids, scores)
    return scores.softmax(dim=-1)[0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("temperature", [0.1, 0.7, 1.0, 2.5])
@pytest.mark.parametrize("top_p", [1e-6, 0.3, 0.9, 1.0])
def test_the_distribution_is_that_of_transformers_logits_processors(
    temperature: float, top_p: float, dtype: torch.dtype
) -> None:
    for seed in range(5):
        scores = logits(seed=seed).to(dtype)
        assert torch.equal(sampled_from(scores, temperature, top_p), theirs(scores, temperature, top_p))


def test_a_tiny_temperature_leaves_the_likeliest_token() -> None:
    found = sampled_from(logits(), 1e-44, 1.0)
    assert int(found.argmax()) == int(logits().argmax()) and float(found.max()) == 1.0


def test_draws_have_the_frequencies_of_the_distribution() -> None:
    scores, following = logits(12), NextToken.of(True, 1.5, 0.9, 5, ())
    expected = sampled_from(scores, 1.5, 0.9)
    drawn = torch.tensor([following.choose(scores, number) for number in range(DRAWS)])
    counts = drawn.bincount(minlength=12) / DRAWS
    assert not counts[expected == 0].any() and (expected == 0).any()
    # Four standard deviations of a count.
    assert bool(((counts - expected).abs() <= 4 * (expected * (1 - expected) / DRAWS).sqrt()).all())


def test_what_is_never_generated_isnt_drawn() -> None:
    scores, following = torch.tensor([9.0, 1.0, 0.0]), NextToken.of(True, 1.0, 1.0, 0, ())
    assert {following.choose(scores, number, [0, 7]) for number in range(50)} == {1, 2}
    assert scores[0] == 9.0
    assert NextToken.of(False, 1.0, 1.0, None, ()).choose(scores, 0, [0]) == 1


@pytest.mark.parametrize("sample", [True, False])
def test_no_token_is_chosen_from_logits_that_arent_numbers(sample: bool) -> None:
    with pytest.raises(av.TraceError, match="logits aren't numbers, so no token can be chosen; load it in float32"):
        NextToken.of(sample, 1.0, 1.0, 0 if sample else None, ()).choose(torch.tensor([0.0, math.nan]), 0)


@pytest.mark.parametrize("family", ["gpt2", "llama", "gemma2", "jamba"])
def test_each_sampled_trace_is_that_of_the_same_ids_in_one_run(family: str) -> None:
    model = decoder(family)
    traces = list(model.generate("the bank of", 4, sample=True, temperature=1.3, top_p=0.95, seed=1))
    assert [trace.provenance.generated for trace in traces] == [0, 1, 2, 3, 4]
    for trace in traces:
        whole = model.trace_ids(torch.tensor([trace.query_tokens().ids]))
        for layer in trace.layer_numbers():
            assert_close(trace.attention(layer).weights, whole.attention(layer).weights, rtol=0, atol=1e-6)
        assert_close(trace.output, whole.output, rtol=1e-4, atol=1e-4)
    assert traces[-1].fidelity.ok


def test_a_hybrid_samples_too_and_a_model_without_a_softmax_names_the_way() -> None:
    model = shipped("recall")
    *_, last = model.generate("a 1 b 2 a", 3, sample=True, temperature=2, seed=1)
    whole = model.trace_ids(torch.tensor([last.query_tokens("decoder").ids]))
    assert last.provenance.generated == 3
    for stream in last.streams:
        for layer in last.layer_numbers(stream):
            for head in range(last.head_count(layer, stream)):
                ours, alone = (one.weights(layer, head, stream) for one in (last, whole))
                assert_close(ours, alone, rtol=0, atol=1e-6)
    with pytest.raises(av.UnsupportedModel, match=r"no softmax attention; .*model.follow"):
        shipped("recall-mamba").generate("a 1 b 2 a", 3, sample=True)
    with pytest.raises(av.UnsupportedModel, match="it is an encoder–decoder"):
        shipped("translation").generate("the boy", 3, sample=True)


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_each_sampled_token_has_the_draw_of_its_number(family: str) -> None:
    """Another way: plain transformers' logits, their logits processors, and numpy's random numbers."""
    import numpy

    model = decoder(family)
    first, *_, last = model.generate("the bank of", 8, sample=True, temperature=0.9, top_p=0.8, seed=11)
    plain: Any = eager_twin(model.hf_model)
    ids = list(first.query_tokens().numbers)
    for number in range(8):
        with torch.no_grad():
            likely = theirs(plain(torch.tensor([ids])).logits[0, -1], 0.9, 0.8).double()
        drawn = numpy.random.default_rng([11, number]).random()
        ids.append(int((likely.cumsum(0) / likely.sum() <= drawn).sum()))
    assert last.query_tokens().ids == tuple(ids)


def test_a_seed_gives_the_same_tokens_and_another_one_others() -> None:
    model = decoder("llama")

    def tokens(seed: int | None) -> tuple[int, ...]:
        *_, last = model.generate("the bank of", 10, sample=True, temperature=2, seed=seed)
        return last.query_tokens().numbers

    assert tokens(3) == tokens(3)
    assert len({tokens(seed) for seed in range(4)}) == 4
    _ = torch.manual_seed(1)
    one, other = tokens(None), tokens(None)
    _ = torch.manual_seed(1)
    assert tokens(None) == one != other


def test_a_drawn_seed_is_in_the_provenance_and_gives_the_tokens_again(tmp_path: Path) -> None:
    model = decoder("gpt2")
    *_, free = model.generate("the bank of", 5, sample=True, top_p=0.9)
    (way,) = free.provenance.decoding
    assert (way.method, way.top_p, way.tokens) == ("sampled", 0.9, 5) and way.seed is not None
    *_, again = model.generate("the bank of", 5, sample=True, top_p=0.9, seed=way.seed)
    assert again.query_tokens() == free.query_tokens() and again.provenance == free.provenance
    free.save(tmp_path / "free")
    read = av.Trace.load(tmp_path / "free")
    assert read.provenance == free.provenance
    for one in (free, read):
        assert f"5 tokens sampled at temperature 1, top-p 0.9, seed {way.seed}" in repr(one)


def test_a_trace_goes_on_with_the_draws_of_one_longer_run() -> None:
    model = decoder("gpt2")
    options: dict[str, Any] = {"sample": True, "temperature": 1.7, "seed": 8}
    *_, six = model.generate("the bank of", 6, **options)
    *_, two = model.generate("the bank of", 2, **options)
    for seed in (8, None):
        *_, again = model.extend(two, 4, **dict(options, seed=seed))
        assert again.query_tokens() == six.query_tokens() and again.provenance == six.provenance
    *_, other = model.extend(two, 2)
    assert other.provenance.generated == 4
    assert [(one.method, one.tokens) for one in other.provenance.decoding] == [("sampled", 2), ("greedy", 2)]
    assert "2 tokens sampled at temperature 1.7, seed 8, then 2 tokens generated greedily" in repr(other)


def test_beginnings_and_words_keep_how_their_own_tokens_were_chosen() -> None:
    from attention_viz.trace.derived import beginning

    model = decoder("gpt2")
    *_, two = model.generate("the bank of", 2, sample=True, seed=8)
    *_, four = model.extend(two, 2)
    cut = beginning(four, len(four.query_tokens()) - 3)
    assert [(one.method, one.tokens) for one in cut.provenance.decoding] == [("sampled", 1)]
    assert beginning(four, 2).provenance.decoding == ()
    merged = av.merge_words(four).provenance
    assert sum(one.tokens for one in merged.decoding) == merged.generated


@pytest.mark.parametrize("whole", [False, True])
def test_it_ends_after_a_stop_id(whole: bool) -> None:
    model = decoder("jamba" if whole else "llama")
    *_, free = model.generate("the bank of", 6, sample=True, seed=2)
    ids = free.query_tokens().numbers
    *_, ended = model.generate("the bank of", 6, sample=True, seed=2, stop=[ids[-3], "never there"])
    assert ended.query_tokens().numbers == ids[: ids.index(ids[-3], len(ids) - 6) + 1]
    assert ended.provenance.decoding[0].tokens == ended.provenance.generated <= 4


def test_it_ends_after_a_stop_text_even_over_several_tokens() -> None:
    model = shipped("induction")
    *_, free = model.generate(REPEATED, 4)
    assert free.query_tokens().labels[-4:] == ("frog", "ring", "moon", "cheese")
    # The typed text has "moon cheese", too.
    for stop, count in (("ring moon", 3), (["heese", "oo"], 3), (("frog",), 1), ("g r", 2), ("ng  moon", 4)):
        *_, ended = model.generate(REPEATED, 4, stop=stop)
        assert ended.provenance.generated == count
    *_, ended = model.generate(REPEATED, 4, stop="frog")
    assert model.tokenizer is not None
    # A stop from before doesn't end what follows.
    *_, more = model.extend(ended, 2, stop="frog")
    assert more.provenance.generated == 3


def test_a_stop_text_may_begin_with_the_space_before_the_first_generated_word() -> None:
    model = shipped("SmolLM2-135M-Instruct")
    *_, ended = model.generate("The capital of France is", 5, stop=" Paris")
    assert ended.query_tokens().labels[-1] == "ĠParis"
    *_, ended = model.generate("The capital of France is", 5, stop="Paris.")
    assert ended.query_tokens().labels[-2:] == ("ĠParis", ".")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sample": True, "temperature": 0}, r"temperature must be a number above 0; got 0\. For the likeliest"),
        ({"sample": True, "temperature": -1.5}, "temperature must be a number above 0; got -1.5"),
        ({"sample": True, "temperature": math.nan}, "temperature must be a number above 0; got nan"),
        ({"sample": True, "temperature": math.inf}, "temperature must be a number above 0; got inf"),
        ({"sample": True, "temperature": "hot"}, "temperature must be a number above 0; got 'hot'"),
        ({"sample": True, "temperature": True}, "temperature must be a number above 0; got True"),
        ({"sample": True, "top_p": 0}, "top_p must be a number above 0, at most 1; got 0"),
        ({"sample": True, "top_p": 1.1}, "top_p must be a number above 0, at most 1; got 1.1"),
        ({"sample": True, "top_p": None}, "top_p must be a number above 0, at most 1; got None"),
        ({"sample": True, "seed": 1.5}, "seed must be a whole number from 0 .* got 1.5"),
        ({"sample": True, "seed": -1}, "seed must be a whole number from 0 .* got -1"),
        ({"sample": True, "seed": True}, "seed must be a whole number from 0 .* got True"),
        ({"sample": True, "seed": 2**63}, "seed must be a whole number from 0"),
        ({"sample": 1}, "sample must be True or False; got 1"),
        ({"temperature": 0.7}, "temperature=0.7 has no effect without sampling; add sample=True"),
        ({"top_p": 0.9}, "top_p=0.9 has no effect without sampling; add sample=True"),
        ({"seed": 0}, "seed=0 has no effect without sampling; add sample=True"),
        ({"stop": [300]}, "stop takes token ids from 0 to 299; got 300"),
        ({"stop": [-1]}, "stop takes token ids from 0 to 299; got -1"),
        ({"stop": True}, "stop takes a text, a token id or a list of them; got True"),
        ({"stop": [1.5]}, "stop takes a text, a token id or a list of them; got 1.5"),
        ({"stop": None}, "stop takes a text, a token id or a list of them; got None"),
        ({"stop": ""}, "a stop text is empty"),
        ({"stop": "\ud83e"}, "has half a character, which no model generates"),
        ({"stop": ["a", "b\ufffd"]}, "has half a character, which no model generates"),
    ],
)
def test_wrong_options_are_refused_before_anything_runs(options: dict[str, Any], message: str) -> None:
    model = decoder("gpt2")
    with pytest.raises((av.ShapeError, av.UnusableText), match=message):
        model.generate("the bank of", 2, **options)
    with pytest.raises((av.ShapeError, av.UnusableText), match=message):
        model.extend(model.trace("the bank of"), 2, **options)


def test_without_a_tokenizer_only_ids_stop_it() -> None:
    model = av.wrap(decoder("gpt2").hf_model)
    start = model.trace_ids([5, 6, 7])
    *_, free = model.extend(start, 4, sample=True, seed=0)
    *_, ended = model.extend(start, 4, sample=True, seed=0, stop=free.query_tokens().numbers[3])
    assert ended.provenance.generated == 1
    with pytest.raises(av.UnusableText, match=r"has no tokenizer to find 'a' with; pass stop=\[…\] as token ids"):
        model.extend(start, 4, stop="a")


def test_the_first_step_is_sampled_from_a_lone_token_too() -> None:
    model = av.wrap(decoder("llama").hf_model, byte_tokenizer())
    *_, last = model.extend(model.trace_ids([7]), 3, sample=True, seed=4)
    assert len(last.query_tokens()) == 4
