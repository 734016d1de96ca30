"""The segment table against sums over whole matrices."""

import dataclasses
import math

import pytest
import torch

import attention_viz as av
from attention_viz.analysis.chat import table
from attention_viz.analysis.chat.table import SegmentAxis, segment_weights

COUNT, HEADS = 40, 4
SEGMENTS = (
    av.Segment("system", 2, 5),
    av.Segment("user", 7, 15),
    av.Segment("thinking", 18, 25),
    av.Segment("assistant", 26, 33),
    av.Segment("user", 36, 40),
)
NAMES = ["system", "user 1", "thinking", "assistant", "user 2", "other"]


def chat(**terms: object) -> av.Trace:
    torch.manual_seed(1)
    layers = [torch.randn(3, HEADS, COUNT, 8) for _ in range(2)]
    query, key, value = ([one[at] * 2 for one in layers] for at in range(3))
    given = {"allowed": av.masks.causal(COUNT), **terms}
    return av.Trace.from_qkv(query, key, value, **given).with_segments(SEGMENTS)  # pyright: ignore[reportArgumentType]


def naive(trace: av.Trace, layer: int, head: int) -> dict[tuple[str, str], float]:
    """Add up the whole matrix, cell by cell."""
    weights, members = trace.weights(layer, head).double(), {name: list[int]() for name in NAMES}
    for at in range(COUNT):
        inside = [name for name, one in zip(NAMES, SEGMENTS, strict=False) if one.start <= at < one.end]
        members[inside[0] if inside else "other"].append(at)
    found = dict[tuple[str, str], float]()
    for row, rows in members.items():
        found[row, "sink"] = float(weights[rows, 0].mean())
        for column, keys in members.items():
            cells = [[float(weights[at, key]) for key in keys if key] for at in rows]
            found[row, column] = sum(map(sum, cells)) / len(rows)
    return found


@pytest.mark.parametrize(
    "terms",
    [
        {},
        {"allowed": None, "stream": "encoder"},
        {"softcap": 3.0},
        {"bias": torch.linspace(-2, 0, COUNT).expand(HEADS, COUNT, COUNT)},
        {"allowed": av.masks.combine(av.masks.causal(COUNT), av.masks.sliding_window(COUNT, 9))},
    ],
    ids=["causal", "open", "softcap", "bias", "window"],
)
def test_the_table_is_the_sum_over_whole_matrices(terms: dict[str, object]) -> None:
    trace = chat(**terms)
    found = av.segment_table(trace)
    assert list(found.columns) == ["layer", "head", "from_segment", "to_segment", "weight"]
    assert len(found) == 2 * HEADS * 6 * 7
    for layer in range(2):
        for head in range(HEADS):
            one = found[(found.layer == layer) & (found["head"] == head)]
            pairs = {(row, column): weight for row, column, weight in one.iloc[:, 2:].itertuples(index=False)}
            assert pairs == pytest.approx(naive(trace, layer, head), abs=1e-6)
    sums = found.groupby(["layer", "head", "from_segment"]).weight.sum()
    assert (sums - 1).abs().max() < 1e-6


def test_tiles_equal_the_fused_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = chat()
    axis, call = SegmentAxis.of(trace), trace.attention(1)
    fused = segment_weights(call, axis)
    monkeypatch.setattr(table, "fusible", lambda _: False)  # pyright: ignore[reportUnknownLambdaType] -- any call
    monkeypatch.setattr(table, "AT_ONCE", 7 * HEADS * COUNT)
    torch.testing.assert_close(segment_weights(call, axis), fused, atol=1e-6, rtol=0)
    open_call = dataclasses.replace(call, allowed=None)
    torch.testing.assert_close(
        segment_weights(open_call, axis)[0, 0, 0], open_call.weights[0, 2:5, 0].mean().double(), atol=1e-6, rtol=0
    )


def test_more_segments_than_the_keys_are_wide_are_added_up_in_turns() -> None:
    many = [av.Segment("user", at, at + 1) for at in range(COUNT)]
    found = segment_weights(chat().attention(0), SegmentAxis.of(chat().with_segments(many)))
    torch.testing.assert_close(found[..., 1:, 2:].float(), chat().attention(0).weights[..., 1:, 1:], atol=1e-6, rtol=0)


def test_learned_sinks_keep_their_share() -> None:
    trace = chat(sinks=torch.full((HEADS,), math.log(30.0)))
    found = av.segment_table(trace)
    sums = found.groupby(["layer", "head", "from_segment"]).weight.sum()
    rows = torch.stack(
        [trace.weights(0, head)[SEGMENTS[1].start : SEGMENTS[1].end].sum(dim=-1).mean() for head in range(HEADS)]
    )
    assert sums.max() < 1 and sums.min() < 0.9
    assert sums.loc[0, :, "user 1"].to_list() == pytest.approx(rows.tolist(), abs=1e-6)


def test_layers_may_be_chosen_and_what_has_no_segments_is_refused() -> None:
    assert set(av.segment_table(chat(), layers=[1]).layer) == {1}
    done = list[float]()
    av.segment_table(chat(), progress=done.append)
    assert done == [0.5, 1.0]
    with pytest.raises(av.TraceError, match="has no segments; trace a chat's messages"):
        av.segment_table(chat().with_segments([]))
    with pytest.raises(av.ShapeError, match="7"):
        av.segment_table(chat(), layers=[7])


def test_cross_attention_and_layers_without_a_softmax_are_refused() -> None:
    query, other = torch.randn(2, 4, 8), torch.randn(2, 5, 8)
    cross = av.Trace.from_qkv(query, other, other, stream="cross").with_segments([av.Segment("user", 0, 2)])
    with pytest.raises(av.TraceError, match="needs every row"):
        av.segment_table(cross)
