"""No label lies over another, however many tokens and however wide the screen; the matrix alone on the screen."""

import itertools
import random
import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from attention_viz import AttentionModel
from attention_viz.trace.trace import Trace
from tests.explorer.conftest import self_attention
from tests.pages import in_frames

Show = Callable[..., Page]
Box = tuple[str, float, float, float, float]

WORDS = (
    "The administration of the bank said that the unpredictability was flooded because it had rained, "
    "nevertheless the bank remains"
)
# From here on, what a canvas is given to write is kept, with the box of its letters on the page.
LISTEN = """() => {
    const write = CanvasRenderingContext2D.prototype.fillText;
    window.written = new Map();
    CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
        write.apply(this, arguments);
        const {actualBoundingBoxLeft: left, actualBoundingBoxRight: right, actualBoundingBoxAscent: up,
               actualBoundingBoxDescent: down} = this.measureText(text);
        const place = this.canvas.getBoundingClientRect(), ratio = this.canvas.width / place.width;
        const corners = [[x - left, y - up], [x + right, y + down]].map(([a, b]) =>
            this.getTransform().transformPoint({x: a, y: b}));
        const [xs, ys] = [corners.map((one) => one.x / ratio), corners.map((one) => one.y / ratio)];
        const box = [text, place.x + Math.min(...xs), place.y + Math.min(...ys), Math.abs(xs[1] - xs[0]),
                     Math.abs(ys[1] - ys[0])];
        window.written.set(this.canvas, [...(window.written.get(this.canvas) ?? []), box]);
    };
    const wipe = CanvasRenderingContext2D.prototype.clearRect;
    CanvasRenderingContext2D.prototype.clearRect = function () {
        window.written.delete(this.canvas);
        wipe.apply(this, arguments);
    };
}"""
BOXES = """nodes => nodes.filter(node => node.textContent && node.checkVisibility()).map(node => {
    const range = document.createRange();
    range.selectNodeContents(node);
    const text = range.getBoundingClientRect(), own = node.getBoundingClientRect();
    // What is cut off isn't seen.
    const [left, top] = [Math.max(text.left, own.left), Math.max(text.top, own.top)];
    const [right, bottom] = [Math.min(text.right, own.right), Math.min(text.bottom, own.bottom)];
    return [node.textContent, left, top, right - left, bottom - top];
})"""
# Labels of one kind, as far as they may not lie over each other.
LABELS = {
    "tokens of the arcs": ".av-token",
    "findings": ".av-finding",
    "parts of a finding": ".av-finding > *",
    "the grid's numbers": ".av-cells [role=rowheader], .av-cells .av-heading > span:not(:has(.av-live))",
    "the claim, its place and the findings": ".av-claim, .av-where, .av-how, .av-findings",
    "controls and legend": ".av-readout, .av-segments, .av-check, .av-key-entry, .av-ticks span, .av-sums",
    "titles": ".av-main h2, .av-hint",
    "bars": ".av-list li > *",
}


def collisions(boxes: list[Box]) -> list[tuple[str, str]]:
    """The labels that lie over each other by more than a pixel of their rims."""
    return [
        (one, other)
        for (one, x, y, wide, high), (other, left, top, broad, tall) in itertools.combinations(boxes, 2)
        if min(x + wide, left + broad) - max(x, left) > 1 and min(y + high, top + tall) - max(y, top) > 1
    ]


def text_of(count: int) -> str:
    """So many tokens for the model, which adds two; at 25 some words are in pieces."""
    words = WORDS.split()
    if count > 25:
        return " ".join(random.Random(0).choices(["bank", "river", "said", "the", "was", "because"], k=count - 2))
    return " ".join(words[: count - 2] if count < 25 else words)


@pytest.mark.parametrize("count", [1, 9, 25, 260])
def test_no_label_lies_over_another(show: Show, model: AttentionModel, count: int) -> None:
    trace = self_attention(1) if count == 1 else model.trace(text_of(count))
    assert len(trace.query_tokens()) == count
    page = show(trace, width=1920, height=1080)
    page.evaluate(LISTEN)
    for width in (1360, 390, 1920):
        page.set_viewport_size({"width": width, "height": 860})
        # A token that is chosen has numbers at its arcs, and its neighbours in the matrix make room for its label.
        for chosen in (False, True):
            token = page.locator(".av-token").nth(min(3, count - 1))
            if chosen:
                token.click()
            else:
                page.mouse.move(2, 2)  # where nothing is pointed at, whatever the new width has moved there
            expect(token).to_have_attribute("aria-selected", str(chosen).lower())
            page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
            seen = {kind: page.locator(selector).evaluate_all(BOXES) for kind, selector in LABELS.items()}
            drawn = page.evaluate("[...window.written].map(([canvas, boxes]) => [canvas.className, boxes])")
            # The matrix; with a chosen token what lies over it and, where a weight is large enough, the arcs.
            assert len(drawn) == (1 if not chosen else 2 if count > 100 else 3)
            for canvas, boxes in drawn:
                beside = seen["tokens of the arcs"] if canvas == "av-arcs" else []
                seen[f"written on {canvas or 'the matrix'}"] = [*boxes, *beside]
            for kind, boxes in seen.items():
                assert boxes or count == 1, f"no {kind}"
                assert not collisions(boxes), f"{kind}, {width} wide"
        page.keyboard.press("Escape")


# Of the letters: their box keeps room for two lines.
TEXT_HEIGHT = """sentence => {
    const letters = document.createRange();
    letters.selectNodeContents(sentence);
    return letters.getBoundingClientRect().height;
}"""


def test_a_token_that_is_pointed_at_stays_under_the_pointer(show: Show, model: AttentionModel) -> None:
    """On a phone's width the headline takes one line for one token and two for another."""
    page = show(model.trace(text_of(25)), width=390, height=860)
    heights = set()
    for place in (0, 5, 1, 3):
        token = page.locator(".av-token").nth(place)
        token.evaluate("token => token.scrollIntoView({block: 'center'})")
        token.hover()
        assert len(set(in_frames(token, "place.getBoundingClientRect().y"))) == 1
        expect(token).to_have_class(re.compile("av-is-query"))
        heights.add(page.get_by_test_id("explorer-sentence").evaluate(TEXT_HEIGHT))
    assert len(heights) > 1


def test_the_matrix_has_the_screen_to_itself_until_escape(show: Show, bank: Trace) -> None:
    page = show(bank, layer=0, head=4)
    matrix = page.get_by_test_id("explorer-heatmap")
    button, stage = page.get_by_test_id("explorer-full-screen"), matrix.get_by_role("application")
    before = stage.bounding_box()
    assert before is not None
    button.focus()
    page.keyboard.press("Enter")
    expect(page.locator(":fullscreen")).to_have_attribute("data-testid", "explorer-heatmap")
    expect(button).to_have_accessible_name("Exit full screen")
    canvas = matrix.locator("canvas").first
    expect(canvas).to_have_css("height", f"{860 - 48 - 36}px")
    alone = stage.bounding_box()
    assert alone is not None and alone["height"] > 860 * 0.8 > before["height"]
    # The same matrix, its cells broader than high, which tells the number under the pointer: the third row's sixth
    # cell of nine is 0.580.
    page.keyboard.press("Tab")
    expect(stage).to_be_focused()
    stage.hover(position={"x": alone["width"] * 0.58, "y": alone["height"] * 0.3})
    expect(matrix.get_by_role("tooltip")).to_have_text("bank → river0.58")
    page.keyboard.press("Escape")
    expect(page.locator(":fullscreen")).to_have_count(0)
    expect(button).to_be_focused()
    expect(button).to_have_accessible_name("Full screen: the matrix alone")
    assert stage.bounding_box() == before
