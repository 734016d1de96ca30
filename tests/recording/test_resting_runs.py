"""A long text's run lies in a file as it comes, with the numbers of one that stays in memory."""

import pytest
import torch

import attention_viz as av
from attention_viz.inputs import cost
from attention_viz.operation.terms import same_terms
from attention_viz.trace import memory
from attention_viz.trace.derived import beginning
from attention_viz.trace.memory import LateOutput, RestingFile, is_resting
from attention_viz.trace.trace import Trace
from attention_viz.trace.trace_data import by_row
from tests.models.families import build, ids, wrapped

COUNT = 40
FAMILIES = ["llama", "gpt_oss", "gemma2", "bert"]


@pytest.fixture
def all_are_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "LONG", 2)


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
    def full(*_: object, **__: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr("mmap.mmap", full)
    assert wrapped("llama").trace_ids(ids(COUNT)).resting_bytes == 0
    monkeypatch.setattr(RestingFile, "__init__", full)
    assert wrapped("llama").trace_ids(ids(COUNT)).resting_bytes == 0


def rows_of_logits(model: av.AttentionModel) -> list[int]:
    """Of how many positions logits are made from now on, each time some are."""
    counts: list[int] = []
    head = model.hf_model.get_output_embeddings()
    assert head is not None

    def count(_module: object, _inputs: object, output: torch.Tensor) -> None:
        counts.append(output.shape[1])

    head.register_forward_hook(count)
    return counts


def test_logits_of_a_long_run_are_made_for_the_rows_that_are_looked_at(
    all_are_long: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "ROWS_TOGETHER", 8)
    model = av.wrap(build("llama"))
    _ = model.trace_ids(ids(COUNT))  # tries once how the logits follow
    counts = rows_of_logits(model)
    trace = model.trace_ids(ids(COUNT))
    assert sum(counts) <= 2  # the last row, and the same again to see that it comes out by itself
    counts.clear()
    rows = by_row(trace)
    assert tuple(rows.shape) == (COUNT, 97) and len(rows) == COUNT and rows.dtype == torch.float32
    found = rows[-1]
    assert sum(counts) <= 9
    counts.clear()
    whole = trace.output
    assert sum(counts) <= COUNT + 1
    assert torch.equal(whole[-1], found) and torch.equal(by_row(trace)[5:30], whole[5:30])
    monkeypatch.undo()
    torch.testing.assert_close(whole, model.trace_ids(ids(COUNT)).output)


def test_the_beginning_of_a_long_run_has_its_rows_and_no_others(all_are_long: None) -> None:
    trace = wrapped("llama").trace_ids(ids(COUNT))
    first = beginning(trace, 7)
    assert isinstance(by_row(first), LateOutput)
    assert torch.equal(first.output, trace.output[:7])


def test_logits_of_a_long_run_are_not_another_models(all_are_long: None) -> None:
    model = av.wrap(build("llama"))
    trace = model.trace_ids(ids(COUNT))
    head = model.hf_model.get_output_embeddings()
    assert head is not None
    with torch.no_grad():
        head.weight[17] += 1.0
    with pytest.raises(av.TraceError, match="has changed since this trace was made"):
        _ = trace.output
    with pytest.raises(av.TraceError, match="has changed since this trace was made"):
        _ = by_row(trace)[0]
    with torch.no_grad():
        head.weight[17] -= 1.0


def test_a_wrong_run_is_found_where_its_logits_are_made_later(all_are_long: None) -> None:
    """What the body handed over is what is compared, at every position."""
    trace = wrapped("llama").trace_ids(ids(COUNT))
    rows = by_row(trace)
    assert isinstance(rows, LateOutput)
    (hidden,) = rows.held
    hidden[0, 3] += 0.01
    assert not trace.fidelity.ok


def test_a_model_whose_last_row_follows_from_more_than_its_position_is_run_whole(
    all_are_long: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = av.wrap(build("llama"))

    def blended(_module: object, _inputs: object, output: torch.Tensor) -> torch.Tensor:
        return output - output.mean(dim=1, keepdim=True)

    head = model.hf_model.get_output_embeddings()
    assert head is not None
    handle = head.register_forward_hook(blended)
    trace = model.trace_ids(ids(COUNT))
    monkeypatch.undo()
    usual = model.trace_ids(ids(COUNT))
    handle.remove()
    assert isinstance(by_row(trace), torch.Tensor)
    assert torch.equal(trace.output, usual.output)


@pytest.mark.parametrize("family", FAMILIES)
def test_what_leaves_a_device_arrives_with_the_same_numbers(
    family: str, all_are_long: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without such a device, the CPU's tensors stand for its: they are copied, and written by another thread."""
    monkeypatch.setattr(memory, "is_elsewhere", lambda tensor: not is_resting(tensor))
    monkeypatch.setattr(memory, "MOST_LEAVING", 2)
    model = wrapped(family)
    left = model.trace_ids(ids(COUNT))
    monkeypatch.undo()
    usual = model.trace_ids(ids(COUNT))
    assert same(left, usual)
    call = left.attention(1)
    assert all(is_resting(term) for term in (call.query, call.key, call.value))
    assert left.fidelity.ok


def test_copies_that_wait_to_be_written_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "is_elsewhere", lambda tensor: not is_resting(tensor))
    waited = list[int]()

    def begin(tensor: torch.Tensor) -> tuple[torch.Tensor, object]:
        waited.append(len(file._leaving))
        return tensor.clone(), lambda: None

    monkeypatch.setattr(memory, "begin_copy", begin)
    file, terms = RestingFile(), [torch.randn(2, 30, 4) for _ in range(30)]
    calls = [file.take(av.attend(*terms[at : at + 3])) for at in range(0, 30, 3)]
    file.settle()
    assert max(waited) <= memory.MOST_LEAVING
    for at, call in enumerate(calls):
        assert all(is_resting(one) for one in (call.query, call.key, call.value))
        assert torch.equal(call.value, terms[3 * at + 2])
    assert not file._leaving


def test_a_long_text_goes_on_with_its_output_computed_when_read(
    all_are_long: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = wrapped("llama")
    *_, last = model.extend(model.trace_ids(ids(COUNT)), 3)
    assert isinstance(by_row(last), LateOutput)
    whole = model.trace_ids(torch.tensor([last.query_tokens().numbers]))
    assert last.output.shape == whole.output.shape
    torch.testing.assert_close(last.output, whole.output, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(last.output_at(-1), whole.output_at(-1), rtol=1e-4, atol=1e-5)
    assert last.fidelity.ok
