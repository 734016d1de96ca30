"""What a person chose on the Heads page, read from the address and written back."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields

import streamlit as st

from attention_viz.serving.settings import SETTINGS
from attention_viz.ui.controls.pickers import went_through_history
from attention_viz.ui.parts.notices import notice

__all__ = ["PREFIX", "SEARCHES", "VIEWS", "HeadsChoice", "begin_heads", "held", "told"]

# Before the names of this page's widgets, so that they stay apart from those that all pages share.
PREFIX = "heads-"

# How all heads are shown, and by what one can look for some of them; each by its name in the address.
VIEWS = {"colours": "Colours", "patterns": "Patterns", "scatter": "Two metrics", "map": "By likeness"}
SEARCHES = {"words": "Words", "pattern": "Pattern", "detector": "Detector"}

# What an address leaves out where there is nothing of it.
_OFTEN_EMPTY = ("pattern", "texts")


@dataclass(frozen=True)
class HeadsChoice:
    """Everything that decides what the page shows, besides what all pages share.

    Attributes:
        metric: what colours the heads, a name in `METRICS`; across in the scatter.
        view: how all heads are shown, a name in `VIEWS`.
        beside: the metric that stands up in the scatter.
        search: by what heads are looked for, a name in `SEARCHES`.
        query: the word that is looking, for the search by words; empty for none.
        key: the word that it looks at.
        pattern: what was drawn, for the search by pattern, as `mask_choice.to_code` writes it.
        detector: a name in `search.DETECTORS`.
        texts: more texts whose mean is shown, one a line.
    """

    metric: str = "entropy"
    view: str = "colours"
    beside: str = "previous"
    search: str = "words"
    query: str = "bank"
    key: str = "river"
    pattern: str = ""
    detector: str = "previous"
    texts: str = ""

    def address(self) -> dict[str, str]:
        """As parameters of the address; more texts than a link can carry are left out."""
        values = {field.name: str(getattr(self, field.name)) for field in fields(self)}
        if len(self.texts) > SETTINGS.longest_link:
            values["texts"] = ""
        return {name: value for name, value in values.items() if value or name not in _OFTEN_EMPTY}


_NAMES = tuple(field.name for field in fields(HeadsChoice))


def begin_heads(parameters: Mapping[str, str], allowed: Mapping[str, Collection[str]]) -> None:
    """Take the choices from the address at a visitor's first run of this page, and after Back or Forward.

    Args:
        parameters: the address's, as anybody may have typed them.
        allowed: by the name of a choice, what it may be.
    """
    first = f"{PREFIX}first" not in st.session_state
    if not first and not went_through_history():
        return
    notices: list[str] = []
    for field in fields(HeadsChoice):
        default = str(field.default)
        given = parameters.get(field.name, default)[: SETTINGS.longest_input]
        if field.name in allowed and given not in allowed[field.name]:
            notices.append(notice(field.name, given, ", ".join(allowed[field.name]), default))
            given = default
        if first or field.name in parameters or _was_emptied(field.name):
            st.session_state[PREFIX + field.name] = given
    st.session_state[f"{PREFIX}first"], st.session_state[f"{PREFIX}notices"] = held(), notices


def _was_emptied(name: str) -> bool:
    """Whether an address that leaves it out means that there is nothing: not of what no link could carry."""
    return name in _OFTEN_EMPTY and len(st.session_state.get(PREFIX + name, "")) <= SETTINGS.longest_link


def held() -> HeadsChoice:
    """What the widgets hold now."""
    return HeadsChoice(**{name: st.session_state[PREFIX + name] for name in _NAMES})


def told() -> list[str]:
    """What was wrong with the address, until something else is chosen."""
    return st.session_state[f"{PREFIX}notices"] if held() == st.session_state[f"{PREFIX}first"] else []
