"""What the Why page is sent is what the decomposition says."""

import pytest
import torch

import attention_viz as av
from attention_viz.explorer.packet import read_packet
from attention_viz.explorer.why_payload import (
    Question,
    largest_heads,
    layer_heads,
    pack_why,
    stream_of,
    streams_beside,
)
from attention_viz.sources import CATALOGUE
from tests.recording.mixers.hybrids import build
from tests.shipped import SMOLLM2, shipped

IDS = torch.arange(6)[None] + 3

GIVEN = "When Mary and John went to the store, John gave a drink to"


@pytest.fixture(scope="module")
def opened() -> tuple[av.Trace, av.Decomposition]:
    model = shipped(SMOLLM2)
    trace = model.trace(GIVEN)
    return trace, av.decompose(model, trace, av.Logit("Mary", against="John"))


def test_the_groups_and_the_map_sum_to_the_number_and_each_words_part_to_the_heads(
    opened: tuple[av.Trace, av.Decomposition],
) -> None:
    trace, found = opened
    at = len(trace.query_tokens()) - 1
    fetched = found.fetched()
    question = Question("“Mary”", "“John”", found.total, found.remainder, ("decoder",), at)
    packed = read_packet(pack_why(trace, question, found.table, fetched))[0]
    assert sum(group["sum"] for group in packed["groups"]) == pytest.approx(found.total, abs=1e-4)
    heads = sum(map(sum, packed["map"]))
    assert heads == pytest.approx(found.table[found.table.kind == "head"].contribution.sum(), abs=1e-3)
    assert sum(line["number"] for line in packed["words"]) == pytest.approx(heads, abs=1e-3)
    assert packed["map"][23][3] == pytest.approx(2.86, abs=0.01)
    assert packed["listed"][0] == [23, 3]
    assert packed["queries"][at] == "to₂" and packed["at"] == at
    # It looks at the second "John", and all that it writes comes from there.
    place, weight, number = max(packed["sources"]["23 3"], key=lambda one: one[1])
    assert packed["keys"][place] == "John₂" and place == 9
    assert weight == pytest.approx(float(trace.weights(23, 3)[at, 9]), abs=1e-4)
    assert number == pytest.approx(2.87, abs=0.01)


def test_each_heads_part_by_word_sums_to_its_rows_on_either_side_of_a_score(
    opened: tuple[av.Trace, av.Decomposition],
) -> None:
    trace, _ = opened
    found = av.decompose(shipped(SMOLLM2), trace, av.Score(18, 6, 9, 4))
    fetched = found.fetched()
    for side in ("query", "key"):
        rows = found.table[(found.table.kind == "head") & (found.table.side == side)]
        wanted = rows.groupby(["layer", "head"]).contribution.sum()
        parts = fetched[fetched.side == side].groupby(["layer", "head"]).contribution.sum()
        assert parts.sub(wanted, fill_value=0).abs().max() <= 1e-5
        question = Question("a", "", found.total, found.remainder, ("decoder",), 9 if side == "query" else 4, side)
        groups = read_packet(pack_why(trace, question, found.table, fetched))[0]["groups"]
        nets = {group["kind"]: group["sum"] for group in groups}
        assert len(nets) == len(groups), "a score's parts are net, as its headline has them"
        assert nets["Heads"] == pytest.approx(wanted.sum(), abs=1e-4)
        best = largest_heads(found.table, side, 3)
        assert [number for *_, number in best] == pytest.approx(
            wanted.reindex(wanted.abs().sort_values(ascending=False).index)[:3].tolist()
        )


@pytest.mark.parametrize(
    ("name", "token", "against"), [("recall", "orange", "blue"), ("recall-mamba", "black", "gold")]
)
def test_heads_without_a_softmax_share_the_map_and_sum_to_the_number(name: str, token: str, against: str) -> None:
    model = shipped(name)
    trace = model.trace(CATALOGUE[name].examples[0])
    found = av.decompose(model, trace, av.Logit(token, against=against))
    stream = trace.streams[0]
    streams, at = streams_beside(trace, stream), len(trace.query_tokens(stream)) - 1
    question = Question(f"“{token}”", f"“{against}”", found.total, found.remainder, streams, at)
    packed = read_packet(pack_why(trace, question, found.table, found.fetched()))[0]
    assert sum(group["sum"] for group in packed["groups"]) == pytest.approx(found.total, abs=1e-4)
    mixed = found.table[found.table.kind == "mixer"].groupby(["layer", "head"]).contribution.sum()
    assert len(mixed) == sum(2 for kind in packed["kinds"] if kind)
    for (layer, head), number in mixed.items():
        assert packed["map"][layer][head] == pytest.approx(number, abs=1e-4)
        # Each source has the signed weight that ran, and all of them sum to the head's number.
        sources = packed["sources"][f"{layer} {head}"]
        weights = trace.weights(layer, head, "mixer")[at]
        assert [weight for _, weight, _ in sources] == pytest.approx(
            [float(weights[key]) for key, *_ in sources], abs=1e-4
        )
        assert sum(part for *_, part in sources) == pytest.approx(number, abs=1e-4)
        assert packed["sizes"][f"{layer} {head}"] == pytest.approx(float(weights.abs().sum()), abs=1e-5)
    assert {stream_of(trace, streams, layer) for layer, _ in mixed.index} == {"mixer"}


def test_channels_count_as_one_head_and_layers_with_both_kinds_show_one_stream() -> None:
    trace = av.wrap(build("mamba")).trace_ids(IDS)
    assert set(layer_heads(trace, streams_beside(trace, "mixer")).values()) == {1}
    both = av.wrap(build("falcon_h1")).trace_ids(IDS)
    assert streams_beside(both, "decoder") == ("decoder",) and streams_beside(both, "mixer") == ("mixer",)
