"""The Gradio example: the frame tells Python what is chosen."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from scripts import serve

DOCUMENT = Path(__file__).parents[2] / "docs" / "how-to" / "own-app.md"
RUN = "import runpy, sys; sys.path[:] = {path!r}; runpy.run_path('app.py', run_name='__main__')"


def test_the_gradio_example_hears_the_choice(open_page: Callable[..., Page], tmp_path: Path) -> None:
    _ = pytest.importorskip("gradio", reason="gradio isn't installed")
    code = re.search(r"^## Gradio.*?^```python\n(.*?)^```$", DOCUMENT.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert code
    (tmp_path / "app.py").write_text(code[1], "utf-8")
    port, path = serve.free_port(), [str(Path(__file__).parents[2]), *sys.path]
    own = {**os.environ, "GRADIO_SERVER_PORT": str(port), "GRADIO_ANALYTICS_ENABLED": "False"}
    server = subprocess.Popen([sys.executable, "-c", RUN.format(path=path)], cwd=tmp_path, env=own)
    try:
        while not serve.is_taken(port) and server.poll() is None:
            time.sleep(0.2)
        page = open_page(f"http://127.0.0.1:{port}")
        frame = page.frame_locator("#explorer iframe")
        frame.get_by_role("gridcell", name="Layer 1 head 2", exact=True).click()
        expect(page.get_by_text("Layer 1, head 2", exact=True)).to_be_visible()
    finally:
        server.terminate()
        server.wait(20)
