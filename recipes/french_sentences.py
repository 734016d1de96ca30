"""What the translator reads: English sentences of a few patterns, their French, and which word comes from which."""

import random
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

__all__ = ["WORDS", "Sentence", "draw"]

# Each noun with its French and the gender of that; all begin with a consonant, so nothing is ever shortened to l'.
MALE = {"boy": "garçon", "brother": "frère", "king": "roi", "baker": "boulanger"}
FEMALE = {"girl": "fille", "woman": "femme", "queen": "reine", "singer": "chanteuse"}
MASCULINE = {
    "dog": "chien", "cat": "chat", "book": "livre", "bread": "pain", "hat": "chapeau", "boat": "bateau",
    "knife": "couteau", "bag": "sac", "cake": "gâteau",
}  # fmt: skip
FEMININE = {
    "key": "clé", "house": "maison", "table": "table", "door": "porte", "chair": "chaise", "letter": "lettre",
    "flower": "fleur", "car": "voiture", "mouse": "souris",
}  # fmt: skip
LIVING = {"dog", "cat", "mouse"}
NOUNS = MALE | FEMALE | MASCULINE | FEMININE
FEMININE_IN_FRENCH = {*FEMALE, *FEMININE}

DETERMINERS = {"the": ("le", "la"), "a": ("un", "une"), "my": ("mon", "ma"), "this": ("ce", "cette")}
AFTER = {
    "red": ("rouge", "rouge"), "black": ("noir", "noire"), "green": ("vert", "verte"), "white": ("blanc", "blanche"),
    "blue": ("bleu", "bleue"), "round": ("rond", "ronde"), "heavy": ("lourd", "lourde"), "slow": ("lent", "lente"),
    "strong": ("fort", "forte"), "tired": ("fatigué", "fatiguée"),
}  # fmt: skip
BEFORE = {
    "small": ("petit", "petite"), "big": ("grand", "grande"), "good": ("bon", "bonne"), "pretty": ("joli", "jolie"),
}  # fmt: skip
ADJECTIVES = AFTER | BEFORE
# The third person, the form after "does not", and the French, which has one form for both.
VERBS = {
    "finds": ("find", "trouve"), "sells": ("sell", "vend"), "sees": ("see", "voit"), "takes": ("take", "prend"),
    "keeps": ("keep", "garde"), "loses": ("lose", "perd"), "washes": ("wash", "lave"), "breaks": ("break", "casse"),
    "hides": ("hide", "cache"), "follows": ("follow", "suit"), "paints": ("paint", "peint"),
    "pushes": ("push", "pousse"), "shows": ("show", "montre"), "wants": ("want", "veut"),
}  # fmt: skip
# "it" is feminine only where an earlier noun says so.
OBJECTS = {"it": "le", "him": "le", "her": "la", "them": "les"}

Link: TypeAlias = tuple[str, int]  # a French word and the place of the English one that it comes from


@dataclass
class Sentence:
    """An English sentence, built up word by word, with its French.

    Attributes:
        target: the French words, each with the place of its English one.
        content: the places of nouns, verbs and adjectives.
        determined: for a determiner, the place of its noun.
        described: for an adjective, the place of its noun.
        referring: for an "it" that stands for an object, the place of that object's noun.
    """

    source: list[str] = field(default_factory=list[str])
    target: list[Link] = field(default_factory=list[Link])
    content: set[int] = field(default_factory=set[int])
    determined: dict[int, int] = field(default_factory=dict[int, int])
    described: dict[int, int] = field(default_factory=dict[int, int])
    referring: dict[int, int] = field(default_factory=dict[int, int])

    @property
    def held_out(self) -> bool:
        """Whether it is one of the eighth that is never trained on."""
        return zlib.crc32(" ".join(self.source).removesuffix(" .").encode()) % 8 == 0

    @property
    def french(self) -> list[str]:
        """The words of the translation."""
        return [word for word, _ in self.target]

    def read(self, word: str, *, content: bool = False) -> int:
        """Append an English word, and tell its place."""
        self.source.append(word)
        place = len(self.source) - 1
        if content:
            self.content.add(place)
        return place


def draw(chance: random.Random, *, unseen: bool) -> Sentence:
    """A sentence from those that are held out or from the others."""
    while True:
        sentence = Sentence()
        chance.choices(list(KINDS), list(KINDS.values()))[0](chance, sentence)
        if sentence.held_out == unseen:
            return sentence


def phrase_alone(chance: random.Random, sentence: Sentence) -> None:
    """This big key: cette grande clé."""
    _phrase(chance, sentence, chance.choice(list(NOUNS)), adjective=0.6)


def something(chance: random.Random, sentence: Sentence) -> None:
    """The boy finds a red key: le garçon trouve une clé rouge."""
    _phrase(chance, sentence, _subject(chance))
    sentence.target += _verb(chance, sentence)
    _phrase(chance, sentence, chance.choice(list(NOUNS)))
    _stop(chance, sentence)


def somebody(chance: random.Random, sentence: Sentence) -> None:
    """The boy sees her: le garçon la voit."""
    _phrase(chance, sentence, _subject(chance))
    verb = _verb(chance, sentence)
    pronoun = chance.choice(list(OBJECTS))
    sentence.target += _before_verb(verb, (OBJECTS[pronoun], sentence.read(pronoun)))
    _stop(chance, sentence)


def state(chance: random.Random, sentence: Sentence) -> None:
    """The key is red: la clé est rouge."""
    noun = chance.choice(list(NOUNS))
    _phrase(chance, sentence, noun)
    sentence.target.append(("est", sentence.read("is")))
    word = chance.choice(list(ADJECTIVES))
    sentence.target.append((_agreeing(ADJECTIVES[word], noun), sentence.read(word, content=True)))
    _stop(chance, sentence)


def and_then(chance: random.Random, sentence: Sentence) -> None:
    """The boy finds the key and he sells it: le garçon trouve la clé et il la vend."""
    subject, thing = chance.choice([*MALE, *FEMALE]), chance.choice([*MASCULINE, *FEMININE])
    _phrase(chance, sentence, subject)
    sentence.target += _verb(chance, sentence)
    antecedent = _phrase(chance, sentence, thing)
    sentence.target.append(("et", sentence.read("and")))
    he, il = ("he", "il") if subject in MALE else ("she", "elle")
    sentence.target.append((il, sentence.read(he)))
    verb = _verb(chance, sentence)
    it = sentence.read("it")
    sentence.referring[it] = antecedent
    sentence.target += _before_verb(verb, (_agreeing(("le", "la"), thing), it))
    _stop(chance, sentence)


# Each kind with how often it comes. Without phrases alone the model says words twice.
KINDS: dict[Callable[[random.Random, Sentence], None], float] = {
    phrase_alone: 0.08,
    something: 0.30,
    somebody: 0.19,
    state: 0.15,
    and_then: 0.28,
}


def _subject(chance: random.Random) -> str:
    return chance.choice([*MALE, *FEMALE, *sorted(LIVING)])


def _phrase(chance: random.Random, sentence: Sentence, noun: str, adjective: float = 0.3) -> int:
    """Determiner, now and then an adjective, and the noun, whose place is told."""
    determiner = chance.choice(list(DETERMINERS))
    place = sentence.read(determiner)
    french: list[Link] = [(_agreeing(DETERMINERS[determiner], noun), place)]
    word = chance.choice(list(ADJECTIVES)) if chance.random() < adjective else None
    adjective_place = None if word is None else sentence.read(word, content=True)
    noun_place = sentence.read(noun, content=True)
    french.append((NOUNS[noun], noun_place))
    if word is not None and adjective_place is not None:
        described = (_agreeing(ADJECTIVES[word], noun), adjective_place)
        french.insert(1 if word in BEFORE else 2, described)
        sentence.described[adjective_place] = noun_place
    sentence.determined[place] = noun_place
    sentence.target += french
    return noun_place


def _verb(chance: random.Random, sentence: Sentence) -> list[Link]:
    """Finds: trouve; does not find: ne trouve pas."""
    third = chance.choice(list(VERBS))
    base, french = VERBS[third]
    if chance.random() < 0.75:
        return [(french, sentence.read(third, content=True))]
    does, refused = sentence.read("does"), sentence.read("not")
    return [("ne", does), (french, sentence.read(base, content=True)), ("pas", refused)]


def _before_verb(verb: list[Link], pronoun: Link) -> list[Link]:
    place = 1 if verb[0][0] == "ne" else 0
    return [*verb[:place], pronoun, *verb[place:]]


def _stop(chance: random.Random, sentence: Sentence) -> None:
    if chance.random() < 0.3:
        sentence.target.append((".", sentence.read(".")))


def _agreeing(forms: tuple[str, str], noun: str) -> str:
    return forms[noun in FEMININE_IN_FRENCH]


WORDS = sorted(
    {
        *NOUNS, *NOUNS.values(), *DETERMINERS, *ADJECTIVES, *VERBS, *(base for base, _ in VERBS.values()), *OBJECTS,
        *OBJECTS.values(), *(french for _, french in VERBS.values()),
        *(form for forms in [*DETERMINERS.values(), *ADJECTIVES.values()] for form in forms),
        *"is does not and he she it . est ne pas et il elle".split(),
    }
)  # fmt: skip
