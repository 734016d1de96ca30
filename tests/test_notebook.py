"""The notebooks run from their first cell to their last, and say what is so."""

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest

import attention_viz as av
from tests.shipped import load_once

NOTEBOOK = Path(__file__).parents[1] / "docs" / "tutorial.ipynb"
DECODER = NOTEBOOK.with_name("decoder.ipynb")


def run(source: str, names: dict[str, Any]) -> Any:
    """Run a cell as a notebook does; gives the value of its last line, where that is an expression."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, str(NOTEBOOK), "exec"), names)
    if last is None:
        return None
    names["shown"] = None
    kept = ast.Assign([ast.Name("shown", ast.Store())], last.value)
    exec(compile(ast.fix_missing_locations(ast.Module([kept], [])), str(NOTEBOOK), "exec"), names)
    return names["shown"]


def test_every_cell_runs_and_the_files_it_writes_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(av, "load", load_once)
    cells = json.loads(NOTEBOOK.read_text("utf-8"))["cells"]
    names: dict[str, Any] = {}
    shown = [run("".join(cell["source"]), names) for cell in cells if cell["cell_type"] == "code"]
    fidelity, weight, heatmap, found = shown[:4]
    assert fidelity.ok
    assert float(weight) == pytest.approx(0.580, abs=5e-4)
    assert heatmap.data[0].z[2][5] == pytest.approx(float(weight))
    assert (found.iloc[0]["layer"], found.iloc[0]["head"]) == (0, 4)
    key, words, put = shown[-5:-2]
    assert (key.iloc[0]["kind"], key.iloc[0]["layer"], key.iloc[0]["head"]) == ("head", 0, 0)
    assert words.iloc[0]["token"] == "cheese"
    assert put.index[0] == (1, 1) and put["effect"].iloc[0] < -1
    assert all(one is not None for one in shown[:-2] + shown[-1:])
    assert av.Trace.load(tmp_path / "bank.safetensors").query_tokens().labels[2] == "bank"
    assert "<svg" in (tmp_path / "bank.svg").read_text("utf-8")
    assert "</html>" in (tmp_path / "bank.html").read_text("utf-8")


# The lines that a reader changes, each by what stands before its equals sign.
TOY = {
    "MODEL": '"induction"',
    "TEXT": '"moon cheese frog ring moon cheese"',
    "OTHER": '"moon ring frog cheese moon cheese"',
    "ANSWER, WRONG": '"frog", "ring"',
    "REPEATED": '"moon cheese frog ring moon cheese frog ring"',
}


@pytest.mark.parametrize("changed", [{}, TOY], ids=["as it is", "another model and other words"])
def test_the_notebook_of_a_decoder_runs_with_any_model_and_words(
    changed: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(av, "load", load_once)
    cells = json.loads(DECODER.read_text("utf-8"))["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    for name, value in changed.items():
        sources[0], count = re.subn(rf"^{name} = .*$", f"{name} = {value}", sources[0], flags=re.MULTILINE)
        assert count == 1
    names: dict[str, Any] = {}
    shown = [run(source, names) for source in sources]
    assert names["MODEL"] == ("induction" if changed else "SmolLM2-135M-Instruct") and names["trace"].fidelity.ok
    assert all(one is not None for one in shown)
    candidates, induction, heads, told = shown[1], shown[2], shown[4], shown[6]
    assert candidates.iloc[0]["token"].strip("Ġ ") == names["ANSWER"].strip()
    assert induction["induction"].iloc[0] > 0.5
    assert told["written by this head"] == pytest.approx(heads["contribution"].max()) and told["lost without it"] > 0
    assert names["differ"]["rows"].iloc[0] < len(names["trace"].query_tokens())
    assert "<svg" in (tmp_path / "head.svg").read_text("utf-8")


@pytest.mark.parametrize("notebook", [NOTEBOOK, DECODER], ids=["tutorial", "decoder"])
def test_it_carries_no_outputs(notebook: Path) -> None:
    cells = json.loads(notebook.read_text("utf-8"))["cells"]
    assert all(not cell["outputs"] and cell["execution_count"] is None for cell in cells if cell["cell_type"] == "code")
