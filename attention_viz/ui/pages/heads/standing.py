"""Whether the atlas that stands on the page stays there while the page runs again."""

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
    """What the atlas on the screen is of."""

    of: Hashable = None


def may_stay(state: State) -> bool:
    """Whether the numbers of these texts were on this screen last, so that nothing has to be worked out."""
    return is_at_hand(state) and visit.memory(_AtlasOf).of == _what(state)


def remember(state: State) -> None:
    """Keep in mind what the atlas is of that was measured just now."""
    visit.memory(_AtlasOf).of = _what(state)


def _what(state: State) -> Hashable:
    return state.request, visit.chosen(HEADS_CHOICES).texts, opening.opened() is not None
