"""How the small models are made: the same weights from the same seed, and cards that tell what was measured."""

import contextlib
import json
import runpy
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch

from recipes import (
    coreference,
    coreference_sentences,
    french_sentences,
    induction,
    lists,
    pairs,
    recall,
    recall_mamba,
    repeated_words,
    shapes,
    shapes_scenes,
    translation,
)
from recipes.induction import KEPT, snapshots_to_keep
from recipes.recipe import Recipe, Snapshot
from recipes.registry import RECIPES
from recipes.saving import fill_in, open_model, open_tokenizer, save


@pytest.fixture(params=RECIPES)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def recipe(name: str) -> Recipe:
    return RECIPES[name]


def weights(recipe: Recipe, seed: int) -> torch.Tensor:
    """Every parameter after three steps, in one row."""
    model = recipe.train(seed, stop=3).model
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


def test_the_same_seed_gives_the_same_weights_and_another_seed_others(recipe: Recipe) -> None:
    first = weights(recipe, recipe.seed)
    assert first.equal(weights(recipe, recipe.seed))
    assert not first.equal(weights(recipe, recipe.seed + 1))


def test_a_model_comes_back_from_disk_as_it_was_but_for_half_precision(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shapes, "IMAGES", 5)  # an untrained model never ends its answers
    trained = recipe.train(recipe.seed, stop=1)
    before = {name: value.half().float() for name, value in trained.model.state_dict().items()}
    save(recipe, trained, tmp_path)
    after = open_model(tmp_path).state_dict()
    assert before.keys() == after.keys()
    assert all(before[name].equal(after[name]) for name in before)
    assert open_tokenizer(tmp_path).get_vocab() == trained.tokenizer.get_vocab()
    figures = json.loads((tmp_path / "figures.json").read_text("utf-8"))
    assert (tmp_path / "card.md").read_text("utf-8") == fill_in(recipe.card, figures)


def test_nothing_that_is_held_out_has_run_for_training() -> None:
    chance = Random(0)
    for grammar in (coreference_sentences, french_sentences):
        assert not any(grammar.draw(chance, unseen=False).held_out for _ in range(300))
        assert all(grammar.draw(chance, unseen=True).held_out for _ in range(100))
    assert not any(lists.is_held_out(lists.draw(chance, unseen=False)) for _ in range(300))
    assert not any(pairs.draw(chance, unseen=False, first=True).held_out for _ in range(300))
    assert all(text.held_out for text in pairs.held_out(30, first=True))
    assert not any(shapes_scenes.draw(chance, unseen=False).held_out for _ in range(300))
    assert all(scene.held_out for scene in shapes_scenes.held_out(30))


def test_the_vocabulary_has_every_word_that_can_be_drawn() -> None:
    chance = Random(0)
    for words, draw in (
        (coreference.tokenizer(), lambda: coreference_sentences.draw(chance, unseen=False).words),
        (translation.tokenizer(), lambda: (one := french_sentences.draw(chance, unseen=False)).source + one.french),
        (induction.tokenizer(), lambda: repeated_words.row(chance)),
        (pairs.tokenizer(first=True), lambda: list(pairs.draw(chance, unseen=False, first=True).words)),
        (shapes.tokenizer(), lambda: _spoken(chance)),
        (pairs.tokenizer(first=False), lambda: list(pairs.draw(chance, unseen=False, first=False).words)),
    ):
        known = words.get_vocab()
        assert {word for _ in range(2000) for word in draw()} <= known.keys()


def _spoken(chance: Random) -> list[str]:
    """All questions about an image, and their answers."""
    scene = shapes_scenes.draw(chance, unseen=False)
    questions = shapes_scenes.questions(scene).values()
    turns = [*(turn for turns in questions for turn in turns), shapes_scenes.caption(scene)]
    return " ".join(f"{turn.question} {turn.answer}" for turn in turns).split()


def test_a_question_about_pairs_has_the_answer_that_its_text_gives() -> None:
    chance = Random(0)
    for text in (pairs.draw(chance, unseen=False, first=True) for _ in range(300)):
        said = " ".join(text.words).split(" . ")[0].split(" , ")
        for question in text.questions:
            name, asked = text.words[question.at - 1], text.words[question.at]
            colours = [pair.split()[-1] for pair in said if pair.split()[-2] == name]
            assert text.words[question.at + 1] == text.words[question.answer] == colours[0 if asked == "first" else -1]
            assert question.kind == ("once" if len(colours) == 1 else "first" if asked == "first" else "last")
            assert len(colours) == 1 or text.words[question.other] == colours[-1 if asked == "first" else 0]


@pytest.mark.parametrize("recipe", [recall, recall_mamba])
def test_whole_matrices_train_as_the_model_s_own_kernel_does(recipe: Any) -> None:
    texts = pairs.held_out(8, first=False)
    kernel = recall.DELTA if recipe is recall else recall_mamba.SSD
    found: list[tuple[torch.Tensor, torch.Tensor]] = []
    for way in (contextlib.nullcontext(), kernel.used()):
        torch.manual_seed(0)
        words = pairs.tokenizer(first=False)
        model = recipe.model_of(words)
        with way:
            loss = pairs.loss(model, pairs.batch_of(texts, words))
            loss.backward()
        found.append((loss.detach(), torch.cat([weights.grad.flatten() for weights in model.parameters()])))
    (own, own_slope), (ours, slope) = found
    assert ours == pytest.approx(float(own), abs=1e-5)
    assert (slope - own_slope).norm() < 1e-4 * own_slope.norm()


def test_moments_that_tell_nothing_new_are_left_out() -> None:
    course = [0.0] * 10 + [0.1 * step for step in range(10)] + [1.0] * 10
    taken = [Snapshot(50 * step, {"accuracy": value}, {}) for step, value in enumerate(course)]
    kept = [snapshot.step for snapshot in snapshots_to_keep(taken)]
    assert len(kept) == KEPT
    assert (kept[0], kept[-1]) == (0, 50 * 29)
    assert len([step for step in kept if 450 <= step <= 1_000]) >= 9


def test_an_unknown_name_is_told_what_there_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["recipes", "parrot"])
    with pytest.raises(SystemExit) as end:
        runpy.run_module("recipes", run_name="__main__")
    assert end.value.code == 2
    assert f"no recipe parrot; there are {', '.join(RECIPES)}" in capsys.readouterr().err
