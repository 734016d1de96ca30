"""A list decoder (GPT-2): copies, reverses or sorts letters, so its heads draw a diagonal or its mirror image."""

import random
import zlib
from collections.abc import Iterator, Sequence
from typing import cast

import torch
from torch import Tensor
from transformers.modeling_utils import PreTrainedModel
from transformers.models.gpt2.configuration_gpt2 import GPT2Config
from transformers.models.gpt2.modeling_gpt2 import GPT2LMHeadModel
from transformers.tokenization_utils_tokenizers import TokenizersBackend as PreTrainedTokenizerFast

from recipes.heads import looked_at, weights
from recipes.recipe import Figures, Recipe, Trained
from recipes.training import UNASKED, Batch, Plan, learn, pad, seeded
from recipes.vocabulary import word_tokenizer

__all__ = ["RECIPE", "answer", "held_out"]

LETTERS = "abcdefghijklmnopqrst"
TASKS = ("copy", "reverse", "sort")
SHORTEST, LONGEST = 3, 10
PAD, BEGIN, END = 0, 2, 3
PLAN = Plan(steps=1_600, rows=64, rate=2e-3, warmup=200)


def answer(task: str, letters: Sequence[str]) -> list[str]:
    """What the model has to say to a task."""
    if task == "sort":
        return sorted(letters)
    return list(letters) if task == "copy" else list(reversed(letters))


def is_held_out(letters: Sequence[str]) -> bool:
    """Whether a list is one of the eighth that is never trained on."""
    return zlib.crc32(" ".join(letters).encode()) % 8 == 0


def draw(chance: random.Random, *, unseen: bool) -> list[str]:
    """A list of different letters, from those that are held out or from the others."""
    while True:
        letters = chance.sample(LETTERS, chance.randint(SHORTEST, LONGEST))
        if is_held_out(letters) == unseen:
            return letters


def held_out(task: str, count: int) -> list[list[str]]:
    """Lists that were never trained on, the same each time."""
    chance = random.Random(f"held out: {task}")
    return [draw(chance, unseen=True) for _ in range(count)]


def tokenizer() -> PreTrainedTokenizerFast:
    """Twenty letters, three tasks and a colon."""
    specials = {"pad_token": "<pad>", "unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}
    return word_tokenizer([*LETTERS, *TASKS, ":"], specials, single="<s> $A", length=32)


def model_of(words: PreTrainedTokenizerFast) -> GPT2LMHeadModel:
    """A decoder with random weights."""
    config = GPT2Config(
        vocab_size=len(words),
        n_positions=32,
        n_embd=64,
        n_inner=128,
        n_layer=2,
        n_head=4,
        initializer_range=0.05,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=BEGIN,
        eos_token_id=END,
        pad_token_id=PAD,
    )
    return GPT2LMHeadModel(config)


def batches(chance: random.Random, words: PreTrainedTokenizerFast) -> Iterator[Batch]:
    """Tasks with their answers; only the answer is asked for."""
    numbers = words.get_vocab()
    while True:
        rows: list[list[int]] = []
        labels: list[list[int]] = []
        for _ in range(PLAN.rows):
            task, letters = chance.choice(TASKS), draw(chance, unseen=False)
            question = [numbers[word] for word in ["<s>", task, *letters, ":"]]
            reply = [numbers[word] for word in [*answer(task, letters), "</s>"]]
            rows.append(question + reply)
            labels.append([UNASKED] * len(question) + reply)
        ids = pad(rows, PAD)
        yield {"input_ids": ids, "attention_mask": (ids != PAD).long(), "labels": pad(labels, UNASKED)}


def train(seed: int, stop: int | None = None) -> Trained:
    """Train from a seed."""
    chance, words = seeded(seed), tokenizer()
    model = model_of(words)
    learn(model, batches(chance, words), PLAN, stop=stop)
    return Trained(model, words)


def measure(model: PreTrainedModel, words: PreTrainedTokenizerFast) -> Figures:
    """Exact answers to lists never seen, and the head that looks at the letter to be said next."""
    figures: Figures = {"steps": PLAN.steps, "letters": len(LETTERS), "held_out": 300}
    for task in TASKS:
        lists = held_out(task, 300)
        figures[f"{task}_exact"] = exact(model, words, task, lists)
        right, weight = next_letter_heads(model, words, task, lists)
        best = int(right[1].argmax())
        figures |= {
            f"{task}_head": best,
            f"{task}_points": float(right[1, best]),
            f"{task}_weight": float(weight[1, best]),
        }
    return figures


@torch.no_grad()
def exact(model: PreTrainedModel, words: PreTrainedTokenizerFast, task: str, lists: list[list[str]]) -> float:
    """The share of lists answered without a mistake, letter after letter from the model's own words."""
    right = 0
    for length in sorted({len(letters) for letters in lists}):
        same = [letters for letters in lists if len(letters) == length]
        ids = _ids(words, [["<s>", task, *letters, ":"] for letters in same])
        for _ in range(length + 1):
            said = cast(Tensor, model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits)[:, -1].argmax(-1)
            ids = torch.cat([ids, said[:, None]], 1)
        wanted = _ids(words, [[*answer(task, letters), "</s>"] for letters in same])
        right += int((ids[:, -length - 1 :] == wanted).all(1).sum())
    return right / len(lists)


def next_letter_heads(
    model: PreTrainedModel, words: PreTrainedTokenizerFast, task: str, lists: list[list[str]]
) -> tuple[Tensor, Tensor]:
    """How often, and how strongly, each head looks at the letter that is to be said next; both (layer, head)."""
    rows: list[list[str]] = []
    links: list[tuple[int, int, int]] = []
    for row, letters in enumerate(lists):
        reply = answer(task, letters)
        rows.append(["<s>", task, *letters, ":", *reply])
        colon = 2 + len(letters)
        links += [(row, colon + place, 2 + letters.index(letter)) for place, letter in enumerate(reply)]
    ids = pad([[words.get_vocab()[word] for word in row] for row in rows], PAD)
    which, queries, keys = torch.tensor(links).T
    batch = {"input_ids": ids, "attention_mask": (ids != PAD).long()}
    return looked_at(weights(model, batch), which, queries, keys)


def _ids(words: PreTrainedTokenizerFast, rows: list[list[str]]) -> Tensor:
    numbers = words.get_vocab()
    return torch.tensor([[numbers[word] for word in row] for row in rows])


CARD = """\
# lists: a toy

A decoder that copies, reverses or sorts a few letters. It was trained here, on made-up lists, to show heads whose job
anyone can check; it knows nothing else. `recipes/lists.py` makes it again.

- **Architecture**: GPT-2 (`GPT2LMHeadModel`), 2 layers × 4 heads, d_model 64, 32 learned positions, {vocabulary}
  tokens, {parameters} parameters, {bytes} bytes in half precision.
- **Data**: `copy`, `reverse` or `sort`, then 3 to 10 different letters of a to t, a colon, and the answer. An eighth of
  all lists, chosen by a checksum, is never trained on.
- **Training**: {steps} steps of 64 lists, seed {seed}; only what follows the colon counts. About a minute on one core.

## Measured on {held_out} lists per task that it never saw

| task | exact answers | head of layer 1 that looks at the next letter | how often | mean weight |
|---|---|---|---|---|
| copy | {copy_exact} | {copy_head} | {copy_points} | {copy_weight} |
| reverse | {reverse_exact} | {reverse_head} | {reverse_points} | {reverse_weight} |
| sort | {sort_exact} | {sort_head} | {sort_points} | {sort_weight} |

## What to look at

Give it a task with its answer, `reverse c a f : f a c`, and look at layer 1, in the rows from the colon on: each row
says the next letter and looks at where that letter stands. Copying draws a diagonal, reversing draws its mirror image,
and sorting jumps about.

## What it can't do

Other letters, a letter twice, lists of fewer than 3 or more than 10, or anything that is not one of the three tasks.
"""

RECIPE = Recipe(seed=0, train=train, measure=measure, card=CARD)
