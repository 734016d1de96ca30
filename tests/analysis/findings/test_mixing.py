"""Findings of layers without a softmax, on mixers whose numbers are known."""

import pytest
import torch
from torch.nn import functional

import attention_viz as av
from attention_viz.analysis.findings.mixing import erased
from attention_viz.analysis.slides.found import found_slides
from attention_viz.operation.token_mixer import TokenMixer
from attention_viz.trace.layers import MixerLayer

WORDS = ["Anna", "red", "lamp", "Ben", "stone", "Anna", "garden", "green"]
COUNT = len(WORDS)


def trace_with(mixer: TokenMixer) -> av.Trace:
    """A trace whose attention is the same everywhere, so that only the mixer has something to find."""
    same = torch.zeros(1, COUNT, 2)
    trace = av.Trace.from_qkv(same, same, same, av.masks.causal(COUNT), labels=WORDS)
    return av.Trace(
        trace.layers,
        trace.queries,
        trace.keys,
        trace.output,
        trace.provenance,
        mixers={"mixer": (MixerLayer(mixer, "1"),)},
    )


def delta(write: float = 0.9) -> TokenMixer:
    """A delta rule with a key of its own for each word: only “Anna” comes twice."""
    key = functional.one_hot(torch.tensor([WORDS.index(word) for word in WORDS]), COUNT).double()[None]
    value = torch.eye(COUNT, dtype=torch.float64)[None]
    return TokenMixer("gated delta", key, key, value, write=torch.full((1, COUNT, 1), write, dtype=torch.float64))


def test_a_delta_rule_erases_the_value_under_the_same_key() -> None:
    found = av.findings(trace_with(delta()))
    assert (found[0].kind, found[0].stream, found[0].layer) == ("erased", "mixer", 1)
    assert (found[0].query, found[0].key, found[0].strength) == (5, 0, pytest.approx(0.9))
    assert "0.90" in found[0].text and found[0].text.index("Anna₂") < found[0].text.index("Anna₁")


def test_what_is_erased_is_what_a_query_no_longer_reads() -> None:
    torch.manual_seed(0)
    key = functional.normalize(torch.randn(2, COUNT, 3, dtype=torch.float64), dim=-1)
    value, write = torch.randn(2, COUNT, 4, dtype=torch.float64), torch.rand(2, COUNT, 1, dtype=torch.float64)
    found = erased(TokenMixer("gated delta", key, key, value, write=write), (0, 2, 5))
    for head, (row, later), earlier in ((0, (1, 2), 1), (1, (2, 5), 0)):
        before, k = key[head, earlier], key[head, later]
        after = before - write[head, later] * k * (k @ before)
        assert float(found[head, row, earlier]) == pytest.approx(float(1 - before @ after))
    assert not found[:, 0].any()


@pytest.mark.parametrize(("sign", "words"), [(1.0, "carried to"), (-1.0, "taken away from")])
def test_a_distant_value_that_only_one_word_reads_is_named_with_its_sign(sign: float, words: str) -> None:
    query, key = torch.zeros(1, COUNT, 2), torch.zeros(1, COUNT, 2)
    query[0, 6, 0], key[0, 1, 0] = sign, 2.0
    mixer = TokenMixer("lightning", query, key, torch.ones(1, COUNT, 3))
    (found,) = av.findings(trace_with(mixer), count=1)
    assert (found.kind, found.query, found.key, found.strength) == ("carried", 6, 1, pytest.approx(1.0))
    assert words in found.text and found.text.startswith("“red”")


def test_channels_count_by_what_arrives_in_all_of_them() -> None:
    one = torch.ones(1, COUNT, 1)
    query, value = torch.zeros(2, COUNT, 1), torch.zeros(2, COUNT, 1)
    query[:, 6], value[0, 1], value[1, 2] = 1.0, 3.0, -4.0
    mixer = TokenMixer("RG-LRU", query, one, value, per="channel")
    (found,) = av.findings(trace_with(mixer), count=1)
    assert (found.query, found.key, found.strength) == (6, 2, pytest.approx(4 / 7))
    assert "all that arrives" in found.text


def test_matrices_that_are_the_same_for_every_text_have_no_findings() -> None:
    one, taps = torch.ones(1, COUNT, 1), torch.ones(1, 1, 3)
    mixer = TokenMixer("convolution", one, one, one, taps=taps, per="channel")
    assert not [found for found in av.findings(trace_with(mixer)) if found.stream == "mixer"]


def test_slides_show_shares_of_the_row_and_say_what_happens() -> None:
    trace = trace_with(delta())
    slides = found_slides(trace, av.findings(trace), ("mixer", 1, 0, 7, 7))
    first, second = slides[:2]
    assert "".join(text for text, _ in first.tell).startswith("“green” is carried to “green”: 1.00")
    assert first.picture is not None and first.picture.unit == "share of size"
    assert "erase as “Anna₂” comes?" in "".join(text for text, _ in second.ask)
    assert second.picture is not None
    values = [value for value in second.picture.values if value is not None]
    assert sum(values) == pytest.approx(1.0)
    shares = dict(zip(second.picture.tokens, second.picture.values, strict=True))
    assert shares["Anna₂"] == pytest.approx(0.9 / (0.9 + 0.09))
