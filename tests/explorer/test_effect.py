"""An ablation in the browser: answered at once, before the page has heard of it; numbers follow."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from attention_viz.explorer import atlas_source, channel_source, effect_source
from tests.explorer.conftest import self_attention
from tests.explorer.test_atlas import packed

# A stand-in for Streamlit, with the atlas and the button in elements of their own: the page hears, but never answers.
HOST = """async ({atlas, effect, channel, bytes}) => {
    const load = (text) => import(URL.createObjectURL(new Blob([text], {type: "text/javascript"})));
    const tell = (await load(channel)).default;
    window.heard = [];
    const place = (key, [html, css]) => {
        const keyed = document.body.appendChild(document.createElement("div"));
        keyed.className = `st-key-${key}`;
        const host = keyed.appendChild(document.createElement("div"));
        const root = host.attachShadow({mode: "open"});
        root.innerHTML = `<style>${css}</style>${html}`;
        const setStateValue = (...told) => heard.push([key, ...told]);
        return {parentElement: root, setStateValue, setTriggerValue() {}};
    };
    const outer = document.body.appendChild(document.createElement("div"));
    outer.className = "st-key-heads-one-head";
    const [map, button] = [place("grid", atlas), place("effect", effect)];
    outer.append(document.querySelector(".st-key-effect"));
    const [drawMap, drawEffect] = [(await load(atlas[2])).default, (await load(effect[2])).default];
    window.tell = (message) => tell({data: message});
    window.show = (shown) => drawEffect({...button, data: shown});
    drawMap({...map, data: Uint8Array.from(bytes)});
    const view = {view: "roles", metric: "entropy", role: null, linking: [], links: "", over: "x"};
    window.choose = (choice) => tell({data: {explorer: "grid", stream: "encoder", ...view, ...choice}});
}"""
SHOWN = {"buttons": ["Ablate head", "Restore head"], "rows": 2, "seen": 0, "heard": 0}
ROWS = [["Mary", 0.92, 0.41, "0.92", "0.41"], ["<b>John</b>", 0.02, 0.5, "0.02", "0.50"]]


@pytest.fixture
def host(open_page: Callable[..., Page], tmp_path: Path) -> Page:
    file = tmp_path / "page.html"
    file.write_text("<!DOCTYPE html><meta charset=utf-8>")
    page = open_page(file.as_uri(), width=900)
    sources = {"atlas": atlas_source(420), "effect": effect_source(), "channel": channel_source()[2]}
    page.evaluate(HOST, {**sources, "bytes": packed(self_attention(5))})
    page.evaluate("choose({layer: 0, head: 1, seen: 0})")
    cell(page, 0, 1).wait_for()
    show(page, silent=False)
    return page


def cell(page: Page, layer: int, head: int) -> Locator:
    return page.locator(f'.av-cell[data-layer="{layer}"][data-head="{head}"]')


def show(page: Page, **shown: Any) -> None:
    page.evaluate("shown => show(shown)", {**SHOWN, "of": "encoder 0 1", "name": "0·1", **shown})


def tell(page: Page, **message: Any) -> None:
    about = {"explorer": "effect", "about": "effect", "of": "encoder 0 1", "title": "Next word", "rows": ROWS}
    words = {"was": "The next word: “Mary”.", "sentence": "“Mary” falls.", "note": "Note.", "changed": None}
    page.evaluate("message => tell(message)", {**about, **words, **message})


def test_a_press_strikes_the_head_out_and_words_wait_for_the_model(host: Page) -> None:
    tell(host, silent=False)
    words, outer = host.locator(".av-effect-words"), host.locator(".st-key-heads-one-head")
    expect(words).to_have_text("The next word: “Mary”.")
    expect(host.locator(".av-before")).to_have_count(2)
    # All of it in the click itself: nothing is waited for.
    at_once = host.evaluate(
        """() => {
            const parts = (key) => document.querySelector(`.st-key-${key} div`).shadowRoot;
            parts("effect").querySelector("button").click();
            const cell = parts("grid").querySelector('[data-layer="0"][data-head="1"]');
            return [
                cell.className, cell.ariaLabel, parts("effect").querySelector(".av-effect-words").textContent,
                parts("effect").querySelector("button").textContent,
                document.querySelector(".st-key-heads-one-head").hasAttribute("data-silent"),
            ];
        }"""
    )
    assert "av-struck" in at_once[0] and at_once[1].endswith("; ablated")
    assert at_once[2:] == ["The model runs without 0·1 …", "Restore head", True]
    assert host.evaluate("heard.at(-1)") == ["effect", "choice", {"silent": True, "serial": 1}]
    expect(host.locator(".av-marks")).to_contain_text("0·1 ablated")
    # A run of the page from before the press changes nothing.
    show(host, silent=False)
    expect(cell(host, 0, 1)).to_contain_class("av-struck")
    show(host, silent=True, seen=1)
    tell(host, silent=True, changed=[0, None, 0, 0.2, 0.004, 0.1])
    expect(words).to_have_text("“Mary” falls.")
    expect(host.locator(".av-number")).to_have_text(["0.92 → 0.41", "0.02 → 0.50"])
    expect(host.locator(".av-effect-bars b")).to_have_count(0)  # a word is never markup
    moved = host.locator(".av-cell.av-moved").evaluate_all("all => all.map(one => one.dataset.moved)")
    assert moved == ["0.20", "0.10"]
    assert (cell(host, 1, 0).get_attribute("aria-label") or "").endswith("without 0·1, 0.20 of its weight moves")
    expect(host.locator(".av-marks")).to_contain_text("weights moved, 0.20 at the longest")
    # Back at once, too.
    host.get_by_role("button", name="Restore head").click()
    expect(words).to_have_text("The next word: “Mary”.")
    expect(outer).not_to_have_attribute("data-silent", "")
    expect(host.locator(".av-struck, .av-moved")).to_have_count(0)


def test_another_head_pressed_on_the_map_is_ablated_in_its_place(host: Page) -> None:
    show(host, silent=True)
    tell(host, silent=True, changed=[0, None, 0, 0.2, 0, 0])
    cell(host, 0, 2).click()
    expect(cell(host, 0, 2)).to_contain_class("av-struck")
    expect(host.locator(".av-cell.av-struck")).to_have_count(1)
    expect(host.locator(".av-effect-words")).to_have_text("The model runs without 0·2 …")
    expect(host.locator(".av-moved")).to_have_count(0)  # those were without the other head
    show(host, silent=True, of="encoder 0 2", name="0·2", heard=1)
    tell(host, silent=True, of="encoder 0 2", sentence="“Mary” stays.")
    expect(host.locator(".av-effect-words")).to_have_text("“Mary” stays.")


def test_marks_do_not_move_where_the_reader_wants_no_motion(host: Page) -> None:
    host.emulate_media(reduced_motion="reduce")
    show(host, silent=True)
    tell(host, silent=True, changed=[0, None, 0, 0.2, 0, 0])
    names = host.locator(".av-moved, .av-after").evaluate_all(
        "all => all.map(one => getComputedStyle(one).animationName)"
    )
    assert len(names) > 2 and {*names} == {"none"}
    host.emulate_media(reduced_motion="no-preference")
    tell(host, silent=True, changed=[0, None, 0, 0.3, 0, 0])
    lasts = cell(host, 1, 0).evaluate("one => getComputedStyle(one).animationDuration")
    assert float(lasts.removesuffix("s")) < 0.2
