"""The explorer as an object in Python, without a notebook: its selection, callbacks, and what it sends."""

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import anywidget
import numpy
import pytest

import attention_viz as av
from attention_viz.explorer.packet import read_packet
from attention_viz.explorer.widgets import explorer as module
from attention_viz.explorer.widgets.explorer import ExplorerWidget
from attention_viz.trace.trace import Trace

ROOT = Path(__file__).parents[3]
FIRST = {"stream": "encoder", "layer": 0, "head": 0, "query": None, "key": None}


def widget_of(trace: Trace, **opening: Any) -> ExplorerWidget:
    explorer = av.explore(trace, **opening)
    assert isinstance(explorer, ExplorerWidget)
    return explorer


@pytest.fixture
def many_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if any text were a long one."""
    monkeypatch.setattr(module, "MOST_AT_ONCE", 0)


class Sent(list[tuple[dict[str, Any], list[bytes]]]):
    """What a widget sends; `until` waits for a kind of message."""

    def __init__(self, explorer: ExplorerWidget, monkeypatch: pytest.MonkeyPatch) -> None:
        self.came = threading.Condition()
        monkeypatch.setattr(ExplorerWidget, "send", lambda _, message, buffers=(): self.take(message, buffers))
        self.explorer = explorer

    def take(self, message: dict[str, Any], buffers: Any) -> None:
        with self.came:
            self.append((message, list(buffers)))
            self.came.notify_all()

    def ask(self, **question: Any) -> None:
        self.explorer._handle_custom_msg(question, [])

    def until(self, kind: str) -> dict[str, Any]:
        with self.came:
            assert self.came.wait_for(lambda: any(message["kind"] == kind for message, _ in self), 60)
        return next(message for message, _ in self if message["kind"] == kind)


def test_it_is_an_anywidget_and_an_explorer_with_the_files_of_before(many_kinds: Trace, tmp_path: Path) -> None:
    explorer = widget_of(many_kinds, stream="cross", layer=1, head=2)
    assert isinstance(explorer, anywidget.AnyWidget) and isinstance(explorer, av.Explorer)
    explorer.save_html(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text("utf-8") == explorer.html()
    assert read_packet(explorer.payload)[0]["choice"] == {"stream": "cross", "layer": 1, "head": 2}
    explorer.selection = {"query": 3, "key": 1}
    assert read_packet(explorer.payload)[0]["choice"] == {
        "stream": "cross",
        "layer": 1,
        "head": 2,
        "query": 3,
        "key": 1,
    }


def test_what_is_set_is_checked_and_missing_names_stay(many_kinds: Trace) -> None:
    explorer = widget_of(many_kinds)
    assert explorer.selection == FIRST
    explorer.selection = {"layer": numpy.int64(1), "head": 2}
    assert explorer.selection == {**FIRST, "layer": 1, "head": 2}
    explorer.selection = {"query": 4, "key": 7}
    explorer.selection = {"head": 1}
    assert explorer.selection == {**FIRST, "layer": 1, "head": 1, "query": 4, "key": 7}
    before = dict(explorer.selection)
    for wrong, reason in (
        ({"head": 3}, "layer 1 of the encoder has no head 3; choose 0 to 2"),
        ({"layer": 9}, "no layer 9; the encoder has layers 0 to 1"),
        ({"stream": "middle"}, "unknown stream 'middle'; this trace has encoder, decoder, cross"),
        ({"heads": 1}, "has no 'heads'; it has stream, layer, head, query, key"),
        ({"query": 13, "key": 0}, "the encoder has no query 13; choose 0 to 12"),
        ({"key": None}, "a pair has a query and a key"),
        ({"head": 0.5}, "head 0.5 isn't a whole number"),
    ):
        with pytest.raises(av.AttentionVizError, match=reason):
            explorer.selection = wrong
        assert explorer.selection == before
    # Positions of other tokens mean nothing in another stream.
    explorer.selection = {"stream": "decoder"}
    assert explorer.selection == {**before, "stream": "decoder", "query": None, "key": None}
    with pytest.raises(TypeError, match="assign another"):
        explorer.selection["head"] = 0


def test_a_layer_is_the_models_own_number(smallest: av.AttentionModel) -> None:
    trace = smallest.trace("moon cheese frog ring moon cheese", layers=[1])
    explorer = widget_of(trace)
    assert explorer.selection["layer"] == 1
    with pytest.raises(av.TraceError, match="this trace keeps layer 1 of 0 to 1"):
        explorer.selection = {"layer": 0}


@pytest.fixture(scope="session")
def smallest() -> av.AttentionModel:
    model = av.load("induction")
    assert isinstance(model, av.AttentionModel)
    return model


def test_callbacks_hear_of_each_selection_one_at_a_time(many_kinds: Trace) -> None:
    explorer, heard, inside = widget_of(many_kinds), list[Any](), list[int]()

    def slow(selection: Any) -> None:
        inside.append(1)
        assert len(inside) == 1, "another call was going on"
        threading.Event().wait(0.05)
        heard.append(selection["head"])
        inside.pop()

    explorer.on_select(slow)
    choices = [{**FIRST, "head": 1}, {**FIRST, "layer": 1, "head": 2}]
    # The browser's choices come on a thread of JupyterLab's, beside the reader's own cell.
    browser = threading.Thread(target=lambda: [explorer.set_state({"selection": one}) for one in choices])
    browser.start()
    for head in (2, 1, 0):
        explorer.selection = {"head": head}
    browser.join()
    assert heard and set(heard) <= {0, 1, 2} and heard[-1] == explorer.selection["head"]
    explorer.on_select(slow, remove=True)
    count = len(heard)
    explorer.selection = {"stream": "decoder", "layer": 1, "head": 3}
    assert len(heard) == count


def test_a_choice_of_the_browsers_that_the_trace_lacks_changes_nothing(many_kinds: Trace) -> None:
    explorer = widget_of(many_kinds)
    with pytest.raises(av.ShapeError, match="no head 99"):
        explorer.set_state({"selection": {**FIRST, "head": 99}})
    assert explorer.selection == FIRST


def test_nothing_is_opened_or_packed_before_it_is_shown(many_kinds: Trace) -> None:
    explorer = widget_of(many_kinds)
    assert explorer.comm is None and not explorer._data
    model = explorer.model_id
    assert model and explorer.comm is not None
    header = read_packet(explorer._data)[0]
    assert header["findings"] is not None and "long" not in header and header["choice"] is None
    explorer.close()


def test_a_second_widget_does_not_carry_the_code_again(many_kinds: Trace) -> None:
    one, other = widget_of(many_kinds), widget_of(many_kinds)
    _ = one.model_id, other.model_id
    assert one._code_model == other._code_model and len(one._code_model) > 0
    states = [{name: str(value) for name, value in explorer.get_state().items()} for explorer in (one, other)]
    assert all(sum(len(text) for name, text in state.items() if name != "_data") < 6000 for state in states)
    one.close(), other.close()


@pytest.mark.usefixtures("many_at_once")
def test_a_long_texts_heads_pictures_and_findings_come_when_they_are_asked_for(
    bank: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    explorer = widget_of(bank, layer=3)
    sent = Sent(explorer, monkeypatch)
    sent.ask(kind="data")
    header = read_packet(explorer._data)[0]
    assert header["long"] and not header["findings"]
    assert all("thumbnails" not in layer for layer in header["streams"][0]["layers"])
    sent.ask(kind="head", stream="encoder", layer=2, head=7)
    (message, (packet,)) = sent[-1]
    head = read_packet(packet)[0]
    assert message == {"kind": "packet"}
    assert (head["of"], head["layer"], head["head"]) == (header["long"]["id"], 2, 7)
    sent.ask(kind="pair", of=header["long"]["id"], stream="encoder", query=2, key=5)
    ranking = sent.until("ranking")["ranking"]
    assert (ranking["ranked"][0]["layer"], ranking["ranked"][0]["head"]) == (0, 4)
    del sent[:]
    sent.ask(kind="rest")
    found = json.loads(sent.until("findings")["found"])
    assert [one["kind"] for one in found] == [one.kind for one in av.findings(bank)]
    layers = [read_packet(buffers[0])[0]["layer"] for _, buffers in sent if buffers]
    # What is on the screen comes first; another view of it gets the same again.
    assert layers == [3, 0, 1, 2, 4, 5]
    del sent[:]
    sent.ask(kind="rest")
    assert [message["kind"] for message, _ in sent] == ["packet"] * 6 + ["findings"]


def test_the_saved_notebook_gets_a_picture_of_the_chosen_head(bank: Trace) -> None:
    explorer = widget_of(bank)
    explorer.selection = {"layer": 5, "head": 6}
    picture, words = explorer.saved_picture()
    assert words == "Attention: layer 5, head 6" and "layer 5, head 6" in picture
    html = explorer._saved_bundle()["text/html"]
    assert f'data-av-saved="{explorer._saved}"' in html and 'src="data:image/svg+xml;base64,' in html


ALONE = """
import sys
sys.modules["anywidget"] = None
import attention_viz as av
trace = av.scratch("moon cheese")
explorer = av.explore(trace)
assert explorer._repr_html_().startswith("<iframe ") and not hasattr(explorer, "comm")
heard = []
explorer.on_select(heard.append)
explorer.selection = {"head": 1}
assert heard == [explorer.selection] and explorer.selection["head"] == 1
try:
    explorer.selection = {"head": 9}
except av.ShapeError as error:
    print(error)
"""


def test_without_anywidget_it_shows_as_a_page() -> None:
    done = subprocess.run([sys.executable, "-c", ALONE], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "has no head 9; choose 0 to 1" in done.stdout


def test_importing_the_package_imports_no_widgets() -> None:
    code = "import sys, attention_viz as av; av.explore; print('anywidget' in sys.modules, 'ipywidgets' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["False", "False"], done.stderr
