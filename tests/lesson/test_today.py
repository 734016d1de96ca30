"""Fewer keys and values, windows and sinks: numbers worked out anew with transformers' own model, and their limits."""

import math
from dataclasses import replace

import pytest
import torch

from attention_viz.lesson import EXERCISES, LESSONS, Scene, lesson_text
from attention_viz.lesson.language import TOY, Twice
from attention_viz.lesson.scene import RunText
from attention_viz.lesson.screens.caching.sharing import Cached, ShareSets
from attention_viz.lesson.screens.caching.windows import Windowed
from attention_viz.lesson.translation import in_language
from tests.lesson.recomputed import cache, windows

TEXT = "The bank of the river was flooded"
LONGER = "The trophy does not fit in the suitcase because it is too big"


@pytest.fixture
def scene(run: RunText) -> Scene:
    return Scene(TEXT, run)


@pytest.mark.parametrize(
    ("text", "kind"),
    [(TEXT, "each"), (TEXT, "grouped"), (TEXT, "one"), (TEXT, "latent"), (LONGER, "grouped"), (LONGER, "one")],
)
def test_the_cache_is_counted_as_transformers_fills_it(text: str, kind: str, run: RunText) -> None:
    asked = Scene(text, run, kind)
    told, wanted = LESSONS["cache"].show(asked).facts, cache.facts(asked, run)
    assert {name: told[name] for name in wanted} == wanted
    numbers = {name for name, fact in told.items() if any(letter.isdigit() for letter in fact)}
    assert numbers <= {*wanted, "model"}


@pytest.mark.parametrize("word", [1, 4, 6])
def test_the_heads_that_differ_most_are_those_of_the_pressed_word(scene: Scene, run: RunText, word: int) -> None:
    asked = replace(scene, word=word)
    assert LESSONS["cache"].show(asked).facts["what"] == cache.facts(asked, run)["what"]


def test_only_old_keys_and_values_are_needed(scene: Scene, run: RunText) -> None:
    """Other old queries change no later output; other old keys or values do."""
    call = run("SmolLM2-135M-Instruct", TEXT).attention(3)
    for name, matters in (("query", False), ("key", True), ("value", True)):
        other = getattr(call, name).clone()
        other[:, :-1] = torch.randn(other[:, :-1].shape, generator=torch.Generator().manual_seed(1))
        moved = (replace(call, **{name: other}).output[:, -1] - call.output[:, -1]).abs().max()
        assert bool(moved > 1e-3) is matters
    ask = LESSONS["cache"].ask(scene)
    assert [ask.options[at] for at in ask.right] == ["keys and values"]
    stored = 30 * cache._stored(torch.tensor([run("SmolLM2-135M-Instruct", TEXT).query_tokens().numbers]))  # pyright: ignore[reportPrivateUsage] -- counted there
    assert f"{stored:,} numbers" in ask.finding


def test_sets_that_are_copied_change_nothing_and_means_much(scene: Scene) -> None:
    found = Cached(scene)
    call = found.trace.attention(5)
    copied = replace(call, key=call.key.repeat_interleave(3, 0), value=call.value.repeat_interleave(3, 0))
    assert torch.equal(copied.weights, call.weights) and found.moved(9) == 0
    assert found.with_sets(1).attention(5).key.shape[0] == 1 and found.moved(1) > 0.5
    fewer = ShareSets(1).apply(call, ("decoder", 5))
    assert torch.allclose(fewer.key[0], (call.key[0] + call.key[1] + call.key[2]) / 3)


@pytest.mark.parametrize(("text", "width"), [(TEXT, "4"), (TEXT, "8"), (LONGER, "32")])
def test_windows_give_the_probabilities_of_transformers_under_the_same_mask(
    text: str, width: str, run: RunText
) -> None:
    asked = Scene(text, run, width)
    told, wanted = LESSONS["windows"].show(asked).facts, windows.facts(asked, run)
    assert {name: told[name] for name in wanted} == wanted
    numbers = {name for name, fact in told.items() if any(letter.isdigit() for letter in fact)}
    assert numbers <= {*wanted, "model"}
    ask = LESSONS["windows"].ask(asked)
    assert ask.values == pytest.approx(windows.values(asked, run), abs=1e-4)
    # With as many tokens, the first one is worth more than the oldest of the window.
    assert [ask.options[at] for at in ask.right] == [f"first + last {int(width) - 1}"]


@pytest.mark.parametrize("way", ["all", "last", "sink", "start"])
def test_no_token_sees_more_than_the_window(scene: Scene, way: str) -> None:
    found = Windowed(scene, 8)
    allowed = found.allowed(way)
    assert allowed.tolist() == windows.mask(way, len(allowed), 8)
    if way != "all":
        assert allowed.sum(dim=1).tolist() == [min(at + 1, 8) for at in range(len(allowed))]


def test_until_a_window_leaves_a_token_out_it_changes_nothing(scene: Scene) -> None:
    found = Windowed(scene, 8)
    whole, last = (found.measured(way).likely for way in ("all", "last"))
    assert torch.allclose(whole[:8], last[:8], atol=1e-5) and not torch.allclose(whole[8:10], last[8:10], atol=1e-3)


@pytest.mark.parametrize("name", ["cache", "windows"])
def test_without_the_language_model_the_toy_stands_there_by_name(
    name: str, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Twice, "real", False)
    for choice in LESSONS[name].control.options(scene):
        asked = replace(scene, choice=choice)
        ask, shown = LESSONS[name].ask(asked), LESSONS[name].show(asked)
        said = f"{ask.source} {lesson_text(name, shown.facts)}"
        assert f"the toy “{TOY}”" in said and "SmolLM2" not in said.replace("SmolLM2-135M-Instruct isn't installed", "")
        assert not any(math.isnan(value) for value in ask.values) and "nan" not in said


@pytest.mark.parametrize("name", ["cache", "windows"])
def test_the_lessons_speak_german(name: str, scene: Scene) -> None:
    lesson = LESSONS[name]
    english, asked = lesson.show(scene), lesson.ask(scene)
    with in_language("de"):
        shown, ask = lesson.show(scene), lesson.ask(scene)
        text = lesson_text(name, shown.facts)
        exercise = EXERCISES[lesson.exercise].make(scene, 1)
    assert "Probier es aus" in text and "Token" in text
    german, said = ({one.question, one.finding, one.source, *one.options} for one in (ask, asked))
    assert not german & said
    assert shown.says != english.says
    plain = EXERCISES[lesson.exercise].make(scene, 1)
    assert exercise.answer == plain.answer and exercise.question != plain.question
    assert not {slip.words for slip in exercise.slips} & {slip.words for slip in plain.slips}


@pytest.mark.parametrize("text", ["Hi", "🙂", "مرحبا بالعالم", "<b>x</b> & y", " ".join(f"word{n}" for n in range(24))])
def test_any_text_has_a_cache_and_a_window(text: str, run: RunText) -> None:
    for name in ("cache", "windows"):
        lesson = LESSONS[name]
        shown = lesson.show(Scene(text, run, word=0))
        assert "<b>x" not in str(shown.figure.layout.annotations)
        assert len(str(shown.figure.to_json())) < 200_000
    options, asking = LESSONS["cache"].words(Scene(text, run))  # pyright: ignore[reportOptionalCall] -- it has words
    assert asking in options
