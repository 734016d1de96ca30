"""Words come from the text, not from the tokenizer's word: of every kind of tokenizer, of a text and of its ids."""

import functools
import itertools
import unicodedata
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import ByT5Tokenizer, PreTrainedTokenizerFast

import attention_viz as av
from attention_viz.inputs.text import read
from attention_viz.trace.splitting import split_words
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.words import group_pieces
from tests.models.families import build

TEXT = "The e-mail didn't cost 3.14 or 1,000: हिन्दी नमस्ते, it's 'free' 💩 क्\u200dष un\u0640der  two\nlines don't"
CORPUS = [TEXT, "the cat sat unhappy the cat", "it is free and under the lines of the cat", "हिन्दी नमस्ते"] * 5


def trained(
    model: models.Model, trainer: trainers.Trainer, *, cut: object = None, decoder: object = None
) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(model)
    for name, part in (("pre_tokenizer", cut), ("decoder", decoder)):
        if part is not None:
            setattr(tokenizer, name, part)
    tokenizer.train_from_iterator(CORPUS, trainer)
    unknown = "<unk>" if tokenizer.token_to_id("<unk>") is not None else "[UNK]"
    known = {"unk_token": unknown} if tokenizer.token_to_id(unknown) is not None else {}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **known)


def byte_level() -> PreTrainedTokenizerFast:
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=310, initial_alphabet=alphabet, show_progress=False)
    return trained(
        models.BPE(),
        trainer,
        cut=pre_tokenizers.ByteLevel(add_prefix_space=False),
        decoder=decoders.ByteLevel(),
    )


def wordpiece() -> PreTrainedTokenizerFast:
    trainer = trainers.WordPieceTrainer(vocab_size=120, special_tokens=["[UNK]"], show_progress=False)
    return trained(
        models.WordPiece(unk_token="[UNK]"),
        trainer,
        cut=pre_tokenizers.BertPreTokenizer(),
        decoder=decoders.WordPiece(),
    )


def llama() -> PreTrainedTokenizerFast:
    """As Llama 2, Mistral and Gemma: no pre-tokenizer, bytes for what isn't in the vocabulary."""
    special = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256))]
    trainer = trainers.BpeTrainer(
        vocab_size=330, special_tokens=special, limit_alphabet=30, max_token_length=5, show_progress=False
    )
    first = trained(
        models.BPE(unk_token="<unk>"), trainer, cut=pre_tokenizers.Metaspace(prepend_scheme="never", split=True)
    )
    known = first.get_vocab()
    merges = [
        (one, other)
        for one, other in itertools.product(known, known)
        if one + other in known and not one.startswith("<") and not other.startswith("<") and "▁" not in other
    ]
    tokenizer = Tokenizer(models.BPE(known, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    parts = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    tokenizer.decoder = decoders.Sequence(parts)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>")


def unigram() -> PreTrainedTokenizerFast:
    trainer = trainers.UnigramTrainer(vocab_size=150, special_tokens=["<unk>"], unk_token="<unk>", show_progress=False)
    return trained(models.Unigram(), trainer, cut=pre_tokenizers.Metaspace(), decoder=decoders.Metaspace())


def end_of_word() -> PreTrainedTokenizerFast:
    trainer = trainers.BpeTrainer(
        vocab_size=150, special_tokens=["<unk>"], end_of_word_suffix="</w>", show_progress=False
    )
    model = models.BPE(unk_token="<unk>", end_of_word_suffix="</w>")
    return trained(model, trainer, cut=pre_tokenizers.BertPreTokenizer(), decoder=decoders.BPEDecoder())


def characters() -> PreTrainedTokenizerFast:
    """Every character a piece, the space too."""
    trainer = trainers.WordLevelTrainer(special_tokens=["<unk>"], show_progress=False)
    return trained(
        models.WordLevel(unk_token="<unk>"), trainer, cut=pre_tokenizers.Split(Regex(r"[\s\S]"), behavior="isolated")
    )


KINDS: dict[str, Callable[[], Any]] = {
    "byte-level BPE": byte_level,
    "WordPiece": wordpiece,
    "BPE without a pre-tokenizer": llama,
    "Unigram": unigram,
    "end-of-word BPE": end_of_word,
    "characters": characters,
    "bytes": ByT5Tokenizer,
}


@functools.cache
def tokenizer_of(kind: str) -> Any:
    return KINDS[kind]()


@functools.cache
def model_of(kind: str, family: str = "gpt2") -> av.AttentionModel:
    torch.manual_seed(0)
    model = build(family, vocab_size=400, n_positions=200, eos_token_id=None, bos_token_id=None)
    for weight in model.parameters():
        if weight.ndim > 1:
            weight.data *= 20
    return av.wrap(model, tokenizer_of(kind))


def words_of(tokens: Tokens) -> list[str]:
    """The words, without blanks, as they are read."""
    texts = (tokens.text_of(pieces) for pieces in tokens.pieces if not all(tokens.special[at] for at in pieces))
    return [text for text in texts if text.strip()]


@pytest.mark.parametrize("kind", KINDS)
def test_the_words_of_a_text_are_those_of_the_rule(kind: str) -> None:
    tokens = read("mine", tokenizer_of(kind), TEXT).tokens
    expected, found = list(split_words(TEXT)), words_of(tokens)
    if "<unk>" in tokens.labels or "[UNK]" in tokens.labels:
        # What a tokenizer has no letters for can't be read; the words around it are the same.
        assert {"e-mail", "3.14", "1,000", "it's", "free", "two", "don't"} <= set(found)
    else:
        assert found == expected


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "text", [TEXT, "the cat sat unhappy the cat", "  the cat,  the cat ", "it's 3.14\n\nit's 3.14"]
)
def test_findings_of_a_text_are_those_of_its_ids(kind: str, text: str) -> None:
    model = model_of(kind)
    trace = model.trace(text)
    again = model.trace_ids(list(trace.query_tokens().numbers))
    assert trace.query_tokens().words == again.query_tokens().words
    assert av.findings(trace) == av.findings(again)
    assert av.findings(trace) or text != TEXT


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("word", ["e-mail", "didn't", "3.14", "1,000", "it's", "two", "don't", "E-MAIL", "free"])
def test_a_word_is_found_as_it_stands_in_the_text(kind: str, word: str) -> None:
    tokens = read("mine", tokenizer_of(kind), TEXT).tokens
    (pieces,) = tokens.places(word)
    assert tokens.text_of(pieces).casefold() == word.casefold()


@pytest.mark.parametrize("kind", ["byte-level BPE", "BPE without a pre-tokenizer", "bytes"])
@pytest.mark.parametrize("word", ["हिन्दी", "नमस्ते", "💩", "क्\u200dष", "un\u0640der", "two\nlines", "नमस्ते, it's"])
def test_any_script_is_found_where_the_tokenizer_has_every_byte(kind: str, word: str) -> None:
    tokens = read("mine", tokenizer_of(kind), TEXT).tokens
    (pieces,) = tokens.places(word)
    found = av.find_heads(model_of(kind).trace(TEXT), query=word, key="e-mail")
    assert set(found["query"]) == {pieces[0]}


@pytest.mark.parametrize("kind", KINDS)
def test_rows_between_words_sum_to_one(kind: str) -> None:
    merged = av.merge_words(model_of(kind).trace(TEXT))
    for layer in merged.layer_numbers():
        sums = merged.attention(layer).weights.sum(dim=-1)
        torch.testing.assert_close(sums, torch.ones_like(sums), atol=1e-5, rtol=0)
    assert len(merged.query_tokens()) < len(model_of(kind).trace(TEXT).query_tokens())


def test_a_tokenizer_whose_word_is_the_whole_text_is_not_believed() -> None:
    tokens = read("mine", tokenizer_of("BPE without a pre-tokenizer"), "the cat sat unhappy the cat").tokens
    assert words_of(tokens) == ["the", "cat", "sat", "unhappy", "the", "cat"]
    assert len(tokens.places("the")) == 2


def test_a_word_of_an_old_file_does_not_go_over_a_space() -> None:
    tokens = Tokens(("▁the", "▁c", "at"), (0, 1, 2), words=(0, 0, 0), spelling=("sentencepiece",) * 3)
    assert tokens.pieces == ((0,), (1, 2))


def test_a_word_goes_on_with_what_the_model_adds() -> None:
    model = model_of("byte-level BPE")
    *_, last = model.generate("the ca", 6)
    tokens = last.query_tokens()
    assert tokens.words == model.trace_ids(list(tokens.numbers)).query_tokens().words


@pytest.mark.parametrize(
    ("pieces", "words"),
    [
        ("don ' t", "don't"),
        ("the ' cat ' sat", "the ' cat ' sat"),
        ("l ' homme", "l'homme"),
        ("3 . 14", "3.14"),
        ("pages 10 - 20", "pages 10 - 20"),
        ("well - known", "well-known"),
        ("un ##happy", "unhappy"),
        ("हि ##न ##दी", "हिनदी"),
    ],
)
def test_of_pieces_that_do_not_say_where_spaces_are_signs_are_close_where_that_makes_a_word(
    pieces: str, words: str
) -> None:
    labels = pieces.split()
    kinds = ("wordpiece",) * len(labels)
    found = Tokens(tuple(labels), None, words=group_pieces(labels, kinds, [0] * len(labels)), spelling=kinds)
    assert words_of(found) == words.split()


def test_spaces_that_are_known_are_believed() -> None:
    def grouped(*spaces: bool) -> Sequence[int | None]:
        return group_pieces(["e", "-", "mail"], ["wordpiece"] * 3, [0] * 3, spaces=spaces)

    assert grouped(False, False, False) == (0, 0, 0)
    assert grouped(False, True, True) == (0, 1, 2)


def test_nothing_is_grouped_where_the_pieces_say_nothing() -> None:
    assert group_pieces(["7", "8"], ["unknown"] * 2, [0, 0]) == (None, None)


def test_two_sentences_and_special_tokens_share_no_word() -> None:
    found = group_pieces(["Ġa", "b", "c", "d"], ["byte-level"] * 4, [0, 0, None, 1])
    assert found == (0, 0, None, 1)
    assert group_pieces(["a", "b"], ["byte-level"] * 2, [0, 1]) == (0, 1)


LETTERS = st.characters(exclude_categories=["C", "Zs", "Zl", "Zp"]) | st.sampled_from(
    "ab1 '’-.,\u0301\u200d🇩👩🏽हि我\n"
)


@settings(max_examples=150, deadline=None)
@given(text=st.text(LETTERS, max_size=25))
@example(text="'s")
@pytest.mark.parametrize("kind", ["byte-level BPE", "BPE without a pre-tokenizer", "bytes"])
def test_any_text_has_the_words_of_the_rule_and_each_is_found(kind: str, text: str) -> None:
    text = text.replace("▁", "").strip(" ")
    if not text.strip():
        return
    tokens = read("mine", tokenizer_of(kind), text).tokens
    assert [at for pieces in tokens.pieces for at in pieces] == list(range(len(tokens)))
    rule = split_words(text)
    # A piece may hold several words, which then are one; no word is in two.
    assert "".join("".join(words_of(tokens)).split()) == "".join("".join(text).split())
    assert len(words_of(tokens)) <= len(rule)
    # What shares a piece with another word is found as the tokens have it.
    for word in rule if len(words_of(tokens)) == len(rule) else filter(str.strip, words_of(tokens)):
        for pieces in tokens.places(word.strip()):
            assert (
                unicodedata.normalize("NFC", word).casefold()
                in unicodedata.normalize("NFC", tokens.text_of(pieces)).casefold()
            )
