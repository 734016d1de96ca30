"""A long text's run lies in a file as it comes, with the numbers of one that stays in memory."""

import pytest
import torch

import attention_viz as av
from attention_viz.models.recording import tracer
from attention_viz.operation.terms import same_terms
from attention_viz.trace.resting import RestingFile, is_resting
from attention_viz.trace.trace import Trace
from tests.models.families import ids, wrapped

COUNT = 40
FAMILIES = ["llama", "gpt_oss", "gemma2", "bert"]


@pytest.fixture
def all_are_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracer, "_LONG", 2)


def same(one: Trace, other: Trace) -> bool:
    (layers,), (others,) = one.layers.values(), other.layers.values()
    return torch.equal(one.output, other.output) and all(
        same_terms(layer.attention, theirs.attention, torch.equal) for layer, theirs in zip(layers, others, strict=True)
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_it_has_the_same_numbers_and_is_as_faithful(
    family: str, all_are_long: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = wrapped(family)
    rested = model.trace_ids(ids(COUNT))
    monkeypatch.undo()
    usual = model.trace_ids(ids(COUNT))
    assert same(rested, usual)
    assert rested.fidelity.ok
    assert usual.resting_bytes == 0
    call = rested.attention(1)
    assert all(is_resting(term) for term in (call.query, call.key, call.value, rested.output))
    assert rested.nbytes < usual.nbytes / 2
    assert rested.resting_bytes + rested.nbytes >= usual.nbytes


def test_an_edited_run_and_what_stands_around_it_are_as_without_a_file(
    all_are_long: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, edits = wrapped("llama"), [av.Ablate(0, 1), av.Temperature(2.0, layer=1)]
    rested = model.trace_ids(ids(COUNT), edits=edits)
    around = rested.layer(1)
    monkeypatch.undo()
    usual = model.trace_ids(ids(COUNT), edits=edits)
    assert same(rested, usual)
    assert torch.equal(around.embeddings, usual.layer(1).embeddings)
    assert rested.fidelity.ok


def test_it_is_saved_and_read_again(all_are_long: None, tmp_path: object) -> None:
    trace = wrapped("llama").trace_ids(ids(COUNT))
    trace.save(f"{tmp_path}/trace")
    assert same(trace, Trace.load(f"{tmp_path}/trace"))


def test_a_short_run_stays_in_memory() -> None:
    assert wrapped("llama").trace_ids(ids(COUNT)).resting_bytes == 0


def test_where_there_is_no_room_for_a_file_it_stays_in_memory(
    all_are_long: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(RestingFile, "_put", full)
    assert wrapped("llama").trace_ids(ids(COUNT)).resting_bytes == 0
    monkeypatch.setattr(RestingFile, "__init__", full)
    assert wrapped("llama").trace_ids(ids(COUNT)).resting_bytes == 0
