"""What the painted mask is sent: the run without it, and what each run with it came to."""

import base64
import zlib

import numpy
import pytest
import torch

import attention_viz as av
from attention_viz.explorer.mask_payload import STEPS, pack_board, run_of
from attention_viz.explorer.packet import read_packet
from attention_viz.scratch.model import Scratch
from tests.shipped import shipped

TEXT = "moon cheese frog moon cheese frog"


def at(body: bytes, place: list[int]) -> bytes:
    return body[place[0] : place[0] + place[1]]


def cells(packed: bytes, shape: tuple[int, ...]) -> numpy.ndarray:
    count = int(numpy.prod(shape))
    return numpy.unpackbits(numpy.frombuffer(packed, numpy.uint8), count=count).reshape(shape).astype(bool)


def levels(text: str, shape: tuple[int, ...]) -> numpy.ndarray:
    return numpy.frombuffer(base64.b64decode(text), "<u2").reshape(shape) / STEPS


def test_from_what_is_sent_the_softmax_over_what_is_open_is_what_the_model_does() -> None:
    model = shipped("induction")
    before = model.trace(TEXT)
    n = len(before.query_tokens())
    name, data = pack_board(before, "decoder", 0, 1)
    header, body = read_packet(data)
    assert (name, header["layer"], header["head"]) == (header["id"], 0, 1)
    assert name != pack_board(before, "decoder", 1, 1)[0]
    logits = torch.tensor(numpy.frombuffer(at(body, header["logits"]), "<f4").reshape(n, n).copy())
    own = cells(zlib.decompress(at(body, header["open"])), (n, n))
    assert (own == numpy.tri(n, dtype=bool)).all()
    allowed = av.masks.sliding_window(n, 2)
    after = model.trace(TEXT, edits=[av.Allow(allowed)])
    live = logits.masked_fill(~(torch.from_numpy(own) & allowed), -torch.inf).softmax(-1)
    assert abs(live - after.weights(0, 1)).max() <= 1e-6
    values = torch.tensor(numpy.frombuffer(at(body, header["values"]), "<f4").reshape(n, -1).copy())
    assert abs(live @ values - after.attention(0).head(1).output).max() <= 1e-5
    told = run_of(before, after, "decoder", 0, 1)
    assert levels(told["weights"], (n, n)) == pytest.approx(after.weights(0, 1).numpy(), abs=1e-5)
    assert (cells(base64.b64decode(told["open"]), (n, n)) == (own & allowed.numpy())).all()


def test_the_other_heads_come_along_where_they_are_few() -> None:
    model = shipped("induction")
    before, after = model.trace(TEXT), model.trace(TEXT, edits=[av.Block(2, 1)])
    n = len(before.query_tokens())
    header, body = read_packet(pack_board(before, "decoder", 0, 0)[1])
    sent = numpy.frombuffer(at(body, header["weights"]), "<u2").reshape(-1, n, n) / STEPS
    told = run_of(before, after, "decoder", 0, 0)
    now, place = levels(told["others"], sent.shape), 0
    for layer, one in enumerate(header["layers"]):
        for head in range(one["heads"]):
            assert sent[place] == pytest.approx(before.weights(layer, head).numpy(), abs=1e-5)
            assert now[place] == pytest.approx(after.weights(layer, head).numpy(), abs=1e-5)
            place += 1
    long = av.scratch(" ".join(["boat"] * 500))
    header, _ = read_packet(pack_board(long, "encoder", 0, 0)[1])
    assert header["weights"] is None and header["opens"] is None
    assert run_of(long, long, "encoder", 0, 0)["others"] is None


def test_what_a_mask_did_is_told_in_numbers_and_nothing_of_no_mask() -> None:
    scratch, text = Scratch(8, 2), "The cat sat on mat"
    before, after = scratch.trace(text), scratch.trace(text, edits=[av.Allow(av.masks.causal(5))])
    told = run_of(before, after, "encoder", 0, 0)
    moved = (after.output - before.output).norm(dim=-1) / before.output.norm(dim=-1)
    assert told["outputs"] == pytest.approx(moved.tolist(), abs=1e-6)
    lost = (before.attention(0).weights - after.attention(0).weights).clamp_min(0).sum(-1).mean(-1)
    assert told["heads"] == [pytest.approx(lost.tolist(), abs=1e-6)]
    means = [trace.output.mean(0) for trace in (before, after)]
    assert told["cosine"] == pytest.approx(float(torch.cosine_similarity(*means, dim=0)), abs=1e-5)
    nothing = run_of(before, before, "encoder", 0, 0)
    assert not any(nothing["outputs"]) and not any(map(any, nothing["heads"])) and nothing["cosine"] == 1
