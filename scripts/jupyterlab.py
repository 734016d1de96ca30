"""Serve JupyterLab on a free port, and run a notebook on a page of the browser, for tests and benchmarks."""

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from playwright.sync_api import Locator, Page

from scripts.serve import free_port

__all__ = ["PATIENCE", "Lab", "jupyterlab", "served", "write_notebook"]

_ROOT = Path(__file__).parents[1]
# Seconds: a kernel imports torch, beside whatever else runs.
PATIENCE = 120
_TOKEN = "only-on-this-machine"


@contextmanager
def served(command: list[str], folder: Path, address: str) -> Generator[None]:
    """Run a server in a folder, once the URL answers until the end."""
    names = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR", "XDG_CONFIG_HOME")
    own = {name: str(folder / ".own" / name.lower()) for name in names}
    environment = {**os.environ, **own, "PYTHONPATH": str(_ROOT), "OMP_NUM_THREADS": "1"}
    log = folder / "server.log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", *command], cwd=folder, env=environment, stdout=file, stderr=subprocess.STDOUT
        )
        try:
            until = monotonic() + PATIENCE
            while process.poll() is None and monotonic() < until:
                with suppress(OSError), urllib.request.urlopen(address, timeout=5):
                    break
                sleep(0.2)
            else:
                raise AssertionError(f"{command[0]} did not start:\n{log.read_text(errors='replace')}")
            yield
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextmanager
def jupyterlab(folder: Path) -> Generator[str]:
    """Serve a folder with JupyterLab; yield the URL."""
    port = free_port()
    options = {
        "ServerApp.port": port,
        "ServerApp.port_retries": 0,
        "IdentityProvider.token": _TOKEN,
        "ServerApp.root_dir": folder,
        "ServerApp.open_browser": False,
        "ServerApp.allow_root": True,
        "LabApp.expose_app_in_browser": True,
        "LabApp.extension_manager": "readonly",
        "LabApp.news_url": "",
        "KernelManager.shutdown_wait_time": 1,
    }
    command = ["jupyterlab", *(f"--{name}={value}" for name, value in options.items())]
    address = f"http://127.0.0.1:{port}"
    with served(command, folder, f"{address}/api?token={_TOKEN}"):
        yield address


def write_notebook(path: Path, *cells: str) -> None:
    """Write a notebook with these cells."""
    code = [
        {"cell_type": "code", "id": f"cell{at}", "source": text, "metadata": {}, "outputs": [], "execution_count": None}
        for at, text in enumerate(cells)
    ]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    path.write_text(json.dumps({"cells": code, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}))


class Lab:
    """One notebook on a page."""

    def __init__(self, page: Page, address: str, name: str) -> None:
        """Open it, and wait for its kernel."""
        self.page = page
        page.goto(f"{address}/lab/tree/{name}?reset&token={_TOKEN}")
        page.locator(".jp-Notebook .jp-Cell").first.wait_for(timeout=PATIENCE * 1000)
        self.wait_for_kernel()

    def wait_for_kernel(self) -> None:
        """Wait until a cell can run: before, JupyterLab asks for a kernel."""
        idle = "window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'"
        self.page.wait_for_function(idle, timeout=PATIENCE * 1000)

    def cell(self, at: int) -> Locator:
        """Return a cell with its outputs."""
        return self.page.locator(".jp-Notebook .jp-Cell").nth(at)

    def explorer(self, at: int) -> Locator:
        """Return the explorer below a cell."""
        return self.cell(at).get_by_test_id("explorer")

    def begin(self, at: int, code: str | None = None) -> None:
        """Begin to run a cell, with other code if asked."""
        self.page.evaluate(
            """([at, code]) => {
                const {content} = jupyterapp.shell.currentWidget;
                content.activeCellIndex = at;
                if (code !== null) content.activeCell.model.sharedModel.setSource(code);
                jupyterapp.commands.execute("notebook:run-cell");
            }""",
            [at, code],
        )

    def run(self, at: int, code: str | None = None) -> str:
        """Run a cell; return its output."""
        self.page.evaluate(
            """async ([at, code]) => {
                const {content} = jupyterapp.shell.currentWidget;
                content.activeCellIndex = at;
                if (code !== null) content.activeCell.model.sharedModel.setSource(code);
                await jupyterapp.commands.execute("notebook:run-cell");
            }""",
            [at, code],
        )
        return self.page.evaluate(
            "at => jupyterapp.shell.currentWidget.content.widgets[at].model.outputs.toJSON()"
            ".map(one => one.text ?? one.data?.['text/plain'] ?? one.evalue ?? '').join('')",
            at,
        )

    def expect_output(self, at: int, code: str, said: str) -> None:
        """Run a cell until it prints this, since clicks take a while."""
        until = monotonic() + PATIENCE
        while (last := self.run(at, code).strip()) != said:
            assert monotonic() < until, last
            sleep(0.1)

    def execute(self, command: str, arguments: Any = None) -> None:
        """Begin a command of JupyterLab's."""
        self.page.evaluate("([name, given]) => jupyterapp.commands.execute(name, given ?? {})", [command, arguments])
