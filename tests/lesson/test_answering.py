"""The lesson on an image of shapes: its numbers are the run's, worked out here from the pixels and the model itself."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForImageTextToText

import attention_viz as av
from attention_viz.inputs.media.shapes import DRAWN, draw_shapes
from attention_viz.lesson import EXERCISES, LESSONS, Scene
from attention_viz.lesson.answering import ANSWERS, HEAD, PLACES
from attention_viz.lesson.exercise import OptionAnswer
from attention_viz.lesson.scene import RunText
from attention_viz.lesson.slides import lesson_slides

Matrix = np.ndarray[Any, Any]
LESSON, SEEDS = LESSONS["where"], range(12)
FOLDER = Path(av.__file__).parent / "sources" / "trained" / "shapes"
TEXT = "what colour is the circle ?"


@cache
def model() -> Any:
    """The same weights under plain transformers."""
    return AutoModelForImageTextToText.from_pretrained(FOLDER, attn_implementation="sdpa", dtype=torch.float32).eval()


@cache
def vocabulary() -> dict[str, int]:
    return json.loads((FOLDER / "tokenizer.json").read_text("utf-8"))["model"]["vocab"]


@torch.no_grad()
def plain(sample: str, text: str, blocked: Matrix | None = None, *, weights: bool = False) -> Any:
    """What plain transformers makes of a drawn image, with patches hidden from the words by its own mask.

    Either the head's rows of the words over the patches, (word, 8, 8), or the next word's shares.
    """
    ids = ["<s>", *["<image>"] * 64, *text.split()]
    pixels = torch.tensor(draw_shapes(DRAWN[sample]).pixels).permute(2, 0, 1)[None].float() / 127.5 - 1
    allowed = torch.ones(1, 1, len(ids), len(ids), dtype=torch.bool).tril()
    if blocked is not None:
        allowed[0, 0, 65:, 1:65] &= ~torch.from_numpy(blocked).flatten()
    model().set_attn_implementation("eager" if weights else "sdpa")
    mask = torch.where(allowed, 0.0, torch.finfo(torch.float32).min) if weights else allowed
    numbers = torch.tensor([[vocabulary()[word] for word in ids]])
    given = {"input_ids": numbers, "pixel_values": pixels, "attention_mask": mask, "use_cache": False}
    found = model()(**given, output_attentions=weights)
    if weights:
        return found.attentions[HEAD[0]][0, HEAD[1], 65:, 1:65].reshape(-1, 8, 8).double().numpy()
    return found.logits[0, -1].double().softmax(-1)


def changed(sample: str, place: str) -> Matrix:
    """The patches that change if the shape at a place is left out of the image, (8, 8)."""
    whole, less = (
        draw_shapes(some).pixels for some in (DRAWN[sample], [one for one in DRAWN[sample] if one.place != place])
    )
    return (whole != less).any(-1).reshape(8, 8, 8, 8).any((1, 3))


def at(place: str) -> Matrix:
    """The patches of a place: those whose middle is nearest to its own."""
    near = np.abs((np.arange(8) * 8 + 4)[:, None] - np.array([10.5, 32, 53.5])).argmin(1)
    rows, columns = ["top", "middle", "bottom"], ["left", "centre", "right"]
    down, across = place.split()
    return (near == rows.index(down))[:, None] & (near == columns.index(across))[None, :]


def test_the_head_is_the_one_that_was_trained_for_it() -> None:
    figures = json.loads((FOLDER / "figures.json").read_text("utf-8"))
    assert HEAD == (figures["head_layer"], figures["head"])


def test_every_shape_lies_within_its_place() -> None:
    for sample, shapes in DRAWN.items():
        for one in shapes:
            its = changed(sample, one.place)
            assert its.any() and not (its & ~at(one.place)).any()


@pytest.mark.parametrize("word", range(6))
def test_the_places_have_the_weights_of_the_run(word: int, run: RunText) -> None:
    ask = LESSON.ask(Scene("", run, word=word))
    row = plain("shapes-four", TEXT, weights=True)[word]
    own = [float(row[at(place)].sum()) for place in PLACES]
    assert ask.values == pytest.approx((*own, 1 - sum(own)), abs=1e-4)
    assert ask.options[max(ask.right)] in ask.finding and TEXT.split()[word] in ask.finding
    assert ask.seen is not None and ask.seen.weights == pytest.approx(row.flatten().tolist(), abs=1e-4)
    # The boxes on the image are the places.
    for place, (top, left, rows, columns) in zip(PLACES, ask.seen.boxes, strict=True):
        box = np.zeros((8, 8), dtype=bool)
        box[top : top + rows, left : left + columns] = True
        assert (box == at(place)).all()


@pytest.mark.parametrize("place", range(9))
def test_a_blocked_place_changes_the_answer_as_in_plain_transformers(place: int, run: RunText) -> None:
    scene = Scene("", run, choice=str(place))
    ask, shown = LESSON.ask(scene), LESSON.show(scene)
    shares = plain("shapes-four", TEXT, at(PLACES[place]))
    answer = next(word for word, number in vocabulary().items() if number == int(shares.argmax()))
    assert f"“{answer}”" in ask.finding and PLACES[place] in ask.finding and f"“{answer}”" in shown.says
    assert answer == ("none" if PLACES[place] == "middle centre" else "yellow")
    assert ("still" in ask.finding) == (answer == "yellow")
    panel: Any = shown.figure.data[0]
    assert panel.z[1] == pytest.approx([float(shares[vocabulary()[word]]) for word in ANSWERS], abs=1e-4)
    assert ask.values[place] == 0
    # Pressing the blocked place again opens it; any other place is blocked instead.
    assert ask.pressed == (*("none" if one == place else str(one) for one in range(9)), "")


def test_the_text_counts_what_the_samples_show(run: RunText) -> None:
    facts = LESSON.show(Scene("", run)).facts
    hits, chance = {"the": 0, "name": 0, "?": 0}, 0.0
    asked = [
        (sample, one)
        for sample, shapes in DRAWN.items()
        for one in shapes
        if [other.shape for other in shapes].count(one.shape) == 1
    ]
    for sample, one in asked:
        rows = plain(sample, f"what colour is the {one.shape} ?", weights=True)
        for word, row in zip(hits, rows[3:], strict=True):
            hits[word] += bool(at(one.place)[np.unravel_index(row.argmax(), row.shape)])
        chance += 1 / len(DRAWN[sample])
    told = [facts[name] for name in ("article_hits", "name_hits", "last_hits", "count", "samples", "chance")]
    assert told == [*map(str, hits.values()), str(len(asked)), "5", f"{chance:.1f}"]
    # What the sentences around the numbers claim.
    assert hits["?"] == len(asked) and hits["the"] <= chance + 1 < hits["name"]
    own, last = (plain("shapes-four", TEXT, weights=True)[word][at("middle centre")].sum() for word in (4, 5))
    assert (facts["own"], facts["last"]) == (f"{own:.2f}", f"{last:.2f}")
    assert facts["place"] == "middle centre" and not any(one.place == facts["other"] for one in DRAWN["shapes-four"])
    assert at(facts["other"]).sum() > at(facts["place"]).sum()


def test_the_article_has_one_row_whatever_shape_follows() -> None:
    rows = [plain("shapes-four", f"what colour is the {one.shape} ?", weights=True) for one in DRAWN["shapes-four"]]
    assert all(np.abs(one[3] - rows[0][3]).max() < 1e-6 for one in rows)
    assert all(np.abs(one[5] - rows[0][5]).max() > 0.1 for one in rows[1:])


@pytest.mark.parametrize("seed", SEEDS)
def test_the_question_is_found_by_its_last_row(seed: int, run: RunText) -> None:
    made = EXERCISES["asked"].make(Scene("", run), seed)
    answer, (given,) = made.answer, made.given
    assert isinstance(answer, OptionAnswer)
    (right,) = answer.right
    sample = next(name for name, some in DRAWN.items() if tuple(one.place for one in some) == given.columns[:-1])
    words = answer.options[right].split()
    rows = plain(sample, answer.options[right], weights=True)
    for name, numbers in zip(given.rows, given.numbers, strict=True):
        own = [float(rows[words.index(name.strip("“”"))][at(place)].sum()) for place in given.columns[:-1]]
        assert numbers == pytest.approx((*own, 1 - sum(own)), abs=2e-3)
    heaviest = [int(np.argmax(row[:-1])) for row in given.numbers]
    assert heaviest[-1] == right != heaviest[-2]
    assert [made.check(option).right for option in answer.options] == [
        place == right for place in range(len(given.columns) - 1)
    ]
    for place in set(range(len(answer.options))) - {right}:
        said = made.check(answer.options[place]).words
        assert ("it comes before the shape's name" in said) == (place in heaviest[:-1])
        assert answer.options[right] not in said


def test_exercises_differ_by_seed(run: RunText) -> None:
    asked = {(one.given, one.solution) for one in (EXERCISES["asked"].make(Scene("", run), seed) for seed in SEEDS)}
    assert len(asked) > len(SEEDS) // 2 - 1


def test_its_slides_show_the_image_with_the_places(run: RunText) -> None:
    scene = Scene("", run)
    asked = EXERCISES["asked"].make(scene, 0)
    question, *_, exercise = lesson_slides("where", LESSON.title, "", LESSON.ask(scene), LESSON.show(scene), asked)
    assert question.shown is not None and len(question.shown.boxes) == 9
    assert exercise.shown is None and exercise.picture is not None and len(exercise.given) == 1
    blocked = LESSON.ask(replace(scene, choice="4")).seen
    assert blocked is not None and sum(one is None for one in blocked.weights) == int(at("middle centre").sum())
