"""A chat's segments for the browser: their names and each head's weights between them."""

import numpy as np
import pytest
import torch

import attention_viz as av
from attention_viz.explorer.axes import MOST_SEGMENTS_DRAWN
from attention_viz.explorer.packet import read_packet
from attention_viz.explorer.payload import pack
from attention_viz.explorer.terms import beginning_of, pack_head

COUNT = 100
SEGMENTS = [av.Segment("user", 1, 40), av.Segment("thinking", 45, 60), av.Segment("assistant", 62, 100)]


def chat() -> av.Trace:
    torch.manual_seed(0)
    query, key, value = ([one[at] for one in torch.randn(2, 3, 3, COUNT, 8)] for at in range(3))
    return av.Trace.from_qkv(query, key, value, av.masks.causal(COUNT)).with_segments(SEGMENTS)


def numbers(body: bytes | memoryview, place: list[int]) -> np.ndarray:
    return np.frombuffer(body, "<f4", place[1] // 4, place[0])


def test_every_head_s_weights_between_segments_are_the_table_s() -> None:
    trace = chat()
    header, body = read_packet(pack(trace, findings=()))
    assert header["segments"] == {
        "stream": "decoder",
        "spans": [["user", 1, 40], ["thinking", 45, 60], ["assistant", 62, 100]],
        "rows": ["user", "thinking", "assistant", "other"],
        "columns": ["sink", "user", "thinking", "assistant", "other"],
    }
    table = av.segment_table(trace)
    for number, layer in enumerate(header["streams"][0]["layers"]):
        wanted = table[table.layer == number].weight.to_numpy()
        assert numbers(body, layer["segments"]) == pytest.approx(wanted, abs=1e-6)


def test_a_long_text_s_head_brings_its_own_with_its_maps() -> None:
    trace = chat()
    packed = pack_head(trace, "decoder", 1, 2, "this")
    header, body = read_packet(beginning_of(packed))
    table = av.segment_table(trace, layers=[1])
    wanted = table[table["head"] == 2].weight.to_numpy()
    assert numbers(body, header["entry"]["segments"]) == pytest.approx(wanted, abs=1e-6)
    saved, body = read_packet(pack(trace, terms=[("decoder", 1)], findings=()))
    entry = saved["streams"][0]["layers"][1]["terms"]["2"]
    assert numbers(body, entry["segments"]) == pytest.approx(wanted, abs=1e-6)


def test_texts_without_segments_and_with_too_many_have_none() -> None:
    many = [av.Segment("user", at, at + 1) for at in range(MOST_SEGMENTS_DRAWN + 1)]
    for trace in (chat().with_segments([]), chat().with_segments(many)):
        header, _ = read_packet(pack(trace, findings=()))
        assert "segments" not in header and "segments" not in header["streams"][0]["layers"][0]
        assert "segments" not in read_packet(pack_head(trace, "decoder", 0, 0, "this"))[0]["entry"]
