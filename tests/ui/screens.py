"""The app's pages without a browser: an address in, and what the page decided out."""

import base64
import functools
import io
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import numpy
import pandas
import pytest
from streamlit.runtime.media_file_manager import MediaFileManager
from streamlit.runtime.scriptrunner import RerunData
from streamlit.testing.v1 import AppTest, local_script_runner

from attention_viz.explorer.packet import read_packet
from attention_viz.ui.parts.menu import PAGES as MENU
from attention_viz.views.style.marks import NUMBERS

__all__ = ["PAGES", "Screen"]

ROOT = Path(__file__).parents[2]
# The address of each page of the menu.
PAGES = ["/" if file == "app.py" else f"/{Path(file).stem}" for file in MENU.values()]
ALERTS = ("info", "warning", "error", "success")
WORDS = ("markdown", "caption", "html")
WIDGETS = (
    *("selectbox", "number_input", "text_area", "text_input", "toggle", "button_group", "radio"),
    *("select_slider", "slider", "button", "file_uploader"),
)


@dataclass
class Screen:
    """One visitor's session: pages follow each other in it as in a browser's tab."""

    app: AppTest = field(default_factory=lambda: AppTest.from_file(ROOT / "app.py", default_timeout=120))
    files: dict[str, Callable[[], bytes]] = field(default_factory=dict)

    def open(self, address: str) -> "Screen":
        """Go to an address, as a first visit or by a link of the menu."""
        page = urlsplit(address).path
        self.app.switch_page("app.py" if page in ("", "/") else f"pages{page}.py")
        self.app.query_params = self.parts(address)
        return self.run()

    def back_to(self, address: str) -> "Screen":
        """Come to an address by Back or Forward."""
        history = functools.partial(RerunData, is_history_navigation=True)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(local_script_runner, "RerunData", history)
            return self.open(address)

    def run(self) -> "Screen":
        """Run the page again; any exception that nothing caught fails the test."""
        self.files.clear()
        add = MediaFileManager.add_deferred

        def noted(manager: MediaFileManager, make: Callable[[], bytes], *what: Any, **more: Any) -> str:
            number = add(manager, make, *what, **more)
            self.files[number] = make
            return number

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(MediaFileManager, "add_deferred", noted)
            self.app.run()
        assert not self.app.exception, [one.value for one in self.app.exception]
        return self

    @property
    def address(self) -> dict[str, str]:
        """What the page wrote into the address."""
        return dict(self.app.query_params)

    @property
    def warnings(self) -> list[str]:
        """What the page says of an address that asks for what can't be had, without the marks that make it plain."""
        said = [re.sub(r"\\(.)", r"\1", text) for one in self.all("warning") for text in one.value.split("\n\n")]
        return [one for one in said if one.startswith(("The URL asks", "The URL has", "The mask was for"))]

    @staticmethod
    def parts(address: str) -> dict[str, str]:
        """The parameters of an address."""
        return dict(parse_qsl(urlsplit(address).query, keep_blank_values=True))

    @property
    def words(self) -> str:
        """Whatever stands on the page as text, without the marks that keep it plain."""
        said = [*self.menus, *(str(one.value) for one in self.all(*WORDS, *ALERTS))]
        return re.sub(r"\\(.)", r"\1", "\n".join(said))

    @property
    def menus(self) -> list[str]:
        """What the buttons say behind which something stands."""
        return [
            one.proto.popover.label if hasattr(one.proto, "popover") else one.proto.label for one in self.all("popover")
        ]

    @property
    def written(self) -> list[str]:
        """What the page writes as HTML, its style left out; each piece apart."""
        return [one.value for one in self.all("html") if not one.value.startswith("<style")]

    def part(self, name: str) -> str:
        """The HTML of the piece that holds a test id."""
        (found,) = [one for one in self.written if f'data-testid="{name}"' in one]
        return found

    @property
    def alerts(self) -> list[str]:
        """What stands on the page in a box of its own, because something is amiss."""
        return [re.sub(r"\\(.)", r"\1", str(one.value)) for one in self.all(*ALERTS)]

    def all(self, *kinds: str) -> list[Any]:
        """Every element of some kinds."""
        return [one for kind in kinds for one in self.app.get(kind)]

    def figure(self, key: str) -> dict[str, Any]:
        """A Plotly figure as the page sends it to the browser."""
        (chart,) = [one for one in self.all("plotly_chart") if getattr(one, "key", None) == key]
        return json.loads(chart.proto.spec)

    def matrix(self, key: str) -> numpy.ndarray:
        """The numbers that a heatmap draws: what the page sends to the browser."""
        parts = [one for one in self.figure(key)["data"] if one["type"] == "heatmap"]
        (cells,) = [one["z"] for one in parts if one.get("name") != NUMBERS]
        shape = [int(count) for count in cells["shape"].split(",")]
        return numpy.frombuffer(base64.b64decode(cells["bdata"]), dtype=cells["dtype"]).reshape(shape)

    def channel(self, key: str, name: str = "channel") -> dict[str, Any]:
        """What the page tells a component of ours, such as which head it shows; empty where there is no component."""
        found = [one for one in self.all("bidi_component") if one.proto.id.endswith(f"-{key}-{name}")]
        return json.loads(found[0].proto.json) if found else {}

    @property
    def line(self) -> dict[str, Any]:
        """What the row of pickers says on a phone, where it is one line."""
        (found,) = [one for one in self.all("bidi_component") if one.proto.id.endswith("-fold")]
        return json.loads(found.proto.json)

    @property
    def slides(self) -> list[dict[str, Any]]:
        """What the page hands over to be presented."""
        (found,) = [one for one in self.all("bidi_component") if one.proto.id.endswith("-present-slides")]
        return json.loads(found.proto.json)["slides"]

    def packed(self) -> dict[str, Any]:
        """What stands before the weights in the bytes that the explorer gets."""
        (found,) = [one.proto.bytes for one in self.all("bidi_component") if one.proto.id.endswith("-explorer")]
        return read_packet(found)[0]

    def compared(self) -> tuple[dict[str, Any], bytes]:
        """What stands before the rows in the bytes that the Compare page gets, and the bytes behind it."""
        (found,) = [one.proto.bytes for one in self.all("bidi_component") if one.proto.id.endswith("-compare-rows")]
        return read_packet(found)

    def compared_rows(self) -> list[numpy.ndarray]:
        """Both heads' rows on the Compare page: NaN for what a text lacks, infinity for blocked cells."""
        header, body = self.compared()
        shape = len(header["rows"]), len(header["keys"])
        return [numpy.frombuffer(body[at : at + size], "<f4").reshape(shape) for at, size in header["planes"]]

    def picker(self, label: str) -> Any:
        """A widget by its label."""
        found = [one for one in self.all(*WIDGETS) if one.label == label]
        assert found, f"there is no {label}"
        return found[0]

    def pick(self, label: str, value: object) -> "Screen":
        """Set a widget, and run the page again."""
        self.picker(label).set_value(value)
        return self.run()

    def press(self, label: str) -> "Screen":
        """Press a button."""
        self.picker(label).click()
        return self.run()

    def upload(self, label: str, path: Path) -> "Screen":
        """Hand the page a file."""
        self.picker(label).set_value((path.name, path.read_bytes(), "application/octet-stream"))
        return self.run()

    def download(self, label: str) -> bytes:
        """What a button hands out; of several with that label, the first."""
        button = next(one for one in self.all("download_button") if one.label == label)
        return self.files[button.proto.deferred_file_id]()

    def open_trace(self, path: Path) -> "Screen":
        """Hand the page a trace that was saved."""
        return self.upload("File from trace.save", path)

    def table(self) -> pandas.DataFrame:
        """The weights that the page hands out, a row each."""
        return pandas.read_csv(io.BytesIO(self.download("Weights (CSV)")), keep_default_na=False)

    def weights(self) -> numpy.ndarray:
        """The same as a matrix, query down and key across."""
        return self.table().pivot(index="query", columns="key", values="weight").to_numpy()
