import math
import re
from collections.abc import Callable

import numpy
import pytest

from attention_viz.edits.kinds.ablation import Ablate
from attention_viz.lesson.course import EXERCISES, LESSONS, answer_sheet
from attention_viz.lesson.exercise import Cells, Exercise, NumberAnswer, OptionAnswer
from attention_viz.lesson.scene import RunText, Scene
from attention_viz.lesson.tasks.drawing import Draw

BANK = "The bank of the river was flooded"
CAT = "The cat sat because it was tired."
MODEL = "all-MiniLM-L6-v2"
SENTENCES = (
    BANK,
    CAT,
    "word",
    "😀 👍🏽 🇫🇷",
    "the The the cat cat sat",
    "<b>bold</b> & 'x' = 3",
    "שלום לכל העולם",
    " ".join(f"w{number}" for number in range(24)),
)
# Nothing new for a real model, whose runs take longer.
LIKE_OTHERS = SENTENCES[4:6]
REAL = ("strongest", "head", "job", "matters", "region", "asked", "stretch")
BY_HAND = tuple(kind for kind in EXERCISES if kind not in REAL)
# Made from a sample and not from the sentence, and solved from the table that is given.
SEEN = ("region", "asked", "stretch")
PAIRS = (
    "nearest",
    "plain",
    "temperature",
    "output",
    "mask",
    "permute",
    "path",
    "state",
    "erase",
    "logits",
    "strongest",
    "head",
)


@pytest.fixture(scope="module")
def made(run: RunText) -> list[tuple[str, Exercise]]:
    """Every exercise that is looked at here, with its sentence."""
    wanted = [(kind, text, seed) for kind in BY_HAND for text in SENTENCES for seed in range(5)]
    wanted += [(kind, text, 0) for kind in ("strongest", "head") for text in SENTENCES if text not in LIKE_OTHERS]
    wanted += [(kind, text, 1) for kind in ("strongest", "head") for text in (BANK, CAT)]
    wanted += [("job", text, seed) for text in (BANK, CAT, SENTENCES[3], "word") for seed in range(3)]
    wanted += [("matters", text, 0) for text in (BANK, "word")]
    wanted += [(kind, text, seed) for kind in SEEN for text in (BANK, "word") for seed in range(5)]
    assert len(wanted) >= 500
    return [(text, EXERCISES[kind].make(Scene(text, run), seed)) for kind, text, seed in wanted]


def spoken(answer: NumberAnswer | OptionAnswer | Cells, value: object) -> str:
    """An answer as somebody would type it."""
    if isinstance(answer, OptionAnswer):
        return answer.options[value]
    if isinstance(answer, Cells):
        return ", ".join(f"{row}>{column}" for row, column in sorted(value))
    return repr(value)


def wrong_answers(exercise: Exercise) -> list[object]:
    """Answers that can't be right, and every slip that doesn't happen to be."""
    answer = exercise.answer
    if isinstance(answer, OptionAnswer):
        return [place for place in range(len(answer.options)) if place not in answer.right]
    slips = [slip.answer for slip in exercise.slips if not answer.accepts(slip.answer)]
    if isinstance(answer, Cells):
        return [answer.start, answer.right ^ {(0, 0)}, answer.right ^ {(1, 0)}, *slips]
    return [answer.value + 1, answer.value - 2, answer.value + 3 * answer.within, *slips]


def test_each_lesson_has_an_exercise_and_each_exercise_a_lesson_that_may_use_it() -> None:
    assert {lesson.exercise for lesson in LESSONS.values()} <= set(EXERCISES)
    assert len(EXERCISES) == 29
    assert all(kind.label and kind.lesson.endswith(".") for kind in EXERCISES.values())


def test_right_answers_are_accepted_however_they_are_typed(made: list[tuple[str, Exercise]]) -> None:
    for _, exercise in made:
        answer = exercise.answer
        if isinstance(answer, NumberAnswer):
            cents = f"{answer.value:.2f}"
            ways = [cents, cents.replace(".", ","), cents.replace("-", "−"), f" {round(answer.value * 1000)} / 1000"]
            ways += [f"{answer.value * 100:.2f} %", exercise.solution]
        elif isinstance(answer, OptionAnswer):
            ways = [spoken(answer, place) for place in answer.right] + [
                f" {exercise.answer.options[min(answer.right)]} "
            ]
        else:
            ways = [spoken(answer, answer.right)]
        for way in ways:
            feedback = exercise.check(way)
            assert feedback.right and feedback.understood, (exercise.question, way, feedback.words)
            assert feedback.words == exercise.working


def test_wrong_answers_are_rejected_with_the_arithmetic(made: list[tuple[str, Exercise]]) -> None:
    checked = 0
    for _, exercise in made:
        for wrong in wrong_answers(exercise):
            feedback = exercise.check(spoken(exercise.answer, wrong))
            assert not feedback.right and feedback.understood, (exercise.question, wrong)
            assert feedback.words.startswith(exercise.answer.quoted(wrong))
            if isinstance(exercise.answer, NumberAnswer):
                # The arithmetic, but not what it comes to.
                shown = feedback.words.removesuffix(" ?.").removesuffix(" ?; attention: 1.")
                assert shown != feedback.words, feedback.words
                assert shown.split(" ", 2)[-1].endswith("=")
                assert exercise.arithmetic == exercise.working.replace(f"= {exercise.solution}", "= ?")
            elif isinstance(exercise.answer, OptionAnswer):
                assert exercise.working not in feedback.words
            checked += 1
    assert checked > 2000


def test_slips_are_told_by_the_number_they_lead_to(made: list[tuple[str, Exercise]]) -> None:
    told: dict[str, set[str]] = {}
    for _, exercise in made:
        for slip in exercise.slips:
            if not exercise.answer.accepts(slip.answer):
                words = exercise.check(spoken(exercise.answer, slip.answer)).words
                found = {one.words for one in exercise.slips if f": {one.words}" in words}
                assert found, (exercise.question, words)
                told.setdefault(exercise.kind, set()).update(found)
    assert {kind for kind, words in told.items() if len(words) >= 2} == set(EXERCISES)


def test_a_slip_is_computed_as_somebody_would_make_it(run: RunText) -> None:
    scaled = EXERCISES["scaled"].make(Scene(BANK, run), 3)
    raw, width = map(_number, re.search(r"score (\S+) for .*d_k = (\d+)", scaled.question).groups())
    assert "did you divide by d_k, and not by its root?" in scaled.check(str(raw / width)).words
    assert "still has to be scaled" in scaled.check(str(raw)).words

    plain = EXERCISES["plain"].make(Scene(CAT, run), 1)
    dots, at = numpy.array(plain.given[0].numbers[0]), plain.given[0].columns.index(_quoted(plain)[-1])
    assert "divide it by the sum" in plain.check(f"{math.exp(dots[at]):.3f}").words

    score = EXERCISES["score"].make(Scene(BANK, run), 2)
    queries, keys = (numpy.array(one.numbers) for one in score.given)
    row, column = (score.given[0].rows.index(name) for name in _quoted(score))
    assert "did you take the key of" in score.check(str(keys[row] @ queries[column])).words

    output = EXERCISES["output"].make(Scene(BANK, run), 1)
    taken = numpy.array(output.given[1].numbers)[:, _dimension(output)]
    assert "without their weights" in output.check(str(taken.sum())).words

    additive = EXERCISES["additive"].make(Scene(BANK, run), 1)
    (query, key, above), left, right, _ = (numpy.array(one.numbers) for one in additive.given)
    assert "did you forget tanh?" in additive.check(str(above @ (left @ query + right @ key))).words


def _number(text: str) -> float:
    return float(text.replace("−", "-"))


def _quoted(exercise: Exercise) -> list[str]:
    return re.findall(r"“([^”]+)”", exercise.question.split("here. ")[-1])


def _dimension(exercise: Exercise) -> int:
    return int(re.search(r"What is dimension (\d)", exercise.question)[1])


def _integers(exercise: Exercise) -> list[int]:
    return [int(one) for one in re.findall(r"\d+", re.sub(r"“[^”]*”", "", exercise.question))]


def _softmax(logits: numpy.ndarray) -> numpy.ndarray:
    powers = numpy.exp(logits - logits.max())
    return powers / powers.sum()


def solve_nearest(exercise: Exercise) -> str:
    first, *others = numpy.array(exercise.given[0].numbers)
    fits = [float(first @ other) for other in others]
    if "cosine" in exercise.question:
        assert all(math.hypot(*other).is_integer() for other in (first, *others))
        fits = [fit / math.hypot(*other) for fit, other in zip(fits, others, strict=True)]
    return exercise.given[0].rows[1 + int(numpy.argmax(fits))]


def solve_plain(exercise: Exercise) -> float:
    given = exercise.given[0]
    return _softmax(numpy.array(given.numbers[0]))[given.columns.index(_quoted(exercise)[-1])]


def solve_project(exercise: Exercise) -> float:
    x, learned = numpy.array(exercise.given[0].numbers[0]), numpy.array(exercise.given[1].numbers)
    return (x @ learned if "q = x W_Q" in exercise.question else learned @ x)[_dimension(exercise)]


def solve_score(exercise: Exercise) -> float:
    queries, keys = exercise.given
    looking, looked_at = _quoted(exercise)
    return numpy.dot(queries.numbers[queries.rows.index(looking)], keys.numbers[keys.rows.index(looked_at)])


def solve_residual(exercise: Exercise) -> float:
    (vectors,) = exercise.given
    read = numpy.sum(vectors.numbers[:2], axis=0)
    return float((read / numpy.linalg.norm(read))[int(re.search(r"dimension (\d)", exercise.question)[1])])


def solve_logits(exercise: Exercise) -> float:
    (last,), (first, second) = (numpy.array(one.numbers) for one in exercise.given)
    temperature = float(re.search(r"At T = ([\d.]+),", exercise.question)[1])
    chances = _softmax(numpy.array([last @ first, last @ second]) / temperature)
    return float(chances[0] / chances[1])


def solve_part(exercise: Exercise) -> float:
    score = _number(re.search(r"of the toy is (\S+): the sum", exercise.question)[1])
    (parts,) = exercise.given
    return score - sum(number for (number,) in parts.numbers)


def solve_added(exercise: Exercise) -> float:
    (looks,) = exercise.given
    return sum(weight * number for weight, number in looks.numbers)


def solve_scaled(exercise: Exercise) -> float:
    raw, width = map(_number, re.search(r"score (\S+) for .*d_k = (\d+)", exercise.question).groups())
    return raw / width**0.5


def solve_temperature(exercise: Exercise) -> str:
    wanted = float(re.search(r"the entropy −Σ a·ln a = (\S+)\? With", exercise.question)[1])
    logits = numpy.array(exercise.given[0].numbers[0])

    def beside(option: str) -> float:
        shares = _softmax(logits / float(option))
        return abs(-(shares * numpy.log(shares)).sum() - wanted)

    best = min(exercise.answer.options, key=beside)
    assert beside(best) < 6e-4
    # Which it is can be told without a calculator: near nothing, near the most there can be, or neither.
    part = wanted / math.log(len(logits))
    assert best == ("0.25" if part < 0.36 else "4" if part > 0.79 else "1")
    return best


def solve_output(exercise: Exercise) -> float:
    weights, values = (numpy.array(one.numbers) for one in exercise.given)
    assert math.isclose(weights.sum(), 1)
    return (weights @ values)[0, _dimension(exercise)]


def solve_mask(exercise: Exercise) -> frozenset[tuple[int, int]]:
    names, question = exercise.answer.rows, exercise.question
    return frozenset(
        (row, column)
        for row in range(len(names))
        for column in range(len(names))
        if ("looks ahead" in question and column > row)
        or ("at [PAD]" in question and names[column].startswith("[PAD]"))
    )


def solve_permute(exercise: Exercise) -> str:
    old, new = (
        re.findall(r"row \d “([^”]+)”", part)
        for part in re.findall(r"\(([^()]*(?:\(\d\)[^()]*)*)\)", exercise.question)[:2]
    )
    return f"row {new.index(old[_integers(exercise)[-1]])}"


def solve_shape(exercise: Exercise) -> str | float:
    source, target = _integers(exercise)
    return f"{target} × {source}" if isinstance(exercise.answer, OptionAnswer) else target * source


def solve_additive(exercise: Exercise) -> float:
    (query, key, above), left, right, (squeezed,) = (numpy.array(one.numbers) for one in exercise.given)
    # Whoever doesn't take the table that is given, but a calculator, is right as well.
    sums = left @ query + right @ key
    exact = above @ numpy.tanh(sums)
    assert exercise.check(f"{exact:.2f}").right
    return above @ (numpy.sign(sums) * squeezed[numpy.minimum(abs(sums), 5).astype(int)])


def solve_path(exercise: Exercise) -> float:
    earlier, later = map(int, re.findall(r"\(word (\d+)", exercise.question))
    recurrent = later - earlier
    if "How many more" in exercise.question:
        return recurrent - 1
    return recurrent if "recurrent" in exercise.question else 1


def solve_cost(exercise: Exercise) -> float:
    words, other = _integers(exercise)
    return other**2 if "times as long" in exercise.question else words**2 * other


def solve_memory(exercise: Exercise) -> float:
    count, block, _ = _integers(exercise)
    if "How many such blocks" in exercise.question:
        return (count / block) ** 2
    return block**2


def solve_stored(exercise: Exercise) -> float:
    layers, _, sets, width, tokens = _integers(exercise)
    return sum(2 * sets * width for _ in range(layers) for _ in range(tokens))


def solve_window(exercise: Exercise) -> float:
    numbers = _integers(exercise)
    if "layers" not in exercise.question:
        width, kept, number = numbers
        return len({*range(number - width, number), *range(kept)})
    width, _, layers = numbers
    oldest = 0
    for _ in range(layers):
        oldest = min(range(oldest - width + 1, oldest + 1))
    return -oldest


def solve_state(exercise: Exercise) -> float:
    keys, (values,), (query,) = (numpy.array(one.numbers) for one in exercise.given)
    state = numpy.zeros(2)
    for key, value in zip(keys, values, strict=True):
        state = state / 2 + key * value
    return float(query @ state)


def solve_erase(exercise: Exercise) -> str | float:
    if isinstance(exercise.answer, NumberAnswer):
        old, new, wanted = map(
            _number, re.search(r"back (\S+) for .* with (\S+), by .*back (\S+)\?", exercise.question).groups()
        )
        return (wanted - old) / (new - old)
    ((old, other, new),) = exercise.given[0].numbers
    found = []
    for option in exercise.answer.options:
        beta = _number(re.search(r"β = ([\d.]+)", option)[1])
        decay = 1 if "no decay" in option else _number(option.rpartition(" ")[2])
        first, second = 0.0, 0.0
        for at, value in enumerate((old, other, new)):
            first, second = first * decay, second * decay
            erased = beta * (second if at == 1 else first) * (not option.startswith("don't"))
            change = beta * value - erased
            first, second = (first, second + change) if at == 1 else (first + change, second)
        if (first, second) == (new, other):
            found.append(option)
    (right,) = found
    return right


def solve_region(exercise: Exercise) -> float:
    (boxes,) = exercise.given
    asked = re.findall(r"(row \d) (column \d)", exercise.question.partition("together: ")[2])
    assert 2 <= len(set(asked)) == len(asked)
    return sum(boxes.numbers[boxes.rows.index(row)][boxes.columns.index(column)] for row, column in asked)


def solve_asked(exercise: Exercise) -> str:
    (given,) = exercise.given
    last = given.numbers[-1]
    place = given.columns[last.index(max(last))]
    # The last row's place, the shape that is there, and the question that names it.
    ((shape,),) = [re.findall(rf"a \w+ (\w+) at the {place}", exercise.question)]
    return next(option for option in exercise.answer.options if shape in option.split())


def solve_stretch(exercise: Exercise) -> str:
    (given,) = exercise.given
    # Where two points are as good, either is right.
    first, second = (numpy.array(row) for row in given.numbers)
    sums = {
        f"{moment} s": round(float(first[:at].sum() + second[at:].sum()), 2)
        for at, moment in enumerate(given.columns)
        if f"{moment} s" in exercise.answer.options
    }
    best = [moment for moment, both in sums.items() if both == max(sums.values())]
    assert exercise.answer.right == {exercise.answer.options.index(moment) for moment in best}
    assert len(sums) == len(given.columns) - 1
    return best[0]


SOLVERS: dict[str, Callable[[Exercise], object]] = {
    name.removeprefix("solve_"): value for name, value in dict(globals()).items() if name.startswith("solve_")
}


def test_solutions_follow_from_what_is_on_the_page(made: list[tuple[str, Exercise]]) -> None:
    assert set(SOLVERS) == {*BY_HAND, *SEEN}
    solved = 0
    for _, exercise in made:
        if exercise.kind not in SOLVERS:
            continue
        found, answer = SOLVERS[exercise.kind](exercise), exercise.answer
        if isinstance(answer, NumberAnswer):
            assert math.isclose(found, answer.value, rel_tol=1e-6, abs_tol=1e-6), exercise.question
        elif isinstance(answer, OptionAnswer):
            assert answer.options.index(found) in answer.right, exercise.question
            assert exercise.kind in ("permute", "stretch") or len(answer.right) == 1
        else:
            assert found == answer.right, exercise.question
        solved += 1
    assert solved >= 500


def test_shuffled_words_have_one_new_row_each_but_for_words_that_are_alike(run: RunText) -> None:
    for seed in range(5):
        assert len(EXERCISES["permute"].make(Scene(BANK.lower()[4:], run), seed).answer.right) == 1
        twins = EXERCISES["permute"].make(Scene("cat cat Cat", run), seed)
        assert len(twins.answer.right) == 3


def test_the_heads_asked_for_are_those_of_the_model(made: list[tuple[str, Exercise]], run: RunText) -> None:
    for text, exercise in made:
        if text not in (BANK, CAT) or exercise.kind not in ("strongest", "head"):
            continue
        trace, question = run(MODEL, text), exercise.question
        labels = _numbered(trace.query_tokens().labels)
        if exercise.kind == "strongest":
            weights = _weights(trace, *map(int, re.search(r"layer (\d+), head (\d+)", question).groups()))
            row = weights[labels.index(_quoted(exercise)[0])]
            found = max(exercise.answer.options, key=lambda option: row[labels.index(option)])
            assert found in exercise.solution
            continue
        given, (looking, *_, looked_at) = exercise.given[0], _quoted(exercise)
        for name, shown in zip(given.rows, given.numbers, strict=True):
            row = _weights(trace, *map(int, re.findall(r"\d+", name)))[labels.index(looking)]
            places = [labels.index(column) for column in given.columns if column != "all others"]
            assert numpy.allclose(row[places], shown[: len(places)], atol=0.0051)
            assert abs(sum(shown) - 1) < 0.05
        column = [row[given.columns.index(looked_at)] for row in given.numbers]
        assert exercise.answer.right == {int(numpy.argmax(column))}
        assert sorted(column)[-1] > sorted(column)[-2]


def _numbered(labels: tuple[str, ...]) -> list[str]:
    return [
        f"{label}{'₀₁₂₃₄₅₆₇₈₉'[labels[: at + 1].count(label)]}" if labels.count(label) > 1 else label
        for at, label in enumerate(labels)
    ]


def _weights(trace: object, layer: int, head: int) -> numpy.ndarray:
    call = trace.attention(layer)
    query, key = call.query[head].double().numpy(), call.key[head].double().numpy()
    logits = query @ key.T / query.shape[-1] ** 0.5
    return numpy.stack([_softmax(row) for row in logits])


def test_it_is_linked_to_the_cat(made: list[tuple[str, Exercise]]) -> None:
    found = [exercise for text, exercise in made if text == CAT and exercise.kind == "head"]
    assert all("Which head links “it” to “cat”?" in exercise.question for exercise in found)
    assert [exercise.solution for exercise in found] == ["layer 5, head 11"] * 2


def test_the_head_that_matters_is_measured(made: list[tuple[str, Exercise]], run: RunText) -> None:
    for text, exercise in made:
        if exercise.kind != "matters":
            continue
        before, moved = run(MODEL, text).output.double().numpy(), []
        for option in exercise.answer.options:
            layer, head = map(int, re.findall(r"\d+", option))
            after = run(MODEL, text, edits=[Ablate(layer, head)]).output.double().numpy()
            lengths = numpy.linalg.norm(after - before, axis=1) / numpy.linalg.norm(before, axis=1)
            moved.append(round(float(lengths.mean()), 3))
            largest = _weights(run(MODEL, text), layer, head)[1:-1].max(axis=1).mean()
            shown = exercise.given[0].numbers[exercise.answer.options.index(option)][0]
            assert abs(largest - shown) < 0.0051
        assert exercise.answer.right == {at for at, one in enumerate(moved) if one == max(moved)}
        assert all(f": {100 * one:.1f} %" in exercise.working for one in moved)


PART = r"(?:e\^|tanh|√|ln |\d+(?:\.\d+)?|[()+−·/ ])"
EQUATION = re.compile(rf"{PART}+(?:={PART}+)+")
KNOWN = {"__builtins__": {}, "exp": math.exp, "tanh": math.tanh, "sqrt": math.sqrt, "log": math.log}


def equations(text: str) -> list[list[float]]:
    """Every chain of equal numbers in a text, worked out anew from how it is written."""
    found = []
    for chain in EQUATION.findall(re.sub(r"“[^”]*”", "", text)):
        sides = [side.strip() for side in chain.split("=")]
        if all(re.search(r"\d", side) for side in sides):
            found.append([eval(_python(side), KNOWN) for side in sides])
    return found


def _python(side: str) -> str:
    side = re.sub(r"√(\d+)", r"sqrt(\1)", re.sub(r"ln (\d+)", r"log(\1)", side)).replace("√(", "sqrt(")
    return side.replace("e^(", "exp(").replace("·", "*").replace("−", "-")


def test_every_equation_that_is_told_holds(made: list[tuple[str, Exercise]]) -> None:
    checked = 0
    for _, exercise in made:
        for text in (exercise.working, *exercise.hints):
            for sides in equations(text):
                assert max(sides) - min(sides) <= 0.002 + 0.002 * abs(sides[0]), text
                checked += 1
    assert checked > 900
    assert equations("“1 = 2”: e^(1) / (e^(1) + e^(0)) = 0.731; √(2·2) = 3.") == [
        [pytest.approx(0.7310585786), 0.731],
        [2, 3],
    ]


def test_the_working_ends_where_the_answer_is(made: list[tuple[str, Exercise]]) -> None:
    for _, exercise in made:
        if isinstance(exercise.answer, NumberAnswer):
            sides = [side for chain in equations(exercise.working) for side in chain] + [1.0]
            assert any(abs(side - exercise.answer.value) < 0.002 for side in sides), exercise.working
            assert exercise.solution in exercise.working


def test_hints_come_in_steps_and_lead_to_the_right_answer(made: list[tuple[str, Exercise]]) -> None:
    for _, exercise in made:
        assert 2 <= len(exercise.hints) <= 3
        assert len(set(exercise.hints)) == len(exercise.hints)
        last, answer = exercise.hints[-1], exercise.answer
        if exercise.kind == "mask":
            names = answer.rows
            row, column = (names.index(name) for name in re.findall(r"“([^”]+)”", last))
            assert ((row, column) in answer.right) == ("has to be blocked" in last)
            assert ((row, column) in answer.start) == ("has to be free" in last)
        if exercise.kind == "strongest" and "It isn't" in last:
            assert answer.options.index(re.findall(r"“([^”]+)”", last)[0]) not in answer.right
        if exercise.kind == "matters":
            named = re.search(r"Ablating (layer \d+, head \d+) moves the output by (\S+ %) of", exercise.hints[1])
            assert f"{named[1]}: {named[2]}" in exercise.working
            best, second, *_ = sorted(map(float, re.findall(r": ([\d.]+) %", exercise.working)), reverse=True)
            assert best >= 1.48 * second
            assert f"{second:.1f} %" in last
            assert answer.options.index(re.search(r"layer \d+, head \d+", last)[0]) not in answer.right
        if exercise.kind == "temperature":
            option, told = re.search(r"T = (\S+) the entropy is (\S+)\.$", last).groups()
            shares = _softmax(numpy.array(exercise.given[0].numbers[0]) / float(option))
            assert abs(-(shares * numpy.log(shares)).sum() - float(told)) < 6e-4
            assert answer.options.index(option) not in answer.right


def test_the_same_sentence_and_seed_give_the_same_exercise_and_another_seed_another(
    made: list[tuple[str, Exercise]], run: RunText
) -> None:
    def told(exercise: Exercise) -> tuple[object, ...]:
        return exercise.question, tuple(exercise.given), exercise.answer, exercise.hints, exercise.working

    for kind in BY_HAND:
        first, *others = [told(one) for text, one in made if text == BANK and one.kind == kind]
        assert told(EXERCISES[kind].make(Scene(BANK, run), 0)) == first
        assert len({first, *others}) >= 3, kind


def test_what_has_run_is_the_same_on_any_machine() -> None:
    draw = Draw("score", 7, "The cat sat")
    assert [draw.below(100) for _ in range(6)] == [11, 5, 56, 54, 96, 3]
    assert sorted(Draw("x", 0, "").order(range(9))) == list(range(9))
    assert {Draw("x", seed, "").whole(-1, 1) for seed in range(40)} == {-1, 0, 1}


def test_a_single_word_is_said_to_be_too_few_only_where_it_is(made: list[tuple[str, Exercise]]) -> None:
    alone = [exercise for text, exercise in made if text == "word"]
    assert {exercise.kind for exercise in alone} == set(EXERCISES)
    for exercise in alone:
        assert exercise.question.startswith("The chosen sentence has fewer than") == (exercise.kind in PAIRS)
        assert ("“The cat sat because it was tired.” here. " in exercise.question) == (exercise.kind in PAIRS)


def test_words_stay_text_and_repeated_ones_are_told_apart(run: RunText) -> None:
    exercise = EXERCISES["mask"].make(Scene("the the the the", run), 0)
    assert exercise.answer.rows[:4] == ("the₁", "the₂", "the₃", "the₄")
    long = EXERCISES["path"].make(Scene(f"{'a' * 500} b", run), 0)
    assert len(long.question) < 300
    assert "a" * 17 + "…" in long.question


@pytest.mark.parametrize(
    ("kind", "turned"), [("nearest", 1), ("project", 2), ("score", 2), ("output", 1), ("additive", 1), ("state", 2)]
)
def test_vectors_stand_as_the_reader_writes_them_and_the_answer_stays(kind: str, turned: int, run: RunText) -> None:
    rows, columns = (EXERCISES[kind].make(Scene(BANK, run, notation=one), 1) for one in ("rows", "columns"))
    assert rows.answer == columns.answer
    pairs = [(one, other) for one, other in zip(rows.given, columns.given, strict=True) if one != other]
    # A matrix that is its own mirror image would look the same.
    assert len(pairs) == turned
    for one, other in pairs:
        assert (one.rows, one.columns) == (other.columns, other.rows)
        assert numpy.array_equal(numpy.array(one.numbers).T, other.numbers)


def test_a_projection_is_written_in_the_readers_notation(run: RunText) -> None:
    rows, columns = (
        EXERCISES["project"].make(Scene(BANK, run, notation=notation), 1) for notation in ("rows", "columns")
    )
    assert "q = x W_Q" in rows.question
    assert "q = W_Q x" in columns.question
    x, learned = (numpy.array(one.numbers) for one in columns.given)
    assert (learned @ x)[_dimension(columns), 0] == columns.answer.value
    assert "column" in rows.hints[0]
    assert "row" in columns.hints[0]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.58", 0.58),
        ("0,58", 0.58),
        ("58 %", 0.58),
        ("58%", 0.58),
        (".58", 0.58),
        ("  = 0.58 ", 0.58),
        ("58/100", 0.58),
        ("1/3", 1 / 3),
        ("−1 / 3", -1 / 3),
        ("−1", -1),
        ("- 1", -1),
        ("–1", -1),
        ("+2", 2),
        ("1e-2", 0.01),
        ("4,096", 4096),
        ("4.096", 4096),
        ("4 096", 4096),
        ("4\u202f096", 4096),
        ("1 048 576", 1048576),
        ("4,096", 4.096),
        ("4.096", 4.096),
    ],
)
def test_a_number_may_be_written_in_many_ways(text: str, value: float) -> None:
    assert NumberAnswer(value, 1e-6).accepts(NumberAnswer(value, 1e-6).read(text))
    assert not NumberAnswer(value + 1, 1e-6).accepts(NumberAnswer(value + 1, 1e-6).read(text))


@pytest.mark.parametrize(
    "text", ["", "  ", "cat", "1 2", "1/0", "--1", "1e999", "nan", "inf", "0.5.5", "1/2/3", "%", "/", "½x"]
)
def test_what_is_no_number_is_no_wrong_answer_and_is_told_how_one_looks(text: str, run: RunText) -> None:
    feedback = EXERCISES["score"].make(Scene(BANK, run), 0).check(text)
    assert not feedback.right
    assert not feedback.understood
    assert feedback.words == "An answer is one number, such as 0.58, 0,58, 58 %, −1 or 1/3."


def test_options_are_read_by_their_words_or_else_by_their_place() -> None:
    answer = OptionAnswer(("The", "the", "2", "cat  sat"), frozenset({1}))
    assert [answer.read(one) for one in ("The", "the", "2", " Cat sat ", "0", "3")] == [0, 1, 2, 3, 0, 3]
    assert [answer.read(one) for one in ("dog", "", "4", "-1", "THE", "²")] == [None] * 6
    assert answer.form == "An answer is one of these: The, the, 2 and cat  sat."
    assert OptionAnswer(("a", "b"), frozenset({0, 1})).solution == "a or b"


def test_cells_are_read_as_pairs_inside_the_matrix() -> None:
    answer = Cells(("a", "b"), ("a", "b", "c"), frozenset(), frozenset({(0, 2)}))
    assert answer.read("0>2, 1 > 0;1→1") == {(0, 2), (1, 0), (1, 1)}
    assert answer.read("") == frozenset()
    assert [answer.read(one) for one in ("2>0", "0>3", "0", "a>b", "0>1 1>2", "-1>0")] == [None] * 6
    assert answer.solution == "block “a” → “c”"
    assert answer.quoted(frozenset({(0, 0)})) == "2 cells are wrong, one of them in the row of “a”"
    assert answer.quoted(frozenset()) == "1 cell is wrong, in the row of “a”"


def test_the_answer_sheet_has_every_kind_and_every_seed(run: RunText) -> None:
    scene = Scene(BANK, run)
    assert [line.kind for line in answer_sheet(scene, (0,))] == [*EXERCISES]
    sheet = answer_sheet(scene, (0, 1), BY_HAND)
    assert [line.kind for line in sheet] == [kind for kind in BY_HAND for _ in range(2)]
    for line, seed in zip(sheet, (0, 1) * len(BY_HAND), strict=True):
        made = EXERCISES[line.kind].make(scene, seed)
        assert (line.question, line.solution, line.working) == (made.question, made.solution, made.working)
        assert tuple(line.given)[: len(made.given)] == tuple(made.given)
        if isinstance(made.answer, Cells):  # what is marked when it opens
            marks = numpy.array(line.given[-1].numbers)
            assert {(int(row), int(column)) for row, column in zip(*marks.nonzero(), strict=True)} == made.answer.start
        assert isinstance(made.answer, Cells) or made.check(line.solution).right
