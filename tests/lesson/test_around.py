"""Around attention: what is shown is what plain transformers computes, read by hooks on its modules."""

import math
import re
from dataclasses import replace
from typing import Any

import pytest
from torch import Tensor

import attention_viz as av
from attention_viz.circuits.layers.model_flow import ModelFlow, model_flow
from attention_viz.lesson import EXERCISES, LESSONS, Scene, lesson_text
from attention_viz.lesson.language import LANGUAGE_MODEL, TOY, Twice
from attention_viz.lesson.scene import RunText
from attention_viz.lesson.screens import around
from attention_viz.sources import CATALOGUE
from tests.lesson.recomputed.around import Passed, passed

TEXT = "The bank of the river was flooded"


@pytest.fixture
def scene(run: RunText) -> Scene:
    return Scene(TEXT, run)


@pytest.fixture(scope="module")
def plain() -> Passed:
    return passed(TEXT, -1)


def near(ours: Tensor, theirs: Tensor) -> bool:
    """Within a hundred-thousandth of the length."""
    return bool((ours.double() - theirs.double()).norm() <= 1e-5 * theirs.double().norm())


def test_each_addition_is_what_its_module_put_out(scene: Scene, plain: Passed) -> None:
    flow = model_flow(scene.run(LANGUAGE_MODEL, TEXT))
    assert len(flow.layers) == len(plain.attention) == 30
    for layer in range(30):
        assert near(flow.attention[layer], plain.attention[layer])
        # It is the difference of two sums, so it is as exact as these.
        assert (flow.mlp[layer] - plain.mlp[layer]).norm() <= 1e-5 * flow.streams[layer + 1].norm()
    assert near(flow.streams[0], plain.embedding)


def test_the_embedding_and_all_additions_are_the_vector_that_enters_the_last_norm(scene: Scene, plain: Passed) -> None:
    flow = model_flow(scene.run(LANGUAGE_MODEL, TEXT))
    total = plain.embedding.double() + sum(one.double() for one in (*plain.attention, *plain.mlp))
    assert near(flow.streams[-1], total) and near(plain.normed_input, total)
    assert not near(flow.streams[-1], total - plain.mlp[0].double())


def test_the_chances_are_those_of_the_models_own_output(scene: Scene, plain: Passed) -> None:
    flow = model_flow(scene.run(LANGUAGE_MODEL, TEXT))
    for temperature in (0.5, 1.0, 2.0):
        theirs = (plain.logits.double() / temperature).softmax(dim=-1)
        best = theirs.topk(5)
        assert flow.logits[-1].tolist() == pytest.approx(plain.logits[best.indices].tolist(), abs=1e-4)
        assert flow.chances(30, temperature) == pytest.approx(best.values.tolist(), abs=1e-5)


@pytest.mark.parametrize("stop", [0, 3, 29])
def test_a_model_that_stops_early_is_one_whose_later_layers_were_taken_out(scene: Scene, stop: int) -> None:
    flow, theirs = model_flow(scene.run(LANGUAGE_MODEL, TEXT)), passed(TEXT, -1, layers=stop).logits
    assert float(flow.logits[stop, 0]) == pytest.approx(float(theirs.max()), abs=1e-3)
    assert flow.chances(stop)[0] == pytest.approx(float(theirs.softmax(dim=-1).max()), abs=1e-5)


def test_only_a_sum_is_as_long_as_the_last_vector(scene: Scene, plain: Passed) -> None:
    ask = LESSONS["around"].ask(scene)
    end = float(plain.normed_input.double().norm())
    longest = max(float(one.norm()) for one in (*plain.attention, *plain.mlp))
    # Neither one output nor a mean can be longer than the longest: the premise excludes both.
    assert longest < end and f"{longest:.2f} long" in ask.premise and f"{end:.2f} long" in ask.premise
    assert f"{float(plain.embedding.norm()):.2f} long" in ask.premise
    assert ask.right == {2} and ask.values[2] == 1 and ask.shown[2] == f"{end:.2f} long"
    assert ask.shown[0] == f"{float(plain.mlp[-1].norm()):.2f} long"
    lengths = [float(one.split()[0]) for one in ask.shown]
    assert max(lengths[:2]) <= longest + 0.01 and ask.values == pytest.approx([one / end for one in lengths], abs=1e-4)


def test_another_word_has_another_answer(scene: Scene) -> None:
    options, asking = LESSONS["around"].words(scene)  # pyright: ignore[reportOptionalCall] -- it has words
    assert options[asking] == "flooded" and asking == "6"
    other, of = LESSONS["around"].ask(replace(scene, word=2)), passed(TEXT, 2)
    assert "“of”" in other.question and other.right == {2}
    assert other.shown[2] == f"{float(of.normed_input.double().norm()):.2f} long"


def test_a_wrong_guess_hears_how_long_the_vector_would_be(scene: Scene, plain: Passed) -> None:
    ask = LESSONS["around"].ask(scene)
    length, end = (f"{float(one.double().norm()):.2f}" for one in (plain.mlp[-1], plain.normed_input))
    assert ask.said(0) == (
        f"Not quite. If each output replaced the vector, the last one would be {length} long, not {end}. "
        f"The answer is “all: added to”: {end} long."
    )
    assert ask.said(2).startswith("Right. ") and "ranks" not in ask.said(1)


def test_fewer_layers_change_the_sum(scene: Scene) -> None:
    lesson = LESSONS["around"]
    options = lesson.control.options(scene)
    assert list(options) == [str(stop) for stop in range(31)] and lesson.control.default(scene) == "30"
    shown = {stop: lesson.show(replace(scene, choice=stop)) for stop in ("0", "3", "30")}
    there = passed(TEXT, -1, layers=3)
    length = f"{float(there.normed_input.double().norm()):.2f}"
    assert f"Layer 2 adds {float(there.attention[-1].norm()):.2f} by attention" in shown["3"].facts["stopped"]
    assert shown["3"].facts["stopped"].endswith(f"the sum is {length} long.") and length in shown["3"].says
    assert shown["0"].facts["stopped"].startswith("If no layer ran")
    assert "next token" not in str(shown["30"].figure) and f"sum: {shown['30'].facts['end']} long" in str(
        shown["30"].figure
    )


def test_the_next_word_has_the_model_s_own_probabilities(scene: Scene, plain: Passed) -> None:
    for temperature in ("0.5", "1", "2"):
        shown: Any = LESSONS["next"].show(replace(scene, choice=temperature))
        theirs = (plain.logits.double() / float(temperature)).softmax(dim=-1).topk(5).values.tolist()
        bars = [one for one in shown.figure.data if one.type == "bar"]
        strong = [one for one in bars if one.marker.opacity == 1]
        assert len(bars) == 3 and len(strong) == 1
        assert list(strong[0].x) == pytest.approx([*theirs, 1 - sum(theirs)], abs=1e-5)
        assert shown.facts["chance"] in shown.says and f"T = {temperature}" in shown.says
    assert [one.x[0] for one in bars] == sorted((one.x[0] for one in bars), reverse=True)


def test_the_question_on_the_next_word_is_answered_by_e_to_the_difference(scene: Scene, plain: Passed) -> None:
    ask = LESSONS["next"].ask(scene)
    high, low = map(float, re.findall(r"logit (\S+), and .* has (\S+)\.$", ask.premise)[0])
    assert high == pytest.approx(float(plain.logits.max()), abs=0.006)
    (right,) = ask.right
    assert float(ask.options[right].split()[1]) == pytest.approx(math.exp(high - low), rel=0.02)
    assert len(set(ask.options)) == len(ask.options) >= 3 and ask.reasons[right] == ""
    for at, option in enumerate(ask.options):
        if at != right:
            assert ask.reasons[at] and ask.reasons[at] in ask.said(at)
            slips = (high - low, high / low, math.e * (high - low))
            assert min(abs(float(option.split()[1]) - slip) for slip in slips) < 0.09


def test_negative_logits_have_no_ratio_to_choose(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    another = replace(scene, text="The cat sat on the mat")
    flow = model_flow(scene.run(LANGUAGE_MODEL, another.text))

    def lowered(_trace: av.Trace, _position: int) -> ModelFlow:
        return replace(flow, logits=flow.logits - 60)

    monkeypatch.setattr(around, "model_flow", lowered)
    ask = LESSONS["next"].ask(another)
    assert not any("divides the logits" in one for one in ask.reasons)
    gap = float(flow.logits[-1].double()[0]) - min(
        (float(one) for one in flow.logits[-1].double()[1:]), key=lambda one: abs(float(flow.logits[-1][0]) - one - 2)
    )
    right = float(ask.options[min(ask.right)].split()[1].replace(",", ""))
    assert right == pytest.approx(math.exp(gap), rel=0.06) and 2 <= len(ask.options) <= 3


def test_without_the_package_a_toy_is_followed_by_name(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Twice, "real", False)
    ask, shown = LESSONS["around"].ask(scene), LESSONS["around"].show(scene)
    text = lesson_text("around", shown.facts)
    assert f"{LANGUAGE_MODEL} isn't installed where this page was made" in text and TOY in ask.premise and TOY in text
    assert shown.facts["layers"] == "2 layers"
    trace = scene.run(TOY, Twice(scene).text)
    assert CATALOGUE[TOY].examples[0].split()[0] in trace.query_tokens().names[1]


def test_a_model_of_another_build_is_refused_by_name(run: RunText) -> None:
    with pytest.raises(av.UnsupportedModel, match="predicts no words"):
        model_flow(run("all-MiniLM-L6-v2", TEXT))
    with pytest.raises(av.ShapeError):
        model_flow(run(LANGUAGE_MODEL, TEXT), 7)


def test_a_flow_is_computed_once_for_a_word(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = list[int]()

    def counting(trace: av.Trace, position: int) -> ModelFlow:
        calls.append(position)
        return model_flow(trace, position)

    monkeypatch.setattr(around, "model_flow", counting)
    another = replace(scene, text="Ships sail across the sea")
    for stop in ("1", "2", "5"):
        LESSONS["around"].show(replace(another, choice=stop))
    assert len(calls) == 1
    LESSONS["around"].show(replace(another, word=0))
    assert len(calls) == 2


@pytest.mark.parametrize("seed", range(12))
def test_the_exercise_adds_and_norms(scene: Scene, seed: int) -> None:
    exercise = EXERCISES["residual"].make(scene, seed)
    ((start, attention, mlp),) = (one.numbers for one in exercise.given)
    at = int(re.findall(r"dimension (\d)", exercise.question)[0])
    total = [a + b for a, b in zip(start, attention, strict=True)]
    assert exercise.check(str(total[at] / math.hypot(*total))).right
    mistakes = {
        "attention is missing": start,
        "not put in its place": attention,
        "comes later": [a + b for a, b in zip(total, mlp, strict=True)],
    }
    for words, vector in mistakes.items():
        if any(vector):
            wrong = vector[at] / math.hypot(*vector)
            assert not exercise.check(str(wrong)).right
            assert any(words in one.words and one.answer == pytest.approx(wrong) for one in exercise.slips)


@pytest.mark.parametrize("seed", range(12))
def test_the_exercise_compares_two_tokens(scene: Scene, seed: int) -> None:
    exercise = EXERCISES["logits"].make(scene, seed)
    ((last,), rows) = (one.numbers for one in exercise.given)
    temperature = float(re.findall(r"At T = (\S+),", exercise.question)[0])
    one, other = (math.fsum(a * b for a, b in zip(last, row, strict=True)) for row in rows)
    assert exercise.question.index(f"“{exercise.given[1].rows[1]}” is “{exercise.given[1].rows[0]}”")
    assert exercise.check(str(math.exp((one - other) / temperature))).right
    assert "the temperature is missing" in exercise.check(str(math.exp(one - other))).words
    assert "swap" in exercise.check(str(math.exp((other - one) / temperature))).words
