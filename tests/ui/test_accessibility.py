"""What axe-core finds on each page: nothing that keeps somebody from using it."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import OpenPage

AXE = "axe-core@4.14.1"
RUN = "() => axe.run(document, {resultTypes: ['violations']}).then(found => found.violations)"


@pytest.fixture(scope="session")
def axe(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The checker's script, fetched once by npm and kept beside pytest's other findings."""
    kept = Path(str(pytestconfig.cache.mkdir(AXE))) / "axe.min.js" if pytestconfig.cache else None
    if kept is None or not kept.exists():
        fetched = fetch(tmp_path_factory.mktemp("axe"))
        if kept is None:
            return fetched.read_text("utf-8")
        # Whole or not at all: other tests may look for it at the same time.
        half = kept.with_suffix(f".{os.getpid()}")
        shutil.copy(fetched, half)
        half.replace(kept)
    return kept.read_text("utf-8")


def fetch(folder: Path) -> Path:
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip(f"npm isn't here, which fetches {AXE}")
    command = [npm, "install", "--no-save", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(folder), AXE]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        pytest.skip(f"npm can't fetch {AXE}: {done.stderr[-300:]}")
    return folder / "node_modules" / "axe-core" / "axe.min.js"


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize(
    "address", ["/", "/steps?step=weights&query=2", "/steps?all=yes", "/masks", "/masks?mask=drawn&text=a+b"]
)
def test_no_page_shuts_anybody_out(page: OpenPage, axe: str, address: str, dark: bool) -> None:
    screen = page(address, dark=dark)
    screen.evaluate(axe)
    found: list[dict[str, Any]] = screen.evaluate(RUN)
    grave = [one for one in found if one["impact"] in ("serious", "critical")]
    told = [f"{one['id']}: {node['html'][:200]}" for one in grave for node in one["nodes"]]
    assert not told, "\n".join(told)
