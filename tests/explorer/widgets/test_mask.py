"""The mask's widget as an object in Python: what it runs, what it sends, and what it refuses."""

import base64
from typing import Any

import numpy
import pytest
import torch

import attention_viz as av
from attention_viz.explorer.mask_payload import read_bits, written_bits
from attention_viz.explorer.packet import read_packet
from attention_viz.explorer.widgets.mask import PaintedMaskWidget

TEXT = "moon cheese frog ring moon cheese"


@pytest.fixture(scope="module")
def model() -> av.AttentionModel:
    model = av.load("induction")
    assert isinstance(model, av.AttentionModel)
    return model


@pytest.fixture(scope="module")
def trace(model: av.AttentionModel) -> av.Trace:
    return model.trace(TEXT)


def widget_of(model: av.AttentionModel, trace: av.Trace, **opening: Any) -> PaintedMaskWidget:
    widget = av.mask(model, trace, **opening)
    assert isinstance(widget, PaintedMaskWidget)
    return widget


def choose(widget: PaintedMaskWidget, serial: int, **changes: Any) -> None:
    """What the component sends for a choice of the reader's."""
    choice = {"mask": "none", "window": 2, "prefix": 2, "in_layer": None, "in_head": None, "cells": None}
    place = {"layer": widget.selection["layer"], "head": widget.selection["head"], "query": None, "key": None}
    value = {**choice, **place, "weights": "difference", **changes, "serial": serial}
    widget._handle_custom_msg({"kind": "chosen", "name": "choice", "value": value}, [])


def weights_in(message: dict[str, Any], shape: tuple[int, int]) -> numpy.ndarray:
    return numpy.frombuffer(base64.b64decode(message["run"]["weights"]), "<u2").reshape(shape) / 65_534


def test_it_sends_the_run_with_the_mask_that_python_gives(model: av.AttentionModel, trace: av.Trace) -> None:
    count = len(trace.query_tokens())
    allowed = av.masks.sliding_window(count, 2)
    widget = widget_of(model, trace, layer=1, head=2, allowed=allowed)
    _ = widget.model_id
    (message,) = widget._messages
    header = read_packet(widget._data)[0]
    assert message["board"] == header["id"] and (header["layer"], header["head"]) == (1, 2)
    assert numpy.array_equal(read_bits(message["added"], count), allowed.numpy())
    # The run that anybody makes with the edit.
    expected = model.trace(TEXT, edits=[av.Allow(allowed)])
    assert torch.equal(widget.trace.weights(1, 2), expected.weights(1, 2))
    assert not torch.equal(expected.weights(1, 2), trace.weights(1, 2))
    numpy.testing.assert_allclose(weights_in(message, (count, count)), expected.weights(1, 2), atol=1e-5)
    assert not numpy.array_equal(read_bits(message["run"]["open"], count), numpy.tril(numpy.ones((count, count))))
    assert "with a mask" in widget.saved_picture()[1]
    widget.close()


def test_a_mask_that_the_reader_paints_runs_and_is_pythons(model: av.AttentionModel, trace: av.Trace) -> None:
    count = len(trace.query_tokens())
    widget = widget_of(model, trace, layer=1, head=2)
    _ = widget.model_id
    assert widget.allowed is None and widget.trace is trace and widget._messages[0]["choice"]["mask"] == "none"
    blocked = numpy.zeros((count, count), dtype=bool)
    blocked[5, 1] = True
    choose(widget, 7, mask="drawn", cells=written_bits(blocked), in_layer=1, in_head=2, query=5, key=1)
    (message,) = widget._messages
    assert message["seen"] == 7 and message["choice"]["mask"] == "drawn"
    allowed = widget.allowed
    assert allowed is not None and numpy.array_equal(~allowed.numpy(), blocked)
    assert widget.selection["query"] == 5 and widget.selection["key"] == 1
    expected = model.trace(TEXT, edits=[av.Block(5, 1, layer=1, head=2)])
    assert torch.equal(widget.trace.weights(1, 2), expected.weights(1, 2)) and widget.trace.weights(1, 2)[5, 1] == 0
    # It acts in that head only.
    assert torch.equal(widget.trace.weights(1, 1), trace.weights(1, 1))
    choose(widget, 8, mask="causal", weights="after")
    (message,) = widget._messages
    assert message["weights"] == "after" and {one for row in message["run"]["heads"] for one in row} == {0.0}
    widget.allowed = None
    assert widget.trace is trace and widget._messages[0]["choice"]["mask"] == "none"
    widget.close()


@pytest.mark.parametrize(
    "wrong",
    [{"mask": "drawn", "cells": "AA"}, {"mask": "drawn", "cells": 3}, {"mask": "x"}, {"mask": "padding"}],
    ids=str,
)
def test_what_is_no_mask_of_this_text_is_none(
    model: av.AttentionModel, trace: av.Trace, wrong: dict[str, object]
) -> None:
    widget = widget_of(model, trace, allowed=av.masks.sliding_window(len(trace.query_tokens()), 1))
    choose(widget, 1, **wrong)
    assert widget.allowed is None and widget.trace is trace


def test_numbers_of_a_browsers_that_do_not_fit_are_bounded(model: av.AttentionModel, trace: av.Trace) -> None:
    widget = widget_of(model, trace)
    choose(widget, 1, mask="window", window=10**30, in_layer=9, in_head=4)
    assert widget.allowed is not None and bool(widget.allowed.all())
    choose(widget, 2, mask="prefix", prefix=10**30, in_layer=1, in_head=99)
    assert widget.allowed is not None and bool(widget.allowed.all())


def test_another_streams_tokens_have_no_mask_yet(many_kinds_of_streams: tuple[av.AttentionModel, av.Trace]) -> None:
    model, trace = many_kinds_of_streams
    count = len(trace.query_tokens("encoder"))
    widget = widget_of(model, trace, stream="encoder", allowed=av.masks.causal(count))
    edit = av.Allow(av.masks.causal(count), stream="encoder")
    expected = model.trace("the red cat sleeps", target="le chat rouge", edits=[edit])
    assert torch.equal(widget.trace.weights(0, 0, "cross"), expected.weights(0, 0, "cross"))
    widget.selection = {"stream": "cross"}
    assert widget.allowed is None and widget.trace is trace
    _ = widget.model_id
    assert widget._messages[0]["locked"].startswith("Cross-attention reads two texts")
    with pytest.raises(av.TraceError, match="Cross-attention reads two texts"):
        widget.allowed = av.masks.causal(count)
    widget.close()


@pytest.fixture(scope="module")
def many_kinds_of_streams() -> tuple[av.AttentionModel, av.Trace]:
    model = av.load("translation")
    assert isinstance(model, av.AttentionModel)
    return model, model.trace("the red cat sleeps")


def test_wrong_masks_and_traces_are_refused_by_name(model: av.AttentionModel, trace: av.Trace, tmp_path: Any) -> None:
    count = len(trace.query_tokens())
    widget = widget_of(model, trace)
    for wrong, reason in (
        (torch.ones(2, 2, dtype=torch.bool), f"the mask of this text is {count} × {count}; got \\(2, 2\\)"),
        (torch.ones(count, count), "allowed must be boolean"),
    ):
        with pytest.raises(av.ShapeError, match=reason):
            widget.allowed = wrong
    with pytest.raises(av.TraceError, match="plain text, without edits"):
        av.mask(model, model.trace(TEXT, edits=[av.Ablate(0, 1)]))
    trace.save(tmp_path / "file.safetensors")
    with pytest.raises(av.TraceError, match="comes from a file"):
        av.mask(model, av.Trace.load(tmp_path / "file.safetensors"))
    other = av.load("coreference")
    assert isinstance(other, av.AttentionModel)
    with pytest.raises(av.TraceError, match="accepts only its own traces"):
        av.mask(other, trace)
