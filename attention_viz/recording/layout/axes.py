"""The kinds of positions along a stream's rows and columns: a text's tokens, what else is read, and slots."""

from collections.abc import Callable
from dataclasses import dataclass

from attention_viz.errors import UnsupportedModel
from attention_viz.trace.kind import Unit
from attention_viz.trace.slots import block_tokens, joined_tokens, prediction_tokens, slot_tokens
from attention_viz.trace.tokens import Tokens

# What a row may come from: words, an image or sound, and points or boxes in it.
TEXT, SEEN, PROMPT = "text", "seen", "prompt"


@dataclass(frozen=True)
class Axis:
    """The kinds of an axis's positions.

    Attributes:
        before: how many slots come first; `after` as many last.
        rest: what moves the others: "text", "seen", "prompt", or "" if there are none.
        per: the text's tokens per slot, in order, if slots sum them; these come last.
        each: slots per token of the text; these come last.
    """

    unit: Unit = Unit.LATENT
    before: int = 0
    after: int = 0
    rest: str = ""
    per: int = 0
    each: int = 0

    @property
    def slots(self) -> int:
        """The number of slots."""
        return self.before + self.after

    def slots_of(self, text: int) -> int:
        """Return the number of slots beside a text of some tokens."""
        return text // self.per if self.per else text * self.each if self.each else self.slots

    def beside(self, tokens: Tokens) -> Tokens:
        """Return a text's tokens with the slots."""
        count = len(tokens)
        if self.per:
            return joined_tokens(tokens, block_tokens(self.per, count))
        if self.each:
            return joined_tokens(tokens, prediction_tokens(self.each, count))
        return self.tokens(self.slots + (count if self.rest else 0), lambda _kind, _count: tokens)

    def tokens(self, count: int, rest: Callable[[str, int], Tokens]) -> Tokens:
        """Return the tokens of `count` positions; `rest` returns those of a kind that aren't slots."""
        others = count - self.slots
        if others < 0 or (others > 0) != bool(self.rest):
            raise UnsupportedModel(f"it has {count} positions here, but {self.slots} {self.unit.plural} when probed")
        slots = slot_tokens(self.unit, self.slots)
        if not others:
            return slots
        found = slot_tokens(Unit.PROMPT, others) if self.rest == PROMPT else rest(self.rest, others)
        return joined_tokens(*((slots, found) if self.before else (found, slots)))


@dataclass(frozen=True)
class Axes:
    """The kinds of a stream's rows and columns."""

    queries: Axis
    keys: Axis

    def sizes(self, queries: int, keys: int) -> tuple[int, int]:
        """Return the numbers of rows and columns for texts of some tokens."""
        return queries + self.queries.slots_of(queries), keys + self.keys.slots_of(keys)

    def of_text(self, queries: Tokens, keys: Tokens | None = None) -> tuple[Tokens, Tokens]:
        """Return the tokens of rows and columns for a text's, or two texts'."""
        return self.queries.beside(queries), self.keys.beside(queries if keys is None else keys)
