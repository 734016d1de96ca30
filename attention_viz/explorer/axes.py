"""A trace's axes for the browser: tokens, and their groups."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from attention_viz.analysis.places import after_the_sound
from attention_viz.analysis.words import words_of

if TYPE_CHECKING:
    from attention_viz.trace.tokens import Tokens
    from attention_viz.trace.trace import Trace


class PackedAxes:
    """Rows of tokens, packed once however many streams share them."""

    def __init__(self, generated: int) -> None:
        """Begin empty; `generated` counts the model's own last tokens."""
        self.entries: list[dict[str, Any]] = []
        self._generated = generated

    def add(self, tokens: "Tokens") -> int:
        """Return an axis's number, packing it if new."""
        entry: dict[str, Any] = {
            "labels": list(tokens.labels),
            "special": [place for place, special in enumerate(tokens.special) if special],
            "padding": [place for place, padding in enumerate(tokens.padding) if padding],
        }
        silent = {*entry["special"], *entry["padding"]}
        if signs := [at for at in (~words_of(tokens).carrying).nonzero()[:, 0].tolist() if at not in silent]:
            entry["signs"] = signs
        if set(tokens.spelling) != {"unknown"}:
            entry["spelling"] = tokens.spelling[0] if len(set(tokens.spelling)) == 1 else list(tokens.spelling)
        if 1 in tokens.sentence:
            entry["sentences"] = [[i for i, one in enumerate(tokens.sentence) if one == which] for which in (0, 1)]
        if self._generated:
            entry["generated"] = list(range(max(0, len(tokens) - self._generated), len(tokens)))
        if tokens.placed:
            entry["place"] = [None if place is None else list(place) for place in tokens.place]
        if entry not in self.entries:
            self.entries.append(entry)
        return self.entries.index(entry)


def in_sight(trace: "Trace", tokens: "Tokens") -> "Tokens":
    """Return shown tokens; frames after a sound's end are special."""
    past = after_the_sound(trace.seen, tokens)
    if not any(past):
        return tokens
    special = tuple(one or after for one, after in zip(tokens.special, past, strict=True))
    return replace(tokens, special=special)


def generated_by(trace: "Trace") -> int:
    """Count a decoder's own tokens; an encoder-decoder has another axis."""
    return trace.provenance.generated if trace.streams == ("decoder",) else 0
