"""What the coreference encoder reads: sentences in which a pronoun means one of two nouns, and the rest says which."""

import random
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["HELD_OUT_KINDS", "KINDS", "POSSESSIVES", "PRONOUNS", "RELATED", "WORDS", "Sentence", "draw"]

# A noun and the pronoun that means it. Every class has singular and plural: with singulars alone the model guessed by
# class, and no head needed to point.
MEN = {"man": "men", "boy": "boys", "king": "kings", "father": "fathers", "waiter": "waiters"}
WOMEN = {"woman": "women", "girl": "girls", "queen": "queens", "mother": "mothers", "nurse": "nurses"}
ANIMALS = {"animal": "animals", "cat": "cats", "dog": "dogs", "fox": "foxes", "horse": "horses", "bird": "birds"}
PLACES = {"street": "streets", "road": "roads", "river": "rivers", "bridge": "bridges", "field": "fields"}
THINGS = {
    "cup": "cups", "key": "keys", "box": "boxes", "chair": "chairs", "lamp": "lamps", "ball": "balls",
    "house": "houses", "plate": "plates", "book": "books", "coat": "coats",
}  # fmt: skip
PEOPLE = MEN | WOMEN

PRONOUN_OF = {
    **dict.fromkeys(MEN, "he"),
    **dict.fromkeys(WOMEN, "she"),
    **dict.fromkeys([*ANIMALS, *PLACES, *THINGS], "it"),
    **{plural: "they" for nouns in (PEOPLE, ANIMALS, PLACES, THINGS) for plural in nouns.values()},
}
POSSESSIVE_OF = {"he": "his", "she": "her", "it": "its", "they": "their"}
PRONOUNS, POSSESSIVES = list(POSSESSIVE_OF), list(POSSESSIVE_OF.values())

HANDLED = "dropped carried bought washed found hid".split()
HELPED = "helped saved fed guided visited".split()
REACHED = "cross enter leave reach".split()
OWNED = "painted cleaned sold lost".split()
RESTED = "sat slept".split()
TIRED = "tired hungry angry careless clumsy".split()
HEAVY = "heavy hot broken dirty cheap wet".split()
KIND = "kind strong brave gentle generous".split()
WEAK = "weak sick lonely afraid poor".split()
SCARED = "tired hungry scared slow sleepy".split()
WIDE = "wide busy icy long dangerous".split()
LOOKS = "old big small red young".split()
DEGREES = "too very so".split()
MANNERS = "quickly slowly often".split()

# The two senses of "bank": where it is, what was seen there, and what it was. All else is the same.
SENSES = (
    ("river lake sea stream".split(), "duck fish frog boat".split(), "flooded muddy".split()),
    ("office market tower city".split(), "clerk guard teller money".split(), "robbed closed".split()),
)
RELATED = [frozenset([*places, *seen, *states]) for places, seen, states in SENSES]

# How often the noun is said again instead of a pronoun. To tell it, the noun itself has to be found, not its class.
SAID_AGAIN = 0.25

Words: TypeAlias = list[tuple[str, str]]  # each word with its part in the sentence, or ""


@dataclass(frozen=True)
class Sentence:
    """A sentence, or two, and where in it what stands.

    Attributes:
        words: what is read; "[SEP]" stands between two sentences that are given apart.
        places: where a word with a part in it stands: "reference", "antecedent", "agreement", "sense 0" …
        facts: subject, verb and object, which decide whether the sentence is held out.
    """

    kind: str
    words: list[str]
    places: dict[str, int]
    facts: tuple[str, str, str]

    @property
    def held_out(self) -> bool:
        """Whether it is one of the eighth that is never trained on."""
        return zlib.crc32(" ".join(self.facts).encode()) % 8 == 0


def draw(chance: random.Random, kind: str | None = None, *, unseen: bool) -> Sentence:
    """A sentence, of one kind or of any, from those that are held out or from the others."""
    while True:
        name = kind or chance.choices(list(KINDS), [share for _, share in KINDS.values()])[0]
        sentence = KINDS[name][0](chance)
        if sentence.held_out == unseen:
            return sentence


def thing(chance: random.Random) -> Sentence:
    """The woman dropped the cup because it was heavy, or because she was tired."""
    subject, verb, noun = _noun(chance, PEOPLE), chance.choice(HANDLED), _noun(chance, THINGS)
    subject_meant = chance.random() < 0.5
    clue = chance.choice(TIRED if subject_meant else HEAVY)
    return _with_reason(chance, "thing", (subject, verb, noun), subject_meant, clue)


def person(chance: random.Random) -> Sentence:
    """The king helped the girl because he was kind, or because she was sick."""
    subject, verb, noun = _noun(chance, PEOPLE), chance.choice(HELPED), _noun(chance, PEOPLE)
    while PRONOUN_OF[noun] == PRONOUN_OF[subject]:
        noun = _noun(chance, PEOPLE)
    subject_meant = chance.random() < 0.5
    clue = chance.choice(KIND if subject_meant else WEAK)
    return _with_reason(chance, "person", (subject, verb, noun), subject_meant, clue)


def animal(chance: random.Random) -> Sentence:
    """The animal did not cross the street because it was too tired, or because it was too wide."""
    subject, verb, noun = _noun(chance, ANIMALS), chance.choice(REACHED), _noun(chance, PLACES)
    subject_meant = chance.random() < 0.5
    clue = chance.choice(SCARED if subject_meant else WIDE)
    return _with_reason(chance, "animal", (subject, f"did not {verb}", noun), subject_meant, clue)


def alone(chance: random.Random) -> Sentence:
    """The cat sat because it was tired."""
    subject = _noun(chance, PEOPLE | ANIMALS)
    return _with_reason(chance, "alone", (subject, chance.choice(RESTED), ""), True, chance.choice(TIRED))


def owner(chance: random.Random) -> Sentence:
    """The queen painted her house."""
    subject, verb, noun = _noun(chance, PEOPLE | ANIMALS), chance.choice(OWNED), _noun(chance, THINGS)
    words = [*_phrase(chance, subject, "antecedent"), (verb, "")]
    words += [(POSSESSIVE_OF[PRONOUN_OF[subject]], "reference"), *_looks(chance), (noun, "other")]
    return _sentence(chance, "owner", words, (subject, verb, noun))


def bank(chance: random.Random) -> Sentence:
    """The girl walked to the bank near the river and saw the duck; the bank of the river was flooded."""
    places, seen, states = chance.choice(SENSES)
    place, subject = chance.choice(places), _noun(chance, PEOPLE)
    if chance.random() < 0.3:
        state = chance.choice(states)
        words = [*_plain("the bank of the"), (place, "sense 0"), ("was", ""), (state, "sense 1")]
        return _sentence(chance, "bank", words, ("bank", place, state))
    found = chance.choice(seen)
    words = [*_phrase(chance, subject, ""), *_plain("walked to the bank near the"), (place, "sense 0")]
    words += [*_plain("and saw the"), (found, "sense 1")]
    return _sentence(chance, "bank", words, (subject, place, found))


# Each kind with how often it comes.
KINDS: dict[str, tuple[Callable[[random.Random], Sentence], float]] = {
    "thing": (thing, 0.30),
    "person": (person, 0.28),
    "animal": (animal, 0.20),
    "alone": (alone, 0.02),
    "owner": (owner, 0.10),
    "bank": (bank, 0.10),
}
HELD_OUT_KINDS = ("thing", "person", "animal", "owner")


def _with_reason(
    chance: random.Random, kind: str, facts: tuple[str, str, str], subject_meant: bool, clue: str
) -> Sentence:
    """What happened, and why: in one of three orders, now and then as two sentences given apart."""
    subject, verb, noun = facts
    happened = _phrase(chance, subject, "antecedent" if subject_meant else "other")
    happened += [(chance.choice(MANNERS), "")] if chance.random() < 0.15 and " " not in verb else []
    happened += _plain(verb)
    happened += _phrase(chance, noun, "other" if subject_meant else "antecedent") if noun else []
    why = _reason(chance, subject if subject_meant else noun, clue)
    order = chance.random()
    if order < 0.6:
        words = [*happened, ("because", ""), *why]
    elif order < 0.8:
        words = [*happened, (".", ""), *_plain("[SEP]" if order < 0.7 else ""), *why]
    else:
        words = [("because", ""), *why, (",", ""), *happened]
    return _sentence(chance, kind, words, facts)


def _reason(chance: random.Random, meant: str, clue: str) -> Words:
    """It was too tired, or: the animal was too tired."""
    pronoun = PRONOUN_OF[meant]
    again: Words = [("the", ""), (meant, "reference")] if chance.random() < SAID_AGAIN else [(pronoun, "reference")]
    degree: Words = [(chance.choice(DEGREES), "")] if chance.random() < 0.4 else []
    return [*again, ("were" if pronoun == "they" else "was", "agreement"), *degree, (clue, "clue")]


def _sentence(chance: random.Random, kind: str, words: Words, facts: tuple[str, str, str]) -> Sentence:
    if chance.random() < 0.7:
        words = [*words, (".", "")]
    places = {part: place for place, (_, part) in enumerate(words) if part}
    return Sentence(kind, [word for word, _ in words], places, facts)


def _noun(chance: random.Random, nouns: dict[str, str]) -> str:
    singular = chance.choice(list(nouns))
    return chance.choice((singular, nouns[singular]))


def _phrase(chance: random.Random, noun: str, part: str) -> Words:
    return [("the", ""), *_looks(chance), (noun, part)]


def _looks(chance: random.Random) -> Words:
    return [(chance.choice(LOOKS), "")] if chance.random() < 0.15 else []


def _plain(text: str) -> Words:
    return [(word, "") for word in text.split()]


WORDS = sorted(
    {
        *PRONOUN_OF, *PRONOUNS, *POSSESSIVES, *HANDLED, *HELPED, *REACHED, *OWNED, *RESTED, *TIRED, *HEAVY, *KIND,
        *WEAK, *SCARED, *WIDE, *LOOKS, *DEGREES, *MANNERS, *RELATED[0], *RELATED[1],
        *"the because did not was were walked to bank near of and saw . ,".split(),
    }
)  # fmt: skip
