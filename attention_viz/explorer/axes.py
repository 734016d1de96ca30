"""The axes of a trace as the browser reads them: tokens, and what each belongs to."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from attention_viz.analysis.places import after_the_sound

if TYPE_CHECKING:
    from attention_viz.trace.tokens import Tokens
    from attention_viz.trace.trace import Trace

__all__ = ["PackedAxes", "generated_by", "in_sight"]


class PackedAxes:
    """The rows of tokens, each told once however many streams share it."""

    def __init__(self, generated: int) -> None:
        """None yet; of each the last `generated` tokens are the model's own."""
        self.entries: list[dict[str, Any]] = []
        self._generated = generated

    def add(self, tokens: "Tokens") -> int:
        """The number of an axis, which is told now if it wasn't."""
        entry: dict[str, Any] = {
            "labels": list(tokens.labels),
            "special": [place for place, special in enumerate(tokens.special) if special],
            "padding": [place for place, padding in enumerate(tokens.padding) if padding],
        }
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
    """The tokens as they are shown: frames that follow the end of a sound count as special, which can be hidden."""
    past = after_the_sound(trace.seen, tokens)
    if not any(past):
        return tokens
    special = tuple(one or after for one, after in zip(tokens.special, past, strict=True))
    return replace(tokens, special=special)


def generated_by(trace: "Trace") -> int:
    """How many tokens at the end of a decoder's text are its own; what an encoder–decoder says is an axis apart."""
    return trace.provenance.generated if trace.streams == ("decoder",) else 0
