"""Sentences about missing attention, replaced words and early ends."""

import re
import unicodedata
from typing import TYPE_CHECKING

from attention_viz.edits.words import is_eviction, listed
from attention_viz.serving.runs import candidates, is_full
from attention_viz.trace.spelling import without_accents
from attention_viz.ui.address import State

if TYPE_CHECKING:
    from attention_viz.trace.trace import Trace

__all__ = ["accent_words", "stopped_words", "unknown_words", "without_words"]

# What tokenizers put in the place of a word that they don't have.
_UNKNOWN = ("<unk>", "[UNK]", "<|unk|>")
_NAMED = 3


def without_words(trace: "Trace") -> str:
    """Name a hybrid's layers without softmax attention; "" if none."""
    several = len(trace.streams) > 1
    return " ".join(
        f"{kept.note.capitalize()}{f' in the {stream}' * several}; "
        f"{'it mixes' if len(kept.without) == 1 else 'they mix'} tokens in another way, which isn't drawn."
        for stream, kept in trace.kept.items()
        if kept.without
    )


def stopped_words(trace: "Trace", state: State) -> str:
    """Explain why generation stopped early; "" if it didn't."""
    asked, made = state.more, trace.provenance.generated
    edits = [edit for edit in trace.provenance.edits if not is_eviction(edit)]
    if not state.facts.continues_text or made >= asked or edits:
        return ""
    begun = f"The model stopped after {made} of {asked} tokens: "
    if is_full(state.request, trace):
        return f"{begun}it can read {len(trace.query_tokens())} at once, and no more."
    (likely,) = candidates(state.request, trace, 1).values()
    return f"{begun}what it says next, “{trace.query_tokens().write(likely.token[0])}”, ends the text."


def unknown_words(trace: "Trace") -> str:
    """Count words unknown to the model; "" if none."""
    parts = {"sentence": trace.key_tokens(trace.streams[0])}
    if "cross" in trace.streams:
        parts = {"sentence": trace.key_tokens("cross"), "target": trace.query_tokens("cross")}
    found = {where: [label for label in tokens.labels if label in _UNKNOWN] for where, tokens in parts.items()}
    unknown = [
        f"{len(labels)} {'word' if len(labels) == 1 else 'words'} of the {where}"
        for where, labels in found.items()
        if labels
    ]
    if not unknown:
        return ""
    (sign, *_) = [label for labels in found.values() for label in labels]
    return f"{trace.provenance.model} doesn't know {' and '.join(unknown)}, and reads “{sign}” (unknown) instead."


def accent_words(trace: "Trace") -> str:
    """List words read without accents; "" if none."""
    typed = dict.fromkeys(re.findall(r"\w+", unicodedata.normalize("NFC", trace.provenance.text or "")))
    bare = {word: without_accents(word.casefold()) for word in typed if not word.isascii()}
    accented = {word: left for word, left in bare.items() if left != word.casefold()}
    if not accented:  # as of most texts, whose words needn't be put together for that
        return ""
    tokens = trace.key_tokens(trace.streams[0])
    read = {tokens.text_of(pieces).casefold() for pieces in tokens.pieces}
    lost = [f"“{word}” as “{left}”" for word, left in accented.items() if word.casefold() not in read and left in read]
    if not lost:
        return ""
    others = len(lost) - _NAMED
    more = [f"{others} more word{'s' * (others > 1)} likewise"] if others > 0 else []
    return f"{trace.provenance.model} leaves accents out: it reads {listed([*lost[:_NAMED], *more])}."
