"""A stranger's Streamlit app, served as anybody serves one."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page

from scripts import serve
from tests.conftest import OpenPage

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def address_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], str]]:
    """Serves a script, once for all tests of a file."""
    servers: dict[str, tuple[subprocess.Popen[bytes], int]] = {}

    def serve_it(code: str) -> str:
        if code not in servers:
            folder, port = tmp_path_factory.mktemp("app"), serve.free_port()
            (folder / "app.py").write_text(code, "utf-8")
            options = {"server.port": port, "server.headless": "true", "browser.gatherUsageStats": "false"}
            options |= {"server.address": "127.0.0.1", "server.fileWatcherType": "none"}
            command = [sys.executable, "-m", "streamlit", "run", "app.py"]
            command += [f"--{name}={value}" for name, value in options.items()]
            path = {**os.environ, "PYTHONPATH": str(ROOT)}
            with (folder / "log").open("wb") as log:
                server = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, env=path)
            servers[code] = server, port
            assert serve.wait_until_healthy(server, port), (folder / "log").read_text()
        return f"http://127.0.0.1:{servers[code][1]}"

    yield serve_it
    for server, _ in servers.values():
        server.terminate()
        server.wait(20)


@pytest.fixture
def open_app(
    open_page: OpenPage, address_of: Callable[[str], str], idle: Callable[[Page], None]
) -> Callable[..., Page]:
    """Opens a script's page: `page = open_app(code, width=390)`."""

    def go(code: str, *, width: int = 1360) -> Page:
        page = open_page(address_of(code), width=width)
        page.get_by_test_id("stApp").wait_for()
        idle(page)
        assert not page.get_by_test_id("stException").all_inner_texts()
        return page

    return go
