"""The Cross-attention page as a person uses it, in a real browser."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect
from safetensors.torch import load_file
from torch.testing import assert_close

from tests.conftest import OpenPage, Recolour
from tests.pages import open_menu
from tests.ui.pages.cross.test_choice import FRENCH, SENTENCE, translated
from tests.ui.pages.explore.test_page import (
    downloaded,
    explorer,
    readout,
    weights_csv,
)

Idle = Callable[[Page], None]

# Thirty words, of which the model knows all.
LONG = " ".join(["the small boy finds the red key and he sells it"] * 3)[: -len(" he sells it")]


def sentence(page: Page) -> Locator:
    return page.get_by_role("textbox", name="Sentence", exact=True)


def said(page: Page) -> str:
    return page.get_by_test_id("said").inner_text()


def test_an_empty_address_shows_an_example_on_the_first_screen_in_light_and_dark(
    open_page: OpenPage, recolour: Recolour
) -> None:
    page = open_page("/cross")
    for dark in (False, True):
        recolour(page, dark)
        expect(sentence(page)).to_have_value(SENTENCE)
        expect(page.get_by_role("combobox", name="Model")).to_have_value("translation")
        expect(page.get_by_text(re.compile("^Verified"))).to_be_visible()
        assert said(page) == FRENCH
        for name in ("explorer-arcs", "explorer-grid", "explorer-heatmap", "choices"):
            box = page.get_by_test_id(name).bounding_box()
            assert box is not None and box["y"] + box["height"] <= 860, name
        for label in ("Weights (CSV)", "Tensors (safetensors)", "Picture (SVG)", "Explorer (HTML)"):
            expect(open_menu(page, "Export").get_by_role("button", name=label)).to_be_in_viewport()
        page.keyboard.press("Escape")


def test_every_file_is_of_the_head_on_the_screen(open_page: OpenPage, stay: OpenPage, tmp_path: Path) -> None:
    page = stay("/cross?head=3")
    table = weights_csv(page)
    assert set(table.stream) == {"cross"}
    ours = table.pivot(index="query", columns="key", values="weight").to_numpy()
    assert abs(ours - translated().weights(0, 3, "cross").numpy()).max() <= 1e-6
    assert table.query_token[table.key == 0].tolist() == [*FRENCH.split(), "</s>"]
    tensors = load_file(downloaded(page, "Tensors (safetensors)"))
    assert_close(tensors["query"] @ tensors["key"].T, tensors["scores"], atol=1e-5, rtol=1e-5)
    assert_close(tensors["weights"], translated().weights(0, 3, "cross"), atol=1e-6, rtol=1e-5)
    assert "cross layer 0, head 3" in downloaded(page, "Picture (SVG)").read_text()
    file = tmp_path / "explorer.html"
    file.write_bytes(downloaded(page, "Explorer (HTML)").read_bytes())
    offline = open_page(file.as_uri())
    expect(readout(offline)).to_contain_text("Head 0·3")
    expect(offline.get_by_label("Queries", exact=True)).to_contain_text("fatiguée")


def test_an_example_is_shown_and_a_head_chosen_and_both_are_gone_back_from(stay: OpenPage, idle: Idle) -> None:
    page = stay("/cross?model=all-MiniLM-L6-v2&text=my+own+words")
    expect(explorer(page)).to_have_count(0)
    page.get_by_role("button", name=re.compile("^Show translation")).click()
    idle(page)
    assert said(page) == FRENCH
    page.get_by_test_id("explorer-grid").get_by_label("Layer 0 head 3", exact=True).click()
    page.wait_for_url(re.compile("head=3"))
    idle(page)
    for step, head in ((page.go_back, 1), (page.go_forward, 3)):
        step()
        idle(page)
        expect(readout(page)).to_contain_text(f"Head 0·{head}")
        expect(page.get_by_test_id("choices").locator("thead .av-current")).to_have_text(f"0·{head}")
    for _ in range(2):
        page.go_back()
        idle(page)
    expect(sentence(page)).to_have_value("my own words")


def test_each_head_s_choice_for_each_word_is_told_and_shown_when_pointed_at(stay: OpenPage, idle: Idle) -> None:
    page = stay("/cross")
    table = page.get_by_test_id("choices")
    expect(table.locator("tbody tr")).to_have_count(len(FRENCH.split()))
    source = SENTENCE.split()
    for head in (1, 3):
        weights = translated().weights(0, head, "cross")[: len(FRENCH.split()), : len(source)]
        for row, (place, weight) in enumerate(zip(weights.argmax(-1).tolist(), weights.amax(-1).tolist(), strict=True)):
            cell = table.locator("tbody tr").nth(row).locator("td").nth(head)
            expect(cell).to_contain_text(source[place])
            expect(cell).to_contain_text(f"{weight:.2f}")
    expect(page.get_by_test_id("reorderings")).to_have_text(
        "–: no source word gets 0.10. "
        "In 0·1, words change places: fille fatiguée from tired girl, clé rouge from red key."
    )
    # The article goes by its noun's gender: head 3 looks at the noun.
    cell = table.locator("tbody tr").nth(4).locator("td").nth(3)
    cell.get_by_role("button").hover()
    expect(page.get_by_test_id("explorer-sentence")).to_contain_text("“key”")
    cell.get_by_role("button").click()
    page.wait_for_url(re.compile("head=3"))
    links = page.get_by_role("heading", name=re.compile("^Strongest links")).bounding_box()
    assert links is not None and links["y"] < 860


@pytest.mark.parametrize("text", [SENTENCE, LONG], ids=["short", "thirty words"])
def test_on_a_narrow_screen_nothing_sticks_out(stay: OpenPage, text: str) -> None:
    page = stay("/cross?text=" + text.replace(" ", "+"), width=390, height=844)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    order = [page.get_by_test_id(name).bounding_box() for name in ("said", "explorer-arcs", "choices")]
    tops = [box["y"] for box in order if box]
    assert tops == sorted(tops) and len(tops) == 3
    assert tops[1] <= 844
