"""Two messages that arrive at once: a press, and before its callback ran, another."""

# Streamlit has no public name for any of this.
# pyright: reportPrivateUsage=false

from collections.abc import Callable
from typing import Any

import pytest
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.WidgetStates_pb2 import WidgetState, WidgetStates
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.scriptrunner_utils.exceptions import StopException
from streamlit.runtime.scriptrunner_utils.script_requests import ScriptRequests, ScriptRequestType
from streamlit.runtime.scriptrunner_utils.script_run_context import ThreadState
from streamlit.runtime.state import SessionState
from streamlit.runtime.state.common import WidgetMetadata
from streamlit.runtime.state.safe_session_state import SafeSessionState

from attention_viz.ui.front import presses

# Tests that start a server replace them.
OF_STREAMLIT = AppSession.request_rerun, SafeSessionState.on_script_will_rerun


@pytest.fixture(autouse=True)
def _as_streamlit_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AppSession, "request_rerun", OF_STREAMLIT[0])
    monkeypatch.setattr(SafeSessionState, "on_script_will_rerun", OF_STREAMLIT[1])


class _Session:
    """A session whose threads wait until they are told to begin."""

    id = "a session"

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.called = list[str]()
        self.state = SessionState()
        for name in ("first", "second"):
            self._know(name)
        self.threads = list[tuple[ScriptRequests, Any]]()
        self._scriptrunner: ScriptRequests | None = None
        self._state = self._user_info = None
        monkeypatch.setattr(presses, "get_script_run_ctx", lambda: _Context)

    def _know(self, name: str) -> None:
        _ = self.state.register_widget(
            WidgetMetadata(name, bool, bool, "trigger_value", callback=lambda: self.called.append(name)), None
        )

    def _create_scriptrunner(self, data: Any) -> None:
        self._scriptrunner = ScriptRequests()
        assert self._scriptrunner.request_rerun(data)
        self.threads.append((self._scriptrunner, data))

    def send(self, *pressed: str) -> None:
        """Receive a browser's message."""
        states = WidgetStates(
            widgets=[WidgetState(id=one, trigger_value=one in pressed) for one in ("first", "second")]
        )
        AppSession.request_rerun(self, ClientState(widget_states=states))  # pyright: ignore[reportArgumentType]

    def begin(self, number: int) -> None:
        """Have a thread take its message and call what was pressed, unless it was stopped."""
        requests, data = self.threads[number]
        if requests.on_scriptrunner_ready().type is ScriptRequestType.STOP:
            return
        self.call(requests, data)

    def call(self, requests: ScriptRequests, data: Any) -> None:
        """Call what was pressed, unless the thread was stopped."""
        ThreadState.initialize()

        def end_if_stopped() -> None:
            found = requests.on_scriptrunner_yield()
            if found is not None and found.type is ScriptRequestType.STOP:
                raise StopException

        try:
            SafeSessionState(self.state, end_if_stopped).on_script_will_rerun(data.widget_states)
        except StopException:
            return


class _Context:
    session_id = _Session.id


def _before_it_is_taken(session: _Session) -> None:
    session.send("first")
    session.send()
    session.begin(0)
    session.begin(1)


def _before_its_callback(session: _Session) -> None:
    session.send("first")
    requests, data = session.threads[0]
    assert requests.on_scriptrunner_ready().type is ScriptRequestType.RERUN
    session.send()
    session.call(requests, data)
    session.begin(1)


OVERTAKEN = [_before_it_is_taken, _before_its_callback]


@pytest.mark.parametrize("overtaken", OVERTAKEN)
def test_streamlit_still_loses_such_a_press(
    monkeypatch: pytest.MonkeyPatch, overtaken: Callable[[_Session], None]
) -> None:
    """Once this fails, `keep_presses` is no longer needed."""
    session = _Session(monkeypatch)
    overtaken(session)
    assert session.called == []


@pytest.mark.parametrize("overtaken", OVERTAKEN)
def test_an_overtaken_press_is_called_once(
    monkeypatch: pytest.MonkeyPatch, overtaken: Callable[[_Session], None]
) -> None:
    presses.keep_presses()
    session = _Session(monkeypatch)
    overtaken(session)
    assert session.called == ["first"]
    session.send()
    session.begin(2)
    assert session.called == ["first"]


def test_one_press_may_overtake_another(monkeypatch: pytest.MonkeyPatch) -> None:
    presses.keep_presses()
    session = _Session(monkeypatch)
    session.send("first")
    session.send("second")
    session.begin(1)
    assert sorted(session.called) == ["first", "second"]
    session.send("first")
    session.begin(2)
    assert sorted(session.called) == ["first", "first", "second"]
