"""Changes as text: what the address writes it reads back, what it can't read it says, and the edits are those meant."""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

import attention_viz as av
from attention_viz.edits.change import Cell, Change, Drawing, Nothing, NumberDetail, OneCell
from attention_viz.edits.changes import EDITS, MOST, describe, misfit, read_changes, to_edits, write_changes
from attention_viz.scratch.model import Scratch
from attention_viz.trace.trace import Trace
from tests.shipped import shipped

TEXT = "the bank of the river was flooded"

positions = st.integers(0, 9999)
cells = st.tuples(positions, positions)


# What a change is made of: made into one in the test, since checking its types takes a random look at its cells.
parts = st.tuples(
    st.sampled_from(list(EDITS)),
    st.tuples(positions, st.none() | positions) | st.just((None, None)),
    st.sampled_from([None, "encoder", "decoder", "cross", "picture", "sound", "mixer 2"]),
    st.floats(0, 1),
    st.sets(cells, min_size=1, max_size=6),
)


def change(
    what: str, place: tuple[int | None, int | None], stream: str | None, share: float, drawn: set[Cell]
) -> Change:
    asks = EDITS[what].asks
    number = round(asks.lowest + share * (asks.highest - asks.lowest), 4) if isinstance(asks, NumberDetail) else None
    details = {Nothing: None, NumberDetail: number, OneCell: (min(drawn),), Drawing: tuple(sorted(drawn))}
    return Change(what, *place, stream, details[type(asks)])


@pytest.fixture(scope="module")
def trace() -> Trace:
    return Scratch(heads=2).trace(TEXT)


@given(st.lists(parts, max_size=MOST))
def test_what_is_written_is_read_back(several: list[Any]) -> None:
    changes = tuple(change(*one) for one in several)
    assert read_changes(write_changes(changes)) == (changes, [])


@given(st.text(max_size=60) | st.text("zerobkdawmtp:;@>,.0123456789-", max_size=60))
def test_whatever_was_typed_is_read_or_told_and_what_was_read_is_written_the_same(text: str) -> None:
    found, notices = read_changes(text)
    parts = [part for part in text.split(";") if part.strip()]
    assert len(found) + len(notices) == len(parts)
    assert read_changes(write_changes(found)) == (found, [])


def test_the_address_is_short_and_plain() -> None:
    several = (
        Change("zero", 3, 1),
        Change("temp", 3, detail=0.5),
        Change("block", detail=((4, 5),)),
        Change("draw", 3, 1, "cross", detail=((2, 4), (3, 4))),
    )
    assert write_changes(several) == "zero@3.1;temp:0.5@3;block:4>5;draw:2>4,3>4@cross.3.1"


@pytest.mark.parametrize(
    "part",
    [
        "zero:1@0.0",
        "zero@",
        "zero@-1.0",
        "zero@0.0.0",
        "zero@٣",
        "mean@side.1",
        "temp@0.0",
        "temp:0@0.0",
        "temp:nan",
        "temp:1e9",
        "temp:0.00001",
        "temp:101",
        "block:4",
        "block:4>5,5>6",
        "block:-1>2",
        "draw",
        "draw:",
        "draw:2>4,",
        "sharpen@0.0",
        "<script>",
    ],
)
def test_a_part_that_is_none_is_told_and_the_rest_holds(part: str) -> None:
    found, notices = read_changes(f"zero@3.1;{part};block:1>2")
    assert found == (Change("zero", 3, 1), Change("block", detail=((1, 2),)))
    (notice,) = notices
    *first, last = (entry.example for entry in EDITS.values())
    assert f"“{part}”" in notice and f"Use {', '.join(first)} or {last}, each for all heads" in notice


def test_more_changes_than_a_page_can_list_are_told() -> None:
    found, notices = read_changes(";".join(["zero@0.0"] * (MOST + 2)))
    assert len(found) == MOST and len(notices) == 2 and f"more than {MOST} changes" in notices[0]


def test_changes_are_told_in_plain_words_with_the_tokens_names(trace: Trace) -> None:
    told = {
        "zero@0.1": "Layer 0, head 1 is zero-ablated: its output is 0",
        "mean@0": "Every head of layer 0 is mean-ablated: its output is its mean over the positions",
        "temp:0.5": "Every head attends more sharply (temperature 0.5)",
        "temp:2@0.0": "Layer 0, head 0 attends more evenly (temperature 2)",
        "block:1>4@0.1": "“bank” may not attend to “river” in layer 0, head 1",
        "block:0>4@0": "“the₁” may not attend to “river” in layer 0",
        "block:1>3": "“bank” may not attend to “the₂” in all layers",
        "draw:1>3,1>4,2>2@0.1": "Layer 0, head 1 attends as drawn: “bank” to “the₂” and “river”; “of” to “of”",
        "draw:1>1,2>2,4>4@0.1": "Layer 0, head 1 attends as drawn: “bank” to “bank”; “of” to “of”; 1 more row",
    }
    assert {text: describe(read_changes(text)[0][0], trace) for text in told} == told


def test_what_does_not_fit_is_said_and_still_told_in_words(trace: Trace) -> None:
    told = {
        "zero@1.0": "this model has only layer 0",
        "zero@0.2": "this layer has heads 0 to 1",
        "block:1>7": "this text has positions 0 to 6",
        "zero@cross.0.0": "this model has the encoder",
        "zero@encoder.0.0": "",
        "block:6>6@0.1": "",
    }
    assert {text: misfit(read_changes(text)[0][0], trace) for text in told} == told
    assert describe(read_changes("block:1>7")[0][0], trace) == "“bank” may not attend to position 7 in all layers"


def test_the_edits_are_those_that_were_asked_for(trace: Trace) -> None:
    def edits(text: str) -> tuple[object, ...]:
        return tuple(edit for one in read_changes(text)[0] for edit in to_edits(one, trace))

    assert edits("zero@0.1;mean") == (av.Ablate(0, 1), av.Ablate(0, 0, "mean"), av.Ablate(0, 1, "mean"))
    assert edits("temp:0.5@0;block:1>4@0.1") == (av.Temperature(0.5, 0), av.Block(1, 4, 0, 1))


def test_drawn_rows_share_their_weight_evenly_and_the_others_keep_theirs(trace: Trace) -> None:
    (edit,) = to_edits(Change("draw", 0, 1, detail=((2, 0), (2, 5), (4, 4))), trace)
    assert isinstance(edit, av.Replace) and (edit.layer, edit.head) == (0, 1)
    expected = trace.weights(0, 1).clone()
    expected[2] = torch.tensor([0.5, 0, 0, 0, 0, 0.5, 0])
    expected[4] = torch.eye(7)[4]
    assert_close(edit.weights, expected)
    after = Scratch(heads=2).trace(TEXT, edits=[edit])
    assert_close(after.weights(0, 1), expected)
    assert_close(after.weights(0, 0), trace.weights(0, 0))


def test_a_model_with_several_streams_needs_one_named() -> None:
    translated = shipped("translation").trace("the small cat sees a dog")
    assert misfit(Change("zero", 0, 0), translated) == "this model has the encoder, the decoder, cross-attention"
    one = Change("block", 0, 0, "cross", detail=((0, 2),))
    assert not misfit(one, translated)
    assert describe(one, translated).endswith("in layer 0, head 0 of cross-attention")
    (edit,) = to_edits(one, translated)
    after = shipped("translation").trace("the small cat sees a dog", edits=[edit])
    assert after.weights(0, 0, "cross")[0, 2] == 0 < translated.weights(0, 0, "cross")[0, 2]
