"""Questions answered by a gesture: how a guess is read and judged, here and in the browser, and what is kept back."""

import itertools
import json
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from attention_viz.lesson import LESSONS, Ask, Scene
from attention_viz.lesson.openings.links import PaintedMask, WordLines
from attention_viz.lesson.openings.opening import Opening
from attention_viz.lesson.openings.planes import TurnedQuery, WordMap
from attention_viz.lesson.openings.shares import ScoreSliders
from attention_viz.lesson.question import question_data, read_guess, reply
from attention_viz.lesson.scene import RunText
from attention_viz.lesson.screens.scoring import _sliders  # pyright: ignore[reportPrivateUsage] -- replies to any scores
from attention_viz.lesson.screens.word_map import plane
from attention_viz.lesson.translation import in_language
from scripts.javascript import run_node

TEXT = "The bank of the river was flooded"
KINDS = {
    **{"vectors": "map", "scores": "turn", "softmax": "sliders", "masks": "mask", "cross": "lines"},
    **{"picture": "places", "where": "places"},
}


def asked(name: str, run: RunText, **changes: Any) -> tuple[Ask, Opening]:
    ask = LESSONS[name].ask(replace(Scene(TEXT, run), **changes))
    assert ask.opening is not None
    return ask, ask.opening


def guesses(name: str, opening: Any) -> Iterator[tuple[int, ...]]:
    """Many guesses of a kind, the right one among them."""
    draw = random.Random(3)
    match opening:
        case WordMap():
            yield from ((draw.randint(0, 100), draw.randint(0, 100)) for _ in range(60))
        case TurnedQuery():
            yield from ((at,) for at in range(0, 360, 5))
        case ScoreSliders():
            yield tuple(round(10 * score) for score in opening.scores)
            yield from ((50, 50 - gap, 50) for gap in range(0, 50, 2))
        case PaintedMask():
            yield opening.blocked
            yield tuple(sum(1 << at for at in range(row)) for row in range(len(opening.names)))
            for row in range(len(opening.names)):
                yield tuple(0 if at == row else one for at, one in enumerate(opening.blocked))
            yield tuple(0 for _ in opening.names)
        case WordLines():
            yield opening.strongest
            yield from (
                tuple(draw.randint(0, len(opening.read)) if draw.random() < 0.4 else one for one in opening.strongest)
                for _ in range(40)
            )
        case _:
            yield from ((at,) for at in range(len(opening.names)))


@pytest.mark.parametrize("name", KINDS)
def test_a_guess_is_judged_in_the_browser_as_here(name: str, run: RunText, tmp_path: Path) -> None:
    ask, opening = asked(name, run)
    some = list(guesses(name, opening))
    assert all(read_guess(ask, ".".join(map(str, one))) == one for one in some)
    data = question_data(ask, shown=True)
    path = tmp_path / "question.json"
    path.write_text(json.dumps([data, [".".join(map(str, one)) for one in some]]))
    script = (
        "import {readFileSync} from 'node:fs';"
        "import {replyTo} from './attention_viz/explorer/static/lesson/predict.js';"
        f"const [data, some] = JSON.parse(readFileSync({json.dumps(str(path))}, 'utf-8'));"
        "console.log(JSON.stringify(some.map((one) => replyTo(data, one))));"
    )
    done = run_node(["--input-type=module", "--eval", script])
    assert done.returncode == 0, done.stderr
    here = [{"mark": found.mark, "words": found.words} for found in (reply(ask, one) for one in some)]
    assert json.loads(done.stdout) == here
    marks = {one["mark"] for one in here}
    assert {"right", "wrong"} <= marks, marks


@pytest.mark.parametrize("name", KINDS)
def test_the_answer_is_kept_back_until_it_is_shown(name: str, run: RunText) -> None:
    ask, opening = asked(name, run)
    assert opening.kind == KINDS[name]
    before, after = (question_data(ask, shown=shown) for shown in (False, True))
    assert before["truth"] is None and before["opening"] == opening.before()
    assert json.loads(json.dumps(after)) == after
    kept = json.dumps({key: value for key, value in before.items() if key not in ("question", "source")})
    truth: Any = after["truth"]
    # What the answer adds is nowhere before it, nor is any reply.
    for value in truth["opening"].values():
        assert value == [False] * len(ask.options) or json.dumps(value) not in kept, value
    assert not any(one["words"] in kept for one in truth["replies"])
    for number in ask.written:
        assert len(number) < 3 or json.dumps(number) not in kept


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("vectors", ("101.5", "5", "1.2.3")),
        ("scores", ("360", "1.2")),
        ("softmax", ("1.2", "1.2.101", "1.2.3.4")),
        ("masks", ("1", ".".join(["512"] * 9), "0.0")),
        ("cross", ("1", "11" + ".0" * 8)),
        ("picture", ("64", "1.1")),
    ],
)
def test_what_is_no_guess_of_the_kind_is_none(name: str, wrong: tuple[str, ...], run: RunText) -> None:
    ask, opening = asked(name, run)
    right = ".".join(map(str, next(guesses(name, opening))))
    assert question_data(ask, shown=False, guess=right)["guess"] == right
    for text in (*wrong, "", "shown", "<b>", "-1", "1.-2"):
        assert read_guess(ask, text) is None
        assert question_data(ask, shown=True, guess=text)["guess"] is None


def test_the_nearest_word_on_the_map_is_judged_by_its_cosine(run: RunText) -> None:
    ask, opening = asked("vectors", run)
    assert isinstance(opening, WordMap)
    x = run("all-MiniLM-L6-v2", TEXT).layer(0).embeddings
    assert x is not None
    for (left, top), word, cosine in zip(opening.points, opening.words, ask.values, strict=True):
        found = reply(ask, (round(100 * left), round(100 * top)))
        if word not in ("the₁", "the₂"):  # they lie on each other
            assert word in found.words
        rank = sorted(ask.values, reverse=True).index(cosine)
        if word not in ("the₁", "the₂"):
            assert found.mark == ("right" if rank == 0 else "near" if rank == 1 else "wrong")
    assert all(0 <= side <= 1 for point in (*opening.points, opening.point) for side in point)


def test_a_map_keeps_distances_if_the_words_lie_in_a_plane() -> None:
    flat = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]], dtype=torch.float64)
    points, kept, own = plane(torch.cat([flat, -3 * flat[1:2]]), 3)
    assert (kept, own) == (pytest.approx(1), pytest.approx(1))
    # Lengths don't count: the fourth is as long as the others.
    for (one, a), (other, b) in itertools.combinations(zip([*flat, -flat[1]], points, strict=True), 2):
        assert float((a - b).norm()) == pytest.approx(float((one - other).norm()))
    points, kept, own = plane(flat[:1], 0)
    assert kept == 1 and points.isfinite().all()


def test_the_arrows_score_is_the_models_at_its_angle(run: RunText) -> None:
    ask, opening = asked("scores", run)
    assert isinstance(opening, TurnedQuery)
    query, key = opening.lengths
    assert query * key * torch.tensor(opening.angle).deg2rad().cos() == pytest.approx(max(ask.values), rel=1e-4)
    assert [reply(ask, (at,)).mark for at in (60, 65, 300, 55, 50, 72, 45, 0, 90)] == [
        *("right", "right", "right", "right", "near", "near", "wrong", "wrong", "wrong"),
    ]


def test_only_differences_between_scores_count(run: RunText) -> None:
    ask, opening = asked("softmax", run)
    assert isinstance(opening, ScoreSliders) and sum(opening.wanted) == pytest.approx(1)
    first, second, rest = opening.scores
    lower = tuple(round(10 * (one - first)) + 60 for one in (first, second, rest))
    for by in (-20, 0, 15):
        assert reply(ask, tuple(one + by for one in lower)).right  # pyright: ignore[reportArgumentType] -- three numbers
    assert not reply(ask, (50, 50, 50)).right


def test_a_painted_mask_is_told_its_first_wrong_row(run: RunText) -> None:
    ask, opening = asked("masks", run)
    assert isinstance(opening, PaintedMask)
    assert opening.blocked == tuple(sum(1 << column for column in range(row + 1, 9)) for row in range(9))
    assert reply(ask, opening.blocked).right
    one = (*opening.blocked[:4], 0, *opening.blocked[5:])
    assert reply(ask, one).mark == "near" and "the row of “the₂”" in reply(ask, one).words
    several = (*opening.blocked[:2], 0, 0, *opening.blocked[4:])
    assert reply(ask, several).mark == "wrong" and "the row of “bank” first" in reply(ask, several).words
    swapped = tuple(sum(1 << column for column in range(row)) for row in range(9))
    assert "swapped" in reply(ask, swapped).words
    padded, painted = asked("masks", run, choice="padding")
    assert isinstance(painted, PaintedMask) and set(painted.blocked) == {(1 << 9) + (1 << 10)}
    assert "[PAD]" in padded.options[-1]


def test_a_long_texts_mask_is_painted_in_part(run: RunText) -> None:
    long = " ".join(["word"] * 20)
    _, opening = asked("masks", run, text=long)
    assert isinstance(opening, PaintedMask) and len(opening.names) == 12 == len(opening.blocked)
    _, opening = asked("masks", run, text=long, choice="padding")
    assert isinstance(opening, PaintedMask) and opening.blocked[0] == (1 << 10) + (1 << 11)


def test_lines_are_the_strongest_links_where_the_order_changes(run: RunText) -> None:
    ask, opening = asked("cross", run)
    assert isinstance(opening, WordLines)
    pairs = {(one, opening.read[to]) for one, to in zip(opening.written, opening.strongest, strict=True)}
    assert {("la₂", "it"), ("vend", "sells"), ("clé", "key")} <= pairs
    assert "“la₂” looks at “it”, then “vend” at “sells”" in ask.finding
    straight = tuple(range(len(opening.written)))
    assert "7 of 9 lines. “la₂” looks most at “it”" in reply(ask, straight).words


@pytest.mark.parametrize("name", ["vectors", "scores", "softmax", "masks", "cross"])
def test_another_language_has_the_same_numbers(name: str, run: RunText) -> None:
    english, opening = asked(name, run)
    how = opening.how
    with in_language("de"):
        german, other = asked(name, run)
        assert other.how != how
    assert german.question != english.question and german.values == english.values
    assert len(other.replies) == len(opening.replies)
    assert [one.mark for one in other.replies] == [one.mark for one in opening.replies]


def test_scores_far_apart_are_explained_without_their_quotient() -> None:
    for gap, quotient in ((2.0, True), (30.0, False)):
        scores = torch.tensor([gap, 0.0, -1.0], dtype=torch.float64)
        _, near, wrong = _sliders(("a", "b", "c"), scores.softmax(-1), scores).replies
        for one in (near, wrong):
            assert ("times the share" in one.words) == quotient and f"{gap:.2f}" in one.words
            assert quotient or len(one.words) < 120
