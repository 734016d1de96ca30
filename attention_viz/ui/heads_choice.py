"""What a person chose on the Heads page, read from the address and written back."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields

import streamlit as st

from attention_viz.ui.notices import notice
from attention_viz.ui.pickers import went_through_history
from attention_viz.ui.settings import SETTINGS

__all__ = ["PREFIX", "HeadsChoice", "begin_heads", "held", "told"]

# Before the names of this page's widgets, so that they stay apart from those that all pages share.
PREFIX = "heads-"


@dataclass(frozen=True)
class HeadsChoice:
    """Everything that decides what the page shows, besides what all pages share.

    Attributes:
        metric: what colours the heads, a name in `METRICS`; across in the scatter.
        beside: the metric that stands up in the scatter.
        query: the word that is looking, for the search; empty for none.
        key: the word that it looks at.
        edit: what is done to the chosen head, a name in `what_if.EDITS`.
    """

    metric: str = "entropy"
    beside: str = "previous"
    query: str = "bank"
    key: str = "river"
    edit: str = "none"

    def address(self) -> dict[str, str]:
        """As parameters of the address."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


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
        if first or field.name in parameters:
            st.session_state[PREFIX + field.name] = given
    st.session_state[f"{PREFIX}first"], st.session_state[f"{PREFIX}notices"] = held(), notices


def held() -> HeadsChoice:
    """What the widgets hold now."""
    return HeadsChoice(**{name: st.session_state[PREFIX + name] for name in _NAMES})


def told() -> list[str]:
    """What was wrong with the address, until something else is chosen."""
    return st.session_state[f"{PREFIX}notices"] if held() == st.session_state[f"{PREFIX}first"] else []
