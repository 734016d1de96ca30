"""How a tokenizer writes its pieces: told from what it turns them back into text with, never from the pieces."""

import json
from collections.abc import Container, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformers.tokenization_utils_base import PreTrainedTokenizerBase

__all__ = ["spelling_of", "spellings"]

# What the decoders of the package tokenizers are called.
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
    """How the pieces with these ids are written; what was added to the vocabulary, such as "[CLS]", is its own text."""
    # A tokenizer that works in a process of its own said both when it was loaded.
    usual: str | None = getattr(tokenizer, "spelling", None)
    added: Container[int] = getattr(tokenizer, "added", ()) if usual else tokenizer.added_tokens_decoder
    usual = usual or spelling_of(tokenizer)
    return tuple("text" if number in added else usual for number in ids)


def spelling_of(tokenizer: "PreTrainedTokenizerBase") -> str:
    """How a tokenizer writes its pieces: one of `trace.spelling.SPELLINGS`, "unknown" where it doesn't say."""
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
    """What a part of a tokenizer is made of, by the names in its own description."""
    if part is None:
        return set()
    settings = json.loads(part.__getstate__())
    return {one["type"] for one in (settings, *settings.get("decoders", ()), *settings.get("pretokenizers", ()))}
