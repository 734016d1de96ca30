"""What has to be said of how a model reads and writes: layers without attention, words read as others, an early end."""

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


def without_words(trace: "Trace", state: State) -> str:
    """Which layers of a hybrid have no attention, and what the others are called; "" where all have it."""
    without, stream = state.facts.layers_without_attention, trace.streams[0]
    if not without:
        return ""
    names = [layer.label for layer in trace.layers[stream]]
    has, do = ("has", "it does") if len(without) == 1 else ("have", "they do")
    return (
        f"{_layers(without).capitalize()} of this model {has} no attention ({do} something else); "
        f"{_layers(range(len(names)))} here {'is' if len(names) == 1 else 'are'} its {listed(names)}."
    )


def stopped_words(trace: "Trace", state: State) -> str:
    """Why the model went on by fewer tokens than it was asked for; "" where it didn't stop early."""
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
    """How many words the model has never seen; "" where it knows them all."""
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
    """Which words the model reads without their accents; "" where there is none."""
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


def _layers(numbers: "range | tuple[str, ...]") -> str:
    return f"layer{'s' * (len(numbers) != 1)} {listed([str(number) for number in numbers])}"
