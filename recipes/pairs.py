"""What the recall models read: names with colours, some of them twice, then questions about the names."""

import random
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional
from transformers.modeling_utils import PreTrainedModel
from transformers.tokenization_utils_tokenizers import TokenizersBackend as PreTrainedTokenizerFast

from recipes.training import UNASKED, Batch, pad
from recipes.vocabulary import word_tokenizer

__all__ = [
    "PAD",
    "PairText",
    "Question",
    "batch_of",
    "batches",
    "draw",
    "held_out",
    "loss",
    "predictions",
    "questions",
    "rates",
    "tokenizer",
]

NAMES = "anna ben clara david emma felix greta hugo ida jonas karl lena".split()
COLOURS = "black blue brown gold gray green orange pink purple red white yellow".split()
# Words before a pair that mean nothing.
OTHERS = "and later now then today".split()
FEWEST, MOST, MOST_TWICE, QUESTIONS = 2, 6, 2, 3
PAD = 0


@dataclass(frozen=True)
class Question:
    """A question at the end of a text, by positions.

    Attributes:
        kind: "once" about a name with one colour; "last" and "first" about one with two.
        at: its last word, whose next word is the answer.
        answer: the colour that is right.
        other: the name's other colour, or -1.
    """

    kind: str
    at: int
    answer: int
    other: int


@dataclass(frozen=True)
class PairText:
    """A text that starts with the beginning token, and its questions."""

    words: tuple[str, ...]
    questions: tuple[Question, ...]

    @property
    def held_out(self) -> bool:
        """Whether it is of the eighth that is never trained on."""
        return zlib.crc32(" ".join(self.words).encode()) % 8 == 0


def draw(chance: random.Random, *, unseen: bool, first: bool) -> PairText:
    """A text, from those that are held out or from the others.

    Args:
        first: whether some questions are about a name's first colour; without it, all are about the last.
    """
    while True:
        text = _text(chance, first)
        if text.held_out == unseen:
            return text


def held_out(count: int, *, first: bool) -> list[PairText]:
    """Texts that were never trained on, the same each time."""
    chance = random.Random("held out: recall")
    return [draw(chance, unseen=True, first=first) for _ in range(count)]


def tokenizer(*, first: bool) -> PreTrainedTokenizerFast:
    """Names, colours, a few other words and punctuation."""
    specials = {"pad_token": "<pad>", "unk_token": "<unk>", "bos_token": "<s>"}
    words = [*NAMES, *COLOURS, *OTHERS, *",.?", *(["first"] if first else [])]
    return word_tokenizer(words, specials, single="<s> $A", length=64)


def batches(chance: random.Random, words: PreTrainedTokenizerFast, rows: int, *, first: bool) -> Iterator[Batch]:
    """Texts with their answers; only the answers count."""
    while True:
        yield batch_of([draw(chance, unseen=False, first=first) for _ in range(rows)], words)


def batch_of(texts: Sequence[PairText], words: PreTrainedTokenizerFast) -> Batch:
    """Token ids, the ids that are right after each question, and the questions about a name's last of two colours."""
    numbers = words.get_vocab()
    ids = pad([[numbers[word] for word in text.words] for text in texts], PAD)
    labels = torch.full_like(ids, UNASKED)
    for row, text in enumerate(texts):
        for question in text.questions:
            labels[row, question.at] = ids[row, question.answer]
    return {"input_ids": ids, "labels": labels, "twice": questions(texts, "last")}


def questions(texts: Sequence[PairText], kind: str) -> Tensor:
    """All questions of a kind, (question, 4): the text's row, the last word, the answer and the name's other colour."""
    asked = [(row, one) for row, text in enumerate(texts) for one in text.questions if one.kind == kind]
    return torch.tensor([(row, one.at, one.answer, one.other) for row, one in asked])


def predictions(model: PreTrainedModel, ids: Tensor) -> Tensor:
    """The logits of the next tokens. Padding is on the right, where no token before it can see it."""
    return model(input_ids=ids, use_cache=False).logits


def loss(model: PreTrainedModel, batch: Batch) -> Tensor:
    """How wrong the answers are."""
    logits = predictions(model, batch["input_ids"])
    return functional.cross_entropy(logits.flatten(0, 1), batch["labels"].flatten(), ignore_index=UNASKED)


@torch.no_grad()
def rates(model: PreTrainedModel, words: PreTrainedTokenizerFast, texts: Sequence[PairText]) -> dict[str, float]:
    """How many answers are right, by the kind of question."""
    asked = batch_of(texts, words)
    found = predictions(model, asked["input_ids"]).argmax(-1) == asked["labels"]
    kinds = dict[str, list[bool]]()
    for row, text in enumerate(texts):
        for question in text.questions:
            kinds.setdefault(question.kind, []).append(bool(found[row, question.at]))
    return {kind: sum(right) / len(right) for kind, right in kinds.items()}


def _text(chance: random.Random, first: bool) -> PairText:
    names = chance.sample(NAMES, chance.randint(FEWEST, MOST))
    twice = chance.sample(names, chance.randint(0, MOST_TWICE))
    words, colours = _pairs(chance, chance.sample(names + twice, len(names) + len(twice)))
    rest = [name for name in names if name not in twice[:1]]
    asked = [*twice[:1], *chance.sample(rest, min(len(rest), QUESTIONS - len(twice[:1])))]
    chance.shuffle(asked)
    questions = list[Question]()
    for name in asked:
        places = colours[name]
        of_first = first and chance.random() < (0.5 if len(places) > 1 else 0.2)
        words += [".", name, "first" if of_first else "?"]
        answer, other = (places[0], places[-1]) if of_first else (places[-1], places[0])
        kind = "once" if len(places) == 1 else "first" if of_first else "last"
        questions.append(Question(kind, len(words) - 1, answer, -1 if answer == other else other))
        words.append(words[answer])
    return PairText(tuple(words), tuple(questions))


def _pairs(chance: random.Random, names: Sequence[str]) -> tuple[list[str], dict[str, list[int]]]:
    """Names with colours, and the positions of each name's colours."""
    words, colours = ["<s>"], dict[str, list[int]]()
    wordy = chance.random() < 0.3
    for number, name in enumerate(names):
        words += [","] if number else []
        words += [chance.choice(OTHERS)] if wordy and chance.random() < 0.5 else []
        earlier = [words[place] for place in colours.get(name, ())]
        words += [name, chance.choice([colour for colour in COLOURS if colour not in earlier])]
        colours.setdefault(name, []).append(len(words) - 1)
    return words, colours
