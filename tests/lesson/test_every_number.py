"""Every number that a lesson states is computed a second time, in another way, in `recomputed`."""

import re
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

import pytest

from attention_viz.lesson import LESSONS, Ask, Scene, Shown
from attention_viz.lesson.scene import RunText
from attention_viz.sources import CATALOGUE

TEXT = "The bank of the river was flooded"
# Their questions have no numbers of their own, or measured ones: only their texts' are computed again.
TEXT_ONLY = ("cost", "practice")
# Timed on this machine at each call, and so never the same twice.
MEASURED = {
    "cost": {"milliseconds", "times"},
    "practice": {"before", "after", "ratio", "apart"},
}
# Settings that take dozens of runs.
SLOW = {"scaling": 2, "limits": 1, "where": 2}
_NUMBER = re.compile(r"[−-]?[0-9]+(?:[.,][0-9]+)*")
_PRODUCT = re.compile("|".join(map(re.escape, sorted(CATALOGUE, key=len, reverse=True))))


def numbers_in(text: str) -> list[str]:
    """A text's numbers, without those in models' names."""
    return [one.replace(",", "").replace("−", "-") for one in _NUMBER.findall(_PRODUCT.sub(" ", text))]


def alike(stated: str, again: str) -> bool:
    """Whether two texts have the same numbers; decimals may be rounded to either side."""
    one, other = numbers_in(stated), numbers_in(again)
    return len(one) == len(other) and all(map(near, one, other))


def near(one: str, other: str) -> bool:
    digits, others = (len(text.partition(".")[2]) for text in (one, other))
    return one == other or (digits == others > 0 and abs(float(one) - float(other)) < 1.01 * 10**-digits)


def second(name: str) -> ModuleType:
    path = f"tests.lesson.recomputed.{name}"
    assert find_spec(path), f"add tests/lesson/recomputed/{name}.py"
    return import_module(path)


def settings(name: str, run: RunText) -> list[Scene]:
    scene = Scene(TEXT, run, seed=3)
    options = list(LESSONS[name].control.options(scene))[: SLOW.get(name)]
    return [scene, *(replace(scene, choice=option) for option in options)]


@pytest.mark.parametrize("name", LESSONS)
def test_each_number_of_a_text_is_computed_again(name: str, run: RunText) -> None:
    module = second(name)
    for scene in settings(name, run):
        stated = LESSONS[name].show(scene).facts
        again = module.facts(scene, run)
        for fact, text in stated.items():
            if fact.startswith("formula.") or fact in MEASURED.get(name, ()) or not numbers_in(text):
                continue
            assert fact in again, f"tests/lesson/recomputed/{name}.py lacks {fact!r}: {text}"
            assert alike(text, again[fact]), f"{name} ({scene.choice}): {fact} is {text!r}, again {again[fact]!r}"


@pytest.mark.parametrize("name", [name for name in LESSONS if name not in TEXT_ONLY])
def test_each_number_of_a_question_and_its_answer_is_computed_again(name: str, run: RunText) -> None:
    module = second(name)
    for scene in settings(name, run):
        ask, shown = LESSONS[name].ask(scene), LESSONS[name].show(scene)
        assert list(ask.values) == pytest.approx(list(module.values(scene, run)), abs=2e-4), scene.choice
        known = {
            one
            for text in (*module.facts(scene, run).values(), *module.numbers(scene, run))
            for one in numbers_in(text)
        }
        for text in (ask.question, ask.finding, ask.premise, ask.source, *ask.reasons, shown.says):
            for stated in numbers_in(text):
                assert any(near(stated, one) for one in known), f"{name} ({scene.choice}): {stated} in {text!r}"


@pytest.mark.parametrize(
    ("stated", "again", "same"),
    [
        ("0.58 of 7 words", "0.58 7", True),
        ("0.58", "0.59", True),
        ("0.58", "0.60", False),
        ("9.99", "10", False),
        ("−1.31", "1.31", False),
        ("7 words", "8", False),
        ("all-MiniLM-L6-v2, layer 3", "3", True),
        ("1,024 and 2", "1024", False),
    ],
)
def test_other_numbers_are_not_taken_for_the_same(stated: str, again: str, same: bool) -> None:
    assert alike(stated, again) is same


def test_a_wrong_number_in_a_lesson_is_found(run: RunText, monkeypatch: pytest.MonkeyPatch) -> None:
    def show(scene: Scene) -> Shown:
        shown = right.show(scene)
        return replace(shown, facts={**shown.facts, "divisor": "32.00"})

    def ask(scene: Scene) -> Ask:
        return replace(right.ask(scene), premise="Scores of 16 products spread by 9.99.")

    right = LESSONS["scaling"]
    monkeypatch.setitem(LESSONS, "scaling", replace(right, show=show, ask=ask))
    with pytest.raises(AssertionError, match=r"divisor is '32\.00', again '5\.66'"):
        test_each_number_of_a_text_is_computed_again("scaling", run)
    with pytest.raises(AssertionError, match=r"9\.99 in "):
        test_each_number_of_a_question_and_its_answer_is_computed_again("scaling", run)
