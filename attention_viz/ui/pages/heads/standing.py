"""Whether the shown atlas stays when the page reruns."""

from collections.abc import Hashable
from dataclasses import dataclass

from attention_viz.ui import visit
from attention_viz.ui.address import State
from attention_viz.ui.pages.heads.choice import HEADS_CHOICES
from attention_viz.ui.parts import open_trace as opening
from attention_viz.ui.parts.drawing import is_at_hand

__all__ = ["may_stay", "remember"]


@dataclass
class _AtlasOf:
    of: Hashable = None


def may_stay(state: State) -> bool:
    """Return whether the screen's last numbers are these texts'."""
    return is_at_hand(state) and visit.memory(_AtlasOf).of == _what(state)


def remember(state: State) -> None:
    """Remember the last measured atlas's texts."""
    visit.memory(_AtlasOf).of = _what(state)


def _what(state: State) -> Hashable:
    return state.request, visit.chosen(HEADS_CHOICES).texts, opening.opened() is not None
