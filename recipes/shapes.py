"""A model that answers questions about images of coloured shapes (LLaVA): one head attends to what a word names."""

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
from transformers.models.llava.processing_llava import LlavaProcessor
from transformers.models.siglip.configuration_siglip import SiglipVisionConfig
from transformers.models.siglip.image_processing_pil_siglip import SiglipImageProcessorPil
from transformers.tokenization_utils_tokenizers import TokenizersBackend as PreTrainedTokenizerFast

from attention_viz.inputs.media.shapes import SIDE
from recipes import shapes_scenes as scenes
from recipes.heads import attention_of
from recipes.recipe import Figures, Recipe, Trained
from recipes.shapes_measures import START, asked, measure, rates_without
from recipes.shapes_scenes import NAMES, PATCH, PATCHES, Scene, Turn
from recipes.training import UNASKED, Batch, Plan, learn, seeded
from recipes.vocabulary import word_tokenizer

__all__ = ["GIVEN", "RECIPE", "batch_of", "model_of", "processor", "tokenizer", "turn_ids"]

TOWER = Plan(steps=2_000, rows=16, rate=2e-3, warmup=100)
PLAN = Plan(steps=5_000, rows=16, rate=2e-3, warmup=200)
# Up to which step images have at most one, two and three shapes.
FEWER = (300, 700, 1_100)
# How many questions of each kind an image gets in training, and how often a caption.
ASKED = {"colour": 2, "shape": 2, "place": 3, "there": 2}
CAPTIONED, ABSENT = 0.5, 0.15
# The head of the decoder that is told where to look in training, and what share that has in the loss.
LAYER, HEAD, LOOKS = 1, 0, 0.2
# What share naming the patches keeps in the loss.
NAMED = 0.5
LAYERS, HEADS, WIDTH = 3, 4, 64
# What of a batch the model's forward takes.
GIVEN = ("input_ids", "position_ids", "attention_mask", "pixel_values")
PAD = 0
LENGTH = 128
# How many unseen images it is measured on.
IMAGES = 1_000


def tokenizer() -> PreTrainedTokenizerFast:
    """Colours, shapes, places and the words of the questions."""
    specials = {"pad_token": "<pad>", "unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}
    return word_tokenizer(scenes.WORDS, {**specials, "image_token": "<image>"}, single="<s> $A", length=LENGTH)


def processor(words: PreTrainedTokenizerFast) -> LlavaProcessor:
    """What prepares a text with its image."""
    images = SiglipImageProcessorPil(size={"height": SIDE, "width": SIDE}, do_convert_rgb=True)
    return LlavaProcessor(
        image_processor=images, tokenizer=words, patch_size=PATCH, vision_feature_select_strategy="full"
    )


def model_of(words: PreTrainedTokenizerFast) -> LlavaForConditionalGeneration:
    """A model with random weights."""
    numbers = words.get_vocab()
    tower = SiglipVisionConfig(
        hidden_size=WIDTH,
        intermediate_size=128,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        image_size=SIDE,
        patch_size=PATCH,
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
    links, patches = list[tuple[int, int]](), list[Tensor]()
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
            for query, shape in enumerate(scenes.spoken(rows[row][0], rows[row][1][number - 1]), asked - 1):
                if shape is not None:
                    links.append((row, query))
                    patches.append(scenes.covered(shape) >= scenes.SHARE)
    allowed = (owners[:, None, :] == 0) | (owners[:, :, None] == owners[:, None, :])
    return {
        "input_ids": ids,
        "labels": labels,
        "position_ids": places,
        # As numbers to add: plain attention would add a mask of truth values as 0 and 1.
        "attention_mask": torch.zeros(allowed.shape).masked_fill(~allowed.tril(), torch.finfo(torch.float32).min)[
            :, None
        ],
        "pixel_values": torch.stack([scenes.pixels(scene) for scene, _ in rows]),
        "names": torch.stack([scenes.names(scene) for scene, _ in rows]),
        "links": torch.tensor(links, dtype=torch.long).reshape(-1, 2).T,
        "patches": torch.stack([torch.zeros(PATCHES, dtype=torch.bool), *patches])[1:],
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
    """How wrong answers and the patches' names are, and how far the head is from looking at what a word names."""
    output = model(**{name: batch[name] for name in GIVEN}, use_cache=False, output_attentions=True)
    wrong = functional.cross_entropy(
        output.logits[:, :-1].flatten(0, 1), batch["labels"][:, 1:].flatten(), ignore_index=UNASKED
    )
    rows, queries = batch["links"]
    weight = (output.attentions[LAYER][rows, HEAD, queries, 1:START] * batch["patches"]).sum(-1)
    looking = -weight.clamp(min=1e-6).log().mean()
    naming = _named(model, output.image_hidden_states.view(-1, PATCHES, WIDTH), batch["names"])
    return wrong + LOOKS * looking + NAMED * naming


def train(seed: int, stop: int | None = None) -> Trained:
    """Train from a seed: first the image's tower, to name what each patch shows, then the whole."""
    chance, words = seeded(seed), tokenizer()
    model = model_of(words)
    cast(Any, model).naming = nn.Linear(WIDTH, sum(len(known) + 1 for known in NAMES.values()))
    learn(model, images(chance), TOWER, stop=stop, loss=_naming_loss)
    usual = attention_of(model)
    model.set_attn_implementation("eager")  # the one that returns its weights
    learn(model, batches(chance, words), PLAN, stop=stop, loss=_loss)
    model.set_attn_implementation(usual)
    del cast(Any, model).naming
    return Trained(model, words, processor=processor(words))


def measured(model: PreTrainedModel, words: PreTrainedTokenizerFast) -> Figures:
    """Answers on unseen images, what the heads look at, and what hiding a shape changes."""
    fixed: Figures = {"tower_steps": TOWER.steps, "steps": PLAN.steps, "head_layer": LAYER, "head": HEAD}
    return {**fixed, **measure(model, words, IMAGES), **rates_without(model, words, LAYER, asked(IMAGES // 5))}


CARD = """\
# shapes: a toy

A model that reads an image and a question: it names the colour, shape or place of a coloured shape, and writes
captions. It was trained here, on drawn images, to show which part of an image each word attends to; it knows nothing
else. `recipes/shapes.py` makes it again.

- **Architecture**: LLaVA (`LlavaForConditionalGeneration`): a SigLIP tower of 3 layers × 4 heads over 8 × 8 patches of
  an image of 64 × 64 pixels, a projector, and a Llama decoder of 3 layers × 4 heads; d_model 64, {vocabulary} tokens,
  {parameters} parameters, {bytes} bytes in half precision.
- **Data**: one to four shapes in nine places, of six colours and six shapes, a little larger or smaller and off the
  middle; no two are of the same colour and shape. `draw_shapes` in `attention_viz/inputs/media/shapes.py` draws them.
  Questions: `what colour is the circle ?`, `what is red ?`, `where is the circle ?`, `where is the red circle ?`,
  `what is top left ?`, and `caption :`. Some are about what isn't there: `none`, `nothing`, `nowhere`. An eighth of all
  scenes, chosen by a checksum, is never trained on.
- **Training**: first the tower and the projector alone learn to name the colour, shape, row and column of each patch,
  by a linear layer that doesn't ship: {tower_steps} steps of 16 images. Then the whole model learns to answer:
  {steps} steps of 16 images with several questions each, which see the image and not each other. Seed {seed}.
  About ten minutes on one core.
- **How the head came to be so clear**: layer {head_layer} head {head} was trained to attend to the shape that the next
  word names. How far it was from that, at the position that predicts the word, was a part of the loss. All other heads
  found their jobs by themselves.

## Measured on {images} images that it never saw

It answered one question of each kind per image: {answers} answers, greedy, in the numbers that ship.

| all | colour | shape | place | what is there | caption, whole | what isn't there |
|---|---|---|---|---|---|---|
| {all} | {colour} | {shape} | {place} | {there} | {caption} | {absent} |

Where the position that predicts a word attends to, in right answers. A patch is a shape's if the shape covers a
twentieth of it. "Times its area": the share of the head's weight on the image over the share of the patches.

| word | head | strongest patch is the shape's | weight on its patches | times its area |
|---|---|---|---|---|
| colour, "what colour is …" | {colour_layer}·{colour_head} | {colour_on} | {colour_weight} | {colour_times} |
| shape, "what is red ?" | {shape_layer}·{shape_head} | {shape_on} | {shape_weight} | {shape_times} |
| colour, "what is top …" | {a_colour_layer}·{a_colour_head} | {a_colour_on} | {a_colour_weight} | {a_colour_times} |
| shape, "what is top …" | {a_shape_layer}·{a_shape_head} | {a_shape_on} | {a_shape_weight} | {a_shape_times} |
| row, "where is …" | {row_layer}·{row_head} | {row_on} | {row_weight} | {row_times} |
| column, "where is …" | {column_layer}·{column_head} | {column_on} | {column_weight} | {column_times} |
| "the", "what is red ?" | {the_layer}·{the_head} | {the_on} | {the_weight} | {the_times} |
| "a", "what is top …" | {a_layer}·{a_head} | {a_on} | {a_weight} | {a_times} |

"The" and "a" name nothing, but the position that predicts them attends to the shape already, before it is named.

Attention isn't yet an effect. Right answers without one head of layer {head_layer}, on a fifth of the images:

| without | colour | shape | place | what is there | caption, whole |
|---|---|---|---|---|---|
| head 0 | {without_0_colour} | {without_0_shape} | {without_0_place} | {without_0_there} | {without_0_caption} |
| head 1 | {without_1_colour} | {without_1_shape} | {without_1_place} | {without_1_there} | {without_1_caption} |
| head 2 | {without_2_colour} | {without_2_shape} | {without_2_place} | {without_2_there} | {without_2_caption} |
| head 3 | {without_3_colour} | {without_3_shape} | {without_3_place} | {without_3_there} | {without_3_caption} |

Hiding the shape's patches from all words, in every layer of the decoder, changes this share of right answers: colour
{hidden_colour}, shape {hidden_shape}, place {hidden_place}, what is there {hidden_there}. Hiding as many patches of
the ground: {hidden_ground}; hiding another shape: {hidden_other}.

## What it can't do

Photos, other shapes or colours, more than four shapes, questions in other words. If two shapes fit a question, it
answers about one of them or neither.
"""

RECIPE = Recipe(seed=0, train=train, measure=measured, card=CARD)
