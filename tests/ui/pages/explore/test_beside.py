"""A text beside an image: both are chosen, run together, and each points at the other."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy
import pytest
from PIL import Image
from playwright.sync_api import Page, expect

import attention_viz as av
from attention_viz.inputs.media.shipped import SAMPLES
from tests.conftest import OpenPage
from tests.shipped import shipped
from tests.ui.screens import Screen

QUESTION = "what colour is the circle ?"
OPENED = "/?model=shapes&picture=shapes-two&layer=1&head=0&stream=decoder&text=what+colour+is+the+circle+?"


@pytest.fixture(scope="module")
def circle() -> Screen:
    return Screen().open("/?model=shapes")


@pytest.fixture(scope="module")
def shapes() -> av.AttentionModel:
    return shipped("shapes")


@pytest.fixture(scope="module")
def trace(shapes: av.AttentionModel) -> av.Trace:
    return shapes.trace(QUESTION, picture=av.Picture(SAMPLES["shapes-two"].path))


def test_text_and_image_are_offered_together_and_stand_in_the_address(circle: Screen) -> None:
    assert (circle.address["text"], circle.address["picture"]) == (QUESTION, "shapes-two")
    assert circle.address["stream"] == "decoder"
    assert [one.label for one in circle.all("text_area")].count("Sentence") == 1
    assert "shapes-two.png · a red circle and a blue square" in circle.words and "Next token" in circle.words


def test_the_explorer_gets_the_words_with_the_places_of_the_patches(circle: Screen) -> None:
    packed = circle.packed()
    (stream,) = packed["streams"]
    axis = packed["axes"][stream["keys"]]
    assert stream["name"] == "decoder" and packed["seen"]["picture"]["rows"] == 64
    assert axis["place"][1:65] == [[row, column] for row in range(8) for column in range(8)]
    assert axis["labels"][65:] == QUESTION.split() and axis["place"][65:] == [None] * 6
    # Patches ask nothing: what is found is of words.
    assert packed["findings"] and all(one["query"] >= 65 for one in packed["findings"])


def test_the_weights_are_those_of_the_model_itself(trace: av.Trace) -> None:
    screen = Screen().open(OPENED)
    wanted = trace.weights(1, 0, "decoder").numpy()
    assert numpy.abs(screen.weights() - wanted).max() < 1e-6
    # A control: another head's differ.
    assert numpy.abs(screen.weights() - trace.weights(1, 3, "decoder").numpy()).max() > 0.1


def test_another_sample_keeps_the_question_and_another_question_the_sample(circle: Screen) -> None:
    screen = Screen().open(OPENED).press("Sample – a blue cross")
    assert (screen.address["picture"], screen.address["text"]) == ("shapes-one", QUESTION)
    (box,) = [one for one in screen.all("text_area") if one.label == "Sentence"]
    box.set_value("what is red ?")
    screen.run()
    assert (screen.address["picture"], screen.address["text"]) == ("shapes-one", "what is red ?")


def test_a_visitors_image_runs_with_the_text_and_stands_in_no_link(tmp_path: Path) -> None:
    path = tmp_path / "mine.png"
    Image.open(SAMPLES["shapes-two"].path).transpose(Image.Transpose.FLIP_LEFT_RIGHT).save(path)
    screen = Screen().open(OPENED).upload("Upload image", path)
    assert "picture" not in screen.address and screen.address["text"] == QUESTION
    assert "mine.png" in screen.words and not screen.alerts


def test_a_placeholder_too_many_is_told_and_what_was_typed_stays() -> None:
    screen = Screen().open(OPENED.replace("what+", "%3Cimage%3E%3Cimage%3E+what+"))
    assert any("image" in one for one in screen.alerts)
    assert screen.address["text"].startswith("<image><image> what")


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"no picture", "broken or in an unknown format"), (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "an SVG file")],
)
def test_a_broken_image_is_refused_and_text_and_image_stay(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "theirs.png"
    path.write_bytes(content)
    screen = Screen().open(OPENED).upload("Upload image", path)
    assert any(words in one for one in screen.alerts)
    assert (screen.address["text"], screen.address["picture"]) == (QUESTION, "shapes-two")


def test_an_image_that_says_it_is_huge_is_refused_and_the_question_stays(tmp_path: Path) -> None:
    path = tmp_path / "bomb.png"
    Image.new("1", (20_000, 20_000)).save(path)
    screen = Screen().open(OPENED).upload("Upload image", path)
    assert any("use at most 50,000,000" in one or "far more pixels" in one for one in screen.alerts)
    assert (screen.address["text"], screen.address["picture"]) == (QUESTION, "shapes-two")


def test_a_text_of_nothing_is_refused_by_name_and_the_image_stays() -> None:
    screen = Screen().open(OPENED.partition("&text=")[0] + "&text=+")
    assert any("type at least one word" in one for one in screen.alerts)
    assert screen.address["picture"] == "shapes-two"


def test_the_model_goes_on_word_by_word_with_its_image(shapes: av.AttentionModel) -> None:
    screen = Screen().open(f"{OPENED}&more=2")
    *_, last = shapes.generate(QUESTION, 2, picture=av.Picture(SAMPLES["shapes-two"].path))
    axis = screen.packed()["axes"][-1]
    made = last.provenance.generated
    assert axis["labels"][71:] == list(last.query_tokens("decoder").labels[71:]) and axis["labels"][71] == "red"
    assert axis["generated"] == list(range(71, 71 + made))
    assert numpy.abs(screen.weights() - last.weights(1, 0, "decoder").numpy()).max() < 1e-6


def test_the_answer_changes_without_the_region_that_the_word_attends_to(
    shapes: av.AttentionModel, trace: av.Trace
) -> None:
    # The circle covers these patches, in the upper left corner.
    patches = [row * 8 + column for row in range(3) for column in range(3)]
    screen = Screen().open(f"{OPENED}&query=70&key=1&blocked=0-2.8-10.16-18")
    assert screen.address["blocked"] == "0-2.8-10.16-18"
    assert (screen.weights()[65:, [1 + one for one in patches]] == 0).all()
    allowed = numpy.ones((71, 71), bool)
    allowed[numpy.ix_([0, *range(65, 71)], [1 + one for one in patches])] = False
    import torch

    edit = av.Allow(torch.from_numpy(allowed), stream="decoder")
    after = shapes.trace(QUESTION, picture=av.Picture(SAMPLES["shapes-two"].path), edits=[edit])
    old, new = (shapes.probability(one, "red") for one in (trace, after))
    assert new < 0.5 < old
    (found,) = re.findall(r"“red” goes from ([\d.<]+) to ([\d.<]+)", screen.words)
    assert found == (f"{old:.2f}", f"{new:.2f}" if new >= 0.005 else "<0.01")
    # As many patches elsewhere change nothing.
    (control,) = re.findall(r"attends to least: (\d\.\d+)", screen.words)
    assert float(control) == pytest.approx(old, abs=0.01)


def test_words_and_picture_light_each_other(open_page: OpenPage, idle: Callable[[Page], None], trace: av.Trace) -> None:
    page = open_page(f"{OPENED}&query=69&key=11")
    idle(page)
    line = page.get_by_test_id("explorer-arcs")
    chip = line.locator(".av-picture-chip")
    row = trace.weights(1, 0, "decoder")[69]
    expect(chip).to_have_attribute("data-weight", f"{float(row[1:65].sum()):.2f}")
    assert line.locator("[data-place]").count() == 7  # 64 patches are one
    line.locator('[data-place="67"]').hover()
    expect(page.get_by_test_id("explorer-sentence")).to_contain_text("“is”")
    other = trace.weights(1, 0, "decoder")[67]
    expect(chip).to_have_attribute("data-weight", f"{float(other[1:65].sum()):.2f}")
    # The patch in the lower right corner, at its middle.
    picture = page.get_by_test_id("picture")
    box = picture.bounding_box()
    assert box is not None
    picture.hover(position={"x": box["width"] * 15 / 16, "y": box["height"] * 15 / 16})
    expect(page.get_by_test_id("explorer-sentence")).to_contain_text("this part of the image")
    given = float(trace.weights(1, 0, "decoder")[67, 64])
    shown = line.locator('[data-place="67"]').get_attribute("data-weight")
    assert shown is not None and (shown == f"{given:.2f}" or (given < 0.005 and shown in ("<0.01", "0")))
