"""The sheet to draw on: its image is in the URL, a wrong URL says why, and every place works from the keyboard."""

import re
from collections.abc import Callable

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from attention_viz.inputs.media.drawn import EXAMPLE, shapes_of
from attention_viz.inputs.media.shapes import draw_shapes
from tests.conftest import OpenPage
from tests.shipped import shipped
from tests.ui.screens import Screen

QUESTION = "what colour is the ring ?"
RING = "drawn.green-ring-middle-centre"
OPENED = f"/?model=shapes&text=what+colour+is+the+ring+?&picture={RING}&layer=1&head=0&stream=decoder"


def test_a_drawing_in_the_address_is_what_the_model_reads() -> None:
    screen = Screen().open(OPENED)
    assert not screen.alerts and screen.address["picture"] == RING
    assert "your drawing · a green ring" in screen.words
    trace = shipped("shapes").trace(QUESTION, picture=draw_shapes(shapes_of(RING)))
    assert np.abs(screen.weights() - trace.weights(1, 0, "decoder").numpy()).max() < 1e-6
    control = shipped("shapes").trace(QUESTION, picture=draw_shapes(shapes_of(EXAMPLE)))
    assert np.abs(screen.weights() - control.weights(1, 0, "decoder").numpy()).max() > 0.1


@pytest.mark.parametrize("page", ["steps", "masks", "heads", "compare"])
def test_other_pages_show_the_drawing_too(page: str) -> None:
    screen = Screen().open(OPENED.replace("/?", f"/{page}?"))
    assert not screen.alerts and screen.address["picture"] == RING


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("drawn.pink-ring-top-left", "unknown colour 'pink'; choose red, yellow, green, blue, purple, black"),
        ("drawn.red-ring-top-left.red-ring-top-right", "there are two red rings"),
        ("drawn.<b>", "can't read the shape '<b>'"),
    ],
)
def test_an_address_with_a_wrong_drawing_says_why_and_shows_the_sample(name: str, reason: str) -> None:
    screen = Screen().open(f"/?model=shapes&picture={name}")
    assert screen.address["picture"] == "shapes-two"
    (warning,) = [one for one in screen.warnings if "drawn" in one]
    assert reason in warning.replace("\\", "") and EXAMPLE in warning.replace("\\", "")


def test_a_shape_is_put_moved_and_removed_and_the_drawing_stays_on_other_pages(
    open_page: OpenPage, idle: Callable[[Page], None]
) -> None:
    page = open_page("/?model=shapes")
    idle(page)
    page.get_by_role("button", name="shapes-two.png").click()
    sheet = page.get_by_test_id("drawing")
    status = sheet.get_by_role("status")
    sheet.get_by_role("button", name="top left: red circle").click()
    sheet.get_by_label("ring").check()
    sheet.get_by_label("green").check()
    sheet.get_by_role("button", name="middle centre: empty").click()
    sheet.get_by_role("button", name="top right: empty").click()
    expect(status).to_have_text("The green ring moved here: no two shapes look alike.")
    expect(sheet.get_by_role("button", name="middle centre: empty")).to_be_visible()
    # By keyboard: down to the square's row, and away with it.
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(sheet.get_by_role("button", name="bottom right: blue square")).to_be_focused()
    page.keyboard.press("Delete")
    sheet.get_by_label("yellow").check()
    sheet.get_by_role("button", name="bottom right: empty").press("Enter")
    sheet.get_by_role("button", name="Show drawing").click()
    expect(sheet).to_be_hidden()
    name = "drawn.green-ring-top-right.yellow-ring-bottom-right"
    expect(page).to_have_url(re.compile(f"picture={re.escape(name)}(&|$)"))
    idle(page)
    page.get_by_role("link", name="Step by step").click()
    expect(page).to_have_url(re.compile(f"/steps.*picture={re.escape(name)}(&|$)"))


def test_the_sheet_shows_what_is_drawn_and_fits_a_phone(open_page: OpenPage, idle: Callable[[Page], None]) -> None:
    name = "drawn.red-circle-top-left.green-ring-top-right.blue-cross-middle-centre.black-triangle-bottom-left"
    page = open_page(f"/?model=shapes&picture={name}")
    idle(page)
    page.get_by_role("button", name="your drawing").click()
    sheet = page.get_by_test_id("drawing")
    expect(sheet.get_by_role("button", name="middle centre: blue cross")).to_be_visible()
    # Its outlines, on a canvas of the image's size, against the image that the model gets.
    dots = sheet.locator(".av-draw-sheet svg").evaluate(
        """async (svg) => {
          const copy = svg.cloneNode(true);
          copy.setAttribute("width", "64");
          copy.setAttribute("height", "64");
          const image = new Image();
          const text = new XMLSerializer().serializeToString(copy);
          image.src = `data:image/svg+xml,${encodeURIComponent(text)}`;
          await image.decode();
          const canvas = new OffscreenCanvas(64, 64);
          const context = canvas.getContext("2d");
          context.fillStyle = getComputedStyle(svg).backgroundColor;
          context.fillRect(0, 0, 64, 64);
          context.drawImage(image, 0, 0);
          return [...context.getImageData(0, 0, 64, 64).data];
        }"""
    )
    drawn = np.array(dots, np.int16).reshape(64, 64, 4)[..., :3]
    wanted = draw_shapes(shapes_of(name)).pixels.astype(np.int16)
    assert np.abs(drawn - wanted).mean() < 1
    assert np.abs(drawn[:, ::-1] - wanted).mean() > 5
    page.set_viewport_size({"width": 390, "height": 844})
    box = sheet.bounding_box()
    assert box is not None and box["x"] >= 0 and box["x"] + box["width"] <= 390
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
