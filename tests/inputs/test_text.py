"""Text to tokens, with tokenizers of several kinds, and how much a model can read at once."""

from typing import Any

import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.decoders import ByteLevel as Decoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from tokenizers.processors import TemplateProcessing
from tokenizers.trainers import BpeTrainer
from transformers import PreTrainedTokenizerFast

import attention_viz as av
from attention_viz.inputs.text import Wording, read, token_limit, vocabulary
from attention_viz.models.model import AttentionModel
from tests.models.families import POSITIONS, VOCABULARY, build, ids, wrapped


def byte_tokenizer(**options: object) -> PreTrainedTokenizerFast:
    """Byte pairs, as decoders read them: nothing is dropped, nothing is added."""
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer, tokenizer.decoder = ByteLevel(add_prefix_space=False), Decoder()
    trainer = BpeTrainer(vocab_size=300, initial_alphabet=ByteLevel.alphabet(), show_progress=False)
    tokenizer.train_from_iterator(["the bank of the river was flooded"] * 9, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **options)


def test_a_decoder_reads_bytes_and_adds_nothing() -> None:
    model = av.wrap(build("gpt2", vocab_size=300), byte_tokenizer())
    trace = model.trace("the bank 👩‍👧")
    tokens = trace.query_tokens()
    assert tokens.labels[:2] == ("the", "Ġbank")
    assert tokens.words[:2] == (0, 1)
    assert not any(tokens.special)
    assert trace.fidelity.ok
    assert len(model.trace(" ").query_tokens()) == 1
    assert len(model.trace("\x00").query_tokens()) == 1


def test_an_empty_text_is_told_so_also_where_the_tokenizer_adds_nothing() -> None:
    with pytest.raises(av.UnusableText, match="the text is empty"):
        av.wrap(build("gpt2", vocab_size=300), byte_tokenizer()).trace("")


def test_what_a_tokenizer_makes_and_the_model_has_no_use_for_is_left_out() -> None:
    tokenizer = byte_tokenizer(model_input_names=["input_ids", "token_type_ids", "attention_mask"])
    assert "token_type_ids" in tokenizer("the bank")
    assert av.wrap(build("llama", vocab_size=300), tokenizer).trace("the bank").fidelity.ok


def test_a_tokenizer_of_another_model_is_told_by_the_ids_it_makes() -> None:
    model = av.wrap(build("gpt2"), byte_tokenizer())
    with pytest.raises(
        av.UnusableText,
        match=rf"“·?\w+” is token \d+, .* knows the ids 0 to {VOCABULARY - 1}\. .*resize_token_embeddings\(",
    ):
        model.trace("the river")


def test_a_token_that_was_typed_and_is_added_is_told() -> None:
    tokenizer = byte_tokenizer()
    tokenizer.add_special_tokens({"bos_token": "<s>"})
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", tokenizer.bos_token_id)]
    )
    model = av.wrap(build("gpt2", vocab_size=400), tokenizer)
    twice = model.trace("<s>the bank")
    assert twice.query_tokens().labels[:3] == ("<s>", "<s>", "the")
    assert "“<s>” is there twice at the beginning" in twice.provenance.notes[0]
    assert "special_tokens=False" in twice._repr_html_()
    assert next(model.generate("<s>the bank", 0)).provenance.notes == twice.provenance.notes
    for trace in (model.trace("the bank"), model.trace("<s>the bank", special_tokens=False)):
        assert trace.provenance.notes == ()


def test_an_id_without_a_piece_is_labelled_by_itself() -> None:
    tokenizer = byte_tokenizer()
    model = av.wrap(build("gpt2", vocab_size=400), tokenizer)
    assert model.trace_ids(torch.tensor([[tokenizer("the").input_ids[0], 399]])).key_tokens().labels == ("the", "399")


def test_the_limit_is_the_least_that_anything_says() -> None:
    assert token_limit(build("bert"), None) == POSITIONS
    assert token_limit(build("bert"), byte_tokenizer(model_max_length=31)) == 31
    assert token_limit(build("bert"), byte_tokenizer(model_max_length=131)) == POSITIONS
    assert token_limit(build("gpt2"), byte_tokenizer()) == POSITIONS
    assert token_limit(build("t5 encoder"), None) is None


@pytest.mark.parametrize("family", ["bert", "roberta", "opt", "gpt2", "llama", "distilbert"])
def test_a_text_as_long_as_the_limit_is_read_and_one_token_more_is_not(family: str) -> None:
    model = wrapped(family)
    assert model.limit == (POSITIONS - 2 if family == "roberta" else POSITIONS)
    assert model.trace_ids(ids(model.limit)).fidelity.ok
    with pytest.raises(av.TextTooLong):
        model.trace_ids(ids(model.limit + 1))


def test_a_table_of_words_as_long_as_that_of_positions_is_no_table_of_positions() -> None:
    assert token_limit(build("bert", vocab_size=POSITIONS), None) == POSITIONS


@pytest.mark.parametrize("positions", [3, 7])
def test_a_model_with_few_positions_is_probed_with_fewer_tokens(positions: int) -> None:
    model = av.wrap(build("bert", max_position_embeddings=positions))
    assert model.stream == "encoder"
    assert model.trace_ids(ids(positions)).fidelity.ok


@pytest.mark.parametrize("size", [1, 2, 5, 14])
def test_a_model_with_few_words_is_probed_with_those(size: int) -> None:
    model = av.wrap(build("gpt2", vocab_size=size, eos_token_id=None, bos_token_id=None))
    assert model.stream == "decoder"
    assert model.trace_ids(torch.zeros(1, 3).long()).fidelity.ok


def test_a_configuration_that_speaks_of_several_texts_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    model = build("gpt2")

    def ambiguous(*_args: object, **_options: object) -> None:
        raise ValueError("Multiple valid text configs were found")

    monkeypatch.setattr(type(model.config), "get_text_config", ambiguous)
    assert token_limit(model, None) is None
    assert vocabulary(model) == VOCABULARY


@pytest.mark.parametrize("text", [b"bytes", 7, None, "half a \ud83d"])
@pytest.mark.usefixtures("unchecked")
def test_what_is_no_text_is_refused(minilm: AttentionModel, text: Any) -> None:
    with pytest.raises(av.UnusableText, match=r"a text must be a str|half a character .* index 7"):
        read("mine", minilm.tokenizer, text)


def test_the_vocabulary_is_the_models_own_table() -> None:
    assert vocabulary(build("gpt2")) == VOCABULARY
    assert vocabulary(build("vit")) == 0


def test_two_sentences_are_told_apart_and_what_is_added_belongs_to_neither(minilm: AttentionModel) -> None:
    tokens = minilm.trace("The bank", "of the river").query_tokens()
    assert tokens.labels == ("[CLS]", "the", "bank", "[SEP]", "of", "the", "river", "[SEP]")
    assert tokens.sentence == (None, 0, 0, None, 1, 1, 1, None)
    assert minilm.trace("The bank", special_tokens=False).query_tokens().sentence == (0, 0)
    assert minilm.trace("The bank", "of", special_tokens=False).query_tokens().sentence == (0, 0, 1)


def chatty() -> AttentionModel:
    """A decoder whose tokenizer has a template for chats."""
    tokenizer = byte_tokenizer()
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|user|>", "<|answer|>"]})
    tokenizer.chat_template = "{% for m in messages %}<|user|>{{ m.content }}{% endfor %}<|answer|>"
    return av.wrap(build("gpt2", vocab_size=400), tokenizer)


def test_a_chat_template_stands_around_the_text_and_is_marked_as_added() -> None:
    model = chatty()
    tokens = model.trace("the bank", chat=True).query_tokens()
    assert tokens.labels == ("<|user|>", "the", "Ġbank", "<|answer|>")
    assert tokens.special == (True, False, False, True)
    assert tokens.sentence == (None, 0, 0, None)
    assert model.trace("the bank").query_tokens().labels == ("the", "Ġbank")
    assert model.fit("the bank", chat=True).count == 4


def test_a_chat_is_refused_where_there_is_no_template(minilm: AttentionModel) -> None:
    with pytest.raises(av.UnusableText, match="tokenizer has no chat template"):
        minilm.trace("the bank", chat=True)
    with pytest.raises(av.UnusableText, match="the text is empty"):
        chatty().trace(" ", chat=True)


def test_a_chat_that_is_too_long_is_refused_before_its_pieces_are_grouped(monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = byte_tokenizer()
    tokenizer.chat_template = "{% for i in range(90) %}the cat {% endfor %}"
    grouped: list[int] = []
    monkeypatch.setattr("attention_viz.inputs.text.group_pieces", lambda labels, *_, **__: grouped.append(1))
    with pytest.raises(av.TextTooLong, match="64"):
        read("toy", tokenizer, "the cat", None, Wording(chat=True), 64)
    assert not grouped
