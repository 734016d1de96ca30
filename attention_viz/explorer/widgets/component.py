"""The app's other components as widgets: bytes and messages, as a page of the app sends them."""

from collections.abc import Mapping
from typing import Any

import traitlets

from attention_viz.explorer.widgets.selection import NAMES
from attention_viz.explorer.widgets.widget import SelectingWidget

__all__ = ["ComponentWidget"]


class ComponentWidget(SelectingWidget):
    """A component of the app's; a subclass packs its bytes and messages."""

    _messages = traitlets.List().tag(sync=True)
    _rest = traitlets.Bytes().tag(sync=True)
    # The number of the reader's last choice: an older message moves nothing.
    _seen = 0

    def _packed(self) -> bytes:
        raise NotImplementedError

    def _told(self) -> list[dict[str, Any]]:
        """Return the messages for the selection."""
        place = {name: self._chosen[name] for name in NAMES}
        return [{**place, "seen": self._seen}]

    def _prepare(self) -> None:
        self._messages = self._told()
        self._data = self._packed()

    def _follow(self) -> None:
        if self._shown:
            self._prepare()

    def _answer(self, question: Mapping[str, Any]) -> None:
        match question["kind"], question.get("name"):
            case "data", _:
                self._prepare()
            case "chosen", "choice":
                with self._lock:
                    self._seen = int(question["value"]["serial"])
                    self._choose(question["value"])
            case "pressed", name:
                self._press(str(name), question["value"])
            case _:
                pass

    def _choose(self, choice: Mapping[str, Any]) -> None:
        """Take the reader's choice."""
        self.selection = {name: choice[name] for name in NAMES if choice.get(name) is not None}

    def _press(self, name: str, value: object) -> None:
        """Answer a button."""
