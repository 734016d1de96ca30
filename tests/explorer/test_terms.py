"""What a head of a long text is handed over as: few numbers, the same for the same, and its small picture."""

import zlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import attention_viz as av
from attention_viz.explorer import terms
from attention_viz.explorer.packet import read_packet
from attention_viz.explorer.payload import is_long, pack
from attention_viz.explorer.terms import beginning_of, pack_head, runs_of
from attention_viz.explorer.thumbnails import BLOCKED, CODES, FAINTEST, SIDE, sampled_rows
from attention_viz.operation.attention import Attention
from attention_viz.operation.terms import terms_of
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Trace
from tests.explorer.long_texts import KEYS, NAMES, QUERIES, call_of, long_trace, trace_of_call


def test_every_term_of_a_call_travels_or_is_in_what_travels() -> None:
    """One that is left out would give other weights in the browser than in the trace, and nobody would hear of it."""
    travel = {"query", "key", "scale", "softcap", "bias"}
    in_the_normalisers, as_runs, not_in_weights = {"sinks"}, {"allowed"}, {"value"}
    assert {term.name for term in terms_of(Attention)} == travel | in_the_normalisers | as_runs | not_in_weights


def test_a_head_takes_few_bytes_beside_its_weights() -> None:
    packed = pack_head(trace_of_call(call_of("causal")), "decoder", 0, 0, "this")
    header, _ = read_packet(packed)
    assert header["masks"] == [{"kind": "causal", "queries": QUERIES, "keys": KEYS}]
    assert len(packed) < QUERIES * KEYS / 4


@pytest.mark.parametrize("name", NAMES)
def test_the_beginning_of_a_head_holds_what_its_maps_are_made_of_and_no_numbers(name: str) -> None:
    packed = pack_head(trace_of_call(call_of(name)), "decoder", 0, 0, "this")
    beginning = beginning_of(packed)
    assert packed.startswith(beginning)
    header, body = read_packet(beginning)
    entry = header["entry"]
    drawn = [entry["map"]["high"], entry["map"]["low"], entry["means"]["high"], entry["means"]["low"], entry["sums"]]
    drawn += [mask["at"] for mask in header["masks"] if "at" in mask]
    numbers = [*entry["weights"].values()][:2] if "weights" in entry else [entry["query"], entry["key"]]
    assert all(at + length <= len(body) for at, length in drawn)
    assert all(at >= len(body) for at, _ in numbers)


def test_equal_heads_give_equal_bytes() -> None:
    one, other = (pack_head(trace_of_call(call_of("window")), "decoder", 0, 0, "this") for _ in range(2))
    assert one == other


def test_heads_that_share_a_key_send_it_once() -> None:
    header, body = read_packet(pack(long_trace(), terms=[("decoder", 1)]))
    heads = header["streams"][0]["layers"][1]["terms"]
    assert heads["0"]["key"] == heads["1"]["key"]
    assert heads["0"]["query"] != heads["1"]["query"]
    offset, length = heads["1"]["query"]
    query = np.frombuffer(body[offset : offset + length], "<f4").reshape(QUERIES, -1)
    np.testing.assert_array_equal(query, long_trace().attention(1).query[1])


def test_layers_that_were_not_asked_for_send_pictures_only() -> None:
    header, _ = read_packet(pack(long_trace(), terms=[("decoder", 1)]))
    assert header["streams"][0]["layers"][0]["terms"] == {}
    assert header["long"]["id"] == read_packet(pack(long_trace(), terms=[("decoder", 1)]))[0]["long"]["id"]


def test_another_text_has_another_id() -> None:
    one = read_packet(pack(long_trace(), terms=()))[0]["long"]["id"]
    assert one != read_packet(pack(trace_of_call(call_of("causal")), terms=()))[0]["long"]["id"]


def test_runs_say_where_each_row_is_open() -> None:
    allowed = np.array([[0, 1, 1, 0], [0, 0, 0, 0], [1, 0, 0, 1]], bool)
    assert runs_of(allowed).tolist() == [0, 1, 1, 3, 1, 3, 0, 1, 3, 4]


def test_a_bias_of_many_numbers_sends_weights_as_long_as_they_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = trace_of_call(call_of("cells"))
    assert "weights" in read_packet(pack_head(trace, "decoder", 0, 0, "this"))[0]["entry"]
    monkeypatch.setattr(terms, "MOST_WEIGHTS_OF_A_HEAD", 1000)
    with pytest.raises(av.TraceError, match="a bias for each of its 1,103 × 1,103 cells"):
        pack_head(trace, "decoder", 0, 0, "this")


@pytest.mark.parametrize("name", ["causal", "drawn", "padded"])
def test_a_picture_has_the_largest_weight_under_each_cell_of_the_rows_that_were_sampled(name: str) -> None:
    call = call_of(name)
    header, body = read_packet(pack(trace_of_call(call), terms=()))
    stream = header["streams"][0]
    down, across = stream["side"]
    offset, length = stream["layers"][0]["thumbnails"]
    codes = np.frombuffer(zlib.decompress(body[offset : offset + length]), np.uint8).reshape(across, down).T
    rows = sampled_rows(QUERIES, KEYS, 1)
    assert len(rows) == stream["sampled"]
    weights = call.head(0).weights[rows].numpy()
    allowed = np.broadcast_to(call.head(0).allowed.numpy(), call.shape[1:])[rows]
    tall, wide = -(-len(rows) // SIDE), -(-KEYS // SIDE)
    for row in range(down):
        for column in range(across):
            part = np.s_[row * tall : (row + 1) * tall, column * wide : (column + 1) * wide]
            most = weights[part].max()
            if not allowed[part].any():
                assert codes[row, column] == BLOCKED
            elif most < FAINTEST * 0.99:
                assert codes[row, column] == 0
            elif most > FAINTEST * 1.01:
                place = (codes[row, column] - 1) / (CODES - 1)
                assert abs(FAINTEST ** (1 - place) / most - 1) < 0.02


def test_a_picture_without_special_tokens_holds_none_of_their_weights() -> None:
    call, special = call_of("causal"), {0, 1, 40, 500, 551, 552}
    tokens = replace(Tokens.of_ids(range(KEYS)), special=tuple(place in special for place in range(KEYS)))
    trace = trace_of_call(call)
    trace = Trace(
        trace.layers, {"decoder": tokens}, {"decoder": tokens}, trace.output, trace.provenance, trace.fidelity
    )
    header, body = read_packet(pack(trace, terms=()))
    stream = header["streams"][0]
    (down, across), layer = stream["side"], stream["layers"][0]
    whole, plain = (
        np.frombuffer(zlib.decompress(body[offset : offset + length]), np.uint8).reshape(across, down).T
        for offset, length in (layer["thumbnails"], layer["plain"])
    )
    rows = sampled_rows(QUERIES, KEYS, 1, special)
    assert len(rows) == stream["sampled"]
    weights, allowed = call.head(0).weights[rows].numpy(), call.head(0).allowed.numpy()[rows]
    shown = np.outer([row not in special for row in rows], [place not in special for place in range(KEYS)])
    tall, wide = -(-len(rows) // SIDE), -(-KEYS // SIDE)
    lower, left, open_there = 0, weights * shown, allowed & shown
    for row, column in np.ndindex(down, across):
        part = np.s_[row * tall : (row + 1) * tall, column * wide : (column + 1) * wide]
        most = left[part].max()
        if not open_there[part].any():
            assert plain[row, column] == BLOCKED
        elif most > FAINTEST * 1.01:
            assert abs(FAINTEST ** (1 - (plain[row, column] - 1) / (CODES - 1)) / most - 1) < 0.02
            lower += plain[row, column] < whole[row, column]
    assert lower > 0
    assert "plain" not in read_packet(pack(trace_of_call(call), terms=()))[0]["streams"][0]["layers"][0]


def test_of_a_long_text_few_rows_are_sampled_evenly() -> None:
    rows = sampled_rows(8_000, 8_000, 270)
    assert len(rows) == SIDE
    assert set(np.diff(rows)) == {125}
    beside = sampled_rows(8_000, 8_000, 270, {rows[3], *range(rows[5] - 2, rows[5] + 9)})
    assert [row for row in beside if row not in rows] == [rows[3] - 1, rows[5] - 3]
    assert len(sampled_rows(100, 100, 1)) == 100


def test_a_text_is_long_where_its_weights_are_many() -> None:
    trace = long_trace()
    assert is_long(trace, 4 * QUERIES * KEYS - 1)
    assert not is_long(trace, 4 * QUERIES * KEYS)


def test_what_is_packed_of_a_real_head_gives_its_weights(smollm2: av.AttentionModel) -> None:
    """A real model's head, its weights computed as the browser does, from what is packed."""
    words = " ".join(f"The {count}th bird sings in tree {count % 7}." for count in range(55))
    places = ((0, 4), (11, 2), (29, 8))
    trace: Trace = smollm2.trace(words, layers=[layer for layer, _ in places])
    for layer, head in places:
        header, body = read_packet(pack_head(trace, "decoder", layer, head, "this"))
        entry = header["entry"]

        def numbers(name: str, kind: str, entry: Any = entry, body: bytes = body) -> np.ndarray:
            offset, length = entry[name]
            return np.frombuffer(body[offset : offset + length], kind).astype(float)

        query, key = (numbers(name, "<f4").reshape(-1, entry["width"]) for name in ("query", "key"))
        weights = np.exp(query @ key.T * entry["scale"] - numbers("normalisers", "<f8")[:, None])
        weights[~np.tri(*weights.shape, dtype=bool)] = 0
        assert header["masks"][entry["blocked"]]["kind"] == "causal"
        np.testing.assert_allclose(weights, trace.weights(layer, head).double().numpy(), atol=1e-5)
        assert torch.tensor(weights).sum(-1).sub(1).abs().max() < 1e-4
