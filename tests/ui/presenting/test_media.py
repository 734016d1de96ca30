"""Slides of what is no text: a picture is on them, and a sound's moments are written plainly."""

import base64
import io
import re

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import expect

import attention_viz as av
from attention_viz.analysis.slides import found_slides
from attention_viz.lesson import EXERCISES, LESSONS, Scene
from attention_viz.lesson.exercise import Cells
from attention_viz.lesson.slides import lesson_slides
from attention_viz.ui.presenting.host import packed_slides
from tests.conftest import OpenPage
from tests.shipped import shown

CUT_NAMES = """() => [...document.querySelectorAll("*")].map(one => one.shadowRoot).filter(Boolean)
    .flatMap(root => [...root.querySelectorAll("dialog.av-present .av-label")])
    .filter(one => one.scrollWidth > one.clientWidth).map(one => one.textContent)"""
DINO, WHISPER = "dinov2-small", "whisper-tiny.en"


def run(model: str, text: str, **_: object) -> av.Trace:
    return shown(model, text)


def test_slides_of_a_picture_show_it_with_both_patches_and_the_weights_of_the_run() -> None:
    cat = shown(DINO, "chelsea")
    link = next(one for one in av.findings(cat) if one.kind == "link")
    slides = found_slides(cat, av.findings(cat), ("picture", link.layer, link.head, link.query, link.key))
    assert all(one.shown is not None and one.picture is not None and one.picture.form == "bars" for one in slides)
    first, row = slides[0].shown, cat.weights(link.layer, link.head)[link.query]
    assert first is not None and first.seen is cat.seen
    assert (first.down, first.across, first.query, first.key) == (16, 16, link.query - 1, link.key - 1)
    assert first.weights == pytest.approx(row[1:].tolist(), abs=1e-4)
    (alone,) = found_slides(cat, (), ("picture", 0, 0, 0, 5))
    assert alone.shown is not None and (alone.shown.query, alone.shown.key) == (None, 4), "[CLS] is no patch"
    packed = packed_slides(slides)
    (file,) = packed["pictures"]  # once, however many slides show it
    assert {one["shown"]["seen"] for one in packed["slides"]} == {0}
    head, _, content = file.partition(",")
    assert head == "data:image/png;base64"
    assert cat.seen.picture is not None
    assert (np.asarray(Image.open(io.BytesIO(base64.b64decode(content)))) == cat.seen.picture.numpy()).all()


@pytest.mark.parametrize(("model", "sample", "kind"), [(DINO, "chelsea", "regions"), (WHISPER, "window", "heard")])
def test_bars_are_of_what_the_headlines_number_is_of(model: str, sample: str, kind: str) -> None:
    trace = shown(model, sample)
    found = [one for one in av.findings(trace, 9) if one.kind == kind]
    assert found
    for slide, one in zip(found_slides(trace, found), found, strict=True):
        assert slide.picture is not None and slide.picture.key is not None
        values = [value or 0 for value in slide.picture.values]
        told = sum(values[:-1]) if kind == "regions" else values[slide.picture.key]
        assert told == pytest.approx(one.strength, abs=1e-4) and sum(values) == pytest.approx(1, abs=1e-4)
        assert slide.picture.tokens[-1] == "elsewhere"
        if kind == "heard":
            asked = "".join(text for text, _ in slide.ask)
            assert "before “" in asked.lower() and asked.endswith(", which third of the word’s time does it attend to?")
            assert slide.picture.tokens[slide.picture.key].removesuffix(" third") in "".join(t for t, _ in slide.tell)


def test_the_lesson_on_a_picture_shows_it_with_the_question_and_with_the_exercise() -> None:
    scene = Scene("The cat sat", run)
    lesson = LESSONS["picture"]
    made = EXERCISES["region"].make(scene, 1)
    question, *_, exercise = lesson_slides("picture", "", "", lesson.ask(scene), lesson.show(scene), made)
    assert question.shown is not None and exercise.shown is not None
    said = "".join(part for part, _ in exercise.ask)
    for row, column, down, across in exercise.shown.boxes:
        assert (down, across) == (4, 4) and f"row {row // 4 + 1} column {column // 4 + 1}" in said


def test_a_mask_to_mend_is_written_as_its_question_says_and_the_answer_marks_what_is_wrong() -> None:
    scene = Scene("The cat sat on the mat", run)
    made = EXERCISES["mask"].make(scene, 1)
    lesson = LESSONS["picture"]
    *_, slide = lesson_slides("picture", "", "", lesson.ask(scene), lesson.show(scene), made)
    (given,) = slide.given
    assert isinstance(made.answer, Cells)
    assert {sign for row in given.cells for sign in row} == {"✕", "·"} and "✕ is blocked" in made.question
    assert set(given.wrong) == made.answer.start ^ made.answer.right
    assert f"Which {len(given.wrong)} cells are wrong?" in made.question


def test_a_moment_of_a_sound_is_written_with_a_plain_blank() -> None:
    trace = shown(WHISPER, "window")
    (slide,) = found_slides(trace, (), ("encoder", 0, 0, 40, 100))
    assert slide.picture is not None
    assert slide.picture.tokens[slide.picture.key or 0] == "2.00 s"
    assert not any("␣" in name for name in slide.picture.tokens)


def test_the_picture_is_seen_with_the_question_and_beneath_the_weights_with_the_answer(stay: OpenPage) -> None:
    page = stay("/?model=dinov2-small&slide=1.1", width=1280, height=720)
    picture = page.locator("dialog.av-present .av-shown")
    expect(picture.locator("image")).to_have_attribute("href", re.compile("^data:image/png;base64,"))
    box = picture.locator("svg").bounding_box()
    assert box is not None and box["width"] > 300 and box["y"] + box["height"] <= 720
    # Whole names, each told apart by its last letter.
    assert page.evaluate(CUT_NAMES) == []
    expect(picture.locator(".av-frame.av-framed-query")).to_have_css("opacity", "1")
    expect(picture.locator(".av-frame.av-framed-key")).to_have_css("opacity", "0")
    expect(picture.locator(".av-pale").first).to_have_css("opacity", "0")
    page.keyboard.press("ArrowRight")
    expect(picture.locator(".av-frame.av-framed-key")).to_have_css("opacity", "1")
    expect(picture.locator(".av-pale").first).to_have_css("opacity", "1")


def test_a_lessons_figure_and_formula_are_drawn_and_the_formula_comes_with_the_answer(open_page: OpenPage) -> None:
    page = open_page("/learn?lesson=scores&text=The+bank+of+the+river+was+flooded&slide=2.1", width=1360, height=765)
    figure = page.locator("dialog[open] .av-figure")
    expect(figure.locator(".main-svg").first).to_be_visible()
    # Its layers lie over each other: the titles are where the cells are.
    boxes = [one.bounding_box() for one in figure.locator(".main-svg").all()]
    assert len(boxes) > 1 and all(box == boxes[0] for box in boxes)
    for _ in range(2):
        page.keyboard.press("ArrowRight")
    formula = page.locator("dialog[open] .av-formulas")
    expect(formula.locator("math")).to_have_count(1)
    expect(formula).to_have_css("opacity", "0")
    page.keyboard.press("ArrowRight")
    expect(formula).to_have_css("opacity", "1")
    expect(page.locator("dialog[open] h1 math")).not_to_have_count(0)
