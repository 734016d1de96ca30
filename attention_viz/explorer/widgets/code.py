"""The scripts and style sheets of widgets, held once per notebook.

A widget's own `_esm` is a small loader. It takes the code from the page, where another widget has left it; else from a
model that all widgets of the kernel share; else it asks its own.
"""

import functools
import hashlib
import json
from collections.abc import Mapping

import ipywidgets
import traitlets

from attention_viz.explorer.source import script, style_sheet

__all__ = ["EXPLORER", "LOADER", "WidgetCode"]

LOADER = script("hosts/loading.js")


class _SharedCode(ipywidgets.Widget):
    _model_name = traitlets.Unicode("DOMWidgetModel").tag(sync=True)
    parts = traitlets.Dict().tag(sync=True)


class WidgetCode:
    """A component's code: `script` shows a widget, with a Streamlit `component` and its `html` if there is one."""

    def __init__(self, parts: Mapping[str, str]) -> None:
        """Name the code by its text."""
        self.parts = {"component": "", "html": "", **parts}
        self.name = hashlib.blake2b(json.dumps(self.parts).encode(), digest_size=8).hexdigest()
        self._model: _SharedCode | None = None

    def model_id(self) -> str:
        """Return the shared model, opened if none is."""
        if self._model is None or self._model.comm is None:
            self._model = _SharedCode(parts=self.parts)
        return self._model.model_id


EXPLORER = WidgetCode({"script": script("hosts/explorer_in_widget.js"), "style": style_sheet()})


@functools.cache
def component_code(source: tuple[str, str, str]) -> WidgetCode:
    """Return the code of one of the app's components."""
    html, style, text = source
    host = script("hosts/component_in_widget.js")
    # Buttons that lead to other pages of the app, or have its server open something.
    style += ".av-how, [data-open] { display: none; }\n"
    return WidgetCode({"script": host, "component": text, "html": html, "style": style})
