"""The explorer in a real marimo: cells follow its selection, and it follows Python."""

from pathlib import Path

from playwright.sync_api import Browser, expect

from scripts.jupyterlab import served
from scripts.serve import free_port
from tests.explorer.widgets.test_in_jupyterlab import expect_head

APP = """
import marimo

app = marimo.App()


@app.cell
def _():
    import marimo as mo

    import attention_viz as av

    explorer = av.explore(av.load("induction").trace("moon cheese frog ring moon cheese"))
    heard = []
    explorer.on_select(heard.append)
    shown = mo.ui.anywidget(explorer)
    shown
    return explorer, heard, mo, shown


@app.cell
def _(explorer, heard, mo, shown):
    shown.value
    mo.md(f"chosen {explorer.selection['layer']} {explorer.selection['head']}, heard {len(heard)}")
    return


@app.cell
def _(explorer, mo):
    def choose(_):
        explorer.selection = {"layer": 0, "head": 3}

    mo.ui.button(label="Choose", on_click=choose)
    return


if __name__ == "__main__":
    app.run()
"""


def test_it_and_python_follow_each_other(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP)
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    command = ["marimo", "--yes", "run", "app.py", "--headless", "--port", str(port), "--host", "127.0.0.1"]
    with served([*command, "--no-token"], tmp_path, f"{address}/health"):
        page = browser.new_page(viewport={"width": 1360, "height": 1200})
        page.set_default_timeout(60_000)
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(address)
        explorer = page.get_by_test_id("explorer")
        explorer.get_by_test_id("explorer-bars").locator("li").first.wait_for()
        explorer.get_by_role("gridcell", name="Layer 1 head 2", exact=True).click()
        expect_head(explorer, "1·2")
        expect(page.get_by_text("chosen 1 2, heard 1")).to_be_visible()
        page.get_by_role("button", name="Choose", exact=True).click()
        expect_head(explorer, "0·3")
        page.close()
        assert errors == []
