"""What the atlas is sent, and the script that reads it."""

import zlib
from typing import Any

import numpy
import pytest
import torch

import attention_viz as av
from attention_viz.analysis.arrived import channels_together
from attention_viz.analysis.head_table import head_table
from attention_viz.analysis.metrics import metrics_in
from attention_viz.analysis.roles import ROLES, roles, roles_for
from attention_viz.explorer import atlas_source
from attention_viz.explorer.atlas_payload import BLOCKED, LEVELS, MIDDLE, SIDE, HeadTables, pack_atlas, starts
from attention_viz.explorer.atlas_roles import resting_words
from attention_viz.explorer.packet import read_packet
from attention_viz.trace.kind import Unit
from attention_viz.trace.trace import Trace
from attention_viz.views.style.scale import full_colour
from tests.recording.mixers.hybrids import build
from tests.shipped import shipped


def unpacked(payload: bytes, trace: Trace, stream: str) -> tuple[dict[str, Any], numpy.ndarray]:
    """The header, and the levels as (head, query, key)."""
    header, body = read_packet(payload)
    start, size = header["plane"]
    plane = zlib.decompress(body[start : start + size])
    shape = (-1, len(header["keys"]), len(header["queries"]))
    return header, numpy.frombuffer(plane, numpy.uint8).reshape(shape).swapaxes(1, 2)


def test_a_short_text_is_sent_cell_by_cell_and_its_numbers_as_in_the_table() -> None:
    trace = shipped("induction").trace("moon cheese frog moon cheese frog")
    table = head_table(trace)
    header, levels = unpacked(pack_atlas(trace, "decoder", table, roles(trace)), trace, "decoder")
    assert header["queries"] == header["keys"] == list(trace.query_tokens().names)
    assert header["pooled"] == [1, 1] and header["tops"] == [1.0] * 8
    for place, (layer, head) in enumerate(table.index):
        weights = trace.weights(layer, head).numpy()
        ahead = ~numpy.tri(len(weights), dtype=bool)
        assert (levels[place][ahead] == BLOCKED).all()
        assert numpy.abs(levels[place] / LEVELS - weights)[~ahead].max() <= 0.5 / LEVELS + 1e-6
    for name in metrics_in("softmax"):
        told = [numpy.nan if number is None else number for number in header["numbers"][name]]
        assert told == pytest.approx(table[name].tolist(), abs=1e-6, nan_ok=True)
        assert header["fulls"][name] >= numpy.nanmax(table[name].to_numpy(), initial=0)
    assert header["spreads"] is None


def test_of_a_short_text_the_numbers_are_sent_as_they_ran_and_of_a_longer_one_not() -> None:
    trace = shipped("induction").trace("moon cheese frog moon cheese frog")
    header, body = read_packet(pack_atlas(trace, "decoder", head_table(trace), roles(trace)))
    start, size = header["values"]
    values = numpy.frombuffer(body[start : start + size], "<f4").reshape(8, *trace.weights(0, 0).shape)
    own = [trace.weights(layer, head).numpy() for layer in range(2) for head in range(4)]
    assert numpy.array_equal(values, numpy.stack(own))
    mixed = shipped("recall-mamba").trace("hugo pink , ida gold . ida ?")
    header, body = read_packet(pack_atlas(mixed, "mixer", head_table(mixed), roles(mixed)))
    start, size = header["values"]
    signed = numpy.frombuffer(body[start : start + size], "<f4").reshape(4, *mixed.weights(0, 0).shape)
    assert numpy.array_equal(signed[3], mixed.weights(1, 1).numpy()) and signed.min() < 0
    longer = av.scratch(" ".join("abcdefghijklmnopq"), heads=1)
    assert "values" not in read_packet(pack_atlas(longer, "encoder", head_table(longer), roles(longer)))[0]


def test_of_a_long_text_each_cell_is_the_largest_weight_under_it_and_none_is_left_out() -> None:
    trace = av.scratch(" ".join(f"word{number}" for number in range(77)), heads=1)
    header, levels = unpacked(pack_atlas(trace, "encoder", head_table(trace), roles(trace)), trace, "encoder")
    weights, first = trace.weights(0, 0).numpy(), [*starts(77), 77]
    assert levels.shape == (1, SIDE, SIDE) and first[0] == 0 and len(first) == SIDE + 1
    assert header["pooled"] == [3, 3] and header["queries"][1] == f"word{first[1]} …"
    top = header["tops"][0]
    assert top == full_colour(weights) < 1
    for row in range(SIDE):
        for column in range(SIDE):
            under = weights[first[row] : first[row + 1], first[column] : first[column + 1]]
            assert levels[0, row, column] == round(min(float(under.max()) / top, 1.0) * LEVELS)


def test_equal_traces_give_equal_bytes_and_several_texts_their_spread() -> None:
    one, other = av.scratch("a b a"), av.scratch("b a c")
    again = av.scratch("a b a")
    assert pack_atlas(one, "encoder", head_table(one), roles(one)) == pack_atlas(
        again, "encoder", head_table(again), roles(again)
    )
    table = head_table([one, other])
    header, _ = unpacked(pack_atlas(one, "encoder", table, roles([one, other])), one, "encoder")
    assert header["spreads"]["entropy"] == pytest.approx(table["entropy_spread"].tolist(), abs=1e-6)


def test_the_atlas_has_its_place_and_the_style_of_its_card() -> None:
    html, css, _ = atlas_source(420)
    assert 'data-testid="atlas"' in html and 'data-height="420"' in html and ".av-card" in css


def test_roles_are_those_of_the_library_and_a_role_that_no_head_has_says_why() -> None:
    trace = shipped("induction").trace("moon cheese frog ring moon cheese")
    table = roles(trace)
    header, _ = unpacked(pack_atlas(trace, "decoder", head_table(trace), table), trace, "decoder")
    assert [one["name"] for one in header["roles"]] == list(roles_for(Unit.WORD))
    assert [list(ROLES)[one["colour"]] for one in header["roles"]] == list(roles_for(Unit.WORD))
    assert [header["roles"][number]["name"] for number in header["role"]] == table["role"].tolist()
    told = [numpy.nan if score is None else score for score in header["score"]]
    assert told == pytest.approx(table["score"].tolist(), abs=1e-6, nan_ok=True)
    for one in header["roles"]:
        assert (one["none"] == "") == (one["name"] in table["role"].tolist())
        assert one["threshold"] == 0 or f"{one['threshold']:.2f}" in one["asks"]
    reasons = {one["name"]: one["none"] for one in header["roles"]}
    assert reasons["next"] == "None can look ahead here."
    assert reasons["punctuation"] == "None here: too little punctuation."
    for name, words in reasons.items():
        if words.startswith("None: the largest is"):
            assert words == f"None: the largest is {table[name].max():.2f}.".replace("-", "−")


def test_a_head_rests_on_special_tokens_and_where_none_looks_ahead_on_the_first() -> None:
    assert resting_words(shipped("induction").trace("moon cheese frog"), "decoder") == "<s>"
    assert resting_words(av.scratch("a b c", allowed=av.masks.causal(3)), "decoder") == "“a”"
    assert resting_words(av.scratch("a b c"), "encoder") == ""


def mixed(name: str) -> Trace:
    return channels_together(av.wrap(build(name)).trace_ids((torch.arange(20)[None] * 7) % 97))


def tables_of(trace: Trace, stream: str) -> HeadTables:
    return HeadTables(head_table(trace, stream), roles(trace, stream))


def test_layers_with_and_without_a_softmax_stand_in_the_models_order_with_signs_on_a_logarithmic_scale() -> None:
    trace = mixed("qwen3_next")
    own, others = tables_of(trace, "decoder"), {"mixer": tables_of(trace, "mixer")}
    header, levels = unpacked(pack_atlas(trace, "decoder", *own, others), trace, "decoder")
    assert [(one["stream"], one["number"], one.get("kind")) for one in header["layers"]] == [
        ("mixer", 0, "gated delta"),
        ("decoder", 1, None),
    ]
    for head in range(4):
        weights = trace.weights(0, head, "mixer").double().numpy()
        top = abs(weights).max()
        with numpy.errstate(divide="ignore"):
            places = numpy.sign(weights) * (1 + numpy.log10(abs(weights) / top) / 4).clip(0, 1)
        ahead = ~numpy.tri(20, dtype=bool)
        assert (levels[head][ahead] == BLOCKED).all() and header["tops"][head] == pytest.approx(top)
        assert (
            numpy.abs((levels[head][~ahead].astype(int) - MIDDLE) / MIDDLE - places[~ahead]).max()
            <= 0.5 / MIDDLE + 1e-4
        )
        assert numpy.abs(levels[4 + head] / LEVELS - trace.weights(1, head, "decoder").numpy())[~ahead].max() < 0.003
    told = {one["name"]: one for one in header["metrics"]}
    assert told["previous"]["mixed"] == "Previous token, share of size" and told["row_sum"]["signed"]
    assert header["numbers"]["entropy"][:4] == [None] * 4 and header["numbers"]["reach"][4:] == [None] * 4
    assert header["numbers"]["previous"][:4] == pytest.approx(others["mixer"].table["previous"].tolist(), abs=1e-6)
    names = [one["name"] for one in header["roles"]]
    assert [names[at] for at in header["role"]] == [*others["mixer"].roles["role"], *own.roles["role"]]


def test_a_layer_with_a_matrix_per_channel_is_one_entry_of_what_arrives_in_all() -> None:
    whole = av.wrap(build("jamba")).trace_ids((torch.arange(20)[None] * 7) % 97)
    trace, (layer, *_) = channels_together(whole), whole.layer_numbers("mixer")
    assert channels_together(trace) is trace and trace.fidelity.output_error == whole.fidelity.output_error
    header, levels = unpacked(pack_atlas(trace, "mixer", *tables_of(trace, "mixer")), trace, "mixer")
    (first, *_), mixer = header["layers"], whole.attention(layer, "mixer")
    assert (first["number"], first["heads"], first["drawn"], first["channels"]) == (layer, 1, "arrived", True)
    parts = mixer.weights[..., None].double() * mixer.value[:, None].double()
    arrived = parts.square().sum(dim=(0, -1)).sqrt()
    with numpy.errstate(divide="ignore"):
        places = (1 + numpy.log10((arrived / arrived.max()).numpy()) / 4).clip(0, 1)
    below = numpy.tri(20, dtype=bool)
    assert numpy.abs(levels[0] / LEVELS - places)[below].max() <= 0.5 / LEVELS + 1e-4
