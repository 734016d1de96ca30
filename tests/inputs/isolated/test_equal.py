"""A tokenizer in a process of its own says of each text what it says in this one."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import AutoTokenizer, BertTokenizer, LlamaTokenizer, PreTrainedTokenizerFast

import attention_viz as av
from attention_viz.inputs.isolated.tokenizer import IsolatedTokenizer
from attention_viz.inputs.labelling import label_ids, spellings
from attention_viz.inputs.text import Wording, count_tokens, read, read_target
from attention_viz.inputs.vocabulary import number_of, random_twice
from attention_viz.sources.catalogue import CATALOGUE
from tests.models.families import build

TEXTS = [
    "The bank of the river didn't flood in 1999.",
    "a",
    "   spaces\tand\nlines   ",
    "naïve हिन्दी สวัสดี 日本語 💩👩‍👩‍👧 ﷽",
    "[CLS] <s> <|endoftext|> </s> [MASK]",
    "\u0000\u200b\ufffe",
]
PAIRS = [("the bank", "of the river"), ("the bank", ""), ("", "the river")]


def word_piece() -> Any:
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "bank", "of", "river", "##s", "a", "##n", "n", "##a"]
    return BertTokenizer(vocab={word: at for at, word in enumerate(words)})


def llama() -> Any:
    pieces = {w: i for i, w in enumerate(["<unk>", "<s>", "</s>", *"▁abcdefghijklmnopqrstuvwxyz", "▁t", "▁th", "▁the"])}
    return LlamaTokenizer(vocab=pieces, merges=[("▁", "t"), ("▁t", "h"), ("▁th", "e")])


def byte_level() -> Any:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    own = Tokenizer(
        models.BPE({sign: at for at, sign in enumerate([*alphabet, "th", "the"])}, [("t", "h"), ("th", "e")])
    )
    own.pre_tokenizer, own.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    own.add_special_tokens(["<|endoftext|>"])
    return PreTrainedTokenizerFast(tokenizer_object=own, eos_token="<|endoftext|>", pad_token="<|endoftext|>")


def unigram() -> Any:
    letters = [(letter, -3.0 - at / 10) for at, letter in enumerate("▁abcdefghijklmnopqrstuvwxyz'.")]
    own = Tokenizer(models.Unigram([("<unk>", 0.0), ("</s>", 0.0), *letters, ("▁the", -1.0)], 0, byte_fallback=False))
    own.normalizer, own.pre_tokenizer = normalizers.NFKC(), pre_tokenizers.Metaspace()
    own.decoder = decoders.Metaspace()
    own.post_processor = processors.TemplateProcessing("$A </s>", "$A </s> $B </s>", [("</s>", 1)])
    return PreTrainedTokenizerFast(tokenizer_object=own, unk_token="<unk>", eos_token="</s>", pad_token="<unk>")


def whole_words() -> Any:
    own = Tokenizer(models.WordLevel({"[UNK]": 0, "the": 1, "bank": 2, "river": 3}, "[UNK]"))
    own.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(
        tokenizer_object=own,
        unk_token="[UNK]",
        model_max_length=20,
        chat_template="{{ messages[0].content }}!",
        additional_special_tokens=["<extra>"],
        padding_side="left",
    )


def padded_and_cut() -> Any:
    made = whole_words()
    made.backend_tokenizer.enable_padding(length=30)
    made.backend_tokenizer.enable_truncation(2)
    return made


def in_python() -> Any:
    """A tokenizer that isn't written in Rust."""
    from transformers import ByT5Tokenizer

    return ByT5Tokenizer()


KINDS = {
    "word pieces": word_piece,
    "sentence pieces": llama,
    "bytes": byte_level,
    "unigram": unigram,
    "words": whole_words,
    "padded and cut": padded_and_cut,
    "in Python": in_python,
}


def folder_of(kind: str, path: Path) -> Path:
    KINDS[kind]().save_pretrained(path)
    config = {"model_type": "t5" if kind == "in Python" else "bert"}
    (path / "config.json").write_text(json.dumps(config))
    return path


def both(folder: Path) -> tuple[Any, Any]:
    """The tokenizer of a folder, here and in a process of its own."""
    here = AutoTokenizer.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)
    return here, IsolatedTokenizer.load(folder, "one")


def same_reading(here: Any, apart: Any, text: str, second: str | None, wording: Wording) -> None:
    found: list[Any] = []
    for tokenizer in (here, apart):
        try:
            found.append(read("one", tokenizer, text, second, wording))
        except av.UnusableText as error:
            found.append(str(error))
    if isinstance(found[0], str):
        assert found[0] == found[1]
        return
    one, other = found
    assert one.tokens == other.tokens
    assert list(one.tensors) == list(other.tensors)
    assert all(torch.equal(one.tensors[name], other.tensors[name]) for name in one.tensors)
    assert all(one.tensors[name].dtype == other.tensors[name].dtype for name in one.tensors)


def check_equal(here: Any, apart: Any) -> None:
    for special in (True, False):
        for text in TEXTS:
            same_reading(here, apart, text, None, Wording(special))
            assert count_tokens("one", here, text) == count_tokens("one", apart, text)
        for text, second in PAIRS:
            same_reading(here, apart, text, second, Wording(special))
    if here.chat_template:
        same_reading(here, apart, "the bank", None, Wording(chat=True))
    if here.is_fast:
        one, other = (tokenizer(TEXTS[0], return_offsets_mapping=True) for tokenizer in (here, apart))
        assert one["offset_mapping"] == other["offset_mapping"] and one.encodings[0].ids == other.encodings[0].ids
    assert read_target("one", here, "the bank") == read_target("one", apart, "the bank")
    ids = here.encode(TEXTS[0])
    assert apart.encode(TEXTS[0]) == ids
    assert [here.decode(ids, skip_special_tokens=skip) for skip in (True, False)] == [
        apart.decode(ids, skip_special_tokens=skip) for skip in (True, False)
    ]
    assert here.decode(ids[0]) == apart.decode(ids[0])
    some = [*range(min(40, len(here))), len(here) + 1000] if here.is_fast else list(range(40))
    assert label_ids(here, some) == label_ids(apart, some) and spellings(here, some) == spellings(apart, some)
    assert len(here) == len(apart) and here.vocab_size == apart.vocab_size
    assert here.get_vocab() == apart.get_vocab() if here.is_fast else True
    for name in ("the", "[MASK]", "nonsense of nobody"):
        assert number_of(here, name) == number_of(apart, name)
    for name in ("mask", "pad", "unk", "bos", "eos", "cls", "sep"):
        for whole in (f"{name}_token", f"{name}_token_id"):
            assert getattr(here, whole, None) == getattr(apart, whole)
    for name in ("all_special_ids", "model_max_length", "padding_side", "chat_template", "special_tokens_map"):
        assert getattr(here, name) == getattr(apart, name)
    assert here.num_special_tokens_to_add() == apart.num_special_tokens_to_add()


@pytest.mark.parametrize("kind", KINDS)
def test_of_each_kind_it_says_the_same(kind: str, tmp_path: Path) -> None:
    check_equal(*both(folder_of(kind, tmp_path)))


@pytest.mark.parametrize(
    "name", [name for name, entry in CATALOGUE.items() if entry.reads == "text" and name != "scratch"]
)
def test_of_each_model_that_ships_it_says_the_same(name: str) -> None:
    path = CATALOGUE[name].path
    if path is None:
        pytest.skip(f"{name} isn't installed")
    check_equal(*both(path))


def test_random_tokens_are_the_same(tmp_path: Path) -> None:
    here, apart = both(folder_of("unigram", tmp_path))
    model = build("bert with a head")
    one, other = (random_twice("one", model, tokenizer, 40, None, 3) for tokenizer in (here, apart))
    assert torch.equal(one, other)
