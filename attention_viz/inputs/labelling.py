"""Turn ids into tokens: the tokenizer's pieces, their spelling, and their words."""

import json
from collections.abc import Container, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from attention_viz.trace.tokens import Tokens
from attention_viz.trace.words import group_pieces

if TYPE_CHECKING:
    from transformers.tokenization_utils_base import PreTrainedTokenizerBase

# Spellings by the names of decoders in the package tokenizers.
_BY_DECODER = {
    "ByteLevel": "byte-level",
    "WordPiece": "wordpiece",
    "Metaspace": "sentencepiece",
    "ByteFallback": "sentencepiece",
    "BPEDecoder": "end-of-word",
}
# Attributes of tokenizers that are written in Python.
_BY_ATTRIBUTE = {"byte_decoder": "byte-level", "wordpiece_tokenizer": "wordpiece", "sp_model": "sentencepiece"}
_SUFFIX = "</w>"


def spellings(tokenizer: "PreTrainedTokenizerBase", ids: Sequence[int]) -> tuple[str, ...]:
    """Return the spelling of each id's piece; added tokens such as "[CLS]" are plain text."""
    # A tokenizer that works in a process of its own said both when it was loaded.
    usual: str | None = getattr(tokenizer, "spelling", None)
    added: Container[int] = getattr(tokenizer, "added", ()) if usual else tokenizer.added_tokens_decoder
    usual = usual or spelling_of(tokenizer)
    return tuple("text" if number in added else usual for number in ids)


def spelling_of(tokenizer: "PreTrainedTokenizerBase") -> str:
    """Return a tokenizer's spelling, one of `trace.spelling.SPELLINGS`; "unknown" if it doesn't say."""
    backend: Any = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        if hasattr(tokenizer, "_utf_vocab_size") and tokenizer.tokenize("é") == ["\xc3", "\xa9"]:
            return "bytes"  # as ByT5 does
        return next((name for has, name in _BY_ATTRIBUTE.items() if hasattr(tokenizer, has)), "unknown")
    if type(backend.model).__name__ == "WordLevel" and backend.decoder is None:
        return "text"
    # Without a decoder of its own, what cuts the text says how pieces are written.
    kinds = _kinds(backend.pre_tokenizer if backend.decoder is None else backend.decoder)
    found = next((name for kind, name in _BY_DECODER.items() if kind in kinds), "unknown")
    ends = getattr(backend.model, "end_of_word_suffix", None) == _SUFFIX
    return f"{found} end-of-word" if found == "byte-level" and ends else found


def _kinds(part: Any) -> set[str]:
    """Return the types in the description of a tokenizer's part."""
    if part is None:
        return set()
    settings = json.loads(part.__getstate__())
    return {one["type"] for one in (settings, *settings.get("decoders", ()), *settings.get("pretokenizers", ()))}


def label_ids(tokenizer: "PreTrainedTokenizerBase | None", ids: Sequence[int], padding: Sequence[bool] = ()) -> Tokens:
    """Return the tokenizer's pieces for a row of ids; without a tokenizer, the ids as text."""
    if tokenizer is None:
        return Tokens.of_ids(ids, padding)
    pieces = cast("list[str | None]", tokenizer.convert_ids_to_tokens(list(ids)))
    # A model may know more ids than its tokenizer has pieces for.
    labels = tuple(piece or str(number) for piece, number in zip(pieces, ids, strict=True))
    special, spelling = reserved(tokenizer, ids), spellings(tokenizer, ids)
    return Tokens(labels, tuple(ids), special=special, padding=tuple(padding), spelling=spelling)


def tokens_of_ids(
    tokenizer: "PreTrainedTokenizerBase | None", ids: Sequence[int], padding: Sequence[bool] = ()
) -> Tokens:
    """Return the tokens of a text's ids: labels and words."""
    return with_words(tokenizer, label_ids(tokenizer, ids, padding))


def with_words(tokenizer: "PreTrainedTokenizerBase | None", tokens: Tokens) -> Tokens:
    """Add each token's word, as far as the pieces show it."""
    if tokenizer is None:
        return tokens
    every = zip(tokens.labels, tokens.numbers, tokens.special, tokens.padding, strict=True)
    # An id that the tokenizer has no piece for is labelled by itself, and is part of no word.
    runs = [None if special or filling or label == str(number) else 0 for label, number, special, filling in every]
    missing = unknown_id(tokenizer)
    unknown = [number == missing for number in tokens.numbers]
    return replace(tokens, words=group_pieces(tokens.labels, tokens.spelling, runs, unknown=unknown))


def unknown_id(tokenizer: "PreTrainedTokenizerBase") -> int | None:
    """Return the id for unknown letters; None if that id also ends or pads texts."""
    found: object = tokenizer.unk_token_id
    others: tuple[object, ...] = (tokenizer.eos_token_id, tokenizer.bos_token_id, tokenizer.pad_token_id)
    return found if isinstance(found, int) and found not in others else None


def with_doubled(notes: tuple[str, ...], tokens: Tokens) -> tuple[str, ...]:
    """Add a note per special token that is there twice, such as one that the template also wrote."""
    found = list(notes)
    for place, added, typed in (("beginning", 0, 1), ("end", -1, -2)) if len(tokens) > 1 else ():
        twice = tokens.numbers[added] == tokens.numbers[typed] and tokens.special[added] and not tokens.special[typed]
        if twice:
            found.append(
                f"“{tokens.written[added]}” is there twice at the {place}: the text has it and the tokenizer adds it. "
                "If your text has its special tokens, turn them off (in Python, special_tokens=False)."
            )
    return tuple(found)


def reserved(tokenizer: "PreTrainedTokenizerBase", ids: Sequence[int]) -> tuple[bool, ...]:
    """Return which ids aren't text; the unknown token is text, because something was typed there."""
    reserved = {number for number in tokenizer.all_special_ids if number != tokenizer.unk_token_id}
    return tuple(number in reserved for number in ids)
