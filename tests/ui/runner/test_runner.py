"""A run that is overtaken goes on in its thread until it draws: what a person chose meanwhile stays."""

from types import SimpleNamespace
from typing import Any

import pytest

from attention_viz.ui import visit
from attention_viz.ui.runner import runner
from attention_viz.ui.selection import SHARED, Clicked, Filled, Selection, update


def test_settling_an_older_run_keeps_what_was_chosen_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    here, again = visit.Visit(), list[bool]()
    monkeypatch.setattr(visit, "here", lambda: here)
    monkeypatch.setattr(visit, "run_again", lambda: again.append(True))

    def settle(before: Selection, click: Clicked | None) -> Selection:
        if click is not None:
            visit.send(click)
        return update(before, Filled(SHARED, {"layer": 1, "head": 7}))

    view: Any = SimpleNamespace(settle=settle)
    runner._settle(view, None)
    assert (here.selection.shared.layer, here.selection.shared.head, again) == (1, 7, [True])
    runner._settle(view, Clicked(3, 2, None, (5, 4)))
    now = here.selection.shared
    assert (now.layer, now.head, now.query, now.key, again) == (3, 2, 5, 4, [True, True])
