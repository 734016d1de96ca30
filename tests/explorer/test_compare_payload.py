"""The Compare page's bytes: the comparison's numbers, row by row."""

import base64
import zlib
from typing import Any

import numpy
import pytest
import torch

import attention_viz as av
from attention_viz.analysis.comparison.compare import Comparison
from attention_viz.analysis.comparison.texts import text_changes
from attention_viz.explorer import compare_payload
from attention_viz.explorer.compare_payload import (
    ComparedSide,
    HeadDistances,
    head_rows,
    numbered,
    pack_compare,
    paired_names,
    rows_sent,
)
from attention_viz.explorer.packet import read_packet
from tests.shipped import shown


@pytest.fixture(scope="module")
def found() -> Comparison:
    model = av.load("induction")
    return av.compare(model.trace("moon cheese frog moon"), model.trace("moon ring cheese ring moon"), 1, 0)


def packed(found: Comparison, rows: list[int]) -> tuple[dict[str, Any], list[numpy.ndarray]]:
    claims = {at: ([("row", "query")], (at, None)) for at in rows}
    one, other = text_changes("a b", "a c")
    header, body = read_packet(pack_compare(found, rows, claims, (ComparedSide("", one), ComparedSide("", other))))
    shape = len(rows), len(found.keys)
    planes = [numpy.frombuffer(body[at : at + length], "<f4").reshape(shape) for at, length in header["planes"]]
    return header, planes


def test_every_row_has_both_heads_weights_and_says_what_is_absent_or_blocked(found: Comparison) -> None:
    rows = [3, 1]
    header, planes = packed(found, rows)
    assert header["rows"] == rows and [one["keys"] for one in header["claims"]] == [[3, None], [1, None]]
    for plane, weights, side, axis in zip(
        planes,
        (found.weights, found.other_weights),
        (found.one, found.other),
        ("one", "other"),
        strict=True,
    ):
        queries, keys = getattr(found.queries, axis), getattr(found.keys, axis)
        for drawn, row in zip(plane, rows, strict=True):
            for at, weight in enumerate(drawn):
                if queries[row] is None or keys[at] is None:
                    assert numpy.isnan(weight)
                elif side.blocked[queries[row], keys[at]]:
                    assert weight == numpy.inf
                else:
                    assert weight == pytest.approx(float(weights[row, at]), abs=1e-7)


def test_tokens_are_paired_and_repeated_ones_numbered_in_their_own_text(found: Comparison) -> None:
    header, _ = packed(found, [0])
    names = [tuple(pair) for pair in header["keys"]]
    assert header["queries"] is None
    assert names[-5:] == [
        ("moon₁", "moon₁"),
        (None, "ring₁"),
        ("cheese", "cheese"),
        ("frog", "ring₂"),
        ("moon₂", "moon₂"),
    ]
    assert header["sides"][1]["text"][-1] == ["c", "swapped", ""]


def test_of_a_long_text_the_wanted_row_and_those_that_differ_most_are_sent(
    found: Comparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert rows_sent(found, [0]) == list(range(len(found.queries)))
    monkeypatch.setattr(compare_payload, "MOST_WEIGHTS", 3 * len(found.keys))
    order = found.divergence.nan_to_num(-1.0).argsort(descending=True).tolist()
    calm = order[-1]
    assert rows_sent(found, [calm]) == sorted([calm, *order[:2]])


def test_the_map_has_every_heads_distance_and_none_where_it_cant_be_told(found: Comparison) -> None:
    import torch

    bits = torch.tensor([[0.25, torch.nan], [0.5, 0.125]])
    side = ComparedSide("first")
    header, _ = read_packet(
        pack_compare(found, [], {}, (side, side), distances=HeadDistances("Heads", bits, (2, 5), ("2", "5")))
    )
    assert header["map"]["bits"] == [[0.25, None], [0.5, 0.125]]
    assert [layer["number"] for layer in header["map"]["layers"]] == [2, 5]


def test_one_word_has_the_number_of_each_text_where_both_repeat_it() -> None:
    model = av.load("induction")
    found = av.compare(model.trace("frog moon cheese moon"), model.trace("moon frog moon cheese moon"), 1, 0)
    names = paired_names(found, "key")
    assert ["moon₁", "moon₂"] in names and ["moon₂", "moon₃"] in names
    for place, pair in enumerate(names):
        for side, axis, name in zip((found.one, found.other), (found.keys.one, found.keys.other), pair, strict=True):
            said = numbered(side.trace.key_tokens(side.stream))
            at = axis[place]
            assert name is None or (at is not None and name.startswith(said[at]))


def test_both_images_come_with_the_places_of_their_patches() -> None:
    one, other = (shown("dinov2-small", sample) for sample in ("chelsea", "astronaut"))
    found = av.compare(one, other, 0, 5)
    header, body = read_packet(pack_compare(found, [0], {0: ([], (0, 0))}, (ComparedSide("1"), ComparedSide("2"))))
    for trace, picture in zip((one, other), header["pictures"], strict=True):
        assert trace.seen.picture is not None
        at, length = picture["at"]
        dots = numpy.frombuffer(zlib.decompress(body[at : at + length]), "u1")
        assert (dots == trace.seen.picture.numpy().ravel()).all()
        patches = trace.key_tokens(found.one.stream).patches
        for at, (row, column) in patches.items():
            assert found.keys.one[picture["places"][row * picture["across"] + column]] == at
    assert header["pictures"][0]["at"] != header["pictures"][1]["at"]


def test_rows_of_all_heads_are_left_out_if_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = torch.tensor([[0.5, 0.5]]), torch.tensor([[1.0, torch.nan]])
    assert numpy.frombuffer(base64.b64decode(head_rows(one, other)), "<f4") == pytest.approx(
        [0.5, 0.5, 1, numpy.nan], nan_ok=True
    )
    monkeypatch.setattr(compare_payload, "MOST_WEIGHTS", 3)
    assert head_rows(one, other) == ""
