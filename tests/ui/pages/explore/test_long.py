"""Explore with a long text: its head is drawn once, by the explorer, which zooms down to the numbers."""

import json

import pytest

from attention_viz.explorer import payload
from attention_viz.serving import runs
from attention_viz.serving.cache import SharedCache
from attention_viz.ui.parts import explorer
from attention_viz.ui.runner import runner
from attention_viz.ui.selection import Clicked, update
from tests.ui.screens import Screen

PLACE = "/?model=induction&text=moon+cheese+frog+ring+moon+cheese&layer=1&head=1"


def test_the_maps_of_a_head_that_the_reader_chose_come_before_the_page_has_run_again_and_its_numbers_after(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(payload, "LONG", 10)
    monkeypatch.setattr(runs, "TRACES", SharedCache(10**9, lambda run: run.trace.nbytes))
    done: list[str] = []
    head_of, show_header = explorer.head_of, runner.show_header

    def note_head(run: runs.Run, stream: str, layer: int, head: int) -> bytes | None:
        done.append(f"head {layer}.{head} of the {stream}")
        return head_of(run, stream, layer, head)

    def note_header() -> None:
        done.append("header")
        show_header()

    monkeypatch.setattr(explorer, "head_of", note_head)
    monkeypatch.setattr(runner, "show_header", note_header)
    screen = Screen().open(PLACE)
    assert done == ["header", "head 1.1 of the decoder"]
    # What the component does where its head is clicked: it tells the choice, which becomes the page's.
    choice = {"stream": "decoder", "layer": 0, "head": 1, "serial": 1}
    monkeypatch.setattr(explorer, "chosen", lambda: choice)
    here = screen.app.session_state["visit"]
    here.selection = update(here.selection, Clicked(0, 1, "decoder"))
    done.clear()
    screen.run()
    assert done == ["head 0.1 of the decoder", "header", "head 0.1 of the decoder"]
    packets = [one.proto for one in screen.all("bidi_component") if "-packet" in one.proto.id]
    assert len(packets) == 1
    header = json.loads(packets[0].bytes[4 : 4 + int.from_bytes(packets[0].bytes[:4], "little")])
    assert (header["layer"], header["head"]) == (0, 1)
    (beginning,) = [one.proto.bytes for one in screen.all("bidi_component") if "-beginning" in one.proto.id]
    assert packets[0].bytes.startswith(beginning) and len(beginning) < len(packets[0].bytes)
    done.clear()
    screen.run()
    assert done == ["header", "head 0.1 of the decoder"]
