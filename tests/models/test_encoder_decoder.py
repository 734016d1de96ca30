"""An encoder–decoder: three streams told apart, rows of cross-attention named by what their step produces."""

from typing import Any

import pytest
import torch
from torch.testing import assert_close

import attention_viz as av
from attention_viz.models.model import AttentionModel
from scripts.tiny import Family, tiny
from tests.models.families import build, eager_twin, ids
from tests.shipped import shipped
from tests.terms import assert_same_terms

SENTENCE = "the boy finds the key and he sells it"
FRENCH = "le garçon trouve la clé et il la vend"
STREAMS = ("encoder", "decoder", "cross")


def translation() -> AttentionModel:
    return shipped("translation")


@pytest.mark.parametrize("padding", [[], [0, 0], [1, 1]], ids=["none", "left", "right"])
@pytest.mark.parametrize("family", ["t5", "bart"])
def test_weights_of_all_three_streams_are_those_of_eager(family: str, padding: list[int]) -> None:
    plain = build(family)
    source, read = ids(9), ids(5, start=31)
    mask = torch.ones_like(source)
    if padding:
        mask[0, : 2 if padding == [0, 0] else 9] = 1
        mask[0, slice(0, 2) if padding == [0, 0] else slice(7, 9)] = 0
    trace = av.wrap(plain).trace_ids(source, mask, decoder_input_ids=read)
    assert trace.streams == STREAMS
    with torch.no_grad():
        theirs: Any = eager_twin(plain)(
            input_ids=source, attention_mask=mask, decoder_input_ids=read, output_attentions=True
        )
    real = mask[0].bool()
    found = {
        "encoder": theirs.encoder_attentions,
        "decoder": theirs.decoder_attentions,
        "cross": theirs.cross_attentions,
    }
    for stream in STREAMS:
        assert len(found[stream]) == trace.layer_count(stream) == 2
        rows = real if stream == "encoder" else slice(None)
        for layer, weights in enumerate(found[stream]):
            assert_close(trace.attention(layer, stream).weights[:, rows], weights[0][:, rows], rtol=0, atol=1e-5)
    assert_close(trace.output, theirs.last_hidden_state[0], rtol=1e-4, atol=1e-4)
    assert trace.fidelity.ok


def test_a_sentence_without_target_is_answered_as_the_model_would() -> None:
    trace = translation().trace(SENTENCE)
    assert trace.provenance.target == FRENCH
    assert trace.provenance.generated == len(FRENCH.split()) + 1
    assert trace.query_tokens("decoder").labels == ("<pad>", *FRENCH.split())
    assert trace.query_tokens("cross").labels == (*FRENCH.split(), "</s>")
    assert trace.key_tokens("cross") == trace.query_tokens("encoder")
    # Each row of the output chooses the token that names the row.
    assert tuple(trace.output.argmax(dim=-1).tolist()) == trace.query_tokens("cross").ids


def test_the_head_of_the_card_aligns_by_the_word_that_is_produced() -> None:
    trace = translation().trace(SENTENCE)
    words, source = trace.query_tokens("cross").labels, trace.key_tokens("cross").labels
    strongest = {word: source[int(row.argmax())] for word, row in zip(words, trace.weights(0, 1, "cross"), strict=True)}
    assert {"garçon": "boy", "trouve": "finds", "clé": "key", "vend": "sells"}.items() <= strongest.items()


def test_a_target_is_what_the_decoder_is_made_to_say() -> None:
    own = translation().trace(SENTENCE)
    told = translation().trace(SENTENCE, target=FRENCH)
    assert torch.equal(own.output, told.output)
    assert told.provenance.generated == 0
    other = translation().trace(SENTENCE, target="la fille vend la clé")
    assert other.query_tokens("cross").labels == ("la", "fille", "vend", "la", "clé", "</s>")
    assert other.attention(0, "cross").shape == (4, 6, 10)
    assert other.fidelity.ok


def test_ids_alone_are_named_by_the_next_one_and_the_last_by_the_models_choice() -> None:
    model = translation()
    trace = model.trace(SENTENCE)
    again = model.trace_ids(
        torch.tensor([trace.query_tokens("encoder").ids]),
        decoder_input_ids=torch.tensor([trace.query_tokens("decoder").ids]),
    )
    assert again.query_tokens("cross").labels == trace.query_tokens("cross").labels
    bare = av.wrap(build("t5")).trace_ids(ids(4), decoder_input_ids=ids(3))
    assert bare.query_tokens("cross").labels == (*map(str, ids(3)[0, 1:].tolist()), "…")


def test_a_model_without_a_head_says_what_it_needs() -> None:
    with pytest.raises(av.UnusableText, match="no head that could choose words; give a target, or decoder_input_ids"):
        av.wrap(build("bart")).trace_ids(ids(4))


@pytest.mark.parametrize("target", ["", "   "])
def test_an_empty_target_is_refused(target: str) -> None:
    with pytest.raises(av.UnusableText, match="the target is empty"):
        translation().trace(SENTENCE, target=target)


def test_a_target_over_the_models_length_is_refused_and_a_second_sentence_too() -> None:
    with pytest.raises(av.TextTooLong):
        translation().trace(SENTENCE, target="la clé " * 40)
    with pytest.raises(av.UnusableText, match="reads one text only, as every encoder–decoder"):
        translation().trace(SENTENCE, "the key")


def test_a_mask_needs_its_stream_and_changes_only_that() -> None:
    model = translation()
    plain = model.trace(SENTENCE, target=FRENCH)
    closed = torch.ones(10, 10, dtype=torch.bool)
    closed[:, 4] = False
    with pytest.raises(av.ShapeError, match="names no stream; choose one of encoder, decoder, cross"):
        model.trace(SENTENCE, target=FRENCH, edits=[av.Allow(closed)])
    with pytest.raises(av.ShapeError, match="names the side; choose one of"):
        model.trace(SENTENCE, target=FRENCH, edits=[av.Allow(closed, stream="side")])
    edited = model.trace(SENTENCE, target=FRENCH, edits=[av.Allow(closed, stream="cross")])
    assert float(edited.attention(0, "cross").weights[:, :, 4].max()) == 0
    assert torch.equal(edited.attention(0, "encoder").weights, plain.attention(0, "encoder").weights)
    assert not torch.equal(edited.output, plain.output)


def test_the_trace_survives_a_file(tmp_path: Any) -> None:
    trace = translation().trace(SENTENCE)
    trace.save(tmp_path / "answer")
    loaded = av.Trace.load(tmp_path / "answer")
    assert loaded.streams == STREAMS
    assert loaded.provenance == trace.provenance
    assert loaded.query_tokens("cross") == trace.query_tokens("cross")
    for stream in STREAMS:
        assert_same_terms(loaded.attention(0, stream), trace.attention(0, stream))


def test_projections_are_asked_by_stream() -> None:
    model = translation()
    assert set(model.projections(0, "cross")) == {"query", "key", "value", "output"}
    with pytest.raises(av.ShapeError, match="no stream was named; translation has encoder, decoder, cross"):
        model.projections(0)


def test_a_trace_keeps_what_ran_whatever_is_written_later_into_what_was_given() -> None:
    model = av.wrap(build("bart"))
    source, read = ids(9), ids(5, start=31)
    closed = torch.ones(5, 9, dtype=torch.bool)
    closed[:, 3] = False
    edits = [av.Allow(closed, stream="cross")]
    expected = model.trace_ids(source, decoder_input_ids=read, edits=edits).layer(0, "cross").joined
    trace = model.trace_ids(source, decoder_input_ids=read, edits=edits)
    plain = model.trace_ids(source, decoder_input_ids=read)
    edits.clear()
    closed.fill_(True)
    source.fill_(7)
    read.fill_(8)
    joined = trace.layer(0, "cross").joined
    assert expected is not None and joined is not None
    assert torch.equal(joined, expected)
    assert plain.fidelity.ok


def test_where_a_trace_comes_from_is_nobodys_to_change() -> None:
    trace, versions = translation().trace(SENTENCE), translation().trace(SENTENCE).provenance.versions
    with pytest.raises(TypeError):
        versions["torch"] = "0"  # pyright: ignore[reportIndexIssue] -- that is the claim
    assert hash(trace.provenance) == hash(translation().trace(SENTENCE).provenance)


def test_a_pad_token_inside_what_is_said_is_read_like_any_other() -> None:
    # This family masks such tokens by itself where nobody says what is to be read.
    plain = tiny(Family("t5gemma", "T5GemmaForConditionalGeneration"), scale=2)
    read = torch.tensor([[6, 0, 7]])
    trace = av.wrap(plain).trace_ids(ids(9), decoder_input_ids=read)
    with torch.no_grad():
        theirs: Any = eager_twin(plain)(input_ids=ids(9), decoder_input_ids=read, output_attentions=True)
    assert float(trace.weights(0, 0, "decoder")[2, 1]) > 0
    for layer, weights in enumerate(theirs.decoder_attentions):
        assert_close(trace.attention(layer, "decoder").weights, weights[0], rtol=0, atol=1e-5)


def test_settings_that_would_turn_its_choice_are_left_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    model = translation()
    expected = model.trace(SENTENCE).query_tokens("cross")
    settings = model.hf_model.generation_config
    odd = {
        "min_length": 20,
        "no_repeat_ngram_size": 1,
        "num_beams": 4,
        "return_dict_in_generate": True,
        "max_new_tokens": 3,
    }
    for name, value in odd.items():
        monkeypatch.setattr(settings, name, value)
    trace = model.trace(SENTENCE)
    assert trace.query_tokens("cross") == expected
    assert {name: getattr(settings, name) for name in odd} == odd


def test_what_it_never_says_it_does_not_say_here(monkeypatch: pytest.MonkeyPatch) -> None:
    model = translation()
    boy = model.trace(SENTENCE).query_tokens("cross").ids[1]
    monkeypatch.setattr(model.hf_model.generation_config, "suppress_tokens", [boy])
    assert boy not in model.trace(SENTENCE).query_tokens("cross").ids


def test_a_model_that_cannot_begin_says_so() -> None:
    model = av.wrap(tiny(Family("t5", "T5ForConditionalGeneration"), scale=2))
    model.hf_model.config.decoder_start_token_id = None
    model.hf_model.generation_config.decoder_start_token_id = None
    model.hf_model.generation_config.bos_token_id = None
    with pytest.raises(av.UnusableText, match=r"can't say anything of its own accord .*; give a target"):
        model.trace_ids(ids(4))


def test_a_word_that_is_not_known_is_no_special_token() -> None:
    trace = translation().trace(SENTENCE, target="le wizard")
    tokens = trace.query_tokens("cross")
    assert tokens.labels == ("le", "<unk>", "</s>")
    assert tokens.special == (False, False, True)
