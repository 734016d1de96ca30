"""The explorer in a real JupyterLab: it and Python follow each other, and a saved notebook shows it."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from scripts.jupyterlab import Lab, jupyterlab, write_notebook

NAME = "notebook.ipynb"


def expect_head(explorer: Locator, name: str) -> None:
    expect(explorer.get_by_test_id("explorer-readout")).to_have_text(f"Head {name}")


CELLS = (
    """import attention_viz as av
from attention_viz.explorer.widgets import explorer as module
trace = av.load("induction").trace("moon cheese frog ring moon cheese")
heard = []""",
    """explorer = av.explore(trace)
explorer.on_select(heard.append)
explorer""",
    "print(explorer.selection)",
    "other = av.explore(trace, layer=1)\nother",
    "module.MOST_AT_ONCE = 0\nlong = av.explore(trace)\nlong",
    "heads = av.atlas(trace)\nheads",
    "steps = av.steps(trace, 1, 2, 4, 1)\nsteps",
    "model = av.load('induction')\nmasked = av.mask(model, trace, 1, 2)\nmasked",
    "why = av.why(model, trace, av.Logit('frog', -1, 'ring'))\nwhy",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("notebooks")
    write_notebook(folder / NAME, *CELLS)
    return folder


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    with jupyterlab(folder) as address:
        yield address


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1360, "height": 1200})
    page = context.new_page()
    page.set_default_timeout(60_000)
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(f"{error}\n{error.stack}"))
    yield page
    context.close()
    # Widgets' code comes from blobs. JupyterLab has errors of its own when a kernel ends.
    assert [error for error in errors if "blob:" in error] == []


@pytest.fixture(scope="module")
def received(page: Page) -> list[int]:
    """The sizes of all messages that the page gets of its kernel."""
    sizes: list[int] = []
    page.on("websocket", lambda socket: socket.on("framereceived", lambda frame: sizes.append(len(frame))))
    return sizes


@pytest.fixture(scope="module")
def lab(page: Page, address: str, received: list[int]) -> Lab:
    lab = Lab(page, address, NAME)
    lab.run(0)
    lab.begin(1)
    lab.explorer(1).get_by_test_id("explorer-bars").locator("li").first.wait_for()
    return lab


def test_a_click_reaches_python_and_what_python_sets_the_screen(lab: Lab) -> None:
    explorer = lab.explorer(1)
    explorer.get_by_role("gridcell", name="Layer 1 head 2", exact=True).click()
    expect_head(explorer, "1·2")
    lab.expect_output(2, "print([*explorer.selection.values()])", "['decoder', 1, 2, None, None]")
    lab.expect_output(2, "print([one['head'] for one in heard])", "[2]")
    lab.run(2, "explorer.selection = {'layer': 0, 'head': 3, 'query': 4, 'key': 2}")
    expect_head(explorer, "0·3")
    assert "has no head 99; choose 0 to 3" in lab.run(2, "explorer.selection = {'head': 99}")
    lab.expect_output(2, "print(explorer.selection['head'], len(heard))", "3 2")


def test_a_pinned_cell_gives_way_to_the_pair_that_python_sets(lab: Lab) -> None:
    explorer = lab.explorer(1)
    lab.run(2, "explorer.selection = {'layer': 1, 'head': 1, 'query': None, 'key': None}")
    expect_head(explorer, "1·1")
    matrix = explorer.get_by_test_id("explorer-heatmap").locator("canvas").first
    matrix.scroll_into_view_if_needed()
    # The last query, and one of the first keys.
    box = matrix.bounding_box()
    assert box
    matrix.click(position={"x": box["width"] * 0.35, "y": box["height"] - 8})
    lab.expect_output(2, "print(explorer.selection['query'] == len(trace.query_tokens()) - 1)", "True")
    lab.run(2, "explorer.selection = {'key': explorer.selection['query']}")
    # The screen would answer with a key of its own.
    explorer.get_by_role("gridcell", name="Layer 1 head 3", exact=True).click()
    lab.expect_output(2, "print(explorer.selection['head'])", "3")
    lab.expect_output(2, "print(explorer.selection['key'] == len(trace.query_tokens()) - 1)", "True")


def test_keys_that_are_pressed_in_it_do_nothing_to_the_notebook(lab: Lab) -> None:
    lab.run(2, "explorer.selection = {'layer': 0, 'head': 0}")
    expect_head(lab.explorer(1), "0·0")
    before = lab.page.locator(".jp-Notebook .jp-Cell").count()
    lab.explorer(1).get_by_role("gridcell", name="Layer 0 head 0", exact=True).click()
    for key in ("b", "x", "d", "d", "a", "ArrowRight"):
        lab.page.keyboard.press(key)
    expect_head(lab.explorer(1), "1·0")
    assert lab.page.locator(".jp-Notebook .jp-Cell").count() == before


def test_it_turns_dark_and_light_with_the_notebook(lab: Lab) -> None:
    for theme, shown in (("JupyterLab Dark", "dark"), ("JupyterLab Light", "light")):
        lab.execute("apputils:change-theme", {"theme": theme})
        expect(lab.explorer(1)).to_have_attribute("data-theme", shown)


def test_a_second_widget_has_its_own_selection_and_brings_no_code(lab: Lab, received: list[int]) -> None:
    lab.run(2, "before = explorer.selection")
    count = len(received)
    lab.begin(3)
    other = lab.explorer(3)
    other.get_by_test_id("explorer-bars").locator("li").first.wait_for()
    # With its code a widget is four times as large.
    assert sum(received[count:]) < 60_000
    expect_head(other, "1·0")
    other.get_by_role("gridcell", name="Layer 1 head 3", exact=True).click()
    expect_head(other, "1·3")
    lab.expect_output(2, "print(other.selection['head'], explorer.selection == before)", "3 True")


def test_a_long_texts_head_comes_once_it_is_chosen(lab: Lab) -> None:
    lab.begin(4)
    shown = lab.explorer(4)
    shown.get_by_test_id("finding").first.wait_for()
    shown.get_by_role("gridcell", name="Layer 1 head 2", exact=True).click()
    expect_head(shown, "1·2")
    shown.get_by_test_id("explorer-bars").locator("li").first.wait_for()
    lab.expect_output(2, "print([*long.selection.values()])", "['decoder', 1, 2, None, None]")


def test_the_atlas_and_the_steps_follow_python_and_the_reader(lab: Lab) -> None:
    lab.begin(5)
    cells = lab.cell(5).get_by_test_id("atlas").get_by_role("gridcell")
    expect(cells).to_have_count(8)
    # Layers across, heads down.
    cells.nth(5).click()
    lab.expect_output(2, "print(heads.selection['layer'], heads.selection['head'])", "1 2")
    lab.run(2, "heads.selection = {'layer': 0, 'head': 3}")
    chosen = lab.cell(5).get_by_test_id("atlas").locator("[aria-selected=true]")
    expect(chosen).to_have_attribute("data-layer", "0")
    expect(chosen).to_have_attribute("data-head", "3")
    lab.begin(6)
    claim = lab.cell(6).get_by_test_id("pipeline-claim")
    expect(claim).to_contain_text("ring takes")
    lab.run(2, "steps.selection = {'query': 3, 'key': 2}")
    expect(claim).to_contain_text("frog takes")


def test_a_mask_that_the_reader_paints_runs_and_is_pythons(lab: Lab) -> None:
    lab.begin(7)
    board = lab.cell(7).get_by_test_id("masks")
    presets = board.get_by_role("group", name="Masks").get_by_role("button")
    expect(presets.filter(visible=True)).to_have_text(["none", "causal", "window", "prefix", "drawn"])
    presets.filter(has_text="window").click()
    expect(board.get_by_test_id("mask-claim")).not_to_be_empty()
    code = "print(bool((masked.allowed == av.masks.sliding_window(len(trace.query_tokens()), 2)).all()))"
    lab.expect_output(2, code, "True")
    lab.expect_output(2, "print(float(masked.trace.weights(1, 2)[6, 0]))", "0.0")
    lab.run(2, "masked.allowed = None")
    expect(presets.filter(has_text="none")).to_have_attribute("aria-pressed", "true")


def test_a_number_shows_its_heads_and_follows_python_and_the_reader(lab: Lab) -> None:
    lab.begin(8)
    board = lab.cell(8).get_by_test_id("why")
    expect(board.locator(".av-question")).to_contain_text("Why “frog” and not “ring”?")
    # No model runs for it, so nothing is awaited.
    expect(board.get_by_text("running the model")).to_have_count(0)
    spots = board.locator(".av-spot")
    expect(spots).to_have_count(8)
    lab.run(2, "why.selection = {'layer': 0, 'head': 3}")
    expect(board.locator(".av-meaning")).to_contain_text("Layer 0, head 3")
    board.locator(".av-largest [data-head]").first.click()
    lab.expect_output(2, "print(why.selection['layer'] == 0 and why.selection['head'] == 3)", "False")


def test_a_saved_notebook_shows_the_chosen_head_without_a_kernel(lab: Lab, folder: Path, address: str) -> None:
    lab.run(2, "explorer.selection = {'layer': 1, 'head': 2}")
    expect_head(lab.explorer(1), "1·2")
    file = folder / NAME
    outputs = "jupyterapp.shell.currentWidget.content.widgets[1].model.outputs.toJSON()"
    lab.page.wait_for_function(f"JSON.stringify({outputs}).includes('layer 1, head 2')")
    lab.page.evaluate("jupyterapp.commands.execute('docmanager:save')")
    assert "layer 1, head 2" in file.read_text()
    picture = lab.cell(1).get_by_alt_text("layer 1, head 2")
    expect(picture).to_be_hidden()
    lab.page.evaluate("jupyterapp.shell.currentWidget.sessionContext.shutdown()")
    again = Lab(lab.page, address, NAME)
    expect(picture).to_be_visible()
    assert picture.evaluate("image => image.naturalWidth") > 300
    expect(again.page.get_by_text("Error displaying widget").first).to_be_hidden()
    command = [sys.executable, "-m", "nbconvert", "--to", "html", NAME]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=120)
    # The page asks for scripts of others, which a reader without a network doesn't get.
    browser = lab.page.context.browser
    assert browser
    context = browser.new_context()
    context.route(re.compile("^https?:"), lambda route: route.abort())
    page = context.new_page()
    page.goto(file.with_suffix(".html").as_uri(), wait_until="domcontentloaded")
    expect(page.get_by_alt_text("layer 1, head 2").first).to_be_visible()
    context.close()
