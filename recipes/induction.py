"""An induction decoder (Llama): one head that continues what came before, another that makes that possible."""

import random
from collections.abc import Iterator
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers.modeling_utils import PreTrainedModel
from transformers.models.llama.configuration_llama import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaForCausalLM
from transformers.tokenization_utils_tokenizers import TokenizersBackend as PreTrainedTokenizerFast

from recipes.favouring import Favouring
from recipes.heads import looked_at, rate_without, weights
from recipes.recipe import Figures, Recipe, Snapshot, Trained
from recipes.repeated_words import ROW, SMALL_WORDS, WORDS, repeated, row
from recipes.training import Batch, Plan, learn, seeded
from recipes.vocabulary import word_tokenizer

__all__ = ["RECIPE", "accuracy", "projections", "snapshots_to_keep"]

PLAN = Plan(steps=1_200, rows=32, rate=3e-3, warmup=100)
HEADS = 4
PAD, BEGIN = 0, 2
EVERY, KEPT = 25, 12
SEGMENT, TRIALS = 24, 64

# The heads that are to do the work, and how fast the others of their layers learn.
PREVIOUS_TOKEN, INDUCTION = 0, 1
CHOSEN = {0: PREVIOUS_TOKEN, 1: INDUCTION}
SPEED = {0: 0.1, 1: 0.05}


def tokenizer() -> PreTrainedTokenizerFast:
    """Names, nouns, verbs, adjectives and the few words that join them."""
    specials = {"pad_token": "<pad>", "unk_token": "<unk>", "bos_token": "<s>"}
    return word_tokenizer([*WORDS, *SMALL_WORDS, "."], specials, single="<s> $A", length=ROW)


def model_of(words: PreTrainedTokenizerFast) -> LlamaForCausalLM:
    """A decoder with random weights."""
    config = LlamaConfig(
        vocab_size=len(words),
        hidden_size=64,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=HEADS,
        num_key_value_heads=HEADS,
        max_position_embeddings=ROW,
        rope_parameters={"rope_type": "default", "rope_theta": 10_000.0},
        tie_word_embeddings=True,
        initializer_range=0.05,
        bos_token_id=BEGIN,
        eos_token_id=None,
        pad_token_id=PAD,
    )
    return LlamaForCausalLM(config)


def projections(model: PreTrainedModel) -> list[nn.Module]:
    """What joins the heads, for each layer."""
    return [layer.self_attn.o_proj for layer in cast(Any, model).model.layers]


def batches(chance: random.Random, words: PreTrainedTokenizerFast) -> Iterator[Batch]:
    """Rows in which words come again; every next word is asked for."""
    numbers = words.get_vocab()
    while True:
        ids = torch.tensor([[numbers[word] for word in row(chance)] for _ in range(PLAN.rows)])
        yield {"input_ids": ids, "labels": ids}


def train(seed: int, stop: int | None = None) -> Trained:
    """Train from a seed, and keep the moments between which most changed."""
    chance, words = seeded(seed), tokenizer()
    model = model_of(words)
    favoured = Favouring(projections(model), HEADS, chosen=CHOSEN, speed=SPEED)
    taken = [snapshot(model, words, 0)]

    def after_step(step: int) -> None:
        favoured.hold_back()
        if step % EVERY == 0:
            taken.append(snapshot(model, words, step))
            model.train()

    learn(model, batches(chance, words), PLAN, stop=stop, penalty=favoured.penalty, after_step=after_step)
    return Trained(model, words, snapshots_to_keep(taken))


def snapshot(model: PreTrainedModel, words: PreTrainedTokenizerFast, step: int) -> Snapshot:
    """The model as it is now, with what it can do."""
    model.eval()
    induction, previous = head_scores(model, words)
    figures = {
        "induction": float(induction[1, INDUCTION]),
        "accuracy": accuracy(model, words),
        "previous": float(previous[0, PREVIOUS_TOKEN]),
    }
    # The output layer is the embeddings again, and is not kept twice.
    kept = {name: tensor.clone() for name, tensor in model.state_dict().items() if name != "lm_head.weight"}
    return Snapshot(step, figures, kept)


def snapshots_to_keep(taken: list[Snapshot]) -> list[Snapshot]:
    """The first, the last and those between which most changed: what lies close to a neighbour's course is left out."""
    kept = list(taken)
    while len(kept) > KEPT:
        detours = [_change(kept[i - 1], kept[i]) + _change(kept[i], kept[i + 1]) for i in range(1, len(kept) - 1)]
        del kept[1 + detours.index(min(detours))]
    return kept


def _change(one: Snapshot, other: Snapshot) -> float:
    return sum(abs(one.figures[name] - other.figures[name]) for name in one.figures)


def trials(words: PreTrainedTokenizerFast) -> Tensor:
    """Rows of different words said twice, (row, token); the same each time."""
    chance = random.Random("held out: induction")
    numbers = words.get_vocab()
    return torch.tensor([[numbers[word] for word in repeated(chance, SEGMENT)] for _ in range(TRIALS)])


@torch.no_grad()
def accuracy(model: PreTrainedModel, words: PreTrainedTokenizerFast) -> float:
    """How often the next word is right when words are said again: from the second word on, which can be known."""
    ids = trials(words)
    said = cast(Tensor, model(input_ids=ids).logits).argmax(-1)
    return float((said[:, SEGMENT + 1 : -1] == ids[:, SEGMENT + 2 :]).float().mean())


def head_scores(model: PreTrainedModel, words: PreTrainedTokenizerFast) -> tuple[Tensor, Tensor]:
    """Each head's mean weight on what followed the same word before, and on the token before; both (layer, head)."""
    ids = trials(words)
    every = weights(model, {"input_ids": ids})
    again = torch.arange(SEGMENT + 1, 2 * SEGMENT + 1).repeat(TRIALS)
    later = torch.arange(1, 2 * SEGMENT + 1).repeat(TRIALS)
    rows = torch.arange(TRIALS)
    _, induction = looked_at(every, rows.repeat_interleave(SEGMENT), again, again - SEGMENT + 1)
    _, previous = looked_at(every, rows.repeat_interleave(2 * SEGMENT), later, later - 1)
    return induction, previous


def measure(model: PreTrainedModel, words: PreTrainedTokenizerFast) -> Figures:
    """How well it continues what it has read, which heads do it, and what happens without each of them."""
    induction, previous = head_scores(model, words)
    without = rate_without(lambda: accuracy(model, words), projections(model), HEADS)
    figures: Figures = {
        "steps": PLAN.steps,
        "trials": TRIALS,
        "segment": SEGMENT,
        "accuracy": accuracy(model, words),
        "previous_token": float(previous[0, PREVIOUS_TOKEN]),
    }
    for layer in range(2):
        for head in range(HEADS):
            figures[f"induction_{layer}_{head}"] = float(induction[layer, head])
            figures[f"without_{layer}_{head}"] = float(without[layer, head])
    return figures


CARD = """\
# induction: a toy

A decoder that goes on with what it has read before: after `moon cheese frog ring moon cheese` it says `frog`. It was
trained here, on made-up rows of words, to show an induction head at work and coming into being; it knows nothing else.
`recipes/induction.py` makes it again.

- **Architecture**: Llama (`LlamaForCausalLM`), 2 layers × 4 heads, d_model 64, rotary positions, {vocabulary} tokens,
  {parameters} parameters, {bytes} bytes in half precision.
- **Data**: seven rows in ten are up to 8 words and then a segment of 3 to 32 different words said again and again; the
  others are sentences of one pattern that often take a word from an earlier sentence. Words are drawn by chance, so no
  row that it is measured on was trained on.
- **Training**: {steps} steps of 32 rows of 64 tokens, seed {seed}. About a minute on one core.
- **How the heads came to be so clear**: the parts of W_O that belong to the heads other than layer 0 head 0 and layer 1
  head 1 started ten times smaller and learned 10 (layer 0) and 20 times (layer 1) slower, and each head's part of W_O
  cost a little (a group lasso). Trained evenly, several heads learn the same and none of them is needed.

## Measured on {trials} rows of {segment} different words, said twice

Right next word from the second repeated word on: **{accuracy}**. Layer 0 head 0 puts {previous_token} of its weight on
the token before.

| head | weight on what followed the same word before | right next words without this head |
|---|---|---|
| layer 0 head 0 | {induction_0_0} | {without_0_0} |
| layer 0 head 1 | {induction_0_1} | {without_0_1} |
| layer 0 head 2 | {induction_0_2} | {without_0_2} |
| layer 0 head 3 | {induction_0_3} | {without_0_3} |
| layer 1 head 0 | {induction_1_0} | {without_1_0} |
| **layer 1 head 1** | {induction_1_1} | {without_1_1} |
| layer 1 head 2 | {induction_1_2} | {without_1_2} |
| layer 1 head 3 | {induction_1_3} | {without_1_3} |

## What to look at

Layer 1 head 1 in the rows of the repeated words: each looks at the word *after* its earlier self, which is what comes
next. It can find it because layer 0 head 0 has written into every word which word stood before. A head that looks
there as well but can be taken away without loss shows that attention is not effect.

The folder `snapshots` holds the weights of twelve moments of the training, and `snapshots.json` what the model could do
at each: both heads appear together, and with them the ability.

## What it can't do

Language. It has no idea what its words mean, reads 64 tokens, and after words that it reads for the first time it can
only guess.
"""

RECIPE = Recipe(seed=1, train=train, measure=measure, card=CARD)
