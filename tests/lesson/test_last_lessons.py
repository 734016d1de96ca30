"""Recurrent against parallel, cost, practice and limits: what the lessons say is so."""

import math
from dataclasses import replace

import pytest
import torch

from attention_viz.edits.kinds.ablation import Ablate
from attention_viz.lesson import LESSONS, Scene
from attention_viz.lesson.measuring import LENGTHS, blockwise, fastest, head_within, practice, seconds_by_length
from attention_viz.lesson.scene import RunText
from attention_viz.lesson.screens.order import left_of_the_first
from attention_viz.lesson.screens.trained import effects, lightest
from attention_viz.operation.attention import attend
from attention_viz.scratch.model import Scratch

TEXT = "The bank of the river was flooded"


@pytest.fixture
def scene(run: RunText) -> Scene:
    return Scene(TEXT, run)


def test_a_path_is_as_long_as_there_are_words_between(scene: Scene) -> None:
    facts = LESSONS["recurrent"].show(replace(scene, choice="6")).facts
    assert (facts["hops"], facts["one"]) == ("6 steps", "1 step")
    assert facts["weight"] == f"{float(Scratch(8, 1, positions='none').trace(TEXT).weights(0, 0)[6, 0]):.2f}"


def test_what_is_left_of_the_first_word_is_the_product_of_what_each_step_keeps(scene: Scene) -> None:
    scratch = Scratch(8, 1, positions="none")
    known = scratch.projections()
    w, u = known["query"].weight, known["key"].weight
    state, moved, sizes = torch.zeros(8), torch.eye(8), []
    for at, x in enumerate(scratch.embed(scene.words)):
        state = torch.tanh(state @ w + x @ u)
        slope = torch.diag(1 - state**2)
        moved = slope @ (u.mT if at == 0 else w.mT @ moved)
        sizes.append(float(moved.norm()))
    assert left_of_the_first(scene) == pytest.approx([size / sizes[0] for size in sizes], rel=1e-4)


def test_costs_are_counted_and_measured(scene: Scene) -> None:
    facts = LESSONS["cost"].show(replace(scene, choice="512")).facts
    assert (facts["short_weights"], facts["long_weights"], facts["weights"]) == ("262,144", "4,194,304", "262,144")
    measured = seconds_by_length()
    assert tuple(measured) == LENGTHS
    assert all(seconds > 0 for seconds in measured.values())
    assert facts["milliseconds"] == f"{1000 * measured[512]:,.2f}"


def test_a_novels_weights_need_gigabytes_and_its_vectors_dont(scene: Scene) -> None:
    ask = LESSONS["cost"].ask(scene)
    assert ask.right == {2} and ask.options == ("400 kilobytes", "25.6 megabytes", "40 gigabytes")
    facts = LESSONS["cost"].show(scene).facts
    # Where 3 n d² and 2 n² d are equal.
    d, n = int(facts["width"]), int(facts["equal"])
    assert 3 * n * d**2 == 2 * n**2 * d


def test_what_is_timed_is_attention() -> None:
    vectors = torch.randn(9, 64, generator=torch.Generator().manual_seed(1))
    output = head_within(vectors, torch.empty(9, 9), torch.empty(9, 9))
    assert torch.allclose(output, attend(vectors, vectors, vectors).output, atol=1e-5)


def test_runs_that_are_timed_take_turns() -> None:
    order: list[str] = []
    times = fastest(lambda: order.append("a"), lambda: order.append("b"))
    assert order == ["a", "a", "b", "b"] * (len(order) // 4) and len(order) >= 8
    assert len(times) == 2 and all(0 < one < 1 for one in times)


@pytest.mark.parametrize(
    ("name", "right"), [("fused", 0), ("blockwise", 0), ("checkpointing", 0), ("mixed precision", 1)]
)
def test_only_numbers_of_two_bytes_move_a_result_by_more_than_rounding(scene: Scene, name: str, right: int) -> None:
    ask = LESSONS["practice"].ask(replace(scene, choice=name))
    assert ask.right == {right} and ask.shown[right]
    assert f"{practice(name).after:,.0f}" in ask.finding or f"{practice(name).after:.3g}" in ask.finding


def test_a_recurrent_network_needs_a_round_per_word(scene: Scene) -> None:
    for end in range(1, 7):
        ask = LESSONS["recurrent"].ask(replace(scene, choice=str(end)))
        ready, rounds = {-1}, 0
        while end not in ready:  # a state needs the one before it
            ready, rounds = ready | {at + 1 for at in ready}, rounds + 1
        assert [ask.options[at] for at in ask.right] == [f"{rounds} rounds"]
        assert ask.finding.startswith(f"{rounds} rounds for a recurrent network")


@pytest.mark.parametrize("layer", range(6))
def test_the_word_that_adds_most_has_the_longest_product(scene: Scene, run: RunText, layer: int) -> None:
    ask, trace = LESSONS["limits"].ask(replace(scene, choice=str(layer))), run("all-MiniLM-L6-v2", TEXT)
    assert ask.place is not None and ask.place.query is not None
    one = trace.attention(layer).head(ask.place.head)
    weights = ((one.key @ one.query[ask.place.query]) / math.sqrt(32)).softmax(-1)
    lengths = [math.sqrt(sum(number**2 for number in value)) for value in one.value.tolist()]
    names = trace.query_tokens().names
    added = {name: float(weight) * length for name, weight, length in zip(names, weights, lengths, strict=True)}
    best = max(added, key=added.__getitem__)
    longest = names.index(best)
    product = f"weight {weights[longest]:.3f} × length {lengths[longest]:.3f} = {added[best]:.3f}"
    assert ask.finding == f"“{best}” adds most: {product}" and int(weights.argmax()) == ask.place.key
    for option, value in zip(ask.options, ask.values, strict=True):
        numbers, _, name = option.partition(": ")
        weight, length = map(float, numbers.split(" × "))
        assert value == pytest.approx(added[name], abs=1e-5) == pytest.approx(weight * length, abs=5e-3)
    assert max(ask.values) == pytest.approx(added[best], abs=1e-5)
    # The largest weight is among the options, and adds less.
    assert added[names[ask.place.key or 0]] < added[best]


@pytest.mark.parametrize("block", [1, 5, 7, 40])
def test_blockwise_attention_is_attention(block: int) -> None:
    torch.manual_seed(block)
    query, key, value = torch.randn(13, 6), torch.randn(17, 6), torch.randn(17, 3)
    output, most = blockwise(query, key, value, block)
    assert torch.allclose(output, attend(query, key, value).output, atol=1e-5)
    assert most == min(block, 13) * min(block, 17)


@pytest.mark.parametrize(
    ("name", "saves", "apart"), [("blockwise", 60, 1e-5), ("checkpointing", 2, 1e-5), ("mixed precision", 1.9, 0.05)]
)
def test_a_practice_saves_without_changing_the_result(name: str, saves: float, apart: float) -> None:
    measured = practice(name)
    assert measured.before > saves * measured.after
    assert measured.apart < apart


def test_a_fused_projection_gives_the_same() -> None:
    assert practice("fused").apart < 1e-5


def test_effects_are_those_of_the_model_without_the_head(scene: Scene, run: RunText) -> None:
    before, after = run("all-MiniLM-L6-v2", TEXT), run("all-MiniLM-L6-v2", TEXT, edits=(Ablate(1, 3),))
    moved = ((after.output - before.output).norm(dim=-1) / before.output.norm(dim=-1)).mean()
    found = effects(scene, 1)
    assert found[3] == pytest.approx(float(moved), rel=1e-4)
    facts = LESSONS["limits"].show(replace(scene, choice="1")).facts
    assert facts["moving"] == str(found.index(max(found)))


def test_the_head_that_looks_at_the_river_is_told_with_its_weight(scene: Scene) -> None:
    facts = LESSONS["limits"].show(replace(scene, choice="0")).facts
    assert (facts["word"], facts["other"], facts["looking"], facts["weight"]) == ("bank", "river", "4", "0.58")


def test_the_heaviest_weight_that_brings_least_is_found_by_hand_too(scene: Scene, run: RunText) -> None:
    trace = run("all-MiniLM-L6-v2", TEXT)
    light = lightest(trace, 1)
    # "of" rests on [CLS] with most of its weight, and nothing that it fetches is shorter.
    assert (light.head, light.query, light.key, light.place) == (5, 3, 0, 9)
    one = trace.attention(1).head(5)
    lengths = [float(one.weights[3, key] * one.value[key].norm()) for key in range(9)]
    assert light.weight == pytest.approx(float(one.weights[3].max())) and light.weight > 0.6
    assert light.length == pytest.approx(min(lengths)) and light.most == pytest.approx(max(lengths))
    told = LESSONS["limits"].show(replace(scene, choice="1")).facts["light"]
    assert f"“of” looks most at “[CLS]”: {light.weight:.2f}" in told and "place 9 of 9" in told
    # In each row of each layer, worked out cell by cell, none has a later place.
    for layer in trace.layer_numbers():
        found = []
        for head in range(12):
            call = trace.attention(layer).head(head)
            for query in range(1, 8):
                row = (call.weights[query] * call.value.norm(dim=-1)).tolist()
                found.append(1 + sum(cell > row[int(call.weights[query].argmax())] for cell in row))
        assert lightest(trace, layer).place == max(found)
