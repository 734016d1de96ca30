"""The server's process, before it serves."""

import subprocess
import sys

import pytest

from tests.conftest import ROOT

LIMITED = """
import resource
from attention_viz.ui.process import allow_open_files
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
allow_open_files()
print(*resource.getrlimit(resource.RLIMIT_NOFILE))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
@pytest.mark.parametrize(("soft", "hard", "found"), [(200, 900, "900 900"), (300, 300, "300 300")])
def test_as_many_connections_may_be_open_as_the_system_lets_the_server_ask_for(
    soft: int, hard: int, found: str
) -> None:
    code = LIMITED.format(soft=soft, hard=hard)
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ended.stdout.split("\n")[-2] == found
