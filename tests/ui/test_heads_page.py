"""The Heads page as a person uses it, in a real browser."""

import io
import re
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import numpy
import pandas
import pytest
from playwright.sync_api import Locator, Page, expect

import attention_viz as av
from tests.conftest import OpenPage

Idle = Callable[[Page], None]
CAT = "/heads?text=The+cat+sat+because+it+was+tired.&query=it&key=cat"


def parameters(screen: Page) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(screen.url).query, keep_blank_values=True).items()}


def drawn(screen: Page, key: str) -> Locator:
    plot = screen.locator(f".st-key-{key} .nsewdrag").first
    plot.wait_for()
    return plot


def choose(screen: Page, label: str, option: str, idle: Idle) -> None:
    screen.get_by_role("combobox", name=re.compile(rf"(^|\W){label}$")).click()
    screen.get_by_role("option", name=option, exact=True).click()
    idle(screen)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_first_screen_shows_all_heads_the_chosen_one_and_the_search(page: OpenPage, dark: bool) -> None:
    screen = page("/heads", dark=dark)
    expect(screen.get_by_text(re.compile("^Verified"))).to_be_visible()
    for key in ("heads-grid", "heads-one"):
        box = drawn(screen, key).bounding_box()
        assert box is not None and box["y"] + box["height"] <= 860
    expect(screen.get_by_text("looks most at “river” (position 5) in layer 0, head 4: 0.580")).to_be_visible()


def test_the_csv_is_the_table_of_all_heads(page: OpenPage) -> None:
    screen = page(CAT)
    with screen.expect_download() as download:
        screen.get_by_role("button", name="Head table (CSV)").click()
    table = pandas.read_csv(io.BytesIO(download.value.path().read_bytes())).set_index(["layer", "head"])
    expected = av.head_table(av.load("all-MiniLM-L6-v2").trace("The cat sat because it was tired."))
    assert list(table.columns) == list(av.METRICS)
    assert numpy.allclose(table.to_numpy(), expected.to_numpy(), atol=1e-5, equal_nan=True)


def test_the_search_finds_the_heads_that_link_it_to_cat(page: OpenPage, idle: Idle) -> None:
    screen = page(CAT)
    expect(screen.get_by_text("looks most at “cat” (position 2) in layer 5, head 11: 0.688")).to_be_visible()
    word = screen.get_by_label("Word looked at", exact=True)
    word.fill("mat")
    word.press("Enter")
    idle(screen)
    expect(screen.get_by_text("The word “mat” was asked for, which isn't in this text")).to_be_visible()
    assert parameters(screen)["key"] == "mat"


def test_a_click_on_a_head_chooses_it_on_every_page(page: OpenPage, idle: Idle) -> None:
    screen = page("/heads")
    box = drawn(screen, "heads-grid").bounding_box()
    assert box is not None
    screen.mouse.click(box["x"] + (7 + 0.5) / 12 * box["width"], box["y"] + (3 + 0.5) / 6 * box["height"])
    screen.wait_for_url(re.compile("layer=3&head=7"))
    idle(screen)
    expect(screen.get_by_text(re.compile(r"^Layer 3, head 7 stands out"))).to_be_visible()
    screen.get_by_role("link", name="Open this head in Explore").click()
    screen.wait_for_url(re.compile(r"/\?.*layer=3&head=7"))


def test_a_metric_changes_the_colours_and_the_address_which_reproduces_them(page: OpenPage, idle: Idle) -> None:
    screen = page("/heads")
    numbers = screen.locator(".st-key-heads-grid .heatmap-label text")
    expect(numbers).to_have_count(72)
    before = numbers.all_text_contents()
    choose(screen, "Metric", "Previous token", idle)
    expect(numbers.nth(2)).to_have_text("1.00")
    after = numbers.all_text_contents()
    table = av.head_table(av.load("all-MiniLM-L6-v2").trace("The bank of the river was flooded"))
    assert after == [f"{value:.2f}" for value in table["previous"]] != before
    assert parameters(screen)["metric"] == "previous"
    again = page(urlsplit(screen.url)._replace(scheme="", netloc="").geturl())
    expect(again.locator(".st-key-heads-grid .heatmap-label text").nth(2)).to_have_text("1.00")
    screen.go_back()
    idle(screen)
    expect(numbers.nth(2)).to_have_text("0.00")


def test_an_address_edited_by_hand_is_answered_in_words(page: OpenPage) -> None:
    screen = page("/heads?metric=%3Cb%3Espeed&beside=x&query=%3Cscript%3E&key=")
    for part in ("metric “<b>speed”", "beside “x”"):
        expect(screen.get_by_text(part)).to_be_visible()
    expect(screen.get_by_text("Type the word that looks")).to_be_visible()


@pytest.mark.parametrize(
    "address", ["model=induction&text=moon+ring+moon+ring", "model=scratch&text=boat", "model=translation"]
)
def test_other_models_are_shown(page: OpenPage, address: str) -> None:
    screen = page(f"/heads?{address}")
    drawn(screen, "heads-grid")
    drawn(screen, "heads-map")


@pytest.mark.parametrize("words", [1, 400])
def test_on_a_narrow_screen_nothing_sticks_out(page: OpenPage, words: int) -> None:
    screen = page(f"/heads?text={'+'.join(['boat'] * words)}", width=390, height=844)
    drawn(screen, "heads-grid")
    assert screen.evaluate("document.documentElement.scrollWidth") <= 390


INDUCTION = "/heads?model=induction&text=moon+cheese+frog+ring+moon+cheese&layer=1&head=1&metric=induction"


def test_a_silenced_head_is_shown_beside_the_others_of_its_layer(page: OpenPage) -> None:
    screen = page(INDUCTION + "&edit=zero")
    model = av.load("induction")
    text = "moon cheese frog ring moon cheese"
    before = model.trace(text)
    shares = [
        float(((after - before.output).norm(dim=-1) / before.output.norm(dim=-1)).mean())
        for after in (model.trace(text, edits=[av.Ablate(1, head)]).output for head in range(4))
    ]
    numbers = screen.locator(".st-key-what-if-effects .heatmap-label text")
    expect(numbers).to_have_count(4)
    assert numbers.all_text_contents() == [f"{share:.1%}" for share in shares]
    expect(screen.get_by_text("number 1 of the 4 heads tried. Likeliest was “frog” (0.992)")).to_be_visible()
    assert parameters(screen)["edit"] == "zero"
    # The run without the change is what it was.
    expect(screen.get_by_text("looks most at")).to_have_count(0)
    assert (model.trace(text).output == before.output).all()


def test_all_heads_are_tried_in_turn_when_asked(page: OpenPage, idle: Idle) -> None:
    screen = page(INDUCTION + "&edit=mean")
    screen.get_by_role("button", name="Which heads matter here? Try all 8").click()
    expect(screen.locator(".st-key-what-if-effects .heatmap-label text")).to_have_count(8)
    expect(screen.get_by_text("of the 8 heads tried")).to_be_visible()
    expect(screen.get_by_role("button", name="Which heads matter here")).to_have_count(0)


def test_where_no_change_can_run_that_is_said(page: OpenPage) -> None:
    screen = page("/heads?model=scratch&text=a+b&edit=zero")
    expect(screen.get_by_text("A change runs inside a pretrained model")).to_be_visible()
