"""The Streamlit host's side: what it tells the server, and which of the server's choices it follows."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from attention_viz.explorer import channel_source, component_source, pack
from attention_viz.trace.trace import Trace
from tests.explorer.conftest import self_attention

# A stand-in for Streamlit: the element that it gives a component, and the arguments that it calls it with.
HOST = """async ({html, css, js, channel}) => {
    const load = (text) => import(URL.createObjectURL(new Blob([text], {type: "text/javascript"})));
    const [explorer, told] = [(await load(js)).default, (await load(channel)).default];
    window.place = () => {
        const keyed = document.createElement("div");
        keyed.className = "st-key-my-explorer";
        if (window.keyed) window.keyed.replaceWith(keyed);
        else document.body.append(keyed);
        const root = keyed.appendChild(document.createElement("div")).attachShadow({mode: "open"});
        root.innerHTML = `<style>${css}</style>${html}`;
        Object.assign(window, {keyed, root});
    };
    place();
    window.heard = [];
    window.call = (bytes) => {
        window.leave?.();
        const data = bytes ? Uint8Array.from(bytes) : window.data;
        window.data = data;
        const setStateValue = (name, value) => heard.push([name, value]);
        window.leave = explorer({name: "x", key: "made up", data, parentElement: window.root, setStateValue});
    };
    window.choose = (choice) => told({data: {explorer: "my explorer", ...choice}});
}"""

# The pair of a head is its own, as long as nobody chose another.
NO_PAIR = {"query": None, "key": None, "arrived": False, "single": False}


@pytest.fixture
def host(open_page: Callable[..., Page]) -> Page:
    page = open_page("about:blank")
    html, css, js = component_source()
    page.evaluate(HOST, {"html": html, "css": css, "js": js, "channel": channel_source()[2]})
    return page


def call(host: Page, trace: Trace) -> None:
    host.evaluate("bytes => call(bytes)", list(pack(trace)))
    host.get_by_test_id("explorer-bars").locator("li").first.wait_for()


def choose(host: Page, **choice: Any) -> None:
    host.evaluate("choice => choose(choice)", {"stream": "encoder", **choice})


def click(host: Page, layer: int, head: int) -> None:
    host.get_by_role("gridcell", name=f"Layer {layer} head {head}", exact=True).click()


def walk(host: Page, *keys: str) -> list[int]:
    """Press keys in the grid in one moment, however busy the machine is; the numbers of the choices told by then."""
    return host.get_by_test_id("explorer-grid").evaluate(
        """(grid, keys) => {
            for (const key of keys)
                grid.getRootNode().activeElement.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
            return heard.map(([, choice]) => choice.serial);
        }""",
        list(keys),
    )


def test_it_opens_on_the_choice_that_the_page_told_before(host: Page) -> None:
    choose(host, layer=1, head=2, seen=0)
    call(host, self_attention(5))
    expect(host.get_by_test_id("explorer-readout")).to_have_text("Head 1·2")


def test_the_server_hears_of_a_walk_once_and_of_pointing_never(host: Page) -> None:
    call(host, self_attention(5))
    host.get_by_role("gridcell", name="Layer 0 head 0", exact=True).focus()
    walk(host, "ArrowDown", "ArrowDown", "ArrowRight", "ArrowUp")
    host.get_by_role("option").first.hover()
    host.wait_for_timeout(400)
    assert host.evaluate("heard") == [["choice", {"stream": "encoder", "layer": 1, "head": 1, **NO_PAIR, "serial": 4}]]


def test_a_head_that_the_server_has_is_asked_for_at_once_and_of_a_walk_the_first_and_the_last(host: Page) -> None:
    host.evaluate("bytes => call(bytes)", list(pack(self_attention(5), terms=())))
    host.get_by_role("gridcell", name="Layer 0 head 0", exact=True).focus()
    assert walk(host, "ArrowDown", "ArrowDown", "ArrowRight", "ArrowUp") == [1]
    host.wait_for_timeout(400)
    assert [choice["serial"] for _, choice in host.evaluate("heard")] == [1, 4]


def test_the_pages_own_pickers_are_followed_and_not_told_back(host: Page) -> None:
    call(host, self_attention(5))
    choose(host, layer=1, head=0, seen=0)
    expect(host.get_by_test_id("explorer-readout")).to_have_text("Head 1·0")
    host.wait_for_timeout(300)
    assert host.evaluate("heard") == []


def test_a_choice_made_before_the_server_had_heard_of_the_readers_is_left_aside(host: Page) -> None:
    call(host, self_attention(5))
    click(host, 1, 2)
    choose(host, layer=0, head=0, seen=0)
    expect(host.get_by_test_id("explorer-readout")).to_have_text("Head 1·2")
    choose(host, layer=0, head=1, seen=1)
    expect(host.get_by_test_id("explorer-readout")).to_have_text("Head 0·1")


def test_a_choice_for_another_explorer_is_left_aside(host: Page) -> None:
    call(host, self_attention(5))
    host.evaluate("choose({explorer: 'another', stream: 'encoder', layer: 1, head: 1, seen: 0})")
    expect(host.get_by_test_id("explorer-readout")).to_have_text("Head 0·0")


def test_the_same_data_again_changes_nothing_but_the_theme(host: Page) -> None:
    call(host, self_attention(5))
    click(host, 1, 2)
    root = host.get_by_test_id("explorer")
    root.evaluate("root => { window.before = root; keyed.style.setProperty('--st-background-color', '#0e1117'); }")
    host.evaluate("call()")
    expect(root).to_have_attribute("data-theme", "dark")
    host.wait_for_timeout(150)
    assert root.evaluate("root => root === before")
    expect(host.get_by_test_id("explorer-readout")).to_have_text("Head 1·2")


def test_a_new_sentence_keeps_the_head_and_the_settings(host: Page) -> None:
    call(host, self_attention(5))
    click(host, 1, 2)
    host.get_by_role("radio", name="Logarithmic").check()
    call(host, self_attention(9))
    expect(host.get_by_test_id("explorer-arcs").get_by_role("option")).to_have_count(9)
    expect(host.get_by_test_id("explorer-readout")).to_have_text("Head 1·2")
    expect(host.get_by_role("radio", name="Logarithmic")).to_be_checked()
    assert host.get_by_test_id("explorer").count() == 1


def test_an_element_in_the_place_of_another_keeps_the_settings(host: Page) -> None:
    """Streamlit may build a component anew where what stands around it has changed."""
    call(host, self_attention(5))
    host.get_by_role("radio", name="Logarithmic").check()
    host.evaluate("() => { place(); call(null); }")
    expect(host.get_by_role("radio", name="Logarithmic")).to_be_checked()
    host.wait_for_function("root.querySelectorAll('.av-explorer').length === 1")
    # On a busy machine the new one comes long after the old has gone, with what was chosen just before untold.
    host.get_by_role("gridcell", name="Layer 1 head 2", exact=True).evaluate(
        "(cell) => { cell.click(); leave(); keyed.remove(); }"
    )
    host.wait_for_timeout(200)
    assert [choice["serial"] for _, choice in host.evaluate("heard")] == [1]
    host.evaluate("() => { window.keyed = null; window.leave = null; place(); call(null); }")
    expect(host.get_by_role("radio", name="Logarithmic")).to_be_checked()


def test_a_choice_made_just_before_a_new_sentence_is_told_as_what_it_became(host: Page) -> None:
    call(host, self_attention(5))
    host.get_by_test_id("explorer-grid").get_by_role("gridcell", name="Layer 1 head 2", exact=True).evaluate(
        "(cell, bytes) => { cell.click(); call(bytes); }", list(pack(self_attention(7, layers=1)))
    )
    expect(host.get_by_test_id("explorer-readout")).to_have_text("Head 0·2")
    host.wait_for_function("heard.length > 0")
    host.wait_for_timeout(300)
    assert host.evaluate("heard") == [["choice", {"stream": "encoder", "layer": 0, "head": 2, **NO_PAIR, "serial": 1}]]
    choose(host, layer=0, head=1, seen=1)
    expect(host.get_by_test_id("explorer-readout")).to_have_text("Head 0·1")


@pytest.mark.parametrize("event", ["new PointerEvent('pointerleave')", "new FocusEvent('focusout')"])
def test_the_server_hears_at_once_when_the_reader_turns_to_something_else(host: Page, event: str) -> None:
    call(host, self_attention(5))
    heard = host.get_by_role("gridcell", name="Layer 1 head 2", exact=True).evaluate(
        f"(cell) => {{ cell.click(); cell.closest('.av-host').dispatchEvent({event}); return [...heard]; }}"
    )
    assert heard == [["choice", {"stream": "encoder", "layer": 1, "head": 2, **NO_PAIR, "serial": 1}]]
    host.wait_for_timeout(250)
    assert len(host.evaluate("heard")) == 1


def test_data_that_comes_twice_before_anything_has_run_opens_on_the_choice_that_was_told(host: Page) -> None:
    first, second = (list(pack(self_attention(count))) for count in (5, 7))
    host.evaluate(
        """([first, second]) => {
            call(first);
            choose({stream: "encoder", layer: 1, head: 2, seen: 0});
            call(second);
        }""",
        [first, second],
    )
    expect(host.get_by_test_id("explorer-readout")).to_have_text("Head 1·2")


def test_a_text_begins_on_the_scale_that_fits_its_length_until_the_reader_chooses_one(host: Page) -> None:
    for tokens, scale in ((70, "Logarithmic"), (5, "0 to 1"), (70, "Logarithmic")):
        call(host, self_attention(tokens))
        expect(host.get_by_test_id("explorer-arcs").get_by_role("option")).to_have_count(tokens)
        expect(host.get_by_role("radio", name=scale)).to_be_checked()


def test_leaving_the_page_takes_everything_away(host: Page) -> None:
    call(host, self_attention(5))
    host.evaluate("() => { leave(); keyed.remove(); }")
    host.wait_for_function("root.querySelector('.av-explorer') === null")
    choose(host, layer=1, head=1, seen=9)


def test_called_again_after_a_while_it_is_as_it_was(host: Page) -> None:
    """Streamlit lets go of a component, fetches its script, and calls it: on a busy machine that takes a while."""
    call(host, self_attention(5))
    click(host, 0, 1)
    host.get_by_role("option").first.click()
    host.get_by_role("gridcell", name="Layer 0 head 1", exact=True).focus()
    host.evaluate("() => { window.before = root.querySelector('.av-explorer'); leave(); window.leave = null; }")
    host.wait_for_timeout(300)
    host.evaluate("call(null)")
    assert host.evaluate("root.querySelector('.av-explorer') === before")
    host.keyboard.press("ArrowDown")
    expect(host.get_by_test_id("explorer-readout")).to_have_text("Head 0·2")
    expect(host.get_by_role("option").first).to_have_attribute("aria-selected", "true")


def test_data_that_cannot_be_read_is_told_on_the_page_and_on_the_console(host: Page) -> None:
    host.evaluate("() => { window.errors = []; console.error = (error) => errors.push(error.name); }")
    host.evaluate("call([200, 0, 0, 0, 1, 2])")
    expect(host.get_by_role("alert")).to_contain_text("The explorer could not be drawn")
    assert host.evaluate("errors") == ["SyntaxError"]
