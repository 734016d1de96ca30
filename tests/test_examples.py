"""The Python in the documents runs as it stands there, each document's blocks one after the other."""

import re
from pathlib import Path

import pytest

import attention_viz as av
from tests.shipped import load_once

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("name", ["README.md", "docs/python.md", "docs/findings.md", "docs/models.md"])
def test_the_python_in_a_document_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # what it saves
    monkeypatch.setattr(av, "load", load_once)
    blocks = re.findall(r"^(<!-- not run.*-->\n)?```python\n(.*?)^```$", (ROOT / name).read_text("utf-8"), re.M | re.S)
    run = [code for left_out, code in blocks if not left_out]
    assert run
    names: dict[str, object] = {}
    for code in run:
        exec(compile(code, name, "exec"), names)
