"""`model.trace(text, layers=[…])`: these layers' calls only, with the numbers that the whole trace has."""

from typing import Any

import pytest
import torch
from transformers import BartConfig, BartForConditionalGeneration

import attention_viz as av
from attention_viz.analysis.attribution import norm_weighted
from attention_viz.analysis.readings import read
from attention_viz.inputs import cost
from attention_viz.models.model import AttentionModel
from attention_viz.operation.terms import same_terms
from attention_viz.recording import tracer
from attention_viz.trace.trace import Trace

SENTENCE = "The bank of the river was flooded"


@pytest.fixture(scope="module")
def induction() -> AttentionModel:
    return av.load("induction")


@pytest.fixture(scope="module")
def uneven(minilm: AttentionModel) -> AttentionModel:
    """An encoder–decoder of three layers and two, with random weights."""
    torch.manual_seed(0)
    config = BartConfig(
        vocab_size=len(minilm.tokenizer),
        d_model=20,
        encoder_layers=3,
        decoder_layers=2,
        encoder_attention_heads=5,
        decoder_attention_heads=4,
        encoder_ffn_dim=30,
        decoder_ffn_dim=30,
        max_position_embeddings=40,
    )
    return av.wrap(BartForConditionalGeneration(config), minilm.tokenizer)


def same(kept: Trace, whole: Trace) -> bool:
    """Whether every layer that is kept is the whole trace's of the same number."""
    places = [(layer, stream) for stream in kept.streams for layer in kept.layer_numbers(stream)]
    return torch.equal(kept.output, whole.output) and all(
        same_terms(kept.attention(*place), whole.attention(*place), torch.equal)
        and kept.label(*place) == whole.label(*place)
        for place in places
    )


def test_layers_that_are_kept_are_those_of_the_whole_trace(minilm: AttentionModel) -> None:
    kept, whole = minilm.trace(SENTENCE, layers=[4, 1]), minilm.trace(SENTENCE)
    assert kept.layer_numbers() == (1, 4)
    assert same(kept, whole)
    assert not torch.equal(kept.weights(1, 0), kept.weights(4, 0))
    assert kept.query_tokens() == whole.query_tokens()
    assert kept.provenance == whole.provenance
    with pytest.raises(av.TraceError, match=r"layer 0.*layers 1, 4 of 0 to 5"):
        kept.attention(0)


def test_all_layers_by_number_are_all(induction: AttentionModel) -> None:
    assert induction.trace("a b a b", layers=range(2)).kept["decoder"].whole


def test_it_holds_the_bytes_of_these_layers_only(minilm: AttentionModel) -> None:
    kept, whole = minilm.trace(SENTENCE, layers=[4]), minilm.trace(SENTENCE)
    output, layers = whole.output.nbytes, whole.nbytes - whole.output.nbytes
    assert kept.nbytes == output + layers // 6
    _ = kept.layer(4), whole.layer(4)
    assert kept.nbytes == output + (whole.nbytes - output) // 6


def test_what_stands_around_a_call_is_that_layers(minilm: AttentionModel, induction: AttentionModel) -> None:
    for model, number in ((minilm, 4), (induction, 1)):
        mine, theirs = model.trace(SENTENCE, layers=[number]).layer(number), model.trace(SENTENCE).layer(number)
        assert set(mine.around) == set(theirs.around) >= {"embeddings", "joined"}
        assert all(torch.equal(mine.around[name], theirs.around[name]) for name in mine.around)


def test_it_is_compared_whole_in_its_output_and_where_it_is_kept_in_its_weights(minilm: AttentionModel) -> None:
    for text in (SENTENCE, "word " * 200):
        found = minilm.trace(text, layers=[4]).fidelity
        assert found.ok
        assert "weights of the 1 kept of 6 attention calls only" in found.reference
    assert found.rows == 128
    assert "kept" not in minilm.trace(SENTENCE).fidelity.reference


def test_a_wrong_layer_under_a_number_is_no_faithful_trace(
    minilm: AttentionModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = tracer.Runner.record

    def shifted(
        self: Any, inputs: Any, edits: Any = (), places: Any = (), keep: Any = None, *rest: Any, **named: Any
    ) -> Any:
        some = None if keep is None else {one - 1 for one in keep}
        found = record(self, inputs, edits, places, some, *rest, **named)
        return found if keep is None else tracer.replace(found, numbers=tuple(one + 1 for one in found.numbers))

    monkeypatch.setattr(tracer.Runner, "record", shifted)
    assert not minilm.trace(SENTENCE, layers=[4]).fidelity.ok


def test_an_edit_acts_in_layers_that_are_not_kept(minilm: AttentionModel) -> None:
    edits = [av.Ablate(1, 3)]
    kept, whole = minilm.trace(SENTENCE, edits=edits, layers=[4]), minilm.trace(SENTENCE, edits=edits)
    assert same(kept, whole)
    assert not same(kept, minilm.trace(SENTENCE))
    assert kept.fidelity.ok and kept.fidelity.reference.endswith("before the edits")


def test_gradients_are_those_of_the_layer(minilm: AttentionModel, induction: AttentionModel) -> None:
    for model, number in ((minilm, 4), (induction, 1)):
        kept, whole = model.trace(SENTENCE, layers=[number]), model.trace(SENTENCE)
        assert torch.equal(av.gradient(model, kept, layer=number), av.gradient(model, whole, layer=number))
        assert torch.equal(read("gradient", kept).weights(number, 1), read("gradient", whole).weights(number, 1))
        with pytest.raises(av.TraceError, match="every layer"):
            av.gradient(model, kept)


def test_norms_are_those_of_the_layer(minilm: AttentionModel) -> None:
    kept, whole = minilm.trace(SENTENCE, layers=[4]), minilm.trace(SENTENCE)
    assert torch.equal(norm_weighted(minilm, kept, 4), norm_weighted(minilm, whole, 4))
    assert torch.equal(read("norm", kept, minilm).weights(4, 2), read("norm", whole, minilm).weights(4, 2))


def test_numbers_apply_to_each_stream_that_has_them(uneven: AttentionModel) -> None:
    whole = uneven.trace("a river", target="a bank was there")
    for layers, numbers in (
        ([1], {"encoder": (1,), "decoder": (1,), "cross": (1,)}),
        ([2, 0], {"encoder": (0, 2), "decoder": (0,), "cross": (0,)}),
        ([2], {"encoder": (2,)}),
    ):
        kept = uneven.trace("a river", target="a bank was there", layers=layers)
        assert {stream: kept.layer_numbers(stream) for stream in kept.streams} == numbers
        assert same(kept, whole)
        assert kept.fidelity.ok
        stream = kept.streams[-1]
        number = numbers[stream][-1]
        around, theirs = kept.layer(number, stream).around, whole.layer(number, stream).around
        assert around and all(torch.equal(around[name], theirs[name]) for name in theirs)
        assert torch.equal(
            av.gradient(uneven, kept, layer=number, stream=stream),
            av.gradient(uneven, whole, layer=number, stream=stream),
        )


@pytest.mark.parametrize("layers", [[6], [], [1, 1]])
def test_layers_that_cannot_be_kept_are_refused_before_anything_runs(
    minilm: AttentionModel, layers: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracer.Runner, "record", None)
    with pytest.raises(av.ShapeError, match="layer"):
        minilm.trace(SENTENCE, layers=layers)


def test_a_decoder_does_not_go_on_from_it(induction: AttentionModel) -> None:
    with pytest.raises(av.UnsupportedModel, match=r"induction needs every layer to continue.* layer 1 of 0 to 1"):
        induction.extend(induction.trace("a b a", layers=[1]))


def test_a_long_text_rests_with_these_layers_only(induction: AttentionModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "LONG", 2)
    kept, whole = induction.trace("a b a b", layers=[1]), induction.trace("a b a b")
    assert kept.resting_bytes < whole.resting_bytes
    assert same(kept, whole)


def test_our_own_module_has_one_layer() -> None:
    model = av.load("scratch")
    kept = model.trace("a b c", layers=[0])
    assert kept.layer_numbers() == (0,)
    assert torch.equal(kept.weights(0, 1), model.trace("a b c").weights(0, 1))
    with pytest.raises(av.ShapeError, match=r"layer 1.*only layer 0"):
        model.trace("a b c", layers=[1])
