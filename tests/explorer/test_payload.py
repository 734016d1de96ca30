"""The payload: what Python packs can be read again, is as exact as it says, and is small."""

import statistics
import tracemalloc
import zlib
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import attention_viz as av
from attention_viz.analysis import blocks
from attention_viz.analysis.words import words_of
from attention_viz.explorer import Choice, pack
from attention_viz.explorer.axes import PackedAxes
from attention_viz.explorer.packet import read_packet
from attention_viz.explorer.payload import ERROR, LEVELS
from attention_viz.trace.kept import KeptLayers
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Fidelity, Layer, Provenance, Trace
from tests.explorer.conftest import self_attention

SENTENCES = (
    "The bank of the river was flooded after a week of heavy rain, and the people who lived beside it moved upstairs.",
    "In the morning the committee announced that the trial had been postponed because two witnesses were missing.",
    "She looked at the old photograph for a long time before she answered the question that her brother had asked.",
    "Scientists have discovered that some birds remember the faces of people who once threatened them long ago.",
    "The cat sat on the mat because it was tired, and the dog that had chased it fell asleep near the door.",
    "When the train reached the border, officers walked through each carriage and checked every passport with care.",
    "If you heat the mixture too quickly the sugar will burn, so stir it slowly and keep the flame as low as you can.",
    "The new law requires companies to publish how much they pay men and women, although small firms are exempt.",
    "He told his lawyer that he would not sign the contract until the clause about damages had been removed.",
    "Long before the invention of writing, travellers carried stories from valley to valley and changed them a little.",
)


def plane(body: bytes, place: list[int]) -> np.ndarray:
    offset, length = place
    return np.frombuffer(zlib.decompress(body[offset : offset + length]), np.uint8)


def values(header: dict[str, Any]) -> np.ndarray:
    """The weight that each number stands for."""
    levels = header["levels"]
    return np.array([0, 0.75 / levels, *((n - 0.5) / levels for n in range(2, levels + 1)), 1])


def weights(header: dict[str, Any], body: bytes, stream: dict[str, Any], number: int) -> np.ndarray:
    """One layer as the browser reads it: (head, query, key)."""
    layer = stream["layers"][number]
    queries, keys = (len(header["axes"][stream[role]]["labels"]) for role in ("queries", "keys"))
    high, low = plane(body, layer["high"]).astype(np.uint16), plane(body, layer["low"])
    nibbles = np.stack([low & 15, low >> 4], axis=1).ravel()[: high.size]
    steps = (high << 4 | nibbles).reshape(layer["heads"], keys, queries).swapaxes(1, 2)
    return values(header)[steps]


def blocked(header: dict[str, Any], body: bytes, number: int) -> np.ndarray:
    mask = header["masks"][number]
    queries, keys = mask["queries"], mask["keys"]
    if mask["kind"] == "causal":
        return ~np.tri(queries, keys, keys - queries, dtype=bool)
    bits = np.unpackbits(plane(body, mask["at"]), bitorder="little")[: queries * keys]
    return bits.reshape(keys, queries).T.astype(bool)


def of_matrix(matrix: torch.Tensor) -> Trace:
    """A trace whose one head has exactly these weights."""
    axis = {"encoder": Tokens(tuple("abcdefgh"[: matrix.shape[0]]), tuple(range(matrix.shape[0])))}
    keys = {"encoder": Tokens(tuple("ABCDEFGHIJKLM"[: matrix.shape[1]]), tuple(range(matrix.shape[1])))}
    call = av.attend(
        torch.zeros(1, matrix.shape[0], 2), torch.zeros(1, matrix.shape[1], 2), torch.zeros(1, matrix.shape[1], 2)
    )
    call = av.attend(call.query, call.key, call.value, bias=matrix.log()[None])
    measured = Fidelity(0.0, 0.0, 1e-5, "nothing")
    return Trace({"encoder": (Layer(call, "0"),)}, axis, keys, torch.zeros(1, 2), Provenance("made"), measured)


def test_every_weight_of_every_stream_comes_back_within_the_stated_error(many_kinds: Trace) -> None:
    header, body = read_packet(pack(many_kinds))
    assert [stream["name"] for stream in header["streams"]] == ["encoder", "decoder", "cross"]
    for stream in header["streams"]:
        for number in range(many_kinds.layer_count(stream["name"])):
            exact = many_kinds.attention(number, stream["name"]).weights.numpy()
            assert np.abs(weights(header, body, stream, number) - exact).max() <= header["error"]


def test_the_stated_error_is_within_the_mark() -> None:
    assert ERROR <= 1.3e-4
    assert 0.5 / LEVELS < ERROR


def test_blocked_cells_are_told_apart_from_weights_of_zero(many_kinds: Trace) -> None:
    header, body = read_packet(pack(many_kinds))
    for stream in header["streams"]:
        for number, layer in enumerate(stream["layers"]):
            allowed = many_kinds.attention(number, stream["name"]).allowed
            if allowed is None:
                assert layer["blocked"] is None
                continue
            whole = np.broadcast_to(~allowed.numpy(), (layer["heads"], *allowed.shape[-2:]))
            for head in range(layer["heads"]):
                mask = layer["blocked"][head if len(layer["blocked"]) > 1 else 0]
                np.testing.assert_array_equal(blocked(header, body, mask), whole[head])
                assert (weights(header, body, stream, number)[head][whole[head]] == 0).all()


def test_a_pattern_shared_by_layers_is_told_once(many_kinds: Trace) -> None:
    header, _ = read_packet(pack(many_kinds))
    assert [mask["kind"] for mask in header["masks"]].count("causal") == 1
    assert len(header["masks"]) == 4  # causal, and the three of the cross stream, the last layer's being one of them


def test_rows_keep_their_sums_with_sinks_and_with_nothing_allowed(many_kinds: Trace) -> None:
    header, body = read_packet(pack(many_kinds))
    for stream in header["streams"]:
        for number, layer in enumerate(stream["layers"]):
            told = plane(body, layer["sums"]).view("<u2").reshape(layer["heads"], -1) / header["sum_steps"]
            exact = many_kinds.attention(number, stream["name"]).weights.sum(-1).numpy()
            np.testing.assert_allclose(told, exact, atol=1e-5)


def test_weights_that_are_not_numbers_are_refused_by_name() -> None:
    query = torch.randn(3, 5, 4)
    query[2, 1] = float("nan")
    call, axis = av.attend(query, torch.randn(3, 5, 4), torch.randn(3, 5, 4)), {"decoder": Tokens.of_ids(range(5))}
    whole = av.attend(torch.randn(3, 5, 4), torch.randn(3, 5, 4), torch.randn(3, 5, 4))
    layers = {"decoder": (Layer(whole, "0"), Layer(call, "1"))}
    measured = Fidelity(0.0, 0.0, 1e-5, "nothing")
    trace = Trace(layers, axis, axis, torch.zeros(1, 2), Provenance("made"), measured)
    with pytest.raises(av.TraceError, match="can't draw head 2 of layer 1 of the decoder: some of its weights aren't"):
        pack(trace)


def uneven(heads: int, queries: int, keys: int, **terms: Any) -> Trace:
    """One attention call without a value, as an attacker's file may have it: few bytes, many weights."""
    generator = torch.Generator().manual_seed(3)
    query, key = (torch.randn(heads, count, 2, generator=generator) for count in (queries, keys))
    call = av.attend(8 * query, key, torch.zeros(heads, keys, 0), **terms)
    axes = {"encoder": Tokens.of_ids(range(queries))}, {"encoder": Tokens.of_ids(range(keys))}
    measured = Fidelity(0.0, 0.0, 1e-5, "nothing")
    return Trace({"encoder": (Layer(call, "0"),)}, *axes, torch.zeros(1, 2), Provenance("made"), measured)


def test_a_head_with_more_cells_than_a_browser_holds_is_refused_before_any_weight_is_computed() -> None:
    trace = uneven(1, 7700, 7700)
    tracemalloc.start()
    try:
        with pytest.raises(
            av.TraceError, match=r"layer 0 of the encoder has 7,700 queries × 7,700 keys; .* 16,777,216"
        ):
            pack(trace)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_so_are_many_heads_that_together_have_too_many() -> None:
    with pytest.raises(av.TraceError, match=r"has 303,088,684 weights and the explorer draws at most 268,435,456"):
        pack(uneven(19, 3_994, 3_994))


def test_of_a_long_text_only_part_is_computed_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its numbers at two bytes each, their planes, and one part of it: not several copies of all of it as float64."""
    monkeypatch.setattr(blocks, "CELLS_AT_A_TIME", 100_000)
    trace = uneven(8, 1201, 1203)
    tracemalloc.start()
    try:
        pack(trace)
        assert tracemalloc.get_traced_memory()[1] < 8 * 8 * 1201 * 1203
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("at_a_time", [1, 40, 91, 10_000])
def test_a_head_packed_by_and_by_gives_what_it_gives_at_once(monkeypatch: pytest.MonkeyPatch, at_a_time: int) -> None:
    allowed = torch.rand(3, 7, 13, generator=torch.Generator().manual_seed(5)) > 0.3
    trace = uneven(3, 7, 13, allowed=allowed)
    monkeypatch.setattr(blocks, "CELLS_AT_A_TIME", at_a_time)
    header, body = read_packet(pack(trace))
    exact = trace.attention(0).weights.numpy()
    assert np.abs(weights(header, body, header["streams"][0], 0) - exact).max() <= ERROR
    layer = header["streams"][0]["layers"][0]
    for head in range(3):
        np.testing.assert_array_equal(blocked(header, body, layer["blocked"][head]), ~allowed[head].numpy())
    sums = plane(body, layer["sums"]).view("<u2").reshape(3, -1) / header["sum_steps"]
    np.testing.assert_allclose(sums, exact.sum(-1), atol=1e-5)


def test_weights_that_are_not_numbers_are_named_by_head_in_a_long_text_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "CELLS_AT_A_TIME", 20)
    trace = uneven(3, 7, 13)
    trace.attention(0).query[1, 6] = float("nan")
    with pytest.raises(av.TraceError, match="can't draw head 1 of layer 0 of the encoder: some of its weights aren't"):
        pack(trace)


def test_labels_and_special_tokens_travel_whole(many_kinds: Trace) -> None:
    header, _ = read_packet(pack(many_kinds))
    axis = header["axes"][header["streams"][0]["queries"]]
    assert tuple(axis["labels"]) == many_kinds.query_tokens("encoder").labels
    assert axis["special"] == [0]
    assert header["streams"][2]["keys"] == header["streams"][0]["queries"]


def test_the_browser_takes_the_tokens_for_words_that_python_does() -> None:
    # The last emoji is of Unicode 16, which the browser may know and Python not.
    labels = ("[CLS]", "\U0001f600", "\u2026", "7", "\u0903", "[PAD]", "\U0001fae9")
    special, padding = (True, *[False] * 6), (*[False] * 5, True, False)
    tokens = Tokens(labels, tuple(range(7)), special=special, padding=padding, spelling=("text",) * 7)
    axes = PackedAxes(0)
    axis = axes.entries[axes.add(tokens, "encoder")]
    words = [at for at in range(7) if at not in (*axis["special"], *axis["padding"], *axis["signs"])]
    assert words == words_of(tokens).carrying.nonzero()[:, 0].tolist()
    assert words[:3] == [1, 3, 4]


def test_equal_traces_give_equal_bytes_and_the_choice_is_in_the_header_only(many_kinds: Trace) -> None:
    plain, chosen = pack(many_kinds), pack(many_kinds, choice=Choice("cross", 1, 2))
    assert plain == pack(many_kinds)
    assert read_packet(plain)[1] == read_packet(chosen)[1]
    assert read_packet(plain)[0]["choice"] is None
    assert read_packet(chosen)[0]["choice"] == {"stream": "cross", "layer": 1, "head": 2}


def test_a_lone_surrogate_in_a_label_does_not_stop_the_packing() -> None:
    matrix = torch.full((1, 1), 1.0)
    trace = of_matrix(matrix)
    object.__setattr__(trace.queries["encoder"], "labels", ("\ud800",))
    assert read_packet(pack(trace))[0]["axes"][0]["labels"] == ["?"]


@settings(max_examples=40)
@given(st.integers(1, 7), st.integers(1, 11), st.integers(0, 2**31))
def test_any_matrix_comes_back_within_the_error_with_its_three_digits_zeros_and_ones(
    queries: int, keys: int, seed: int
) -> None:
    matrix = (torch.rand(queries, keys, generator=torch.Generator().manual_seed(seed)) * 30).exp()
    matrix[0] = 0
    matrix[0, 0] = 1
    trace = of_matrix(matrix / matrix.sum(-1, keepdim=True))
    header, body = read_packet(pack(trace))
    got, exact = weights(header, body, header["streams"][0], 0)[0], trace.weights(0, 0).numpy()
    assert np.abs(got - exact).max() <= ERROR
    assert [f"{w:.3f}" for w in got.ravel()] == [f"{w:.3f}" for w in exact.ravel()]
    assert got[0, 0] == 1
    assert (got[0, 1:] == 0).all()


@pytest.mark.parametrize(("count", "most"), [(24, 1.1), (512, 0.5)])
def test_a_weight_of_a_real_sentence_costs_few_bytes(model: av.AttentionModel, count: int, most: float) -> None:
    costs = []
    for place in range(len(SENTENCES)) if count == 24 else (0,):
        text = " ".join((SENTENCES[place:] + SENTENCES[:place]) * (1 if count == 24 else 3))
        ids = model.tokenizer(text, truncation=True, max_length=count, return_tensors="pt").input_ids
        assert ids.shape[1] == count
        costs.append(len(read_packet(pack(model.trace_ids(ids)))[1]) / (72 * count**2))
    assert statistics.median(costs) <= most


def test_layers_that_are_kept_are_told_with_their_numbers() -> None:
    whole = self_attention(5, layers=4)
    layers = {"encoder": tuple(whole.layers["encoder"][number] for number in (1, 3))}
    kept = Trace(
        layers,
        whole.queries,
        whole.keys,
        whole.output,
        whole.provenance,
        kept={"encoder": KeptLayers((1, 3), (0, 1, 2, 3))},
    )
    header, body = read_packet(pack(kept, choice=Choice("encoder", 3, 2)))
    (stream,) = header["streams"]
    assert [layer["number"] for layer in stream["layers"]] == [1, 3]
    assert header["choice"] == {"stream": "encoder", "layer": 3, "head": 2}
    exact = kept.attention(3).weights.numpy()
    assert np.abs(weights(header, body, stream, 1) - exact).max() <= ERROR
    (stream,) = read_packet(pack(kept, terms=[("encoder", 3)]))[0]["streams"]
    assert [(layer["number"], len(layer["terms"])) for layer in stream["layers"]] == [(1, 0), (3, 3)]
    assert all("number" not in layer for layer in read_packet(pack(whole))[0]["streams"][0]["layers"])
    for ask in (lambda: pack(kept, choice=Choice("encoder", 0, 0)), lambda: av.explore(kept, layer=0)):
        with pytest.raises(av.TraceError, match="this trace keeps layers 1, 3 of 0 to 3"):
            ask()
    assert read_packet(av.explore(kept).payload)[0]["choice"]["layer"] == 1
