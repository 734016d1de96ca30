"""What heads do: each job's head and its numbers, worked out anew from the language model's own weights."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

import attention_viz as av
from attention_viz.corpus.shipped import scans
from attention_viz.edits.kinds.ablation import Ablate
from attention_viz.lesson import EXERCISES, LESSONS, Scene, lesson_text
from attention_viz.lesson.exercise import OptionAnswer
from attention_viz.lesson.language import LANGUAGE_MODEL, TOY, Twice
from attention_viz.lesson.scene import RunText

TEXT = "The bank of the river was flooded"
SUBSCRIPTS = "₀₁₂₃₄₅₆₇₈₉"


@pytest.fixture
def scene(run: RunText) -> Scene:
    return Scene(TEXT, run)


def facts(scene: Scene, job: str) -> dict[str, str]:
    return dict(LESSONS["jobs"].show(replace(scene, choice=job)).facts)


def largest(scene: Scene, of: Callable[[torch.Tensor], float]) -> tuple[int, int, float]:
    """The head with the largest of a number that is made of its weights."""
    trace = Twice(scene).trace
    found = [
        (of(weights), layer, head)
        for layer in trace.layer_numbers()
        for head, weights in enumerate(trace.attention(layer).weights)
    ]
    share, layer, head = max(found)
    return layer, head, share


def told(found: dict[str, str]) -> tuple[int, int, float]:
    return int(found["layer"]), int(found["head"]), float(found["share"])


def test_the_word_before(scene: Scene) -> None:
    layer, head, share = largest(scene, lambda weights: float(weights.diagonal(-1).mean()))
    found = facts(scene, "previous")
    assert found["model"] == LANGUAGE_MODEL and found["count"] == "270"
    assert told(found) == (layer, head, pytest.approx(share, abs=6e-3))
    diagonal = Twice(scene).trace.weights(layer, head).diagonal(-1)
    half = (len(diagonal) + 1) // 2
    at = half - 1 + int(diagonal[half - 1 :].argmax())  # in the repetition, where there is more to choose from
    names = Twice(scene).trace.query_tokens().names
    assert (found["word"], found["other"]) == (names[at + 1], names[at])
    assert found["weight"] == f"{float(diagonal[at]):.2f}"


@pytest.mark.parametrize(("job", "role"), [("previous", "previous"), ("first", "first"), ("copying", "induction")])
def test_how_often_it_is_so_is_what_the_scan_that_ships_counted(scene: Scene, job: str, role: str) -> None:
    found = facts(scene, job)
    told = av.Scan.load(scans()[LANGUAGE_MODEL]).roles.loc[(int(found["layer"]), int(found["head"]))]
    holds, could = told[f"role {role}_holds"], told[f"role {role}_texts"]
    text = lesson_text("jobs", found)
    assert f"In {could} passages of Jane Austen’s novels this job is possible; the head does it in {holds}" in text


def test_heads_rest_on_a_token_with_a_small_value(scene: Scene) -> None:
    layer, head, share = largest(scene, lambda weights: float(weights[:, 0].mean()))
    found = facts(scene, "first")
    assert told(found) == (layer, head, pytest.approx(share, abs=6e-3))
    call = Twice(scene).trace.attention(layer)
    lengths = call.value[head * call.value.shape[0] // call.shape[0]].norm(dim=-1)
    assert f"{float(lengths[0]):.3f} long" in found["finding"]
    assert f"{float(lengths[1:].mean()):.3f} on average" in found["finding"]
    assert "Little is fetched there" in found["finding"] and lengths[0] < lengths[1:].mean() / 5


def test_a_pattern_is_gone_on_with_and_less_without_its_heads(scene: Scene, run: RunText) -> None:
    twice = Twice(scene)
    half = len(twice.trace.query_tokens()) // 2
    again = torch.arange(half, 2 * half)
    followers = torch.arange(1, half + 1)
    # Every token comes twice, "the" aside, which differs from "The".
    ids = twice.trace.query_tokens().ids
    assert ids[:half] == ids[half:] and len(set(ids[:half])) == half
    layer, head, share = largest(scene, lambda weights: float(weights[again, followers].mean()))
    assert told(facts(scene, "induction")) == (layer, head, pytest.approx(share, abs=6e-3))
    silenced = [Ablate(one, other) for one, other, _ in twice.heads("induction", 3)]
    shares = []
    for edits in ((), silenced):
        likely = run(LANGUAGE_MODEL, twice.text, edits=edits).output.softmax(dim=-1)
        shares.append(sum(float(likely[at, ids[at + 1]]) for at in range(half, 2 * half - 1)) / (half - 1))
    assert f"{shares[1]:.3f} on average, instead of {shares[0]:.3f}" in facts(scene, "copying")["finding"]
    assert shares[1] < shares[0]


def test_the_exercise_is_about_that_head_and_what_came_next_is_right(scene: Scene) -> None:
    exercise, twice = EXERCISES["job"].make(scene, 3), Twice(scene)
    layer, head, _ = twice.heads("induction")[0]
    assert f"layer {layer}, head {head}" in exercise.question and twice.quoted in exercise.question
    assert isinstance(exercise.answer, OptionAnswer)
    (right,) = exercise.answer.right
    asked = exercise.question.split("does “")[1].split("”")[0]
    words, asked = list(twice.trace.query_tokens().texts), asked.rstrip(SUBSCRIPTS)
    assert exercise.answer.options[right].rstrip(SUBSCRIPTS) == words[words.index(asked) + 1]


def test_without_the_package_a_toy_stands_there_by_name(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Twice, "real", False)
    shown = LESSONS["jobs"].show(replace(scene, choice="induction"))
    assert shown.facts["model"] == TOY
    text = lesson_text("jobs", shown.facts)
    assert f"{LANGUAGE_MODEL} isn't installed where this page was made" in text
    assert TEXT not in text and "Austen" not in text
    assert (shown.facts["layer"], shown.facts["head"]) == ("1", "1")
    exercise = EXERCISES["job"].make(scene, 0)
    assert f"{LANGUAGE_MODEL} isn't installed where this page was made" in exercise.question


def test_a_text_too_short_to_be_gone_on_with_says_so(run: RunText) -> None:
    assert "too short" in facts(Scene("Hi", run), "copying")["finding"]


@pytest.mark.parametrize("job", ["previous", "first", "induction", "copying"])
def test_the_bars_are_of_tokens_that_may_be_looked_at(job: str, scene: Scene) -> None:
    ask = LESSONS["jobs"].ask(replace(scene, choice=job))
    query = int(ask.question.rpartition("token ")[2].split(",")[0])
    keys = [int(option.split()[0]) for option in ask.options]
    assert max(keys) <= query, "a causal model gives later tokens nothing"
    which = f"all weights of its row ({len(keys)} tokens)" if len(keys) == query + 1 else f"its {len(keys)} largest"
    assert which in ask.source
