"""What a widget, a browser or an older run leaves behind in a picker is dropped, where it is no option any more."""

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import pytest
import streamlit

from attention_viz.ui import widgets
from attention_viz.ui.controls import pickers
from tests.ui.screens import Screen

OWN = "model=scratch&text=the+cat+sat"


@pytest.fixture(scope="module")
def screen() -> Screen:
    return Screen().open(f"/?{OWN}")


@pytest.fixture
def leave(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, object], Screen]:
    """Runs the page with something in the session that its pickers find there."""
    begin = pickers.begin

    def run(key: str, stale: object) -> Screen:
        def begin_with_it(*own: Any, **more: Any) -> None:
            streamlit.session_state[key] = stale
            begin(*own, **more)

        with monkeypatch.context() as patch:
            patch.setattr(pickers, "begin", begin_with_it)
            return screen.run()

    return run


@pytest.mark.parametrize(
    ("path", "asked", "label", "key", "stale", "shown"),
    [
        ("/", {}, "Layer", "layer", "0 (of a hybrid)", 0),
        ("/", {"head": "0"}, "Head", "head", "11", 0),
        ("/steps", {"step": "scores", "query": "2"}, "Query token", "steps-query", "1 · cat", 2),
        ("/steps", {"step": "embeddings"}, "Dimension", "steps-dimension", "3", 0),
        ("/masks", {"mask": "causal", "in_head": "1"}, "Blocks for", "in_head", "only 1", 1),
        ("/masks", {"mask": "window", "window": "3"}, "Window", "window", "3 tokens", 3),
        ("/heads", {"view": "colours"}, "Metric", "heads-metric", "Entropy of the row", "entropy"),
        ("/compare", {"what": "heads", "other_head": "1"}, "Second head", "compare-other_head", "10", 1),
        ("/compare", {"what": "heads"}, "Second layer", "compare-other_layer", "0 ", 0),
    ],
)
def test_a_label_in_the_place_of_a_number_shows_what_was_chosen(
    screen: Screen,
    leave: Callable[[str, object], Screen],
    path: str,
    asked: dict[str, str],
    label: str,
    key: str,
    stale: object,
    shown: object,
) -> None:
    screen.back_to(f"{path}?{OWN}&{urlencode(asked)}")
    assert leave(key, stale).picker(label).value == shown


@pytest.mark.parametrize("key", ["edit-query", "edit-key"])
@pytest.mark.parametrize("stale", ["1 cat", 99, -1, None])
def test_a_token_of_another_text_is_no_position_of_this(
    screen: Screen, leave: Callable[[str, object], Screen], key: str, stale: object
) -> None:
    screen.back_to(f"/heads?{OWN}")
    screen.pick("Change", "block")
    label = "Blocked query" if key == "edit-query" else "Blocked key"
    assert leave(key, stale).picker(label).value == 1


@pytest.mark.parametrize("key", ["edit-query", "edit-key"])
@pytest.mark.parametrize(("held", "shown"), [("1 cat", 1), (99, 2), (-1, 1), (None, 1)])
def test_a_position_of_a_longer_text_gives_way_to_the_last_of_this(
    screen: Screen, key: str, held: object, shown: int
) -> None:
    screen.back_to(f"/heads?{OWN}")
    screen.pick("Change", "block")
    screen.app.session_state["visit"].memories[widgets.Drafts].values[key] = held
    label = "Blocked query" if key == "edit-query" else "Blocked key"
    assert screen.run().picker(label).value == shown
