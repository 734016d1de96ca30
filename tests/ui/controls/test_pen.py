"""What a browser says was touched, whoever wrote it."""

from types import SimpleNamespace
from typing import Any

import pytest
import streamlit

from attention_viz.ui.pages.heads.board import strokes


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    state: dict[str, Any] = {}
    monkeypatch.setattr(streamlit, "session_state", state)
    return state


def test_each_stroke_is_told_once_and_in_order(said: dict[str, Any]) -> None:
    said["pen"] = SimpleNamespace(strokes=[[1, 5, 0, 0, 2, 2], [2, 5, 1, 3, 0, 4]])
    assert strokes(5) == [(slice(0, 1), slice(2, 3)), (slice(1, 4), slice(0, 5))]
    assert strokes(5) == []
    said["pen"] = SimpleNamespace(strokes=[[2, 5, 1, 3, 0, 4], [3, 5, 4, 4, 4, 4]])
    assert strokes(5) == [(slice(4, 5), slice(4, 5))]


@pytest.mark.parametrize(
    "told",
    [
        None,
        "x",
        {"strokes": 1},
        [None],
        [[1, 5, 0, 0]],
        [[1, 5, 0, 0, 0, "0"]],
        [[1, 5, 0, 0, 0, 5]],
        [[1, 5, -1, 0, 0, 0]],
        [[1, 5, 3, 2, 0, 0]],
        [[1, 9, 0, 0, 0, 0]],
        [[1, 5, 0, 0, 0, True]],
    ],
)
def test_what_is_no_stroke_for_this_text_touches_nothing(said: dict[str, Any], told: object) -> None:
    said["pen"] = SimpleNamespace(strokes=told)
    assert strokes(5) == []
