"""Around attention: what is shown is what plain transformers computes, read by hooks on its modules."""

import math
from dataclasses import replace
from typing import Any

import pytest
from torch import Tensor

import attention_viz as av
from attention_viz.circuits.layers.model_flow import ModelFlow, model_flow
from attention_viz.lesson import EXERCISES, LESSONS, Scene, lesson_text
from attention_viz.lesson.language import LANGUAGE_MODEL, TOY, Twice
from attention_viz.lesson.scene import RunText
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


def test_fewer_layers_change_what_would_come_next(scene: Scene) -> None:
    lesson = LESSONS["around"]
    options = lesson.control.options(scene)
    assert list(options) == [str(stop) for stop in range(31)] and lesson.control.default(scene) == "30"
    shown = {stop: lesson.show(replace(scene, choice=stop)) for stop in ("3", "30")}
    flow = model_flow(scene.run(LANGUAGE_MODEL, TEXT))
    assert f"“{flow.likeliest[3][0].strip('·')}” would be likeliest" in shown["3"].facts["stopped"]
    assert f"“{flow.likeliest[30][0].strip('·')}” is likeliest" in shown["30"].says
    assert shown["3"].facts["likely"] == shown["30"].facts["likely"]


def test_without_the_package_a_toy_is_followed_by_name(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Twice, "real", False)
    ask, shown = LESSONS["around"].ask(scene), LESSONS["around"].show(scene)
    text = lesson_text("around", shown.facts)
    assert f"{LANGUAGE_MODEL} isn't installed here" in text and TOY in ask.premise and TOY in text
    assert shown.facts["layers"] == "2 layers"
    trace = scene.run(TOY, Twice(scene).text)
    assert CATALOGUE[TOY].examples[0].split()[0] in trace.query_tokens().names[1]


def test_a_model_of_another_build_is_refused_by_name(run: RunText) -> None:
    with pytest.raises(av.UnsupportedModel, match="predicts no words"):
        model_flow(run("all-MiniLM-L6-v2", TEXT))
    with pytest.raises(av.ShapeError):
        model_flow(run(LANGUAGE_MODEL, TEXT), 7)


def test_a_flow_is_computed_once_for_a_word(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    from attention_viz.lesson.screens import around

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
def test_the_exercise_adds_multiplies_and_divides(scene: Scene, seed: int) -> None:
    exercise = EXERCISES["residual"].make(scene, seed)
    (start, attention, mlp), rows = (one.numbers for one in exercise.given)
    asked = exercise.question.partition("softmax for “")[2].partition("”")[0]
    temperature = float(exercise.question.rpartition("T = ")[2].rstrip("?"))
    row = rows[exercise.given[1].rows.index(asked)]
    end = [sum(numbers) for numbers in zip(start, attention, mlp, strict=True)]
    logit = math.fsum(a * b for a, b in zip(end, row, strict=True))
    assert exercise.check(str(logit / temperature)).right
    if temperature != 1 and logit:
        assert "divide it by the temperature" in exercise.check(str(logit)).words
        assert "did you multiply by T?" in exercise.check(str(logit * temperature)).words
    replaced: Any = math.fsum((a + b) * c for a, b, c in zip(attention, mlp, row, strict=True)) / temperature
    reply = exercise.check(str(replaced))
    assert not reply.right
    slips = [one for one in exercise.slips if one.answer == replaced]
    assert any("not put in its place" in one.words for one in slips) and slips[0].words in reply.words
