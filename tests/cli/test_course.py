"""The command that writes the course."""

from pathlib import Path

import pytest

from attention_viz.cli import main
from attention_viz.cli.course import seeds
from attention_viz.cli.exits import REFUSED, USAGE

TEXT = "The bank of the river was flooded"


def test_it_writes_a_course_and_says_its_size(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "course"
    assert main(["course", str(out), "--text", TEXT, "--lesson", "plain", "--seeds", "2-3", "--lang", "de"]) == 0
    printed = capsys.readouterr()
    size = sum(file.stat().st_size for file in out.rglob("*") if file.is_file())
    assert f"{size / 1e6:.1f} MB" in printed.err and "index.html" in printed.err and printed.out == ""
    content = (out / "data" / "plain-1.js").read_text("utf-8")
    assert '"seed":2' in content and '"seed":3' in content and '"seed":4' not in content
    assert main(["course", str(out), "--text", TEXT, "--lesson", "plain"]) == REFUSED
    assert "has files already; add --force" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--text", "word"], "only one word"),
        (["--text", ""], "no word"),
        (["--text", TEXT, "--lesson", "nope"], "unknown lesson 'nope'; choose from why"),
        (["--lang", "fr"], "'fr' is not one of 'en', 'de'"),
        (["--seeds", "0"], "give a count from 1 to 200, or a span such as 1-30"),
        (["--seeds", "30-1"], "got '30-1'"),
        (["--seeds", "x"], "got 'x'"),
    ],
)
def test_what_it_refuses_it_names_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert main(["course", str(tmp_path / "new"), *words]) in (USAGE, REFUSED)
    assert said in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_a_file_in_its_place_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("mine")
    assert main(["course", str(tmp_path / "file"), "--text", TEXT]) == REFUSED
    assert "is a file; give a folder" in capsys.readouterr().err


def test_seeds_are_a_count_or_a_span() -> None:
    assert list(seeds("3")) == [0, 1, 2]
    assert list(seeds("1-30")) == list(range(1, 31))
    assert list(seeds("9999-9999")) == [9999]
