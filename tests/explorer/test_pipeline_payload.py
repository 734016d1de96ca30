"""What the pipeline is sent: the recorded numbers of the rows that it shows, and no more of a long text."""

from typing import Any

import numpy
import pytest
import torch

from attention_viz.circuits.layers.ending import ending
from attention_viz.circuits.layers.layer_flow import layer_flow
from attention_viz.explorer.packet import read_packet
from attention_viz.explorer.pipeline_payload import HEAVIEST, LANES, STRIP, pack_pipeline, rest_id, shown_keys
from attention_viz.explorer.rest_payload import pack_rest
from attention_viz.operation.shapes import side_by_side
from attention_viz.steps.head import open_head
from attention_viz.steps.mixing import open_mixer
from attention_viz.steps.steps import STEPS, steps_of
from tests.explorer.opened_heads import LONG, OF_A_SCORE, every_term, long_text, mixed
from tests.shipped import MINILM, shipped


def unpacked(payload: bytes) -> tuple[dict[str, Any], dict[str, numpy.ndarray]]:
    """The header, and each array in its shape."""
    header, body = read_packet(payload)
    places = header["arrays"].items()
    return header, {
        name: numpy.frombuffer(body[at : at + size], "<f4").reshape(rows, wide)
        for name, ((at, size), rows, wide) in places
    }


def test_of_a_short_text_all_rows_are_sent_as_recorded_whatever_pair_is_chosen() -> None:
    opened = every_term()
    packed = pack_pipeline(opened, 3, 1)
    assert packed == pack_pipeline(opened, 0, 4)
    header, arrays = unpacked(packed)
    assert header["whole"] and header["queries"] == header["keys"] == list(range(5))
    assert [name for name, _ in header["steps"]] == list(steps_of(opened))
    assert OF_A_SCORE[-1] == "allowed"
    for name in (one for one in (*OF_A_SCORE[:-1], "weights", "output") if one in steps_of(opened)):
        numpy.testing.assert_array_equal(arrays[name], STEPS[name].function(opened))
    for name in ("query", "key", "value", "masked"):
        numpy.testing.assert_array_equal(arrays[name], getattr(opened.attention, name))
    numpy.testing.assert_array_equal(arrays["heads"], side_by_side(opened.entry.attention.output))
    sinks = opened.entry.attention.sinks
    assert sinks is not None and header["sink"] == pytest.approx(sinks[4].item())


def test_a_wide_vector_is_sent_in_parts_each_its_number_furthest_from_0() -> None:
    entry, (_, arrays) = every_term().entry, unpacked(pack_pipeline(every_term(), 3, 1))
    for name, rows in (("embeddings", entry.embeddings), ("entering", entry.embeddings), ("joined", entry.joined)):
        assert rows is not None and arrays[name].shape == (5, STRIP)
        for part, number in enumerate(arrays[name][2]):
            under = rows[2, part * 200 // STRIP : (part + 1) * 200 // STRIP]
            assert number == under[under.abs().argmax()]


def test_what_the_head_adds_to_the_joined_vector_is_sent_with_its_part_of_it_where_w_o_is_known() -> None:
    opened, (_, arrays) = every_term(), unpacked(pack_pipeline(every_term(), 3, 1))
    adds, joined = opened.adds, opened.entry.joined
    assert adds is not None and joined is not None
    for part, number in enumerate(arrays["adds"][2]):
        under = adds[2, part * 200 // STRIP : (part + 1) * 200 // STRIP]
        assert number == under[under.abs().argmax()]
    part = float(adds[2] @ joined[2] / (joined[2] @ joined[2]))
    numpy.testing.assert_allclose(arrays["adding"][2], [adds[2].norm(), joined[2].norm(), part], rtol=1e-5)
    assert not {"adds", "adding"} & set(unpacked(pack_pipeline(long_text(), 3, 1))[1])


def test_of_a_long_text_the_row_is_sent_and_what_has_no_lane_as_one() -> None:
    opened = long_text()
    payload = pack_pipeline(opened, 3, 1)
    header, arrays = unpacked(payload)
    weights = opened.weights[3]
    assert not header["whole"] and header["queries"] == [3] and len(payload) < 60_000
    assert set(weights.topk(HEAVIEST).indices.tolist()) | {1} == set(header["keys"])
    numpy.testing.assert_allclose(arrays["weights"][0], weights, rtol=1e-5, atol=1e-9)
    shown = weights[header["keys"]].numpy() @ arrays["value"]
    numpy.testing.assert_allclose(shown + arrays["rest"][0], arrays["output"][0], atol=1e-5)


@pytest.mark.parametrize("model", ("recall-mamba", "recall"))
def test_of_a_layer_without_a_softmax_all_rows_are_sent_as_recorded(model: str) -> None:
    opened = mixed(model)
    trace, count = opened.trace, opened.mixer.shape[-1]
    header, arrays = unpacked(pack_pipeline(opened, 5, 2))
    assert header["whole"] and header["queries"] == header["keys"] == list(range(count))
    assert pack_pipeline(opened, 5, 2) == pack_pipeline(opened, 3, 1)
    numpy.testing.assert_allclose(arrays["weights"], trace.weights(0, 0, "mixer"), atol=1e-6)
    # What the model's own run made: the weights by the values are the head's output.
    whole = trace.attention(0, "mixer").output
    numpy.testing.assert_allclose(arrays["weights"] @ arrays["value"], whole[0], atol=1e-4)
    numpy.testing.assert_allclose(arrays["heads"], side_by_side(whole), atol=1e-6)
    assert not numpy.allclose(arrays["weights"] @ arrays["value"], whole[1], atol=1e-2)
    last = arrays[f"stage {header['mixer']['stages'][-1][0]}"]
    lower = numpy.tril(numpy.ones((count, count), bool))
    numpy.testing.assert_allclose(last[lower], arrays["weights"][lower], atol=1e-5)
    products = arrays["query"] @ arrays["key"].T * header["scale"]
    numpy.testing.assert_allclose(arrays["masked"][lower], products[lower], atol=1e-4)
    assert numpy.isneginf(arrays["masked"][~lower]).all()
    assert rest_id(opened) == header["rest"] == rest_id(open_mixer(trace, 0, 1))


def test_of_a_long_text_without_a_softmax_the_row_is_sent() -> None:
    trace = shipped("recall-mamba").trace(" ".join(["hugo pink ,"] * 21))
    opened = open_mixer(trace, 1, 1)
    header, arrays = unpacked(pack_pipeline(opened, 60, 3))
    assert not header["whole"] and header["queries"] == [60]
    weights = trace.weights(1, 1, "mixer")[60]
    assert set(weights.abs().topk(HEAVIEST).indices.tolist()) | {3} == set(header["keys"])
    made = weights[header["keys"]].numpy() @ arrays["value"] + arrays["rest"][0]
    numpy.testing.assert_allclose(made, arrays["output"][0], atol=1e-4)


def test_a_lane_is_for_each_key_of_a_short_text_and_else_for_the_heaviest_and_the_chosen() -> None:
    assert shown_keys(torch.ones(LANES), 0) == list(range(LANES))
    weights = torch.arange(LONG) / LONG
    assert shown_keys(weights, 4) == [4, *range(LONG - HEAVIEST, LONG)]


def test_the_rest_of_a_layer_is_sent_with_lengths_and_each_sums_largest_addition() -> None:
    trace = shipped(MINILM).trace("The bank of the river was flooded")
    flow = layer_flow(trace, 2)
    end = ending(trace, "encoder", [4, 2])
    header, arrays = unpacked(pack_rest("here", flow, end, [4, 2], trace.layer_numbers(), 2))
    assert [label for label, _ in header["strips"]] == [
        *("layer’s input", "heads joined", "sum", "after the norm", "MLP", "sum", "layer’s output")
    ]
    assert (header["order"], header["after"], header["end"]["kind"]) == ("post-norm", [3, 4, 5], "sentence")
    rows = [flow.entered, *(one for part in flow.parts for one in (part.added, part.total, part.left))]
    for at, whole in enumerate(rows):
        numpy.testing.assert_allclose(arrays["lengths"][:, at], whole[[4, 2]].norm(dim=-1), rtol=1e-5)
        for part, number in enumerate(arrays[f"strip {at}"][1]):
            under = whole[2, part * 384 // STRIP : (part + 1) * 384 // STRIP]
            assert number == under[under.abs().argmax()]
    dimension, before, added, after = arrays["most"][1, 4:]
    assert added == flow.parts[1].added[2].abs().max() * numpy.sign(added) == flow.parts[1].added[2, int(dimension)]
    assert before == flow.parts[0].left[2, int(dimension)] and before + added == pytest.approx(after, abs=1e-6)


def test_the_rest_of_a_layer_has_one_name_for_all_heads_and_another_for_another_text_that_it_depends_on() -> None:
    model = shipped("translation")
    sources = ("the black cat sleeps", "the small dog eats")
    traces = [model.trace(text, target="le chat noir") for text in sources]
    # The first layer of the decoder has the same queries for both, and another output.
    queries = [trace.attention(0, "decoder").query for trace in traces]
    assert torch.equal(*queries)
    names = [rest_id(open_head(trace, 0, 0, stream="decoder")) for trace in traces]
    assert names[0] != names[1]
    assert rest_id(open_head(traces[0], 0, 1, stream="decoder")) == names[0]
    assert rest_id(open_head(traces[0], 0, 0, stream="encoder")) != names[0]
