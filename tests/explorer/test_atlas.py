"""The atlas's side of its host: what stays while Streamlit draws the page anew."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

import attention_viz as av
from attention_viz.explorer import atlas_source, channel_source
from attention_viz.explorer.atlas_payload import pack_atlas
from attention_viz.trace.trace import Trace
from tests.explorer.conftest import self_attention

# A stand-in for Streamlit: the element that it gives a component, and the arguments that it calls it with.
HOST = """async ({html, css, js, channel, bytes}) => {
    const load = (text) => import(URL.createObjectURL(new Blob([text], {type: "text/javascript"})));
    const [atlas, told] = [(await load(js)).default, (await load(channel)).default];
    window.keyed = document.body.appendChild(document.createElement("div"));
    keyed.className = "st-key-my-atlas";
    window.root = keyed.appendChild(document.createElement("div")).attachShadow({mode: "open"});
    root.innerHTML = `<style>${css}</style>${html}`;
    window.heard = [];
    const mounting = {parentElement: root, setStateValue: (...told) => heard.push(told), setTriggerValue() {}};
    window.call = (data) => { window.leave = atlas({...mounting, data: Uint8Array.from(data)}); };
    const view = {view: "patterns", metric: "entropy", role: null, linking: [], effects: [], over: "x"};
    const shown = {explorer: "my atlas", ...view};
    window.choose = (choice) => told({data: {...shown, ...choice}});
}"""


def packed(trace: Trace) -> list[int]:
    return list(pack_atlas(trace, "encoder", av.head_table(trace), av.roles(trace)))


@pytest.fixture
def host(open_page: Callable[..., Page], tmp_path: Path) -> Page:
    file = tmp_path / "page.html"
    file.write_text("<!DOCTYPE html>")
    page = open_page(file.as_uri())
    html, css, js = atlas_source(420)
    page.evaluate(HOST, {"html": html, "css": css, "js": js, "channel": channel_source()[2]})
    page.evaluate("bytes => { call(bytes); choose({layer: 0, head: 0, seen: 0}); }", packed(self_attention(5)))
    cell(page, 0, 0).wait_for()
    return page


def cell(host: Page, layer: int, head: int) -> Locator:
    return host.locator(f'[data-layer="{layer}"][data-head="{head}"]')


@pytest.mark.parametrize("wait", [0, 300])
def test_after_a_click_the_keys_go_on_from_there_however_long_the_page_takes_to_come_back(
    host: Page, wait: int
) -> None:
    cell(host, 0, 1).click()
    host.evaluate("() => { window.before = root.querySelector('.av-cell'); leave(); }")
    host.wait_for_timeout(wait)
    host.evaluate("bytes => { call(bytes); choose({layer: 0, head: 1, seen: 1}); }", packed(self_attention(5)))
    assert host.evaluate("root.querySelector('.av-cell') === before")
    host.keyboard.press("ArrowRight")
    expect(cell(host, 1, 1)).to_be_focused()
    host.keyboard.press("Enter")
    assert host.evaluate("heard.at(-1)") == ["choice", {"layer": 1, "head": 1, "serial": 2}]


def test_new_numbers_leave_the_focus_at_its_head(host: Page) -> None:
    cell(host, 0, 1).click()
    host.evaluate("() => { window.before = root.querySelector('.av-cell'); leave(); }")
    host.evaluate("bytes => { call(bytes); choose({layer: 0, head: 1, seen: 1}); }", packed(self_attention(6)))
    host.wait_for_function("root.querySelector('.av-cell') !== before")
    expect(cell(host, 0, 1)).to_be_focused()


def test_a_page_that_moves_under_a_resting_pointer_leaves_the_card_to_the_keyboard(host: Page) -> None:
    host.evaluate(
        """() => root.querySelector(".av-cells").addEventListener(
            "pointermove", ({screenX, screenY}) => { window.rests = {screenX, screenY}; }
        )"""
    )
    cell(host, 0, 1).click()
    host.keyboard.press("ArrowRight")
    card = host.get_by_role("group", name="Layer 1, head 1")
    expect(card).to_be_visible()
    # What browsers send where a page is arranged anew: the pointer has left, or is over another head, and never moved.
    for sent in ("pointerleave", "pointerover"):
        host.evaluate(
            """sent => root.querySelector(sent === "pointerleave" ? ".av-cells" : "[data-layer='0'][data-head='2']")
                .dispatchEvent(new PointerEvent(sent, {bubbles: sent === "pointerover", ...window.rests}))""",
            sent,
        )
        host.wait_for_timeout(500)  # milliseconds: longer than a card waits for a pointer, or stays without one
        expect(card).to_be_visible()
    cell(host, 0, 2).hover()
    expect(host.get_by_role("group", name="Layer 0, head 2")).to_be_visible()


def test_leaving_the_page_takes_its_listeners_away(host: Page) -> None:
    host.evaluate("() => { leave(); keyed.remove(); }")
    host.wait_for_timeout(200)
    host.evaluate("() => { document.body.append(keyed); choose({layer: 1, head: 2, seen: 9}); }")
    expect(cell(host, 1, 2)).to_have_attribute("aria-selected", "false")
