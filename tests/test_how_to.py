"""The how-tos are true from their first block to their last: their Python and their commands run, in one folder."""

import re
import shlex
from pathlib import Path

import pytest

from attention_viz.cli import main
from attention_viz.cli.program import program

HOW_TO = Path(__file__).parents[1] / "docs" / "how-to"
_BLOCK = re.compile(r"^(<!-- not run: .+ -->\n)?```(python|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^(?:\w+=\S+ )?attention-viz (.+)$", re.MULTILINE)


@pytest.mark.parametrize("name", ["own-model", "figure", "cluster", "large"])
def test_a_how_to_runs_from_its_first_block_to_its_last(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names, ran = dict[str, object](), 0
    for left_out, language, code in _BLOCK.findall((HOW_TO / f"{name}.md").read_text("utf-8")):
        if language == "python":
            exec(compile(code, name, "exec"), names)
        for words in map(shlex.split, _COMMAND.findall(code) if language == "sh" else ()):
            program.commands[words[0]].make_context(words[0], words[1:])  # refuses words that the command doesn't take
            assert left_out or main(words) == 0, words
            ran += not left_out
    assert ran


def test_every_how_to_is_run_or_has_nothing_but_links() -> None:
    others = {path.stem: path.read_text("utf-8") for path in HOW_TO.glob("*.md")}
    assert [name for name, text in others.items() if not _BLOCK.search(text)] == ["class"]
    assert sorted(others) == ["class", "cluster", "figure", "large", "own-model"]
