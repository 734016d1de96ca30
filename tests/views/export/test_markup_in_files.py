"""Files with hostile labels, opened in a real browser: nothing in them runs, and the text can be read."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
import torch
from playwright.sync_api import Browser

import attention_viz as av
from attention_viz import views

RUN = "document.title='ran'"
HOSTILE = (
    f"</script><img src=x onerror={RUN}>",
    f"<svg onload={RUN}>",
    f"]]><script>{RUN}</script>",
    f"--><script>{RUN}</script>",
    f"</title></style></text></svg><script>{RUN}</script>",
    f"&lt;script&gt;{RUN}&lt;/script&gt;",
    f"<a href=javascript:{RUN}>x</a>",
    f'" onmouseover="{RUN}',
)


@pytest.fixture(scope="module")
def trace() -> av.Trace:
    torch.manual_seed(0)
    query = torch.randn(2, len(HOSTILE), 4)
    return av.Trace.from_qkv([query, query], [query, query], [query, query], labels=HOSTILE, name=HOSTILE[0])


def _notebook(trace: av.Trace) -> str:
    head = "<!doctype html><meta charset=utf-8><title>notebook</title>"
    return head + trace._repr_html_() + trace.query_tokens()._repr_html_()


WRITTEN: dict[str, Callable[[av.Trace, Path], object]] = {
    "head.svg": lambda trace, path: path.write_text(views.heatmap_svg(trace, 0, 1), "utf-8"),
    "figure.svg": lambda trace, path: views.save(views.heatmap(trace, 0, 1), path, trace),
    "figure.html": lambda trace, path: views.heatmap(trace, 0, 1).write_html(path),
    "explorer.html": lambda trace, path: av.explore(trace).save_html(path),
    "notebook.html": lambda trace, path: path.write_text(_notebook(trace), "utf-8"),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_nothing_runs_of_what_a_label_says_and_its_text_can_be_read(
    name: str, trace: av.Trace, browser: Browser, tmp_path: Path
) -> None:
    WRITTEN[name](trace, tmp_path / name)
    with closing(browser.new_context()) as context:
        page = context.new_page()
        asked = list[str]()
        page.on("request", lambda request: asked.append(request.url))
        page.on("dialog", lambda dialog: pytest.fail(dialog.message))
        page.goto((tmp_path / name).as_uri())
        page.wait_for_timeout(1_000)
        assert page.title() != "ran"
        assert page.locator("[onerror], [onload], [onmouseover], [href^='javascript']").count() == 0
        assert {url for url in asked if not url.startswith(("data:", "blob:"))} == {(tmp_path / name).as_uri()}
        told = page.evaluate("document.documentElement.textContent")
        assert "<svg" in told
