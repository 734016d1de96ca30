"""A model that answers questions about images of coloured shapes (LLaVA): what it says a word of, it attends to."""

import random
from collections.abc import Iterator, Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers.modeling_utils import PreTrainedModel
from transformers.models.llama.configuration_llama import LlamaConfig
from transformers.models.llava.configuration_llava import LlavaConfig
from transformers.models.llava.modeling_llava import LlavaForConditionalGeneration
from transformers.models.siglip.configuration_siglip import SiglipVisionConfig
from transformers.tokenization_utils_tokenizers import TokenizersBackend as PreTrainedTokenizerFast

from recipes import shapes_scenes as scenes
from recipes.recipe import Trained
from recipes.shapes_scenes import NAMES, PATCHES, Scene, Turn
from recipes.training import UNASKED, Batch, Plan, learn, seeded
from recipes.vocabulary import word_tokenizer

TOWER = Plan(steps=1_000, rows=16, rate=2e-3, warmup=100)
PLAN = Plan(steps=4_000, rows=16, rate=2e-3, warmup=200)
# Up to which step images have at most one, two and three shapes.
FEWER = (300, 700, 1_100)
# How many questions of each kind an image gets in training, and how often a caption.
ASKED = {"colour": 2, "shape": 2, "place": 3, "there": 2}
CAPTIONED, ABSENT = 0.5, 0.15
# What share naming the patches keeps in the loss.
NAMED = 0.15
LAYERS, HEADS, WIDTH = 3, 4, 64
PAD = 0
# The beginning token and the image.
START = 1 + PATCHES
LENGTH = 128


def tokenizer() -> PreTrainedTokenizerFast:
    """Colours, shapes, places and the words of the questions."""
    specials = {"pad_token": "<pad>", "unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}
    return word_tokenizer(scenes.WORDS, {**specials, "image_token": "<image>"}, single="<s> $A", length=LENGTH)


def model_of(words: PreTrainedTokenizerFast) -> LlavaForConditionalGeneration:
    """A model with random weights."""
    numbers = words.get_vocab()
    tower = SiglipVisionConfig(
        hidden_size=WIDTH,
        intermediate_size=128,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        image_size=64,
        patch_size=8,
        vision_use_head=False,
    )
    decoder = LlamaConfig(
        vocab_size=len(words),
        hidden_size=WIDTH,
        intermediate_size=48,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        max_position_embeddings=LENGTH,
        initializer_range=0.05,
        tie_word_embeddings=True,
        pad_token_id=PAD,
        bos_token_id=numbers["<s>"],
        eos_token_id=numbers["</s>"],
    )
    config = LlavaConfig(
        vision_config=tower,
        text_config=decoder,
        image_token_index=numbers["<image>"],
        image_seq_length=PATCHES,
        vision_feature_layer=-1,
        vision_feature_select_strategy="full",
        tie_word_embeddings=True,
    )
    return LlavaForConditionalGeneration(config)


def turn_ids(words: PreTrainedTokenizerFast, turn: Turn) -> tuple[list[int], list[int]]:
    """A question and its answer as token ids."""
    numbers = words.get_vocab()
    question, answer = ([numbers[word] for word in text.split()] for text in (turn.question, turn.answer))
    return question, [*answer, numbers["</s>"]]


def batch_of(words: PreTrainedTokenizerFast, rows: Sequence[tuple[Scene, Sequence[Turn]]]) -> Batch:
    """Images, each with turns that see it and not each other; every turn starts where the image ends."""
    numbers = words.get_vocab()
    start = [numbers["<s>"], *[numbers["<image>"]] * PATCHES]
    pairs = [[turn_ids(words, turn) for turn in turns] for _, turns in rows]
    width = START + max(sum(len(question) + len(answer) for question, answer in row) for row in pairs)
    ids, labels = torch.full((len(rows), width), PAD), torch.full((len(rows), width), UNASKED)
    places, owners = torch.zeros(len(rows), width, dtype=torch.long), torch.full((len(rows), width), -1)
    for row, turns in enumerate(pairs):
        ids[row, :START], places[row, :START], owners[row, :START] = torch.tensor(start), torch.arange(START), 0
        at = START
        for number, (question, answer) in enumerate(turns, 1):
            asked, end = at + len(question), at + len(question) + len(answer)
            ids[row, at:end] = torch.tensor([*question, *answer])
            labels[row, asked:end] = ids[row, asked:end]
            places[row, at:end] = START + torch.arange(end - at)
            owners[row, at:end] = number
            at = end
    allowed = (owners[:, None, :] == 0) | (owners[:, :, None] == owners[:, None, :])
    return {
        "input_ids": ids,
        "labels": labels,
        "position_ids": places,
        "attention_mask": (allowed & torch.ones(width, width, dtype=torch.bool).tril())[:, None],
        "pixel_values": torch.stack([scenes.pixels(scene) for scene, _ in rows]),
        "names": torch.stack([scenes.names(scene) for scene, _ in rows]),
    }


def turns_for(chance: random.Random, scene: Scene) -> list[Turn]:
    """A few questions of each kind, most about what is there, and now and then the caption."""
    found = list[Turn]()
    for kind, turns in scenes.questions(scene).items():
        there, absent = ([turn for turn in turns if (turn.about is not None) == is_there] for is_there in (True, False))
        for _ in range(ASKED[kind]):
            found.append(chance.choice(absent if not there or (absent and chance.random() < ABSENT) else there))
    if chance.random() < CAPTIONED:
        found.append(scenes.caption(scene))
    return found


def batches(chance: random.Random, words: PreTrainedTokenizerFast) -> Iterator[Batch]:
    """Images with questions, single shapes first."""
    step = 0
    while True:
        step += 1
        most = 1 + sum(step > end for end in FEWER)
        drawn = [scenes.draw(chance, unseen=False, most=most) for _ in range(PLAN.rows)]
        yield batch_of(words, [(scene, turns_for(chance, scene)) for scene in drawn])


def images(chance: random.Random) -> Iterator[Batch]:
    """Images alone, with what their patches show."""
    while True:
        drawn = [scenes.draw(chance, unseen=False) for _ in range(TOWER.rows)]
        yield {
            "pixel_values": torch.stack([scenes.pixels(scene) for scene in drawn]),
            "names": torch.stack([scenes.names(scene) for scene in drawn]),
        }


def _named(model: PreTrainedModel, features: Tensor, names: Tensor) -> Tensor:
    """How wrong the patches' names are, read from the image's features by a layer that doesn't ship."""
    logits = cast(Any, model).naming(features).split([len(known) + 1 for known in NAMES.values()], -1)
    return torch.stack(
        [functional.cross_entropy(one.flatten(0, -2), names[..., at].flatten()) for at, one in enumerate(logits)]
    ).mean()


def _naming_loss(model: PreTrainedModel, batch: Batch) -> Tensor:
    features = cast(Any, model).get_image_features(batch["pixel_values"]).pooler_output
    return _named(model, torch.stack(tuple(features)), batch["names"])


def _loss(model: PreTrainedModel, batch: Batch) -> Tensor:
    """How wrong the answers are, and for a small part how wrong the patches' names are."""
    output = model(**{name: batch[name] for name in batch if name not in ("names", "labels")}, use_cache=False)
    wrong = functional.cross_entropy(
        output.logits[:, :-1].flatten(0, 1), batch["labels"][:, 1:].flatten(), ignore_index=UNASKED
    )
    return wrong + NAMED * _named(model, output.image_hidden_states.view(-1, PATCHES, WIDTH), batch["names"])


def train(seed: int, stop: int | None = None) -> Trained:
    """Train from a seed: first the image's tower, to name what each patch shows, then the whole."""
    chance, words = seeded(seed), tokenizer()
    model = model_of(words)
    cast(Any, model).naming = nn.Linear(WIDTH, sum(len(known) + 1 for known in NAMES.values()))
    learn(model, images(chance), TOWER, stop=stop, loss=_naming_loss)
    learn(model, batches(chance, words), PLAN, stop=stop, loss=_loss)
    del cast(Any, model).naming
    return Trained(model, words)
