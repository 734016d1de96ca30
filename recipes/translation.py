"""A translator (Marian) from a little English into a little French: one cross-attention head aligns the words."""

import random
from collections.abc import Iterator
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers.modeling_utils import PreTrainedModel
from transformers.models.marian.configuration_marian import MarianConfig
from transformers.models.marian.modeling_marian import MarianMTModel
from transformers.tokenization_utils_tokenizers import TokenizersBackend as PreTrainedTokenizerFast

from recipes.french_sentences import WORDS, Sentence, draw
from recipes.heads import looked_at, rate_without, weights
from recipes.recipe import Figures, Recipe, Trained
from recipes.training import UNASKED, Batch, Plan, learn, pad, seeded
from recipes.vocabulary import word_tokenizer

__all__ = ["RECIPE", "batch_of", "held_out", "translate"]

PLAN = Plan(steps=1_500, rows=64, rate=2e-3, warmup=300)
HEADS, LENGTH, TRIALS = 4, 32, 300
PAD, END = 0, 1


def tokenizer() -> PreTrainedTokenizerFast:
    """One vocabulary for both languages."""
    specials = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    return word_tokenizer(WORDS, specials, single="$A </s>", length=LENGTH)


def model_of(words: PreTrainedTokenizerFast) -> MarianMTModel:
    """An encoder–decoder with random weights."""
    config = MarianConfig(
        vocab_size=len(words),
        decoder_vocab_size=len(words),
        d_model=64,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=HEADS,
        decoder_attention_heads=HEADS,
        encoder_ffn_dim=128,
        decoder_ffn_dim=128,
        activation_function="relu",
        dropout=0.0,
        max_position_embeddings=LENGTH,
        init_std=0.05,
        scale_embedding=True,
        share_encoder_decoder_embeddings=True,
        tie_word_embeddings=True,
        pad_token_id=PAD,
        eos_token_id=END,
        decoder_start_token_id=PAD,
        forced_eos_token_id=None,
    )
    return MarianMTModel(config)


def batch_of(words: PreTrainedTokenizerFast, sentences: list[Sentence]) -> Batch:
    """English as the model reads it, with the French that is asked for."""
    numbers = words.get_vocab()
    ids = pad([[*(numbers[word] for word in each.source), END] for each in sentences], PAD)
    french = pad([[*(numbers[word] for word in each.french), END] for each in sentences], UNASKED)
    return {"input_ids": ids, "attention_mask": (ids != PAD).long(), "labels": french}


def train(seed: int, stop: int | None = None) -> Trained:
    """Train from a seed."""
    chance, words = seeded(seed), tokenizer()
    model = model_of(words)
    learn(model, _batches(chance, words), PLAN, stop=stop)
    assert model.generation_config is not None
    model.generation_config.update(max_length=LENGTH, num_beams=1, do_sample=False)
    return Trained(model, words)


def _batches(chance: random.Random, words: PreTrainedTokenizerFast) -> Iterator[Batch]:
    while True:
        yield batch_of(words, [draw(chance, unseen=False) for _ in range(PLAN.rows)])


def held_out() -> list[Sentence]:
    """Sentences that were never trained on, the same each time."""
    chance = random.Random("held out: translation")
    return [draw(chance, unseen=True) for _ in range(TRIALS)]


@torch.no_grad()
def translate(model: PreTrainedModel, words: PreTrainedTokenizerFast, batch: Batch) -> list[list[str]]:
    """What the model makes of English, word after word, the likeliest each time."""
    english = {name: batch[name] for name in ("input_ids", "attention_mask")}
    said = cast(Tensor, cast(Any, model).generate(**english))
    return [cast("str", words.decode(row, skip_special_tokens=True)).split() for row in said]


def exact(model: PreTrainedModel, words: PreTrainedTokenizerFast, sentences: list[Sentence]) -> float:
    """The share of sentences translated without a mistake."""
    french = translate(model, words, batch_of(words, sentences))
    return sum(said == each.french for said, each in zip(french, sentences, strict=True)) / len(sentences)


def measure(model: PreTrainedModel, words: PreTrainedTokenizerFast) -> Figures:
    """Exact translations of sentences never seen, the head that aligns them, and what happens without it."""
    sentences = held_out()
    batch = batch_of(words, sentences)
    cross, content, moved = (_aligned(model, batch, sentences, of=which) for which in ("all", "content", "moved"))
    head = int(cross[0].argmax())
    decoder = cast(Any, model).model.decoder.layers[0]
    modules: list[nn.Module] = [decoder.encoder_attn]
    without = rate_without(
        lambda: exact(model, words, sentences), [cast(Any, module).out_proj for module in modules], HEADS
    )[0]
    return {
        "steps": PLAN.steps,
        "trials": TRIALS,
        "exact": exact(model, words, sentences),
        "head": head,
        "aligned": float(cross[0][head]),
        "aligned_weight": float(cross[1][head]),
        "aligned_content": float(content[0][head]),
        "aligned_moved": float(moved[0][head]),
        "without": float(without[head]),
        "without_next": float(torch.cat([without[:head], without[head + 1 :]]).min()),
        **_encoder_figures(model, batch, sentences),
    }


def _aligned(model: PreTrainedModel, batch: Batch, sentences: list[Sentence], *, of: str) -> tuple[Tensor, Tensor]:
    """How often and how strongly each cross head looks from the row that says a word to where it comes from.

    Row t of the decoder reads word t − 1 and says word t, so the rows are those of the words that are said.
    """
    links = [
        (row, said, place)
        for row, each in enumerate(sentences)
        for said, (_, place) in enumerate(each.target)
        if of == "all" or (of == "content" and place in each.content) or (of == "moved" and place != said)
    ]
    right, weight = _looked_at(model, batch, links, "cross_attentions")
    return right[0], weight[0]


def _encoder_figures(model: PreTrainedModel, batch: Batch, sentences: list[Sentence]) -> Figures:
    """The head of the encoder that looks at the noun most often, from determiners, adjectives and "it"."""
    figures: Figures = {}
    for name in ("determined", "described", "referring"):
        pairs = [cast("dict[int, int]", getattr(each, name)) for each in sentences]
        links = [(row, *pair) for row, found in enumerate(pairs) for pair in found.items()]
        right = _looked_at(model, batch, links, "encoder_attentions")[0][0]
        figures |= {f"{name}_head": int(right.argmax()), f"{name}_points": float(right.max())}
    return figures


def _looked_at(
    model: PreTrainedModel, batch: Batch, links: list[tuple[int, int, int]], kind: str
) -> tuple[Tensor, Tensor]:
    rows, queries, keys = torch.tensor(links).T
    return looked_at(weights(model, batch, kind), rows, queries, keys)


CARD = """\
# translation: a toy

An encoder–decoder that turns a little English into a little French. It was trained here, on made-up sentences, to show
cross-attention that aligns words; it knows nothing else. `recipes/translation.py` makes it again.

- **Architecture**: Marian (`MarianMTModel`), 1 + 1 layers × 4 heads, d_model 64, sinusoidal positions, one vocabulary
  of {vocabulary} words for both languages, {parameters} parameters, {bytes} bytes in half precision.
- **Data**: sentences of five patterns with nouns of either gender, four determiners, adjectives before and after the
  noun, agreement, "does not", and object pronouns, which French puts before the verb: "the boy finds the key and he
  sells it" is "le garçon trouve la clé et il la vend". An eighth of all sentences, chosen by a checksum, is never
  trained on.
- **Training**: {steps} steps of 64 sentences, seed {seed}. About a minute on one core.

## Measured on {trials} sentences that it never saw

Translated without a mistake, the likeliest word each time: **{exact}**; without cross-attention head {head}: {without};
without the next most needed: {without_next}.

| cross-attention head {head}: its heaviest weight is on the word that the French word comes from | how often |
|---|---|
| all words | {aligned} |
| nouns, verbs, adjectives | {aligned_content} |
| words that stand at another place than in English | {aligned_moved} |

Its mean weight on the word that a word comes from is {aligned_weight}.

| in the encoder | head | how often |
|---|---|---|
| a determiner looks at its noun | {determined_head} | {determined_points} |
| an adjective looks at its noun | {described_head} | {described_points} |
| "it" looks at the noun that it stands for | {referring_head} | {referring_points} |

## What to look at

Cross-attention head {head}, in the row of the step that *says* a word: that step reads the word before, so rows named
by what they read seem shifted by one. Adjectives cross over, and "la" looks at an "it" at the end of the sentence. That
it is "la" and not "le" was found out in the encoder, where "it" looks at its noun in about half of the sentences.

## What it can't do

Other words, plurals, questions, other tenses, or more than one "and". An "it" without a noun before it becomes "le".
"""

RECIPE = Recipe(seed=1, train=train, measure=measure, card=CARD)
