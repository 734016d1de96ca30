"""A picture and a sound as a person sees them: light where the weight is, its contour, and nothing that jumps."""

import itertools
import re
from collections.abc import Callable
from typing import cast

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

import attention_viz as av
from tests.conftest import OpenPage
from tests.shipped import shown

Idle = Callable[[Page], None]
DINO, WHISPER = "dinov2-small", "whisper-tiny.en"
# The mean colour around the middle of each patch, and how much of a canvas is violet, as the contour alone is.
COLOURS = """(canvas) => {
  const {width, height} = canvas, {data} = canvas.getContext("2d").getImageData(0, 0, width, height);
  const at = (x, y) => [0, 1, 2].map((colour) => data[4 * (Math.floor(y) * width + Math.floor(x)) + colour]);
  const middle = (row, column) => {
    const found = [];
    for (const down of [0.4, 0.5, 0.6]) for (const right of [0.4, 0.5, 0.6])
      found.push(at(((column + right) * width) / 16, ((row + down) * height) / 16));
    return [0, 1, 2].map((colour) => found.reduce((sum, one) => sum + one[colour], 0) / 9);
  };
  let violet = 0;
  for (let dot = 0; dot < data.length; dot += 4)
    violet += Math.abs(data[dot] - 124) + Math.abs(data[dot + 1] - 58) + Math.abs(data[dot + 2] - 237) < 24;
  return {violet, middles: Array.from({length: 256}, (_, patch) => middle(Math.floor(patch / 16), patch % 16))};
}"""


NAMES = ("x", "y", "width", "height")


def box(place: Locator) -> dict[str, float]:
    found = place.bounding_box()
    assert found is not None
    return {
        name: float(value)
        for name, value in zip(NAMES, (found["x"], found["y"], found["width"], found["height"]), strict=True)
    }


def test_weight_is_light_with_a_contour_at_half_of_it_and_nothing_jumps(stay: OpenPage, idle: Idle) -> None:
    page = stay(f"/?model={DINO}")
    sentence, picture = page.get_by_test_id("explorer-sentence"), page.get_by_test_id("picture")
    expect(sentence).to_have_text("A patch near the centre looks at two regions: 0.63")
    idle(page)
    trace = shown(DINO, "chelsea")
    first = av.findings(trace)[0]
    row = trace.weights(first.layer, first.head)[first.query, 1:].numpy().reshape(16, 16)
    assert trace.seen.picture is not None
    photo = trace.seen.picture.numpy().astype(float).reshape(16, 14, 16, 14, 3)[:, 5:9, :, 5:9].mean((1, 3))
    expected = photo * (0.28 + 0.72 * row / row.max())[..., None]
    found = picture.evaluate(COLOURS)
    off = np.abs(np.array(found["middles"]).reshape(16, 16, 3) - expected)
    assert float(np.median(off)) < 4 and float((off < 20).mean()) > 0.97
    assert found["violet"] > 200
    expect(page.locator(".av-region-mark")).to_have_text(["0.38", "0.25"])
    cell = box(page.get_by_test_id("explorer-grid").locator(".av-cell").first)
    assert abs(cell["width"] / cell["height"] - 1) < 0.04
    chip, place = page.get_by_test_id("finding").first, box(picture)
    tops = set[float]()
    for x, y in ((0.1, 0.1), (0.5, 0.5), (0.9, 0.2), (0.3, 0.95)):
        page.mouse.move(place["x"] + x * place["width"], place["y"] + y * place["height"])
        expect(sentence).to_contain_text(re.compile("^The patch"))
        tops |= {box(chip)["y"], box(picture)["y"] + 1000}
    assert len(tops) == 2


@pytest.mark.parametrize("dark", [False, True])
def test_a_picture_on_a_phone_keeps_to_the_screen_and_parts_keep_apart(stay: OpenPage, idle: Idle, dark: bool) -> None:
    page = stay(f"/?model={DINO}", width=390, height=844)
    if dark:
        page.emulate_media(color_scheme="dark")
    idle(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    parts = ["explorer-claim", "picture", "explorer-grid", "picture-heads"]
    boxes = [box(page.get_by_test_id(name)) for name in parts]
    for above, below in itertools.pairwise(boxes):
        assert above["y"] + above["height"] <= below["y"] + 1


def test_all_heads_of_a_sound_leave_no_void_beside_the_word_times(stay: OpenPage, idle: Idle) -> None:
    page = stay(f"/?model={WHISPER}")
    times = page.get_by_test_id("word-times")
    expect(times).to_be_visible()
    idle(page)
    right = max(one["x"] + one["width"] for one in map(box, page.locator(".av-cell").all()))
    assert box(times)["x"] - right < 100
    page = stay(f"/cross?model={WHISPER}")
    idle(page)
    following = page.get_by_test_id("following").locator("li")
    expect(following).to_have_count(20)
    expected = av.aligning_heads(shown(WHISPER, "window"))
    (layer, head), measure = cast("tuple[int, int]", expected.index[0]), float(expected.iloc[0])
    expect(following.first).to_contain_text(f"{layer}·{head}")
    expect(following.first).to_contain_text(f"{measure:.2f}")
    expect(page.get_by_test_id("keeping").locator("g[data-head]")).to_have_count(20)
    following.first.get_by_role("button").click()
    page.wait_for_url(re.compile(f"(?=.*layer={layer})(?=.*head={head})"))
    expect(following.first).to_have_attribute("aria-current", "true")
