"""Word-level tokenizers: special tokens first, then the sorted words of a recipe."""

from collections.abc import Iterable

from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers.tokenization_utils_tokenizers import TokenizersBackend as PreTrainedTokenizerFast

__all__ = ["word_tokenizer"]


def word_tokenizer(
    words: Iterable[str],
    specials: dict[str, str],
    *,
    single: str,
    pair: str | None = None,
    length: int,
    segments: bool = False,
) -> PreTrainedTokenizerFast:
    """A tokenizer that knows whole words, whatever their case, and punctuation apart from them.

    Args:
        words: what it knows; any other word becomes the unknown token.
        specials: transformers' name of each special token and the token itself: {"unk_token": "[UNK]"}. Their order
            gives their ids.
        single: where special tokens go around a text, as tokenizers write it: "[CLS] $A [SEP]".
    """
    pieces = [*specials.values(), *sorted(set(words))]
    numbers = {piece: number for number, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.WordLevel(numbers, unk_token=specials["unk_token"]))
    tokenizer.normalizer = normalizers.Sequence(
        # "didn't" is read as the two words that the grammars use, with either apostrophe.
        [normalizers.NFC(), normalizers.Lowercase(), normalizers.Replace(Regex("n['’]t\\b"), " not")]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation()])
    used = [(piece, numbers[piece]) for piece in specials.values()]
    tokenizer.post_processor = processors.TemplateProcessing(single=single, pair=pair, special_tokens=used)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=length,
        model_input_names=["input_ids", *(["token_type_ids"] if segments else []), "attention_mask"],
        clean_up_tokenization_spaces=False,
        **specials,
    )
