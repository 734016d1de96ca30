"""The first picture is a recorded one, called that, until the same has run; nothing heavy is imported for it."""

import subprocess
import sys
from pathlib import Path

import pytest
import streamlit as st

from attention_viz.errors import ModelNotFound
from attention_viz.ui.pages.explore import page
from tests.ui.screens import Screen

ROOT = Path(__file__).parents[4]
RECORDED = "Recorded: shown until the model has run here"

PROGRAM = """
import sys
import streamlit as st
from streamlit.testing.v1 import AppTest
from attention_viz.ui.runner import runner

def heavy(*_):
    print(sorted({"torch", "transformers", "scipy"} & set(sys.modules)))
    st.stop()

runner.importing = heavy
screen = AppTest.from_file("app.py", default_timeout=60).run()
assert not screen.exception, screen.exception
print(any("-explorer-" in one.proto.id or one.proto.id.endswith("-explorer") for one in screen.get("bidi_component")))
print(any("Recorded" in one.value for one in screen.markdown))
"""


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody has run anything yet."""
    monkeypatch.setattr(page, "has_run", lambda _: False)


@pytest.fixture
def waiting(fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run takes for ever."""
    monkeypatch.setattr(page, "run_request", lambda *_, **__: st.stop())


def test_it_is_shown_and_called_recorded_at_the_head_that_is_asked_for(waiting: None) -> None:
    screen = Screen().open("/?layer=2&head=7")
    assert RECORDED in screen.words
    assert "Verifying …" in screen.words
    assert "Verified" not in screen.words
    told = screen.channel("explorer")
    assert (told["layer"], told["head"], told["stream"]) == (2, 7, "encoder")


def test_the_live_run_takes_its_place(fresh: None) -> None:
    screen = Screen().open("/")
    assert "Verified" in screen.words
    assert RECORDED not in screen.words
    assert screen.channel("explorer")["head"] == 4
    assert RECORDED not in screen.pick("Head", 3).words


@pytest.mark.parametrize(
    "address", ["/?text=Another+text", "/?reading=norm", "/?words=on", "/?special=off", "/?model=induction"]
)
def test_only_what_was_recorded_is_shown(waiting: None, address: str) -> None:
    screen = Screen().open(address)
    assert RECORDED not in screen.words
    assert "Verified" in screen.words


def test_a_run_that_fails_says_so_instead_of_a_picture(fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ModelNotFound("the file is damaged")

    monkeypatch.setattr(page, "run_request", fail)
    monkeypatch.setattr("attention_viz.ui.parts.drawing.run_request", fail)
    screen = Screen().open("/")
    assert screen.alerts == ["The file is damaged."]
    assert RECORDED not in screen.words
    assert screen.channel("explorer") == {}


def test_nothing_heavy_is_imported_before_it_stands_there() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines() == ["[]", "True", "True"], ended.stdout
