"""Which token a word stands for, and what is offered where it is several."""

import re

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import PreTrainedTokenizerFast

import attention_viz as av
from attention_viz.inputs.vocabulary import token_of
from attention_viz.models.model import AttentionModel


@pytest.mark.parametrize("word", ["wonderfulness", "xyzzyq", "Ungeheuer", "日本語の文"])
def test_what_is_offered_for_a_word_of_several_tokens_can_be_asked_for(smollm2: AttentionModel, word: str) -> None:
    tokenizer = smollm2.tokenizer
    logits = torch.zeros(len(tokenizer))
    with pytest.raises(av.UnusableText, match=r"choose one of them, such as '.+'$") as refused:
        token_of(smollm2.name, tokenizer, logits, word)
    offered = re.search(r"such as '(.+)'$", str(refused.value))
    assert offered
    token = token_of(smollm2.name, tokenizer, logits, offered[1])
    assert token in {tokenizer.encode(text, add_special_tokens=False)[0] for text in (word, f" {word}")}


def test_a_space_that_is_a_token_of_its_own_is_not_offered() -> None:
    letters = Tokenizer(models.BPE(vocab={"<unk>": 0, "▁": 1, "e": 2, "l": 3}, merges=[], unk_token="<unk>"))
    letters.pre_tokenizer, letters.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=letters, unk_token="<unk>")
    with pytest.raises(av.UnusableText, match=r"choose one of them, such as 'e'$"):
        token_of("letters", tokenizer, torch.zeros(4), "el")
    # Of nothing but spaces it is offered by the tokenizer's own label, which can be asked for.
    with pytest.raises(av.UnusableText, match=r"choose one of them, such as '▁'$"):
        token_of("letters", tokenizer, torch.zeros(4), "  ")
    assert token_of("letters", tokenizer, torch.zeros(4), "▁") == 1


def test_what_is_left_of_a_word_whose_letters_are_dropped_is_not_taken_for_it() -> None:
    # Without a token for what isn't known, BPE drops it: of "Mary" an "a" is left.
    letters = Tokenizer(models.BPE(vocab={"a": 0, "b": 1, "zebra": 2}, merges=[]))
    letters.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=letters)
    assert tokenizer.encode("Mary") == [0]
    with pytest.raises(av.UnusableText, match=r"has no token 'Mary'; its tokenizer keeps only a$"):
        token_of("letters", tokenizer, torch.zeros(3), "Mary")
    assert token_of("letters", tokenizer, torch.zeros(3), "a") == 0
    # What the vocabulary has by that name can be asked for, whatever the tokenizer makes of its letters.
    assert token_of("letters", tokenizer, torch.zeros(3), "zebra") == 2


def test_a_token_is_found_by_a_word_in_another_case_or_with_accents_where_the_tokenizer_leaves_them_out() -> None:
    words = Tokenizer(models.WordLevel(vocab={"[UNK]": 0, "cafe": 1}, unk_token="[UNK]"))
    words.normalizer, words.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, unk_token="[UNK]")
    assert token_of("words", tokenizer, torch.zeros(2), "Café") == 1
