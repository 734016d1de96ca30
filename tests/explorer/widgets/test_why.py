"""The Why widget as an object in Python: its numbers are those of `decompose`."""

from pathlib import Path

import pytest

import attention_viz as av
from attention_viz.explorer.packet import read_packet
from attention_viz.explorer.widgets.why import WhyWidget

TEXT = "moon cheese frog ring moon cheese"


@pytest.fixture(scope="module")
def model() -> av.AttentionModel:
    model = av.load("induction")
    assert isinstance(model, av.AttentionModel)
    return model


@pytest.fixture(scope="module")
def trace(model: av.AttentionModel) -> av.Trace:
    return model.trace(TEXT)


def widget_of(model: av.AttentionModel, trace: av.Trace, of: av.Logit | av.Score) -> WhyWidget:
    widget = av.why(model, trace, of)
    assert isinstance(widget, WhyWidget)
    return widget


def test_its_heads_and_total_are_those_of_the_decomposition(model: av.AttentionModel, trace: av.Trace) -> None:
    of = av.Logit("frog", -1, "ring")
    widget = widget_of(model, trace, of)
    _ = widget.model_id
    header = read_packet(widget._data)[0]
    found = av.decompose(model, trace, of)
    heads = found.table[found.table["kind"] == "head"].groupby(["layer", "head"])["contribution"].sum()
    assert (header["more"], header["less"]) == ("“frog”", "“ring”")
    assert header["total"] == pytest.approx(found.total) and len(heads) == 8
    for (layer, head), contribution in heads.items():
        assert header["map"][layer][head] == pytest.approx(contribution, abs=2e-6)
    best = heads.abs().idxmax()
    assert (widget.selection["layer"], widget.selection["head"]) == best
    (message,) = widget._messages
    assert (message["layer"], message["head"], message["by"]) == (*best, "wrote")
    widget.close()


def test_a_press_on_a_head_is_pythons_and_back(model: av.AttentionModel, trace: av.Trace) -> None:
    widget = widget_of(model, trace, av.Score(1, 2, 5, 2))
    _ = widget.model_id
    assert read_packet(widget._data)[0]["pair"] == [1, 5, 2]
    heard = []
    widget.on_select(heard.append)
    widget._handle_custom_msg({"kind": "chosen", "name": "choice", "value": {"layer": 0, "head": 3, "serial": 4}}, [])
    assert [(one["layer"], one["head"]) for one in heard] == [(0, 3)]
    assert [(one["head"], one["seen"]) for one in widget._messages] == [(3, 4)]
    widget.selection = {"head": 1}
    assert widget._messages[0]["head"] == 1
    widget.close()


def test_a_logit_alone_is_compared_with_the_likeliest_other_word(model: av.AttentionModel, trace: av.Trace) -> None:
    token = int(trace.output[-1].argmax())
    header = read_packet(widget_of(model, trace, av.Logit(token))._packed())[0]
    assert header["less"] and header["more"] != header["less"] and header["total"] > 0


def test_wrong_numbers_and_traces_are_refused_by_name(
    model: av.AttentionModel, trace: av.Trace, tmp_path: Path
) -> None:
    of = av.Score(1, 2, 5, 2)
    with pytest.raises(ValueError, match=r"an av\.Score or an av\.Logit; got Probability"):
        av.why(model, trace, av.Probability("frog"))  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="unknown side 'value'"):
        av.why(model, trace, of, side="value")  # pyright: ignore[reportArgumentType]
    with pytest.raises(av.ShapeError, match="99"):
        av.why(model, trace, av.Score(1, 2, 99, 2))
    with pytest.raises(av.ShapeError, match="-1"):
        av.why(model, trace, av.Score(1, 2, 5, -1))
    trace.save(tmp_path / "file.safetensors")
    with pytest.raises(av.TraceError, match="file"):
        av.why(model, av.Trace.load(tmp_path / "file.safetensors"), of)
    other = av.load("coreference")
    assert isinstance(other, av.AttentionModel)
    with pytest.raises(av.TraceError, match="accepts only its own traces"):
        av.why(other, trace, of)
