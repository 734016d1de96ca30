"""Each kind of end has its number, the same in all commands, and the guide lists them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from attention_viz.cli import main
from attention_viz.cli.exits import FAILED_CHECK, INTERNAL, INTERRUPTED, MEANINGS, NOT_FOUND, REFUSED, SUCCESS, USAGE
from attention_viz.cli.program import program
from attention_viz.scratch.model import Scratch
from attention_viz.trace.provenance import Fidelity

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "command-line.md").read_text("utf-8")
SCRATCH = ("--model", "scratch")


def test_the_guide_and_the_help_have_the_same_codes() -> None:
    rows = re.findall(r"^\| (\d+) \| (.+) \|$", GUIDE.partition("| exit code |")[2].partition("\n\n")[0], re.MULTILINE)
    assert {int(code): meaning for code, meaning in rows} == MEANINGS
    for code in (SUCCESS, INTERNAL, USAGE, REFUSED, NOT_FOUND, FAILED_CHECK):
        assert f"{code} {MEANINGS[code].partition(':')[0].partition(',')[0]}" in (program.epilog or "")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("models",), SUCCESS),
        (("nothing",), USAGE),
        (("heads",), USAGE),
        (("schema", "nothing"), USAGE),
        (("findings", "a b", "--model"), USAGE),
        (("verify", "scratch", "--format", "csv"), USAGE),
        (("heads", "", *SCRATCH), REFUSED),
        (("find", "dog", "a", "--text", "a b", *SCRATCH), REFUSED),
        (("effects", "a b", "--token", "a", *SCRATCH), REFUSED),
        (("patch", "--text", "a", "--other", "b", "--token", "a", *SCRATCH), REFUSED),
        (("circuits", *SCRATCH), REFUSED),
        (("trace", "a", *SCRATCH, "--out", "README.md/x.csv"), REFUSED),
        (("heads", "a", "--model", "./nowhere"), NOT_FOUND),
        (("verify", "./nowhere"), NOT_FOUND),
        (("plan", "./nowhere"), NOT_FOUND),
        (("circuits", "--model", "./nowhere"), NOT_FOUND),
        (("findings", "--trace", "nowhere.safetensors"), NOT_FOUND),
        (("findings", "--trace", "README.md"), REFUSED),
        (("compare", "--text", "a", "--other-trace", "nowhere.safetensors", *SCRATCH), NOT_FOUND),
        (("findings", "--texts", "nowhere.txt", *SCRATCH), NOT_FOUND),
        (("trace", "--picture", "nowhere.png", "--model", "dinov2-small", "--out", "no.csv"), NOT_FOUND),
        (("scan", "induction", "nowhere.txt", "--out", "nowhere"), NOT_FOUND),
        (("mcp", "--models", "nowhere"), NOT_FOUND),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else str(value),
)
def test_every_kind_of_end_has_its_code_and_one_line(
    words: tuple[str, ...], code: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert main(words) == code
    out, err = capsys.readouterr()
    assert (out == "") == (code != SUCCESS)
    assert code == SUCCESS or err.splitlines()[-1].startswith("attention-viz")


def test_a_failed_check_prints_its_result(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = Fidelity(0.5, None, 1e-5, "another")
    monkeypatch.setattr(Scratch, "verify", lambda *_: wrong)
    assert main(("verify", "scratch")) == FAILED_CHECK
    assert main(("verify", "scratch", "--format", "json")) == FAILED_CHECK
    assert '"ok": false' in capsys.readouterr().out


def test_an_error_of_the_program_is_1_with_its_lines_and_ctrl_c_is_130(monkeypatch: pytest.MonkeyPatch) -> None:
    code = (
        "import sys, attention_viz.sources as s; from attention_viz.cli import main\n"
        "def fail(): raise {}('a mistake')\n"
        "s.catalogue = fail; sys.exit(main(['models', '--format', 'json']))"
    )
    for kind, expected, said in (("RuntimeError", INTERNAL, "a mistake"), ("KeyboardInterrupt", INTERRUPTED, "")):
        done = subprocess.run(
            [sys.executable, "-c", code.format(kind)], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout) == (expected, "")
        assert said in done.stderr and bool(done.stderr) == bool(said)
