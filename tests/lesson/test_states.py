"""Attention without a softmax, and the delta rule: what both lessons say is so, and each wrong answer has its cause."""

import itertools
import math
import re
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from attention_viz.lesson import EXERCISES, LESSONS, Exercise, Scene
from attention_viz.lesson.exercise import OptionAnswer
from attention_viz.lesson.recalled import NAMES, OPENING, RULES, Recalled
from attention_viz.lesson.scene import RunText
from attention_viz.lesson.screens.states import small_example
from attention_viz.lesson.without_softmax import crowded, delta, running, states

TEXT = "The bank of the river was flooded"
SEEDS = range(12)


@pytest.fixture
def scene(run: RunText) -> Scene:
    return Scene(TEXT, run)


def _read(text: str) -> float:
    return float(text.replace("−", "-"))


def _whole(text: str) -> int:
    number, _, size = text.replace(",", "").partition(" ")
    return round(float(number) * {"": 1, "million": 10**6, "billion": 10**9}[size])


def _vector(text: str) -> list[float]:
    return [_read(one) for one in text.strip("()").split(", ")]


@pytest.mark.parametrize("decay", ["0.25", "0.5", "0.9", "1"])
@pytest.mark.parametrize("word", [0, 2, 4])
def test_both_orders_of_multiplication_give_the_numbers_that_the_lesson_states(
    scene: Scene, decay: str, word: int
) -> None:
    asked = replace(scene, choice=decay, word=word)
    small, facts = small_example(asked), LESSONS["linear"].show(asked).facts
    query, key, value = (one.tolist() for one in (small.mixer.query, small.mixer.key, small.mixer.value))
    row = [
        sum(a * b for a, b in zip(query[word], key[at], strict=True)) * float(decay) ** (word - at)
        for at in range(word + 1)
    ]
    state = [
        [sum(float(decay) ** (word - at) * key[at][i] * value[at][j] for at in range(word + 1)) for j in (0, 1)]
        for i in (0, 1)
    ]
    by_rows = [sum(weight * value[at][j] for at, weight in enumerate(row)) for j in (0, 1)]
    by_state = [sum(query[word][i] * state[i][j] for i in (0, 1)) for j in (0, 1)]
    assert by_rows == pytest.approx(by_state)
    assert _vector(facts["by_rows"]) == pytest.approx(by_rows, abs=5.1e-5) == _vector(facts["by_state"])
    assert _vector(facts["row"]) == pytest.approx(row, abs=5.1e-5)
    assert _read(facts["sum"]) == pytest.approx(sum(row), abs=5.1e-5)
    assert facts["word"] == TEXT.split()[word] and facts["decay"] == decay
    # The numbers are small and whole, so that each can be worked out by hand.
    assert all(abs(one) <= 2 and one == int(one) for one in itertools.chain(*query, *key, *value))


@pytest.mark.parametrize(("decay", "reads"), [("1", "5"), ("0.9", "4.7"), ("0.5", "3.5"), ("0.25", "2.75")])
def test_a_query_reads_what_was_kept_and_what_a_key_brings_that_isnt_perpendicular(
    scene: Scene, decay: str, reads: str
) -> None:
    ask = LESSONS["linear"].ask(replace(scene, choice=decay))
    # Another way to the same: attention by weights, query · key × decay, over the two held words and the new one.
    keys, values = [(1, 0), (0, 1), (1, 1)], [3, 5, 2]
    weights = [key[0] * (float(decay) if at < 2 else 1) for at, key in enumerate(keys)]
    assert float(reads) == pytest.approx(sum(w * v for w, v in zip(weights, values, strict=True)))
    assert [ask.options[at] for at in ask.right] == [reads]
    assert f"reads {reads}:" in ask.finding
    assert len(set(ask.options)) == 4 and ("decay" in ask.premise) == (decay != "1")


def test_a_state_costs_more_for_short_texts_and_much_less_for_long_ones(scene: Scene) -> None:
    facts = LESSONS["linear"].show(scene).facts
    width = int(facts["wide"])
    # A score and a weighted value take d products each per pair; writing and reading a state, d² each per word.
    for name, pairs, carried in (("short", 1, 6.4), ("middle", 15.625, 1), ("long", 1562.5, 1)):
        n = int(facts[name].replace(",", ""))
        numbers = [_whole(facts[f"{name}_{way}"]) for way in ("pairs", "state")]
        assert numbers == [2 * n * n * width, 2 * n * width * width]
        assert numbers[0] * carried == pytest.approx(numbers[1] * pairs)
    assert [facts[name] for name in ("short", "middle", "long")] == ["10", "1,000", "100,000"]


@pytest.mark.parametrize("keys", [3, 4, 6])
def test_more_keys_than_numbers_bring_a_part_of_other_values(scene: Scene, keys: int) -> None:
    """Keys at even angles: the neighbour's part is the cosine of the angle between."""
    assert crowded(keys) == pytest.approx(math.cos(2 * math.pi / keys))
    assert _read(LESSONS["linear"].show(scene).facts["overlap"]) == -0.5
    assert crowded(2) == -1  # as far apart as two can be, and still not perpendicular


def _by_loop(
    asked: list[float], key: list[list[float]], value: list[float], write: list[float], decay: float, *, erases: bool
) -> float:
    """Read a state that is decayed, erased and written word by word."""
    state = [0.0] * len(asked)
    for k, v, beta in zip(key, value, write, strict=True):
        state = [decay * one for one in state]
        old = sum(a * b for a, b in zip(k, state, strict=True)) if erases else 0.0
        state = [one + beta * a * (v - old) for one, a in zip(state, k, strict=True)]
    return sum(a * b for a, b in zip(asked, state, strict=True))


@pytest.mark.parametrize("erases", [True, False])
@pytest.mark.parametrize("decay", [1.0, 0.7])
def test_the_mixers_of_the_lessons_are_states_that_are_written_word_by_word(decay: float, erases: bool) -> None:
    drawn = torch.randn(3, 5, 2, generator=torch.Generator().manual_seed(3)).double()
    key, value = drawn[0] / drawn[0].norm(dim=-1, keepdim=True), drawn[1, :, :1]
    write = [0.3, 1.0, 0.0, 0.6, 0.9]
    mixer = delta(drawn[2].tolist(), key.tolist(), value.tolist(), write, decay, erases=erases)
    for at in range(5):
        upto = slice(0, at + 1)
        wanted = _by_loop(
            drawn[2, at].tolist(), key[upto].tolist(), value[upto, 0].tolist(), write[upto], decay, erases=erases
        )
        assert float(mixer.output[at, 0]) == pytest.approx(wanted)
    plain = running(drawn[2].tolist(), key.tolist(), value.tolist(), decay)
    carried = torch.einsum("td,tdv->tv", drawn[2], states(key.tolist(), value.tolist(), decay))
    assert torch.allclose(plain.output, carried)


@pytest.mark.parametrize("name", range(len(NAMES)))
def test_a_second_value_replaces_the_first_only_if_the_trained_head_erases(
    scene: Scene, run: RunText, name: int
) -> None:
    """The matrix by each rule, from the head's own queries, keys, β and decays, state by state."""
    found = Recalled(scene, name)
    layer, head = found.place
    mixer = run("recall", found.text).attention(layer, "mixer").head(head)
    words, count = found.text.split(), len(mixer.key)
    start = count - len(words)
    places = [start + words.index(colour) for colour in found.colours]
    for rule, (part, erases) in {"erases": (1, True), "half": (0.5, True), "adds": (1, False)}.items():
        row = []
        for place in places:
            state = torch.zeros(mixer.key.shape[-1], dtype=torch.float64)
            for at in range(count):
                key, beta = mixer.key[at].double(), part * float(mixer.write[at])
                state = state * mixer.decay[at].double().exp()
                old = float(key @ state) if erases else 0.0
                state = state + beta * key * (float(at == place) - old)
            row.append(mixer.scale * float(mixer.query[-1].double() @ state))
        assert found.got(rule) == pytest.approx(row, abs=1e-6)
    assert found.got("erases") == pytest.approx(
        run("recall", found.text).weights(layer, head, "mixer")[-1, places].tolist()
    )


def test_the_lesson_states_the_weights_of_the_trained_head(scene: Scene) -> None:
    facts = LESSONS["delta"].show(scene).facts
    words, twice = facts["text"].split(), Recalled(scene, OPENING)
    assert [words[words.index(facts[one]) - 1] for one in ("old", "new", "only")] == [
        facts["name"],
        facts["name"],
        "anna",
    ]
    assert words.index(facts["old"]) < words.index(facts["new"])
    numbers = {rule: [_read(facts[f"{rule}_{one}"]) for one in ("old", "new")] for rule in RULES}
    for rule, pair in numbers.items():
        assert pair == pytest.approx(twice.got(rule, (facts["old"], facts["new"])), abs=5.1e-4)
    (gone, latest), (both, added) = numbers["erases"], numbers["adds"]
    assert abs(gone) < 0.25 * abs(latest) and abs(both) > 0.5 * abs(added)
    assert _read(facts["same"]) > 0.5 > abs(_read(facts["apart"]))
    for rule in RULES:
        told = LESSONS["delta"].show(replace(scene, choice=rule)).facts
        kept = re.findall(r"has (\S+) for “anna”", told["other"])
        assert _read(kept[0]) == pytest.approx(Recalled(scene, 1 - OPENING).got(rule, (facts["only"],))[0], abs=5.1e-4)


@pytest.mark.parametrize(
    ("rule", "right"), [("erases", "mostly green"), ("half", "mostly green"), ("adds", "both alike")]
)
def test_a_guess_is_about_the_weights_of_the_trained_head(scene: Scene, rule: str, right: str) -> None:
    ask = LESSONS["delta"].ask(replace(scene, choice=rule))
    assert [ask.options[at] for at in ask.right] == [right]


def _numbers(exercise: Exercise) -> list[list[list[float]]]:
    return [[list(row) for row in table.numbers] for table in exercise.given]


@pytest.mark.parametrize("seed", SEEDS)
def test_what_a_query_reads_is_added_up_word_by_word(scene: Scene, seed: int) -> None:
    exercise = EXERCISES["state"].make(scene, seed)
    keys, (values,), (query,) = _numbers(exercise)
    scores = [sum(a * b for a, b in zip(query, key, strict=True)) for key in keys]
    later = range(len(keys) - 1, -1, -1)

    def total(weights: list[float]) -> float:
        return sum(weight * value for weight, value in zip(weights, values, strict=True))

    row = [score * 0.5**far for score, far in zip(scores, later, strict=True)]
    powers = [math.exp(score) for score in scores]
    wrong = {
        "forget the decay": total(scores),
        "last word's part, too": total(row) / 2,
        "newest word most": total([score * 0.5**at for at, score in enumerate(scores)]),
        "last word's part alone": row[-1] * values[-1],
        "leave the values out": sum(row),
        "queries and keys out": total([0.5**far for far in later]),
        "with a softmax": total([one / sum(powers) for one in powers]),
    }
    _diagnosed(exercise, wrong)


def _diagnosed(exercise: Exercise, wrong: dict[str, float]) -> None:
    """Check that each wrong answer has its cause: of equal ones the first."""
    for answer in wrong.values():
        found = exercise.check(str(answer))
        cause = next(cause for cause, other in wrong.items() if abs(other - answer) <= 0.006)
        assert found.right or cause in found.words
        assert found.right or found.words.endswith("= ?.")


@pytest.mark.parametrize("seed", SEEDS)
def test_the_rule_and_the_strength_that_replace_a_value_do(scene: Scene, seed: int) -> None:
    exercise = EXERCISES["erase"].make(scene, seed)
    assert exercise.check(exercise.solution).right
    if isinstance(exercise.answer, OptionAnswer):
        _check_rules(exercise)
        return
    old, new, wanted = (float(one) for one in re.findall(r"(?:back|with,?|with) (\d+(?:\.\d+)?)", exercise.question))
    beta = _read(exercise.solution)
    wrong = {"part of the old value that stays": 1 - beta, "replaces the whole old value": 1.0, "writes nothing": 0.0}
    wrong |= {"change of the state": wanted - old, "divide by the old value": (wanted - old) / old}
    if new:
        wrong |= {"forget the old value": wanted / new, "only adds": (wanted - old) / new}
    _diagnosed(exercise, wrong)


def _check_rules(exercise: Exercise) -> None:
    assert isinstance(exercise.answer, OptionAnswer)
    ((old, other, new),) = _numbers(exercise)[0]
    first, second = [1.0, 0.0], [0.0, 1.0]
    for option in exercise.answer.options:
        beta = float(re.findall(r"β = ([\d.]+)", option)[0])
        decay = float((re.findall(r"decay ([\d.]+)", option) or ["1"])[0])
        erases = not option.startswith("don't")
        gives = [
            _by_loop(asked, [first, second, first], [old, other, new], [beta] * 3, decay, erases=erases)
            for asked in (first, second)
        ]
        reply = exercise.check(option)
        assert reply.right == (gives == [new, other])
        if not reply.right:
            found = [_read(one) for one in re.findall(r"([\d.]+) for “", reply.words)]
            assert found == pytest.approx(gives, abs=5e-4)
            cause = "only half" if beta < 1 else "shrinks" if decay < 1 else "added to the first"
            assert cause in reply.words


def test_a_lone_word_has_lessons_and_exercises_too(run: RunText) -> None:
    scene = Scene("Hi", run)
    small = small_example(scene)
    assert isinstance(small.mixer.weights, Tensor) and small.by_rows == pytest.approx(small.by_state)
    assert all(
        "The chosen sentence has fewer than 2" in EXERCISES[kind].make(scene, 0).question for kind in ("state", "erase")
    )
