"""What the induction decoder reads: rows of words in which earlier words come again."""

import random
from collections.abc import Sequence

__all__ = ["ROW", "WORDS", "repeated", "row"]

# How many tokens a row has, with the beginning token.
ROW = 64

NAMES = "anna ben clara david emma felix greta hugo ida jonas".split()
NOUNS = (
    "apple ball bell bird boat book bread bridge butter candle carpet castle cat chair cheese cloud coat cup desk dog "
    "door dragon drum feather fish flower fork fox frog garden glass glove hammer hat honey horse house island key "
    "kite ladder lamp leaf letter lion mirror moon mouse needle ocean owl paper pencil piano rabbit ring river salt "
    "shoe spoon star stone table tiger train tree violin window"
).split()
VERBS = (
    "bought carried drew dropped found gave held hid kept lost made moved needed painted saw sold took wanted".split()
)
ADJECTIVES = "big black blue bright cold dark empty golden green heavy new old quiet red round small warm white".split()
WORDS = [*NAMES, *NOUNS, *VERBS, *ADJECTIVES]
SMALL_WORDS = "and in near the under with".split()


def row(chance: random.Random) -> list[str]:
    """A row to learn from: seven in ten are a segment said again and again, the others sentences."""
    return _segment(chance) if chance.random() < 0.7 else _sentences(chance)


def repeated(chance: random.Random, length: int) -> list[str]:
    """Different words, then the same words once more."""
    segment = chance.sample(WORDS, length)
    return ["<s>", *segment, *segment]


def _segment(chance: random.Random) -> list[str]:
    before, length = chance.randint(0, 8), chance.randint(3, 32)
    words = chance.sample(WORDS, before + length)
    prefix, segment = words[:before], words[before:]
    return ["<s>", *prefix, *segment * ROW][:ROW]


def _sentences(chance: random.Random) -> list[str]:
    """Sentences of one pattern, in which a word is often the one that stood there in an earlier sentence."""
    slots = (ADJECTIVES, NOUNS, VERBS, ADJECTIVES, NOUNS, NAMES, NOUNS)
    earlier: list[list[str]] = []
    words = ["<s>"]
    while len(words) < ROW:
        new = [_filled(chance, slot, [sentence[place] for sentence in earlier]) for place, slot in enumerate(slots)]
        earlier.append(new)
        adjective, noun, verb, other, thing, name, place = new
        words += f"the {adjective} {noun} {verb} the {other} {thing} with {name} near the {place} .".split()
    return words[:ROW]


def _filled(chance: random.Random, slot: Sequence[str], earlier: Sequence[str]) -> str:
    return chance.choice(earlier if earlier and chance.random() < 0.6 else slot)
