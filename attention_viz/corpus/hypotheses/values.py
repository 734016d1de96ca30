"""Attributes of tokens for hypotheses: text, place, kind of word."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy

from attention_viz.analysis.words import words_of
from attention_viz.corpus.kinds import KINDS, kinds_of
from attention_viz.trace.once import once
from attention_viz.trace.tokens import Tokens

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class HypothesisAxis:
    """The tokens along one axis."""

    tokens: Tokens
    looks_back: bool

    @once
    def kinds(self) -> "NDArray[Any]":
        """Return each token's kind in `KINDS`; the first counts as any other."""
        return numpy.array([KINDS[kind] for kind in kinds_of(words_of(self.tokens), looks_back=False)])

    @once
    def resting(self) -> "NDArray[Any]":
        """Mark sink tokens: special ones, and the first if no head looks ahead."""
        found = numpy.array(self.tokens.special)
        found[:1] |= self.looks_back
        return found

    @once
    def texts(self) -> "NDArray[Any]":
        """Return tokens' lower-case texts without leading space."""
        return numpy.array([text.casefold() for text in self.tokens.texts], dtype=object)

    @once
    def words(self) -> "NDArray[Any]":
        """Return each token's whole word in lower case."""
        known = words_of(self.tokens)
        return numpy.array([known.texts[word].casefold() for word in known.of_position], dtype=object)

    @once
    def nouns(self) -> "NDArray[Any]":
        """Mark tokens of possible nouns, guessed without a grammar."""
        known = words_of(self.tokens)
        return known.nouns.numpy()[list(known.of_position)]


@dataclass(frozen=True)
class Attribute:
    """A token's attribute; `of` computes it along an axis."""

    kind: str
    meaning: str
    of: "Callable[[HypothesisAxis], NDArray[Any] | Sequence[Any]]"


def _is(*kinds: str) -> "Callable[[HypothesisAxis], NDArray[Any]]":
    return lambda axis: numpy.isin(axis.kinds, kinds)


ATTRIBUTES: Mapping[str, Attribute] = {
    "text": Attribute("text", "the token in lower case, without the space before it", lambda axis: axis.texts),
    "word": Attribute("text", "its whole word in lower case", lambda axis: axis.words),
    "position": Attribute("number", "its position, from 0", lambda axis: numpy.arange(len(axis.tokens))),
    "length": Attribute("number", "its number of characters", lambda axis: [len(text) for text in axis.tokens.texts]),
    "is_pronoun": Attribute("truth", "such as it, she, them", _is("pronoun")),
    "is_function_word": Attribute("truth", "such as the, of, because; pronouns too", _is("pronoun", "function word")),
    "is_punctuation": Attribute("truth", "a mark, not a letter", _is("punctuation")),
    "is_number": Attribute("truth", "digits", _is("number")),
    "is_piece": Attribute("truth", "a subword token, but not a word's first", _is("word piece")),
    "is_noun": Attribute("truth", "a possible noun, guessed without a grammar", lambda a: a.nouns),
    "is_capitalized": Attribute(
        "truth", "begins with a capital letter", lambda axis: [text[:1].isupper() for text in axis.tokens.texts]
    ),
    "is_special": Attribute("truth", "added by the tokenizer, such as [CLS]", _is("special")),
    "is_first": Attribute("truth", "is at position 0", lambda axis: numpy.arange(len(axis.tokens)) == 0),
}
