"""A trace from a file in place of a model's run: the boxes say what ran, and come back when it is closed."""

import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from streamlit.proto.Common_pb2 import FileURLs
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.uploaded_file_manager import UploadedFile, UploadedFileRec

import attention_viz as av
from attention_viz.errors import TraceError
from attention_viz.scratch.model import Scratch
from attention_viz.trace.export import to_safetensors
from attention_viz.ui import visit
from attention_viz.ui.parts import open_trace
from attention_viz.ui.parts.exports import trace_bytes
from attention_viz.ui.selection import SHARED, FileClosed, FileOpened, Picked, Selection, update
from attention_viz.ui.visit import Visit
from tests.shipped import shipped
from tests.ui.screens import Screen

TYPED = {"text": "What was typed", "second": "a second", "target": "", "layer": 1, "head": 2, "stream": None}
ANOTHER = FileOpened(1, {"text": "Another sentence ran", "second": "", "target": ""})


def test_an_opened_trace_fills_the_boxes_and_closing_it_puts_back_what_was_typed() -> None:
    shown = update(update(Selection(), Picked(SHARED, TYPED)), ANOTHER)
    assert (shown.shared.text, shown.shared.second) == ("Another sentence ran", "")
    shown = update(shown, FileOpened(2, {"text": "And a third", "second": "", "target": ""}))
    assert shown.shared.text == "And a third"
    shown = update(shown, FileClosed())
    assert {name: getattr(shown.shared, name) for name in TYPED} == TYPED and not shown.file


def test_what_is_typed_over_an_opened_trace_stays() -> None:
    shown = update(update(Selection(), Picked(SHARED, TYPED)), ANOTHER)
    shown = update(shown, Picked(SHARED, {"text": "Typed over it"}))
    assert (shown.shared.text, shown.shared.second, shown.shared.layer) == ("Typed over it", "a second", 1)
    assert not shown.file


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
    with pytest.raises(
        TraceError, match=r"the numbers of one head, from “Tensors .*whole trace, from “Trace \(safetens"
    ):
        av.Trace.load(tmp_path / "tensors")


def test_a_trace_of_some_layers_is_refused_in_words_that_say_which_it_keeps(tmp_path: Path) -> None:
    av.load("induction").trace("a b a b", layers=[1]).save(tmp_path / "some.safetensors")
    screen = Screen().open("/?model=scratch&text=something")
    screen.open_trace(tmp_path / "some.safetensors")
    assert "has only some layers of the decoder (layer 1 of 0 to 1)" in screen.words
    assert "Shown from a file" not in screen.words


@pytest.fixture
def visitor(monkeypatch: pytest.MonkeyPatch) -> tuple[MemoryUploadedFileManager, Visit]:
    """What Streamlit keeps of uploads, and a visit."""
    manager, here = MemoryUploadedFileManager("/upload"), Visit()
    context = SimpleNamespace(uploaded_file_mgr=manager, session_id="a visitor")
    monkeypatch.setattr(open_trace, "get_script_run_ctx", lambda: context)
    monkeypatch.setattr(visit, "here", lambda: here)
    monkeypatch.setattr(open_trace.st, "rerun", lambda: None)
    return manager, here


def upload(manager: MemoryUploadedFileManager, content: bytes) -> UploadedFile:
    record = UploadedFileRec(f"file {len(content)}", "one.safetensors", "", content)
    manager.add_file("a visitor", record)
    return UploadedFile(record, FileURLs())


def test_what_was_uploaded_is_let_go_whether_it_is_opened_or_refused(
    visitor: tuple[MemoryUploadedFileManager, Visit],
) -> None:
    manager, here = visitor
    good, bad = trace_bytes(av.scratch("the bank of the river")), b"no trace at all"
    for content, refused in ((good, False), (bad, True)):
        uploaded = upload(manager, content)
        assert manager.get_files("a visitor", [uploaded.file_id])
        open_trace._open(uploaded)
        assert not manager.get_files("a visitor", [uploaded.file_id])
        assert uploaded.closed
        assert bool(here.memories[open_trace._Opening].refused) == refused
    assert here.file is not None and here.file.trace.provenance.text == "the bank of the river"


def test_without_a_folder_for_temporary_files_that_is_said_in_plain_words(
    visitor: tuple[MemoryUploadedFileManager, Visit], monkeypatch: pytest.MonkeyPatch
) -> None:
    manager, here = visitor
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere/at/all")
    open_trace._open(upload(manager, b"anything"))
    refused = here.memories[open_trace._Opening].refused
    assert refused == "the server has no room to read the file (No such file or directory)"


def test_a_run_with_a_change_is_told_as_one(tmp_path: Path) -> None:
    path = tmp_path / "run.safetensors"
    shipped("coreference").trace("the ball hit the window", edits=[av.Ablate(1, 2)]).save(path)
    screen = Screen().open("/?model=scratch&text=the+bank").open_trace(path)
    assert "It ran with a change: ablate: the output becomes 0 in layer 1, head 2" in screen.words
