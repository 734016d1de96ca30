"""Words along an axis: kinds, repetitions and names in sentences."""

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from attention_viz.trace.kind import Unit
from attention_viz.trace.once import once
from attention_viz.trace.spelling import UNKNOWN_WORDS, carries, cut, numbered, occurrences, set_apart, visible
from attention_viz.trace.splitting import writes_no_spaces
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.words import sign_groups

# Letters of a word that a sentence quotes at most.
_LONGEST = 24

# Words that stand for something else that is spoken of.
_PRONOUNS = frozenset(
    "it he she they him her them its his hers their theirs itself himself herself themselves who whom whose which"
    " il elle ils elles lui leur".split()
)
# Words of English that say little by themselves, and the commonest of French, which the translations are in.
_FUNCTION_WORDS = _PRONOUNS | frozenset(
    "a an the and or but nor so because if when while that this these those of to in on at by for with from into onto"
    " over under about after before until than then as there here where what why how not no yes too very also just only"
    " i me my mine you your yours we us our ours is was were are am be been being do does did done doing have has had"
    " having can could will would shall should may might must doesn didn don isn wasn aren weren hasn haven hadn couldn"
    " wouldn shouldn won ain cannot up down out off again each every all any some both such own same other"
    " le la les un une des du de et ou mais que qui ne pas est sont au aux ce cet cette ces sa ses".split()
)
# Words before a noun, and endings that are rather those of verbs and adverbs where none of them stands before.
_DETERMINERS = frozenset("a an the his her its their my your our this that these those le la les un une des ce".split())
_NO_NOUN = ("ed", "ing", "ly")
# Common words that describe: one before another content word is no noun either, as in "the tired nurse".
_DESCRIBES = frozenset(
    (
        "big small little large great tall short long old young new good bad nice kind happy sad glad angry "
        "hungry thirsty sick rich poor strong weak hot warm cool red blue green yellow white black grey brown "
        "fast slow hard soft high low full empty quiet loud clean dirty dark bright early late ready afraid "
        "sure guilty busy free heavy same first second third last next another already back away ago often "
        "never always today tomorrow yesterday"
    ).split()
)
# What is after the apostrophe of "it's" or "doesn't".
_CLITICS = frozenset(("s", "t", "d", "m", "ll", "re", "ve"))
_APOSTROPHE = re.compile("['’]")


@dataclass(frozen=True, eq=False)
class Words:
    """An axis's words from 0; a token outside words, such as [CLS], counts as one."""

    tokens: Tokens

    @once
    def pieces(self) -> tuple[tuple[int, ...], ...]:
        """Return each word's piece positions, pieces of one sign together; scripts without spaces split into pieces."""
        return tuple(part for group in self.tokens.pieces for part in self._parts(group))

    def _parts(self, group: tuple[int, ...]) -> Iterable[tuple[int, ...]]:
        if len(group) == 1 or not writes_no_spaces(self.tokens.text_of(group)):
            return (group,)
        return sign_groups(self.tokens.labels, self.tokens.spelling, group)

    @once
    def of_position(self) -> tuple[int, ...]:
        """Return each position's word."""
        return tuple(word for word, pieces in enumerate(self.pieces) for _ in pieces)

    @once
    def index(self) -> Int[Tensor, " position"]:
        """Return `of_position` as an index into word facts."""
        return torch.tensor(self.of_position)

    @once
    def texts(self) -> tuple[str, ...]:
        """Return each word's text without its leading space."""
        return tuple(map(self.tokens.text_of, self.pieces))

    @once
    def kinds(self) -> tuple[str, ...]:
        """Return "content", "pronoun", "function", "sign", "special" or "padding" per word."""
        found = list[str]()
        for word, (first, *_) in enumerate(self.pieces):
            if self.tokens.padding[first]:
                found.append("padding")
            elif self.tokens.special[first]:
                found.append("special")
            elif self.tokens.regions[first] is not None and self.tokens.place[first] is None:
                found.append("sign")  # a part of one of several images, or of a tile, which has no name in a sentence
            else:
                found.append(_kind(self.texts[word].casefold()))
        return tuple(found)

    @once
    def carrying(self) -> Bool[Tensor, " position"]:
        """Mark positions that aren't special, padding or a lone sign; the explorer gets them packed."""
        tokens = self.tokens
        every = zip(tokens.labels, tokens.spelling, tokens.special, tokens.padding, strict=True)
        return torch.tensor([not (mute or void) and carries(label, how) for label, how, mute, void in every])

    def are(self, *kinds: str) -> Bool[Tensor, " word"]:
        """Mark words of one of these kinds."""
        return torch.tensor([one in kinds for one in self.kinds], dtype=torch.bool)

    @once
    def nouns(self) -> Bool[Tensor, " word"]:
        """Mark meaningful words that may be nouns, without a grammar."""
        found = self.are("content")
        for word, text in enumerate(self.texts):
            determined = word > 0 and self.texts[word - 1].casefold() in _DETERMINERS
            before_another = word + 1 < len(self.kinds) and self.kinds[word + 1] == "content"
            folded = text.casefold()
            describes = folded in _DESCRIBES or folded.endswith("ed")
            if (describes and before_another) or (not determined and (describes or folded.endswith(_NO_NOUN))):
                found[word] = False
        return found

    @once
    def same(self) -> tuple[int, ...]:
        """Return a number per word, shared by equal texts in any case."""
        known: dict[str, int] = {}
        return tuple(known.setdefault(text.casefold(), len(known)) for text in self.texts)

    @once
    def occurrences(self) -> tuple[int, ...]:
        """Return which of several equal words each is, in any case, from 1; 0 for one that comes once."""
        return occurrences(self.texts)

    @once
    def units(self) -> tuple[Unit, ...]:
        """Return each word's unit."""
        return tuple(self.tokens.units[first] for first, *_ in self.pieces)

    def named(self, word: int) -> str:
        """Name a word in quotes, numbered if it repeats, “the₂”; a patch is “patch 3, 5” from 0, a frame “1.20 s”."""
        first, *others = self.pieces[word]
        if (placed := self.tokens.placed_at(first)) is not None:
            return placed
        # A token has one number everywhere; a word of several has none of its own.
        number = self.occurrences[word] if others else self.tokens.occurrences[first]
        return quoted(numbered(self.texts[word], number))


@functools.lru_cache(maxsize=16)
def words_of(tokens: Tokens) -> Words:
    """Return an axis's words, cached because thousands of tokens are slow."""
    return Words(tokens)


def token_named(tokens: Tokens, position: int) -> str:
    """Name one token in quotes, as `Words.named` does a word."""
    return tokens.placed_at(position) or quoted(tokens.names[position])


def quoted(text: str) -> str:
    """Quote a shortened word; isolate right-to-left text from its surroundings."""
    return f"“{set_apart(cut(visible(text), _LONGEST))}”"


@functools.lru_cache(maxsize=1 << 14)
def _kind(text: str) -> str:
    """Return a word's kind; "it's" and "l'eau" count as their parts."""
    if text in UNKNOWN_WORDS or not carries(text, "text"):
        return "sign"
    first, *rest = _APOSTROPHE.split(text)
    kinds = {_kind_of_part(first), *("function" if part in _CLITICS else _kind_of_part(part) for part in rest)}
    return next(kind for kind in ("content", "pronoun", "function") if kind in kinds)


def _kind_of_part(text: str) -> str:
    if text in _PRONOUNS:
        return "pronoun"
    # Bytes of a character that is spread over several tokens say nothing.
    function = not text or text in _FUNCTION_WORDS or any("\udc80" <= sign <= "\udcff" for sign in text)
    return "function" if function else "content"
