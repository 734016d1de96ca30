"""What all widgets share: their code, the lock, and the picture that a saved notebook shows."""

import base64
import html
import threading
import uuid
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import anywidget
import traitlets

from attention_viz.explorer.widgets.code import LOADER, WidgetCode
from attention_viz.explorer.widgets.selection import Selecting, Selection, checked
from attention_viz.views.export.svg import heatmap_svg

if TYPE_CHECKING:
    from attention_viz.trace.trace import Trace

__all__ = ["NotebookWidget", "SelectingWidget"]

# Seconds without another choice until the saved picture is drawn anew.
_PAUSE = 0.3
# A widget that isn't running gives way to the picture.
_SAVED = """<style>
.jp-OutputArea-child:has(+ .jp-OutputArea-child [data-av-saved="{name}"]):not(:has(.av-widget)) {{ display: none; }}
</style>
<figure data-av-saved="{name}" style="margin:0">
<img alt="{alt}" style="max-width:100%" src="data:image/svg+xml;base64,{picture}">
<figcaption>{alt}. Run the cell to explore.</figcaption>
</figure>"""


class NotebookWidget(anywidget.AnyWidget):
    """A widget that opens its channel once it is shown, since the registry of open ones never frees any."""

    _esm = LOADER
    _code = traitlets.Unicode().tag(sync=True)
    _code_model = traitlets.Unicode().tag(sync=True)
    _theme = traitlets.Unicode("auto").tag(sync=True)
    _saved = traitlets.Unicode().tag(sync=True)

    def __init__(self, code: WidgetCode, theme: str, **values: Any) -> None:
        """Begin unshown."""
        self._lock = threading.RLock()
        self._own_code, self._shown, self._displayed = code, False, False
        self._redraw: threading.Timer | None = None
        super().__init__(_code=code.name, _theme=theme, _saved=uuid.uuid4().hex[:12], **values)
        self.on_msg(self._hear)

    def saved_picture(self) -> tuple[str, str]:
        """Return what a saved notebook shows: an SVG document, and a line of text."""
        raise NotImplementedError

    def _prepare(self) -> None:
        """Set the first picture's data."""

    def _answer(self, question: Mapping[str, Any]) -> None:
        """Answer the browser."""

    def open(self) -> None:
        """Open the channel, if the widget is shown."""
        if self._shown:
            super().open()

    @property
    def model_id(self) -> str:
        """The widget's name in a notebook, which shows it."""
        self._show()
        return super().model_id

    def set_state(self, sync_data: Mapping[str, Any]) -> None:
        """Take the browser's values. JupyterLab sends them on a thread of its own."""
        with self._lock:
            super().set_state(sync_data)

    def _show(self) -> None:
        with self._lock:
            if not self._shown:
                self._shown = True
                self._prepare()
                self._code_model = self._own_code.model_id()
                self.open()

    def _hear(self, _: object, question: Mapping[str, Any], __: object) -> None:
        if question["kind"] == "code":
            self.send({"kind": "code", "parts": self._own_code.parts})
        else:
            self._answer(question)

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        self._show()
        return super()._repr_mimebundle_(**kwargs)

    def _ipython_display_(self) -> None:
        """Show the widget, and after it a picture, which is hidden while the widget runs."""
        from IPython.display import display

        bundle, metadata = self._repr_mimebundle_()
        display(bundle, metadata=metadata, raw=True)
        display(self._saved_bundle(), raw=True, display_id=self._saved)
        self._displayed = True

    def _draw_saved(self) -> None:
        """Draw the picture anew, once the reader pauses."""
        if not self._displayed:
            return
        if self._redraw is not None:
            self._redraw.cancel()
        self._redraw = threading.Timer(_PAUSE, self._replace_saved)
        self._redraw.daemon = True
        self._redraw.start()

    def _replace_saved(self) -> None:
        from IPython.display import update_display

        update_display(self._saved_bundle(), raw=True, display_id=self._saved)

    def _saved_bundle(self) -> dict[str, str]:
        picture, words = self.saved_picture()
        coded = base64.b64encode(picture.encode()).decode("ascii")
        return {"text/html": _SAVED.format(name=self._saved, alt=html.escape(words), picture=coded)}


class SelectingWidget(Selecting, NotebookWidget):
    """A widget of one trace, with a head and a pair that Python and the reader choose."""

    _data = traitlets.Bytes().tag(sync=True)
    selection = traitlets.Dict().tag(sync=True)

    def __init__(self, trace: "Trace", code: WidgetCode, theme: str, selection: Selection) -> None:
        """Open on a selection."""
        self._trace, self._chosen = trace, selection
        self._listeners = list[Callable[[Selection], object]]()
        super().__init__(code, theme, selection=selection)

    def saved_picture(self) -> tuple[str, str]:
        """Return the chosen head as an SVG document, and its name."""
        stream, layer, head = (self._chosen[name] for name in ("stream", "layer", "head"))
        shown = stream if len(self._trace.streams) > 1 else "Attention"
        return heatmap_svg(self._trace, layer, head, stream), f"{shown.capitalize()}: layer {layer}, head {head}"

    def set_state(self, sync_data: Mapping[str, Any]) -> None:
        """Take the browser's choice, if the trace has it."""
        if "selection" in sync_data:
            checked(self._trace, self._chosen, sync_data["selection"])
        super().set_state(sync_data)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute; the selection not while the browser does."""
        if name != "selection":
            super().__setattr__(name, value)
            return
        with self._lock:
            super().__setattr__(name, value)

    @traitlets.validate("selection")
    def _check(self, proposal: Mapping[str, Any]) -> Selection:
        return checked(self._trace, self._chosen, proposal["value"])

    @traitlets.observe("selection")
    def _select(self, change: Mapping[str, Any]) -> None:
        with self._lock:
            self._chosen = change["new"]
            self._follow()
            for function in tuple(self._listeners):
                function(self._chosen)
        self._draw_saved()

    def _follow(self) -> None:
        """Update the sent data to the selection."""
