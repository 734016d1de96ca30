"""A full server's waiting page, which opens the app itself."""

import streamlit as st
from streamlit import runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx

from attention_viz.serving.settings import SETTINGS
from attention_viz.serving.visitors import Visitors
from attention_viz.ui import visit
from attention_viz.ui.front.headers import BROWSER

__all__ = ["wait_for_room"]

# Seconds after which whoever waits is looked after again.
_PAUSE = 5


def wait_for_room() -> None:
    """Show only the visitor's queue position on a full server."""
    if _ahead():
        _wait()
        st.stop()


def _is_connected(session: str) -> bool:
    return runtime.get_instance().is_active_session(session)


_visitors = Visitors(SETTINGS.most_visitors, _is_connected)


def _ahead() -> int:
    context = get_script_run_ctx()
    # Without a server there is one visitor.
    if context is None or not runtime.exists():
        return 0
    return _visitors.ahead(context.session_id, st.context.cookies.get(BROWSER, ""))


@st.fragment(run_every=_PAUSE)
def _wait() -> None:
    ahead = _ahead()
    if not ahead:
        visit.run_again()
    people = "1 person has" if ahead == 1 else f"{ahead} people have"
    st.html(
        f'<p role="status">All {SETTINGS.most_visitors:,} places here are taken: {people} to leave before you come in. '
        "This page opens by itself then, with all that its address holds. A tab keeps its place until "
        "it is closed, and for twenty seconds after that.</p>"
    )
