"""A trace from a file in place of a model's run: the boxes say what ran, and come back when it is closed."""

import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from streamlit.proto.Common_pb2 import FileURLs
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.uploaded_file_manager import UploadedFile, UploadedFileRec

import attention_viz as av
from attention_viz.errors import TraceError
from attention_viz.scratch.model import Scratch
from attention_viz.serving.runs import Drawn
from attention_viz.trace.tensors import to_safetensors
from attention_viz.ui.parts import open_trace
from attention_viz.ui.parts.exports import trace_bytes
from tests.shipped import shipped
from tests.ui.screens import Screen

TYPED = {"text": "What was typed", "second": "a second", "target": "", "layer": 1, "head": 2, "stream": None}


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What a visitor's session holds."""
    held: dict[str, Any] = dict(TYPED)
    monkeypatch.setattr(open_trace.st, "session_state", held)
    return held


def test_an_opened_trace_fills_the_boxes_and_closing_it_puts_back_what_was_typed(session: dict[str, Any]) -> None:
    open_trace._show(Drawn(av.scratch("Another sentence ran")))
    assert (session["text"], session["second"]) == ("Another sentence ran", "")
    open_trace._show(Drawn(av.scratch("And a third")))
    assert session["text"] == "And a third"
    open_trace.close()
    assert {name: session[name] for name in TYPED} == TYPED


def test_what_is_typed_over_an_opened_trace_stays(session: dict[str, Any]) -> None:
    open_trace._show(Drawn(av.scratch("Another sentence ran")))
    session["text"] = "Typed over it"
    open_trace.close()
    assert (session["text"], session["second"], session["layer"]) == ("Typed over it", "a second", 1)


def test_a_run_that_was_taken_away_opens_again(tmp_path: Path) -> None:
    trace = av.scratch("The bank of the river")
    (tmp_path / "run").write_bytes(trace_bytes(trace))
    found = av.Trace.load(tmp_path / "run")
    assert found.provenance.text == "The bank of the river"
    assert (found.weights(0, 1) == trace.weights(0, 1)).all()


def test_the_button_for_the_trace_hands_out_what_open_a_trace_shows(tmp_path: Path) -> None:
    address = "model=scratch&text=the+bank+of+the+river&head=1"
    (tmp_path / "run.safetensors").write_bytes(Screen().open(f"/?{address}").download("Trace (safetensors)"))
    found, own = av.Trace.load(tmp_path / "run.safetensors"), Scratch().trace("the bank of the river")
    assert found.provenance.text == "the bank of the river" and torch.equal(found.weights(0, 1), own.weights(0, 1))
    other = Screen().open("/?model=scratch&text=something+else")
    other.open_trace(tmp_path / "run.safetensors")
    assert "Shown from a file" in other.words
    assert other.picker("Sentence").value == "the bank of the river"


def test_the_tensors_of_one_head_are_refused_in_words_that_say_what_to_take(tmp_path: Path) -> None:
    (tmp_path / "tensors").write_bytes(to_safetensors(av.scratch("The bank"), 0, 0))
    with pytest.raises(TraceError, match=r"the numbers of one head, as “Tensors .*whole trace, as “Trace \(safetens"):
        av.Trace.load(tmp_path / "tensors")


def test_a_trace_of_some_layers_is_refused_in_words_that_say_which_it_keeps(tmp_path: Path) -> None:
    av.load("induction").trace("a b a b", layers=[1]).save(tmp_path / "some.safetensors")
    screen = Screen().open("/?model=scratch&text=something")
    screen.open_trace(tmp_path / "some.safetensors")
    assert "keeps only some layers of the decoder (layer 1 of 0 to 1)" in screen.words
    assert "Shown from a file" not in screen.words


@pytest.fixture
def visit(monkeypatch: pytest.MonkeyPatch) -> tuple[MemoryUploadedFileManager, dict[str, Any]]:
    """What Streamlit keeps of uploads, and of a visitor."""
    manager, held = (
        MemoryUploadedFileManager("/upload"),
        {"layer": 0, "head": 0, "stream": None, "text": "", "second": ""},
    )
    context = SimpleNamespace(uploaded_file_mgr=manager, session_id="a visitor")
    monkeypatch.setattr(open_trace, "get_script_run_ctx", lambda: context)
    monkeypatch.setattr(open_trace.st, "session_state", held)
    monkeypatch.setattr(open_trace.st, "rerun", lambda: None)
    return manager, held


def upload(manager: MemoryUploadedFileManager, content: bytes) -> UploadedFile:
    record = UploadedFileRec(f"file {len(content)}", "one.safetensors", "", content)
    manager.add_file("a visitor", record)
    return UploadedFile(record, FileURLs())


def test_what_was_uploaded_is_let_go_whether_it_is_opened_or_refused(
    visit: tuple[MemoryUploadedFileManager, dict[str, Any]],
) -> None:
    manager, held = visit
    good, bad = trace_bytes(av.scratch("the bank of the river")), b"no trace at all"
    for content, refused in ((good, False), (bad, True)):
        uploaded = upload(manager, content)
        assert manager.get_files("a visitor", [uploaded.file_id])
        open_trace._open(uploaded)
        assert not manager.get_files("a visitor", [uploaded.file_id])
        assert uploaded.closed
        assert ("refused" in held) == refused
    assert held["opened"].trace.provenance.text == "the bank of the river"


def test_without_a_folder_for_temporary_files_that_is_said_in_plain_words(
    visit: tuple[MemoryUploadedFileManager, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    manager, held = visit
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere/at/all")
    open_trace._open(upload(manager, b"anything"))
    assert held["refused"] == "this machine has no room for the file while it is read (No such file or directory)"


def test_a_run_with_a_change_is_told_as_one(tmp_path: Path) -> None:
    path = tmp_path / "run.safetensors"
    shipped("coreference").trace("the ball hit the window", edits=[av.Ablate(1, 2)]).save(path)
    screen = Screen().open("/?model=scratch&text=the+bank").open_trace(path)
    assert "It ran with a change: ablate: the output becomes 0 in layer 1, head 2" in screen.words
