"""Recorded runs that ship are those that the models of today make, and stand for nothing else."""

import json
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy
import pytest

import attention_viz as av
from attention_viz.explorer.packet import read_packet
from attention_viz.serving import recorded
from attention_viz.serving.recorded import recorded_payload, write_recorded
from attention_viz.serving.run import Request
from attention_viz.serving.runs import run_request
from attention_viz.ui.address import DEFAULT, State, own_example
from attention_viz.ui.address.state import OPENINGS
from attention_viz.ui.packing import payload_of
from tests.explorer.test_payload import weights

OPENED = [State(model=model, text=own_example(model)).request for model in OPENINGS]


def opened(payload: bytes) -> tuple[dict[str, Any], list[numpy.ndarray]]:
    """The header without the places of its planes, and each layer's weights as the browser reads them."""
    header, body = read_packet(payload)
    found = [weights(header, body, stream, at) for stream in header["streams"] for at in range(len(stream["layers"]))]
    for stream in header["streams"]:
        stream["layers"] = [{**layer, "high": 0, "low": 0, "sums": 0} for layer in stream["layers"]]
    return header, found


@pytest.mark.parametrize("request_", OPENED, ids=lambda request: request.model)
def test_a_recorded_run_is_that_of_a_live_one(request_: Request) -> None:
    payload = recorded_payload(request_)
    assert payload is not None, "nothing is recorded of it: make recorded"
    (header, found), (live, expected) = opened(payload), opened(payload_of(run_request(request_)))
    strengths = [[one.pop("strength") for one in told["findings"]] for told in (header, live)]
    assert strengths[0] == pytest.approx(strengths[1], abs=1e-5)
    assert header == live
    assert len(found) == len(expected) > 0
    # Another machine adds in another order, and a weight where two intervals meet may come into the other one.
    assert max(abs(one - other).max() for one, other in zip(found, expected, strict=True)) <= 1.01 / header["levels"]
    assert max(one.max() for one in found) > 0.5


def test_what_the_app_opens_on_is_recorded() -> None:
    assert recorded_payload(DEFAULT.request) is not None


@pytest.mark.parametrize(
    "other",
    [
        {"text": "Another text"},
        {"second": "More"},
        {"special_tokens": False},
        {"model": "lists"},
        {"model": "../recordings/coreference"},
        {"model": "scratch"},
    ],
)
def test_a_recorded_run_stands_for_no_other(other: dict[str, Any]) -> None:
    assert recorded_payload(replace(DEFAULT.request, **other)) is None


def test_one_of_other_weights_or_of_a_model_that_is_not_here_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = av.CATALOGUE[DEFAULT.model]
    for changed in ({"sha256": "0" * 64}, {"package": "a_package_that_is_not_there"}):
        monkeypatch.setitem(av.CATALOGUE, DEFAULT.model, replace(entry, **changed))
        assert recorded_payload(DEFAULT.request) is None


def test_what_is_recorded_is_read_again_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    request = Request("lists", "copy c a f :")
    write_recorded(request, zlib.compress(b"bytes"), tmp_path / "new")
    assert json.loads((tmp_path / "new" / "lists.json").read_text())["request"]["text"] == "copy c a f :"
    monkeypatch.setattr(recorded, "FOLDER", tmp_path / "new")
    recorded._read.cache_clear()
    try:
        assert recorded_payload(request) == zlib.compress(b"bytes")
    finally:
        recorded._read.cache_clear()
