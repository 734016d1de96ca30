"""The lessons on a picture and on a sound: their numbers are the run's, and the course goes on without their models."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from attention_viz.errors import ModelNotFound
from attention_viz.lesson import EXERCISES, LESSONS, Scene
from attention_viz.lesson.course import ExerciseKind, answer_sheet
from attention_viz.lesson.exercise import NumberAnswer, OptionAnswer
from attention_viz.lesson.scene import RunText
from attention_viz.lesson.seen import PictureRun, SoundRun

TEXT = "The cat sat"


def test_a_pictures_share_is_that_of_the_patches_that_touch(run: RunText) -> None:
    looked = PictureRun(Scene(TEXT, run), "chelsea")
    row = looked.trace.weights(*looked.place)[0]
    assert looked.weights.sum() + looked.itself == pytest.approx(1, abs=1e-5)
    assert looked.share == pytest.approx(float(row[1:].reshape(16, 16)[looked.region].sum()), abs=1e-6)
    assert looked.share > 2 * looked.part
    assert looked.boxes(4, 4).sum() == pytest.approx(looked.weights.sum())


def test_a_words_row_is_that_of_the_cross_attention(run: RunText) -> None:
    heard = SoundRun(Scene(TEXT, run))
    assert heard.words[3] == "window"
    assert np.abs(heard.rows.sum(axis=1) - 1).max() < 1e-4
    assert heard.during(1).argmax() == 1 and heard.during(5).argmax() == 5


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", ["region", "stretch"])
def test_an_exercise_is_solved_by_the_numbers_that_are_given(kind: str, seed: int, run: RunText) -> None:
    made = EXERCISES[kind].make(Scene(TEXT, run), seed)
    (given,) = made.given
    options = made.answer.options if isinstance(made.answer, OptionAnswer) else ()
    # Where two points are as good, either is right.
    ways = [options[at] for at in made.answer.right] if isinstance(made.answer, OptionAnswer) else [made.solution]
    assert all(made.check(way).right for way in ways)
    assert all(not made.answer.accepts(slip.answer) for slip in made.slips)
    if isinstance(made.answer, NumberAnswer):
        asked = made.question.partition("together: ")[2].rstrip("?").split(", ")
        places = [(int(one.split()[1]) - 1, int(one.split()[3]) - 1) for one in asked]
        assert made.answer.value == pytest.approx(sum(given.numbers[row][column] for row, column in places))
        return
    assert isinstance(made.answer, OptionAnswer)
    first, second = given.numbers
    gains = [round(sum(first[:at]) + sum(second[at:]), 2) for at in range(1, len(first))]
    assert made.answer.right == {at for at, gain in enumerate(gains) if gain == max(gains)}
    assert all(one < other for one, other in itertools.pairwise(map(_seconds, made.answer.options)))


def _seconds(text: str) -> float:
    return float(text.removesuffix(" s"))


def test_paper_names_the_picture_and_the_sound_in_place_of_the_sentence() -> None:
    scene = Scene(TEXT, run=None)  # pyright: ignore[reportArgumentType] -- it runs nothing
    assert LESSONS["picture"].made_from(scene) == "Image: a cat (chelsea.jpg)"
    assert LESSONS["picture"].made_from(replace(scene, choice="astronaut")) == "Image: an astronaut (astronaut.jpg)"
    told = "Audio: “She opened the window and looked at the river.” (window.flac)"
    assert LESSONS["sound"].made_from(scene) == told
    assert LESSONS["why"].made_from(scene) == f"Sentence: “{TEXT}”"


def test_without_the_models_their_lessons_say_so_and_the_answers_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(model: str, text: str, **_: object) -> None:
        raise ModelNotFound(f"{model} isn't on this machine")

    for name in ("picture", "sound"):
        with pytest.raises(ModelNotFound, match="isn't on this machine"):
            LESSONS[name].ask(Scene(TEXT, missing))  # pyright: ignore[reportArgumentType] -- it runs nothing
    monkeypatch.setattr(ExerciseKind, "available", property(lambda kind: not kind.needs))
    sheet = answer_sheet(Scene(TEXT, missing), [0], ["region", "cost", "stretch"])  # pyright: ignore[reportArgumentType] -- it runs nothing
    assert [one.kind for one in sheet] == ["cost"]
