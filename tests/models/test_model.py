"""The real all-MiniLM-L6-v2: what is known of its heads, every weight against eager, and every input it may meet."""

import inspect
from typing import Any

import pandas
import pytest
import torch
from torch import Tensor
from transformers import PreTrainedModel

import attention_viz as av
from attention_viz.models.model import AttentionModel
from attention_viz.protocol.model import Model
from tests.models.families import build, eager, wrapped
from tests.shipped import shipped

SENTENCE = "The bank of the river was flooded"
SENTENCES = [
    SENTENCE,
    "The cat sat because it was tired.",
    "Antidisestablishmentarianism, naïvely pronounced.",
    "x",
    "👩‍👩‍👧 שלום — 数学 = <script>alert(1)</script>",
    "word " * 150,
]


def weight(trace: av.Trace, layer: int, head: int, query: str, key: str) -> float:
    labels = trace.query_tokens().labels
    return round(trace.weights(layer, head)[labels.index(query), labels.index(key)].item(), 3)


def test_it_answers_to_what_every_model_answers_to(minilm: AttentionModel) -> None:
    assert isinstance(minilm, Model)
    for name, value in vars(Model).items():
        if inspect.isfunction(value) and not name.startswith("_"):
            expected = list(inspect.signature(value).parameters)
            found = list(inspect.signature(getattr(AttentionModel, name)).parameters)
            assert found[: len(expected)] == expected, name  # a pretrained one may take more


def test_the_bank_looks_at_its_river(minilm: AttentionModel) -> None:
    trace = minilm.trace(SENTENCE)
    assert trace.query_tokens().labels == ("[CLS]", "the", "bank", "of", "the", "river", "was", "flooded", "[SEP]")
    assert (weight(trace, 0, 4, "bank", "river"), weight(trace, 0, 4, "bank", "flooded")) == (0.580, 0.164)
    assert (weight(trace, 0, 10, "bank", "river"), weight(trace, 0, 10, "bank", "flooded")) == (0.490, 0.218)
    assert (weight(trace, 5, 6, "bank", "river"), weight(trace, 5, 6, "bank", "flooded")) == (0.288, 0.329)


def test_it_is_the_cat(minilm: AttentionModel) -> None:
    trace = minilm.trace("The cat sat because it was tired.")
    assert weight(trace, 5, 11, "it", "cat") == pytest.approx(0.69, abs=0.005)
    assert weight(trace, 3, 1, "it", "cat") == pytest.approx(0.67, abs=0.005)


def encode(minilm: AttentionModel, text: str, second: str | None = None) -> dict[str, Tensor]:
    return dict(minilm.tokenizer(text, second, return_tensors="pt"))


@pytest.mark.parametrize("text", SENTENCES)
def test_every_layer_and_head_equals_eager(minilm: AttentionModel, eager_minilm: PreTrainedModel, text: str) -> None:
    trace = minilm.trace(text)
    output, weights = eager(eager_minilm, **encode(minilm, text))
    assert trace.layer_count() == len(weights) == 6
    for layer, theirs in enumerate(weights):
        assert theirs.shape[0] == 12
        torch.testing.assert_close(trace.attention(layer).weights, theirs, rtol=0, atol=1e-5)
    torch.testing.assert_close(trace.output, output, rtol=0, atol=1e-5)
    assert trace.fidelity.ok
    assert trace.fidelity.weight_error < 1e-5


def test_the_table_equals_eager_to_the_last_printed_digit(
    minilm: AttentionModel, eager_minilm: PreTrainedModel
) -> None:
    table = minilm.trace(SENTENCE).table(layer=3)
    weights = eager(eager_minilm, **encode(minilm, SENTENCE))[1][3]
    theirs = pandas.Series(weights.flatten().numpy())
    assert (table["weight"].reset_index(drop=True) - theirs).abs().max() < 1e-5


def test_a_second_sentence_is_read_after_the_first(minilm: AttentionModel, eager_minilm: PreTrainedModel) -> None:
    trace = minilm.trace("Old flooding", "rivers swell")
    tokens = trace.query_tokens()
    assert tokens.labels == ("[CLS]", "old", "flooding", "[SEP]", "rivers", "swell", "[SEP]")
    assert tokens.words == (None, 0, 1, None, 2, 3, None)
    assert tokens.special == (True, False, False, True, False, False, True)
    assert trace.provenance.second_text == "rivers swell"
    weights = eager(eager_minilm, **encode(minilm, "Old flooding", "rivers swell"))[1]
    torch.testing.assert_close(trace.attention(5).weights, weights[5], rtol=0, atol=1e-5)


@pytest.mark.parametrize("blank", ["", "  \n"])
def test_a_blank_second_sentence_is_none(minilm: AttentionModel, blank: str) -> None:
    assert minilm.trace(SENTENCE, blank).provenance.second_text is None


def test_a_decoder_refuses_a_second_sentence_and_everything_but_an_encoder_decoder_a_target(
    minilm: AttentionModel,
) -> None:
    with pytest.raises(av.UnusableText, match="reads one text only"):
        wrapped("gpt2").trace("a", "b")
    with pytest.raises(av.UnsupportedModel, match=r"isn't an encoder–decoder \(its only stream is the encoder\)"):
        minilm.trace("a", target="b")
    with pytest.raises(av.UnsupportedModel, match="isn't an encoder–decoder"):
        minilm.trace_ids(torch.tensor([[5]]), decoder_input_ids=torch.tensor([[5]]))


def test_pieces_know_their_word_and_what_was_added_is_special(minilm: AttentionModel) -> None:
    tokens = minilm.trace("flooded riverbanks!").query_tokens()
    assert tokens.labels == ("[CLS]", "flooded", "river", "##bank", "##s", "!", "[SEP]")
    assert tokens.words == (None, 0, 1, 1, 1, 2, None)
    assert tokens.special == (True, *[False] * 5, True)
    assert tokens.padding == (False,) * 7


def test_a_trace_says_where_it_comes_from(minilm: AttentionModel) -> None:
    origin = minilm.trace(SENTENCE).provenance
    assert (origin.model, origin.text, origin.dtype, origin.edits) == ("all-MiniLM-L6-v2", SENTENCE, "float32", ())
    assert origin.sha256 == av.CATALOGUE["all-MiniLM-L6-v2"].sha256
    assert origin.versions["attention_viz"] == av.__version__
    assert origin.versions["torch"] == torch.__version__


def test_fidelity_is_measured_once_and_says_against_what(minilm: AttentionModel) -> None:
    trace = minilm.trace(SENTENCE)
    assert trace.fidelity is trace.fidelity
    assert trace.fidelity.reference.startswith("the same model with its own attention (sdpa)")
    assert trace.fidelity.bound == 1e-5
    assert minilm.verify(SENTENCE).ok


@pytest.mark.parametrize("text", ["", "   ", "\n\t"])
def test_an_empty_text_is_told_so(minilm: AttentionModel, text: str) -> None:
    with pytest.raises(av.UnusableText, match="the text is empty"):
        minilm.trace(text)


@pytest.mark.parametrize("text", ["\x00\x01\x02", "​‍", "\x7f"])
def test_a_text_of_which_the_tokenizer_leaves_nothing_is_told_so(minilm: AttentionModel, text: str) -> None:
    with pytest.raises(av.UnusableText, match="tokenizer drops every character of this text"):
        minilm.trace(text)


def test_a_text_too_long_names_the_limit_and_its_own_length(minilm: AttentionModel) -> None:
    assert minilm.limit == 512
    with pytest.raises(av.TextTooLong, match=r"512 tokens.*3002") as caught:
        minilm.trace("word " * 3000)
    assert (caught.value.limit, caught.value.count) == (512, 3002)
    assert len(minilm.trace("word " * 510).query_tokens()) == 512


def test_what_fits_is_told_word_by_word_and_nothing_is_lost(minilm: AttentionModel) -> None:
    text = "word " * 3000
    fit = minilm.fit(text)
    assert (fit.count, fit.limit) == (3002, 512)
    assert fit.kept + fit.cut == text
    assert fit.kept.count("word") == 510
    assert minilm.fit(text, 12).kept.count("word") == 10
    assert minilm.fit(text, 9000).limit == 512
    assert minilm.fit(SENTENCE).cut == ""


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ((torch.ones(5, dtype=torch.long),), av.ShapeError, r"\(1, n\).*got \(5,\)"),
        ((torch.ones(2, 5, dtype=torch.long),), av.ShapeError, r"got \(2, 5\)"),
        ((torch.ones(1, 0, dtype=torch.long),), av.ShapeError, r"got \(1, 0\)"),
        ((torch.ones(1, 5),), av.ShapeError, "int64 or int32.*torch.float32"),
        ((torch.ones(1, 5).long(), torch.ones(1, 4)), av.ShapeError, r"\(1, 5\).*got \(1, 4\)"),
        ((torch.ones(1, 3).long(), torch.tensor([[1, 2, 0]])), av.ShapeError, "1 .*0 for padding"),
        ((torch.ones(1, 3).long(), torch.zeros(1, 3)), av.UnusableText, "padding"),
        ((torch.tensor([[5, -1]]),), av.UnusableText, "token -1.*0 to 30521"),
        ((torch.tensor([[30522]]),), av.UnusableText, "token 30522"),
        (([],), av.ShapeError, "list of ids.*got none"),
        (([5, 7.0],), av.ShapeError, "list of ids.*float"),
        (([[5, 7]],), av.ShapeError, "list"),
        (("57",), av.ShapeError, r"\(1, n\).*got str"),
        (([5, 10**30],), av.UnusableText, "token 10{30}.*0 to 30521"),
        (([5] * 513,), av.TextTooLong, "512 tokens.*513"),
        ((torch.ones(1, 513).long(),), av.TextTooLong, "512 tokens.*513"),
    ],
)
def test_ids_that_cannot_be_meant_are_refused_in_words(
    minilm: AttentionModel, given: tuple[Any, ...], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        minilm.trace_ids(*given)


def test_ids_may_be_a_list_or_a_tuple(minilm: AttentionModel) -> None:
    expected = minilm.trace_ids(torch.tensor([[101, 77, 300, 102]]))
    for ids in ([101, 77, 300, 102], (101, 77, 300, 102)):
        found = minilm.trace_ids(ids)
        assert torch.equal(found.output, expected.output) and found.query_tokens() == expected.query_tokens()
    translation = shipped("translation")
    said = translation.trace_ids([5, 6, 7], decoder_input_ids=[2, 5])
    same = translation.trace_ids(torch.tensor([[5, 6, 7]]), decoder_input_ids=torch.tensor([[2, 5]]))
    assert torch.equal(said.output, same.output)


def test_ids_get_the_tokenizers_labels_and_padding_is_marked(minilm: AttentionModel) -> None:
    tokens = minilm.trace_ids(
        torch.tensor([[0, 101, 2924, 102]]), torch.tensor([[False, True, True, True]])
    ).key_tokens()
    assert tokens.labels == ("[PAD]", "[CLS]", "bank", "[SEP]")
    assert tokens.special == (True, True, False, True)
    assert tokens.padding == (True, False, False, False)


def test_without_a_tokenizer_labels_are_the_ids_and_text_is_refused() -> None:
    model = wrapped("bert")
    assert model.name == "BertModel"
    assert model.trace_ids(torch.tensor([[7, 31]], dtype=torch.int32)).key_tokens().labels == ("7", "31")
    with pytest.raises(av.UnusableText, match="came without a tokenizer"):
        model.trace("hello")
    with pytest.raises(av.UnusableText, match="came without a tokenizer"):
        model.fit("hello")


def test_padding_changes_nothing_for_what_is_real(minilm: AttentionModel) -> None:
    ids = encode(minilm, SENTENCE)["input_ids"]
    alone = minilm.trace_ids(ids)
    padded = minilm.trace_ids(torch.cat([ids, torch.zeros(1, 4).long()], dim=1), torch.tensor([[1] * 9 + [0] * 4]))
    for layer in range(6):
        weights = padded.attention(layer).weights
        torch.testing.assert_close(weights[:, :9, :9], alone.attention(layer).weights, rtol=0, atol=1e-5)
        assert not weights[:, :, 9:].any()
    assert padded.fidelity.ok


def additive(allowed: Tensor) -> Tensor:
    """A mask as plain transformers takes it: numbers to add, (batch, head, query, key)."""
    return torch.where(allowed, 0.0, torch.finfo(torch.float32).min).reshape(1, -1, *allowed.shape[-2:])


def allowed_cells(seed: int = 3) -> Tensor:
    """A mask without any pattern, in which every row keeps something."""
    return (torch.rand(9, 9, generator=torch.Generator().manual_seed(seed)) < 0.6) | torch.eye(9, dtype=torch.bool)


def test_an_edited_trace_equals_plain_transformers_with_the_same_mask(
    minilm: AttentionModel, eager_minilm: PreTrainedModel
) -> None:
    inputs, allowed = encode(minilm, SENTENCE), allowed_cells()
    before = minilm.trace(SENTENCE)
    trace = minilm.trace(SENTENCE, edits=[av.Allow(allowed)])
    output, weights = eager(eager_minilm, **inputs | {"attention_mask": additive(allowed)})
    for layer, theirs in enumerate(weights):
        ours = trace.attention(layer).weights
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5)
        assert not ours[:, ~allowed].any()
    torch.testing.assert_close(trace.output, output, rtol=0, atol=1e-5)
    assert (trace.attention(5).weights - before.attention(5).weights).abs().max() > 0.05
    after = minilm.trace(SENTENCE)
    assert torch.equal(after.output, before.output)
    assert all(torch.equal(after.attention(i).weights, before.attention(i).weights) for i in range(6))


@pytest.mark.parametrize(("layer", "head"), [(2, None), (None, 7), (4, 11)])
def test_an_edit_of_one_layer_or_head_equals_plain_transformers_with_a_mask_there(
    minilm: AttentionModel, eager_minilm: PreTrainedModel, layer: int | None, head: int | None
) -> None:
    allowed = allowed_cells()
    heads = torch.stack([allowed if head in (None, number) else torch.ones_like(allowed) for number in range(12)])

    def masked(_module: object, args: tuple[Tensor, ...], options: dict[str, object]) -> object:
        return args, options | {"attention_mask": additive(heads)}

    edited = [number for number in range(6) if layer in (None, number)]
    hooks = [
        eager_minilm.encoder.layer[number].attention.self.register_forward_pre_hook(masked, with_kwargs=True)
        for number in edited
    ]
    try:
        output, weights = eager(eager_minilm, **encode(minilm, SENTENCE))
    finally:
        for hook in hooks:
            hook.remove()
    trace = minilm.trace(SENTENCE, edits=[av.Allow(allowed, layer=layer, head=head)])
    for number, theirs in enumerate(weights):
        torch.testing.assert_close(trace.attention(number).weights, theirs, rtol=0, atol=1e-5)
    torch.testing.assert_close(trace.output, output, rtol=0, atol=1e-5)


def test_an_edited_trace_says_so_and_carries_the_fidelity_of_the_run_before(minilm: AttentionModel) -> None:
    trace = minilm.trace(SENTENCE, edits=[av.Allow(av.masks.causal(9), layer=0)])
    assert trace.provenance.edits == ("allow: 36 of 9 × 9 cells blocked in layer 0, all heads",)
    assert trace.fidelity.reference.endswith("for the weights, before the edits")
    assert trace.fidelity.output_error == minilm.trace(SENTENCE).fidelity.output_error
    assert trace.fidelity.ok


def test_a_row_that_an_edit_leaves_with_nothing_gives_zeros_and_the_pass_goes_on(minilm: AttentionModel) -> None:
    allowed = torch.ones(9, 9, dtype=torch.bool)
    allowed[2] = False
    trace = minilm.trace(SENTENCE, edits=[av.Allow(allowed, layer=1)])
    assert not trace.attention(1).weights[:, 2].any()
    assert trace.output.isfinite().all()


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (av.Allow(av.masks.causal(4)), r"\(9, 9\); got \(4, 4\)"),
        (av.Allow(av.masks.causal(9), layer=6), "layer 6.* 0 to 5"),
        (av.Allow(av.masks.causal(9), layer=-1), "layer -1"),
        (av.Allow(av.masks.causal(9), head=12), "head 12.* 0 to 11"),
    ],
)
def test_an_edit_that_does_not_fit_is_refused(minilm: AttentionModel, edit: av.Allow, message: str) -> None:
    with pytest.raises(av.ShapeError, match=message):
        minilm.trace(SENTENCE, edits=[edit])


def test_an_edit_of_a_decoder_keeps_it_from_looking_ahead() -> None:
    model = build("llama")
    trace = av.wrap(model).trace_ids(torch.arange(5, 14)[None], edits=[av.Allow(allowed_cells())])
    weights = trace.attention(2).weights
    assert torch.equal(weights > 0, (allowed_cells() & av.masks.causal(9)).expand(6, -1, -1))
    theirs = eager(
        av.wrap(model).hf_model, input_ids=torch.arange(5, 14)[None]
    )  # a plain pass afterwards is not edited
    assert not torch.allclose(theirs[0], trace.output)


def test_it_is_told_in_one_line(minilm: AttentionModel) -> None:
    assert repr(minilm) == "AttentionModel('all-MiniLM-L6-v2', encoder: 6 layers × 12 heads, reads 512 tokens)"
    assert "encoder: 1 layers × 4 heads, decoder: 1 layers × 4 heads, cross:" in repr(av.load("translation"))
