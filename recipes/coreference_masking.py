"""Which words of a sentence the coreference encoder has to tell, and what it sees in their place."""

import random

from recipes.coreference_sentences import POSSESSIVES, PRONOUN_OF, PRONOUNS, WORDS, Sentence

__all__ = ["MASK", "hide"]

MASK = "[MASK]"


def hide(chance: random.Random, sentence: Sentence) -> tuple[list[str], set[int]]:
    """What the model sees of a sentence, and the places at which it has to tell the word.

    The pronoun is asked for in most sentences, and is then often hidden, sometimes wrong and sometimes right: what it
    means has to be found even where a pronoun can be read.
    """
    words, places = list(sentence.words), sentence.places
    asked: set[int] = set()
    if "reference" in places and chance.random() < 0.7:
        asked.add(places["reference"])
        words[places["reference"]] = _in_place_of(chance, words[places["reference"]])
        # was or were would tell whether it is one or many
        if "agreement" in places and chance.random() < 0.8:
            words[places["agreement"]] = MASK
            asked.add(places["agreement"])
    if "antecedent" in places and chance.random() < 0.25:
        words[places["antecedent"]] = MASK
        asked.add(places["antecedent"])
    if "sense 0" in places and chance.random() < 0.9:
        hidden = places[chance.choice(("sense 0", "sense 1"))]
        words[hidden] = MASK
        asked.add(hidden)
    return _hide_any(chance, words, asked), asked


def _in_place_of(chance: random.Random, word: str) -> str:
    fate = chance.random()
    if fate < 0.55:
        return MASK
    return word if fate < 0.7 else chance.choice([other for other in _like(word) if other != word])


def _like(word: str) -> list[str]:
    """The words that could stand in a word's place."""
    return next((words for words in (PRONOUNS, POSSESSIVES) if word in words), list(PRONOUN_OF))


def _hide_any(chance: random.Random, words: list[str], asked: set[int]) -> list[str]:
    """Hide 12 % of the other words, as BERT does: eight in ten masked, one wrong, one left as it is."""
    for place, word in enumerate(words):
        if place in asked or word == "[SEP]" or chance.random() >= 0.12:
            continue
        asked.add(place)
        fate = chance.random()
        words[place] = MASK if fate < 0.8 else chance.choice(WORDS) if fate < 0.9 else word
    return words
