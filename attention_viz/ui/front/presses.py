"""Keep a press that another message overtakes."""

# Streamlit has no public name for any of this.
# pyright: reportPrivateUsage=false

import threading
from collections.abc import Mapping
from typing import Any

from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.WidgetStates_pb2 import WidgetState, WidgetStates
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.state.safe_session_state import SafeSessionState

# By session and widget, the presses whose callbacks haven't begun.
_waiting = dict[str, dict[str, WidgetState]]()
_lock = threading.Lock()
_request = AppSession.request_rerun


def keep_presses() -> None:
    """Have a message that overtakes a press bring the press along.

    For each message, Streamlit 1.67 stops the thread that handles the one before, even if that thread hasn't called
    the press's callback yet: on a busy server, the press is lost.
    """
    AppSession.request_rerun = _request_rerun
    SafeSessionState.on_script_will_rerun = _on_script_will_rerun


def _request_rerun(self: AppSession, client_state: ClientState | None) -> None:
    # A thread either gets to its callbacks before it is stopped, or leaves its presses to the next: never both.
    with _lock:
        if client_state is not None and not client_state.fragment_id:
            presses = _take(self.id, client_state.widget_states)
            if presses:
                _waiting[self.id] = presses
        _request(self, client_state)


def _take(session: str, states: WidgetStates) -> dict[str, WidgetState]:
    """Add a session's waiting presses to a message's; return them all."""
    overtaken = _waiting.pop(session, {})
    found = {one.id: one for one in states.widgets}
    found |= {name: one for name, one in overtaken.items() if name not in found or not _is_press(found[name])}
    states.CopyFrom(WidgetStates(widgets=[*found.values()]))
    return {one.id: one for one in states.widgets if _is_press(one)}


def _on_script_will_rerun(
    self: SafeSessionState,
    fresh_widget_states: WidgetStates | None,
    *,
    replay_trigger_states: WidgetStates | None = None,
    replay_trigger_values: Mapping[str, Any] | None = None,
    is_history_navigation: bool = False,
) -> None:
    context = get_script_run_ctx()
    with _lock:
        self._yield_callback()  # ends an overtaken thread
        if context is not None:
            _ = _waiting.pop(context.session_id, None)
    with self._lock:
        self._state.on_script_will_rerun(
            fresh_widget_states,
            replay_trigger_states=replay_trigger_states,
            replay_trigger_values=replay_trigger_values,
            is_history_navigation=is_history_navigation,
        )


def _is_press(state: WidgetState) -> bool:
    kind = state.WhichOneof("value")
    return kind in ("trigger_value", "json_trigger_value") and bool(getattr(state, kind))
