"""A picture to take along: the headline and the arcs of the query's row, on the clipboard or as a file."""

from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Page, expect

from attention_viz.trace.trace import Trace
from tests.explorer.conftest import self_attention

Show = Callable[..., Page]
SVG = "{http://www.w3.org/2000/svg}"
THINNEST, THICKEST = 1, 6


def saved(page: Page, where: Path) -> ElementTree.Element:
    with page.expect_download() as download:
        page.get_by_test_id("explorer-save").click()
    download.value.save_as(where)
    assert download.value.suggested_filename == "attention.svg"
    return ElementTree.parse(where).getroot()


def texts(picture: ElementTree.Element) -> list[str]:
    return ["".join(one.itertext()) for one in picture.iter(f"{SVG}text")]


def widths(picture: ElementTree.Element) -> list[float]:
    return [float(one.get("stroke-width", "0")) for one in picture.iter(f"{SVG}path")]


def test_the_picture_says_and_draws_what_is_on_the_screen(bank: Trace, show: Show, tmp_path: Path) -> None:
    page = show(bank, layer=0, head=4)
    picture = saved(page, tmp_path / "saved.svg")
    said = texts(picture)
    assert said[0] == page.get_by_test_id("explorer-sentence").inner_text()
    assert [one.rstrip("₀₁₂₃₄₅₆₇₈₉") for one in said[2:]] == list(bank.query_tokens().written)
    row = bank.weights(0, 4)[2].tolist()
    # Arcs to all other tokens with a hundredth or more; the one that is told lies on top.
    drawn = sorted(THINNEST + (THICKEST - THINNEST) * one for at, one in enumerate(row) if at != 2 and one >= 0.01)
    assert sorted(widths(picture)) == pytest.approx(drawn, abs=1e-3)
    assert widths(picture)[-1] == max(widths(picture))


@pytest.mark.parametrize("stream", ["encoder", "cross"])
def test_any_label_stays_text(many_kinds: Trace, show: Show, tmp_path: Path, stream: str) -> None:
    picture = saved(show(many_kinds, stream=stream), tmp_path / "saved.svg")
    assert {one.tag.removeprefix(SVG) for one in picture.iter()} == {
        *("svg", "rect", "text", "tspan", "path", "linearGradient", "stop")
    }
    assert any("</script>" in one for one in texts(picture)) and any("שלום" in one for one in texts(picture))


def test_of_a_long_text_both_ends_of_the_link_are_there(show: Show, tmp_path: Path) -> None:
    page = show(self_attention(300, layers=1))
    said = texts(saved(page, tmp_path / "saved.svg"))
    ends = [page.locator(f".av-claim .{role}").inner_text() for role in ("av-query", "av-keys")]
    assert all(end.strip("“”") in said[2:] for end in ends)
    assert "…" in said[2:] and len(said) < 30


def test_the_clipboard_gets_a_png_or_else_the_picture_is_saved(bank: Trace, show: Show, tmp_path: Path) -> None:
    page = show(bank, layer=0, head=4)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    size = saved(page, tmp_path / "saved.svg").get("width")
    assert size is not None
    page.evaluate("""() => { navigator.clipboard.write = async ([item]) => {
        window.copied = await createImageBitmap(await item.getType("image/png"));
    }; }""")
    page.get_by_test_id("explorer-copy").click()
    expect(page.locator(".av-taking")).to_contain_text("Copied")
    assert page.evaluate("window.copied.width") == 2 * int(size)
    page.evaluate("() => { navigator.clipboard.write = () => Promise.reject(new Error('not here')); }")
    with page.expect_download() as download:
        page.get_by_test_id("explorer-copy").click()
    assert download.value.suggested_filename == "attention.png"
    expect(page.locator(".av-taking")).to_contain_text("Saved as a file")
