"""What the shapes model can do on images that it never saw: its answers, where its heads look, what hiding changes."""

import math
import random
from collections.abc import Sequence
from itertools import groupby
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers.modeling_utils import PreTrainedModel
from transformers.tokenization_utils_tokenizers import TokenizersBackend as PreTrainedTokenizerFast

from recipes import shapes_scenes as scenes
from recipes.heads import weights, without_head
from recipes.recipe import Figures
from recipes.shapes_scenes import KINDS, PATCHES, SHARE, Scene, Turn
from recipes.training import pad

__all__ = ["START", "Asked", "about", "answers", "asked", "hiding", "looks", "measure", "rates", "rates_without"]

# The beginning token and the image.
START = 1 + PATCHES
HEADS = 4
ROWS_AT_ONCE = 250
# The words of an answer that are measured, by kind of question: a name and the position in the answer.
SPOKEN = {
    "colour": {"colour": 0},
    "shape": {"the": 0, "shape": 1},
    "there": {"a": 0, "a_colour": 1, "a_shape": 2},
    "place": {"row": 0, "column": 1},
}

# A question about a scene.
Asked = tuple[Scene, Turn]


def projections(model: PreTrainedModel) -> list[nn.Module]:
    """What joins the heads, for each layer of the decoder."""
    return [layer.self_attn.o_proj for layer in cast(Any, model).model.language_model.layers]


def asked(count: int) -> list[Asked]:
    """Return one question of each kind about each of so many unseen images; an eighth is about what isn't there."""
    chance = random.Random("asked: shapes")
    found = list[Asked]()
    for scene in scenes.held_out(count):
        for turns in scenes.questions(scene).values():
            there = [turn for turn in turns if turn.about is not None]
            absent = [turn for turn in turns if turn.about is None]
            found.append((scene, chance.choice(absent if not there or chance.random() < 1 / 8 else there)))
        found.append((scene, scenes.caption(scene)))
    return found


def _inputs(words: PreTrainedTokenizerFast, rows: Sequence[Asked], *, answered: bool) -> dict[str, Tensor]:
    """Return the tensors of questions of one length, with their answers after them or without."""
    numbers = words.get_vocab()
    start = [numbers["<s>"], *[numbers["<image>"]] * PATCHES]
    texts = [f"{turn.question} {turn.answer}" if answered else turn.question for _, turn in rows]
    ids = pad([[*start, *(numbers[word] for word in text.split())] for text in texts], numbers["<pad>"])
    return {"input_ids": ids, "pixel_values": torch.stack([scenes.pixels(scene) for scene, _ in rows])}


def _alike(rows: Sequence[Asked]) -> list[list[int]]:
    """Return the numbers of rows whose questions have the same length, a few at once."""

    def length(row: int) -> int:
        return len(rows[row][1].question.split())

    groups = [list(group) for _, group in groupby(sorted(range(len(rows)), key=length), length)]
    return [group[at : at + ROWS_AT_ONCE] for group in groups for at in range(0, len(group), ROWS_AT_ONCE)]


@torch.no_grad()
def answers(model: PreTrainedModel, words: PreTrainedTokenizerFast, rows: Sequence[Asked]) -> list[str]:
    """Return what the model generates for each question, always the likeliest word."""
    said = [""] * len(rows)
    for group in _alike(rows):
        given = _inputs(words, [rows[row] for row in group], answered=False)
        ids = cast(Any, model).generate(
            **given, attention_mask=torch.ones_like(given["input_ids"]), max_new_tokens=40, do_sample=False
        )
        texts = words.batch_decode(ids[:, given["input_ids"].shape[1] :], skip_special_tokens=True)
        for row, text in zip(group, texts, strict=True):
            said[row] = text
    return said


def rates(rows: Sequence[Asked], right: Sequence[bool]) -> dict[str, float]:
    """Return how many answers are right: all, by kind, and those about what isn't there."""
    found = {"all": sum(right) / len(right)}
    for kind in KINDS:
        of_kind = [is_right for (_, turn), is_right in zip(rows, right, strict=True) if turn.kind == kind]
        found[kind] = sum(of_kind) / len(of_kind)
    absent = [is_right for (_, turn), is_right in zip(rows, right, strict=True) if _is_absent(turn)]
    return {**found, "absent": sum(absent) / len(absent)}


def _is_absent(turn: Turn) -> bool:
    return turn.about is None and turn.kind != "caption"


def rates_without(model: PreTrainedModel, words: PreTrainedTokenizerFast, layer: int, rows: Sequence[Asked]) -> Figures:
    """Return how many answers are right without each head of a layer, by kind."""
    figures = Figures()
    for head in range(HEADS):
        with without_head(projections(model)[layer], head, HEADS):
            said = answers(model, words, rows)
        right = [text == turn.answer for text, (_, turn) in zip(said, rows, strict=True)]
        figures |= {f"without_{head}_{kind}": rate for kind, rate in rates(rows, right).items()}
    return figures


def about(rows: Sequence[Asked], right: Sequence[bool]) -> list[Asked]:
    """Return the questions about one shape that were answered right."""
    return [row for row, is_right in zip(rows, right, strict=True) if is_right and row[1].about is not None]


def _its_patches(turn: Turn) -> Tensor:
    assert turn.about is not None
    return scenes.covered(turn.about) >= SHARE


@torch.no_grad()
def looks(model: PreTrainedModel, words: PreTrainedTokenizerFast, rows: Sequence[Asked]) -> dict[str, Tensor]:
    """Return how each head looks from the position that predicts a word, in right answers about one shape.

    Returns:
        By the word: (layer, head, 3): how often its strongest patch is the shape's, the weight on all of its patches,
        and that weight's share of the image's over the patches' share of all patches.
    """
    found = dict[str, Tensor]()
    for kind, words_of in SPOKEN.items():
        of_kind = [row for row in rows if row[1].kind == kind]
        seen = dict[str, list[Tensor]]()
        for group in _alike(of_kind):
            chosen = [of_kind[row] for row in group]
            given = _inputs(words, chosen, answered=True)
            every = weights(model, {**given, "attention_mask": torch.ones_like(given["input_ids"])})
            patches = torch.stack([_its_patches(turn) for _, turn in chosen])
            for name, at in words_of.items():
                query = START + len(chosen[0][1].question.split()) - 1 + at
                seen.setdefault(name, []).append(_looked(every[:, :, :, query, 1:START], patches))
        # Without a right answer there is nothing to measure.
        nothing = torch.full((len(projections(model)), HEADS, 1, 3), torch.nan)
        found |= {name: torch.cat(seen.get(name, [nothing]), 2).mean(2) for name in words_of}
    return found


def _looked(seen: Tensor, patches: Tensor) -> Tensor:
    """Return (layer, head, row, 3) from weights on the image, (layer, head, row, patch), and a shape's patches."""
    strongest = patches.expand(seen.shape).gather(-1, seen.argmax(-1, keepdim=True))[..., 0].float()
    on_it = (seen * patches).sum(-1)
    times = on_it / seen.sum(-1) / patches.float().mean(-1)
    return torch.stack([strongest, on_it, times], -1)


@torch.no_grad()
def hiding(model: PreTrainedModel, words: PreTrainedTokenizerFast, rows: Sequence[Asked]) -> Figures:
    """Return how many right answers change if patches are hidden from all words in every layer of the decoder.

    The patches of the shape that the question is about, by kind; as many of the ground; those of another shape.
    """
    chance = random.Random("hidden: shapes")
    figures, control = Figures(), list[bool]()
    for kind in KINDS[:-1]:
        of_kind = [row for row in rows if row[1].kind == kind]
        figures[f"hidden_{kind}"] = _share(_changed(model, words, of_kind, [_its_patches(turn) for _, turn in of_kind]))
        control += _changed(model, words, of_kind, [_ground(chance, scene, turn) for scene, turn in of_kind])
    figures["hidden_ground"] = _share(control)
    several = [(scene, turn) for scene, turn in rows if len(scene.shapes) > 1]
    figures["hidden_other"] = _share(
        _changed(model, words, several, [_other(chance, scene, turn) for scene, turn in several])
    )
    return figures


def _share(changed: Sequence[bool]) -> float:
    return sum(changed) / len(changed) if changed else math.nan


def _ground(chance: random.Random, scene: Scene, turn: Turn) -> Tensor:
    """Choose as many patches of the ground as the shape has, if there are so many."""
    free = (torch.stack([scenes.covered(one) for one in scene.shapes]).sum(0) == 0).nonzero()[:, 0].tolist()
    hidden = torch.zeros(PATCHES, dtype=torch.bool)
    hidden[chance.sample(free, min(len(free), int(_its_patches(turn).sum())))] = True
    return hidden


def _other(chance: random.Random, scene: Scene, turn: Turn) -> Tensor:
    """Choose the patches of another shape that aren't also the shape's own."""
    other = chance.choice([one for one in scene.shapes if one != turn.about])
    return (scenes.covered(other) >= SHARE) & ~_its_patches(turn)


def _changed(
    model: PreTrainedModel, words: PreTrainedTokenizerFast, rows: Sequence[Asked], hidden: Sequence[Tensor]
) -> list[bool]:
    """Return whether each right answer changes.

    It does if and only if a word isn't the likeliest any more after the question and the words before it.
    """
    changed = [False] * len(rows)
    end = words.get_vocab()["</s>"]
    for group in _alike(rows):
        chosen = [rows[row] for row in group]
        given = _inputs(words, chosen, answered=True)
        ids = given["input_ids"]
        allowed = torch.ones(len(group), 1, ids.shape[1], ids.shape[1], dtype=torch.bool).tril()
        allowed[:, 0, START:, 1:START] &= ~torch.stack([hidden[row] for row in group])[:, None]
        said = cast(Any, model)(**given, attention_mask=allowed, use_cache=False).logits.argmax(-1)
        first = START + len(chosen[0][1].question.split())
        for row, ids_of, spoken, (_, turn) in zip(group, ids, said, chosen, strict=True):
            last = first + len(turn.answer.split())
            right = torch.cat([ids_of[first:last], torch.tensor([end])])
            changed[row] = not spoken[first - 1 : last].equal(right)
    return changed


def measure(model: PreTrainedModel, words: PreTrainedTokenizerFast, count: int) -> Figures:
    """Return all figures, from so many unseen images."""
    rows = asked(count)
    said = answers(model, words, rows)
    right = [text == turn.answer for text, (_, turn) in zip(said, rows, strict=True)]
    figures: Figures = {"images": count, "answers": len(rows), **rates(rows, right)}
    known = about(rows, right)
    for name, seen in looks(model, words, known).items():
        layer, head = divmod(int(seen[..., 0].argmax()), seen.shape[1])
        figures |= {f"{name}_layer": layer, f"{name}_head": head}
        on, weight, times = seen[layer, head].tolist()
        figures |= {f"{name}_on": on, f"{name}_weight": weight, f"{name}_times": times}
    return figures | hiding(model, words, known)
