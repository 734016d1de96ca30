"""What holds for each lesson: any sentence is told and drawn in any setting, and its control changes what is told."""

import re
from dataclasses import replace

import pytest

from attention_viz.lesson import EXERCISES, LESSONS, Scene, lesson_text
from attention_viz.lesson.question import question_data
from attention_viz.lesson.scene import LONGEST, MOST_PRESSED, RunText
from attention_viz.lesson.translation import LANGUAGES, in_language

TEXT = "The bank of the river was flooded"
# One word, one word many times, as many as a lesson takes, signs of other scripts, and what could be markup of ours,
# of Markdown or of HTML.
ODD = (
    "Hi",
    "🙂",
    "a " * LONGEST,
    " ".join(f"word{n}" for n in range(LONGEST)),
    "👩‍👩‍👧 عربي 汉 a\u202eb",
    "مرحبا بالعالم",
    "<b>x</b> $y$ `z` &amp; {{word}} $5",
)
# Each setting of the first is a dozen runs of a model, of the second a measurement, of the third thirty modules, of the
# fourth three runs of a long text.
SLOW = {"limits": 2, "cost": 3, "scaling": 3, "windows": 5}
# Timed at each call.
MEASURED = ("cost", "practice")
# Made of nothing but the words and a seed.
SEEDED = ("scaling",)


@pytest.mark.parametrize("name", LESSONS)
def test_any_sentence_is_told_and_drawn_in_any_setting(name: str, run: RunText) -> None:
    lesson = LESSONS[name]
    for text in ODD[: 1 if lesson.sample else SLOW.get(name)]:  # one made from a sample reads no sentence
        scene = Scene(text, run, notation="columns", theme="dark")
        options = list(lesson.control.options(scene))
        assert lesson.control.default(scene) in options
        for one in (replace(scene, choice=options[-1]), Scene(text, run, "no such option")):
            ask, shown = lesson.ask(one), lesson.show(one)
            assert ask.right and all(0 <= length <= 1 for length in ask.lengths)
            assert not ask.shares or sum(ask.values) == pytest.approx(1, abs=1e-5)
            assert all(ask.said(at).endswith(".") for at in range(len(ask.options)))
            assert "nan" not in f"{ask.question} {ask.finding} {ask.written}"
            assert "{{" not in lesson_text(name, shown.facts, one.notation) or "{{" in text
            assert shown.figure.data
            assert shown.says.rstrip().endswith((".", "!", "?"))
            assert "nan" not in " ".join((*shown.facts.values(), shown.says)).split()
            assert not any("\u202e" in fact for fact in shown.facts.values())


# Their options are claims or numbers, which have no rank.
CLAIMS = (
    *("roles", "scaling", "mixture", "heads", "around", "next", "writes", "positions", "older", "recurrent", "cost"),
    *("cache", "windows", "practice", "linear", "delta", "limits"),
)


@pytest.mark.parametrize("name", CLAIMS)
@pytest.mark.parametrize("code", LANGUAGES)
def test_a_wrong_claim_is_answered_with_a_reason(name: str, code: str, run: RunText) -> None:
    lesson, scene = LESSONS[name], Scene(TEXT, run, seed=3)
    with in_language(code):
        for option in ["", *list(lesson.control.options(scene))[: SLOW.get(name)]]:
            ask = lesson.ask(replace(scene, choice=option))
            for at, reason in enumerate(ask.reasons):
                assert bool(reason) != (at in ask.right)
                assert len(reason.split()) <= 24 and (not reason or reason.endswith("."))
            assert len(ask.reasons) == len(ask.options)
            replies = [ask.said(at) for at in range(len(ask.options)) if at not in ask.right]
            assert all(one.startswith(("Not quite. ", "Nicht ganz. ")) for one in replies)
            assert not any(reason and reason in str(question_data(ask, shown=False)) for reason in ask.reasons)


@pytest.mark.parametrize("name", LESSONS)
def test_what_can_be_changed_changes_what_is_told_and_seen(name: str, run: RunText) -> None:
    lesson, scene = LESSONS[name], Scene(TEXT, run, seed=3)
    options = list(lesson.control.options(scene))[: SLOW.get(name)]
    shown = [lesson.show(replace(scene, choice=option)) for option in options]
    assert len({str(one.facts) for one in shown}) == len(options) > 1
    assert shown[0].says != shown[-1].says
    assert shown[0].figure != shown[-1].figure
    if name in SEEDED:
        assert lesson.show(replace(scene, choice=options[0], seed=4)).facts != shown[0].facts


@pytest.mark.parametrize("name", [name for name in LESSONS if name not in MEASURED])
def test_numbers_that_another_seed_changes_are_called_random_and_no_others(name: str, run: RunText) -> None:
    lesson = LESSONS[name]
    scenes = Scene(TEXT, run, seed=3), Scene(TEXT, run, seed=4)
    asked, shown = ([make(scene) for scene in scenes] for make in (lesson.ask, lesson.show))
    assert asked[0].drawn == (asked[0].values != asked[1].values)
    assert shown[0].drawn == (shown[0].figure != shown[1].figure)


@pytest.mark.parametrize("name", LESSONS)
def test_the_head_to_look_at_further_is_the_one_that_was_told_of(name: str, run: RunText) -> None:
    ask = LESSONS[name].ask(Scene(TEXT, run))
    named = re.search(r"layer (\d+)(?:, head (\d+))?", ask.source)
    assert (ask.place is not None) == (named is not None and LESSONS[name].sample is None)
    if ask.place is not None:
        assert named is not None and ask.place.model in ask.source
        layer, head = named.group(1), named.group(2) or ask.options[min(ask.right)].removeprefix("head ")
        assert (ask.place.layer, ask.place.head) == (int(layer), int(head))
        trace = run(ask.place.model, ask.place.text)
        assert trace.head_count(ask.place.layer) > ask.place.head
        if ask.place.query is not None and ask.shares:
            assert trace.weights(ask.place.layer, ask.place.head)[ask.place.query, ask.place.key] == max(ask.values)


# Their pictures have no words, or nothing asks in them: means over rows, every word's own change, and measurements.
NOTHING_TO_PRESS = ("scaling", "positions", "picture", "cost", "windows", "practice")


@pytest.mark.parametrize("name", [name for name in LESSONS if name not in NOTHING_TO_PRESS])
def test_a_word_in_the_picture_that_is_pressed_asks(name: str, run: RunText) -> None:
    lesson, scene = LESSONS[name], Scene(TEXT, run)
    ask = lesson.ask(scene)
    assert ask.pressed or lesson.words or lesson.control.words
    if lesson.words is not None:
        options, asking = lesson.words(scene)
        last = max((one for one in options if one != asking), key=int)
        assert asking in options and lesson.words(replace(scene, word=int(last)))[1] == last
        asked = replace(scene, word=int(last))
    elif any(ask.pressed):
        at = max(at for at, one in enumerate(ask.pressed) if one and at != ask.query)
        found = ask.pressed[at]
        assert not ask.word or int(found) < MOST_PRESSED
        asked = replace(scene, word=int(found)) if ask.word else replace(scene, choice=found)
    else:
        asked = replace(scene, choice=next(iter(lesson.control.options(scene))))
    assert lesson.show(asked).facts != lesson.show(scene).facts


# In their pictures words can be pressed, too, where they stand.
@pytest.mark.parametrize("name", ["roles", "heads", "limits", "cross", "older", "recurrent"])
def test_what_a_press_in_the_picture_chooses_is_there_to_be_chosen(name: str, run: RunText) -> None:
    lesson, scene = LESSONS[name], Scene(TEXT, run)
    shown = lesson.show(scene)
    chosen = {spot.option for spot in shown.spots}
    there = lesson.control.options(scene) if lesson.control.words or lesson.words is None else lesson.words(scene)[0]
    assert len(chosen) > 1 and chosen <= there.keys()
    for spot in shown.spots:
        x, y = (shown.figure.layout[f"{one}axis{spot.axis}"] for one in "xy")
        assert x is not None and y is not None
    now = lesson.control.value(scene) if lesson.control.words else str(scene.asking)
    other = max((one for one in chosen if one != now), key=int)
    asked = replace(scene, choice=other) if lesson.control.words else replace(scene, word=int(other))
    assert lesson.show(asked).facts != shown.facts


# Each shows what a real model does, and what a toy does where that isn't installed.
TRAINED = ("why", "vectors", "plain", "roles", "scores", "softmax", "mixture", "masks", "heads", "positions", "limits")


@pytest.mark.parametrize("name", TRAINED)
def test_without_the_real_model_a_toy_stands_there_by_name(
    name: str, run: RunText, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Scene, "model", "coreference")
    # Positions opens on our own module.
    lesson, scene = LESSONS[name], Scene(TEXT, run, "trained" if name == "positions" else "")
    ask, shown = lesson.ask(scene), lesson.show(scene)
    text = lesson_text(name, shown.facts)
    assert "MiniLM" not in f"{ask.source} {text}"
    # Its heads are ours, and only its exercise has a trained model's.
    assert name == "heads" or "the toy coreference, on a sentence of its own" in f"{ask.source} {text}"
    if lesson.exercise in ("strongest", "head", "matters"):
        exercise = EXERCISES[lesson.exercise].make(scene, 0)
        assert scene.read != TEXT and "MiniLM-L6-v2 of" not in exercise.question
        assert exercise.check(exercise.solution).right
