"""Of long texts a part of the weights is compared, and the whole output; what is wrong there is seen, and said."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

import attention_viz as av
from attention_viz.analysis.places import sample_of
from attention_viz.recording import fidelity
from attention_viz.recording.differences import Real
from attention_viz.recording.fidelity import compare
from attention_viz.recording.references.eager_weights import EagerWeights
from attention_viz.recording.runner import Pass, Runner
from tests.models.families import build, ids

COUNT, ROWS = 40, 8


@pytest.fixture(autouse=True)
def long_from_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fidelity, "MOST_WHOLE", 16)
    monkeypatch.setattr(fidelity, "FEWEST_ROWS", ROWS)
    monkeypatch.setattr(fidelity, "BYTES_AT_ONCE", 0)


def read(family: str, *, padded: int = 0, **changes: object) -> tuple[Runner, dict[str, Tensor], Pass]:
    runner, row = Runner.of(build(family, **changes)), ids(COUNT)
    inputs = {"input_ids": row, "attention_mask": (torch.arange(COUNT) >= padded).long()[None]}
    if runner.answers:
        inputs |= {"decoder_input_ids": row[:, :30]}
    inputs = runner.inputs(inputs)
    return runner, inputs, runner.record(inputs)


def spoilt(recorded: Pass, number: int, *positions: int) -> Pass:
    """The pass with queries of one head that aren't what they were."""
    calls = list(recorded.calls)
    query = calls[number].attention.query.clone()
    query[1, list(positions)] *= 1.05
    calls[number] = replace(calls[number], attention=replace(calls[number].attention, query=query))
    return replace(recorded, calls=tuple(calls))


def check_output_is_seen_everywhere(runner: Runner, inputs: dict[str, Tensor], recorded: Pass) -> None:
    for position in (0, len(recorded.output) // 2, len(recorded.output) - 1):
        output = recorded.output.clone()
        output[position, 3] += 0.01 * float(output.abs().max())
        found = compare(replace(recorded, output=output), runner, inputs)
        assert found.output_error > found.bound and not found.ok


@pytest.mark.parametrize("family", ["llama", "gpt2", "mistral", "qwen3", "jamba"])
def test_of_a_decoder_the_first_tokens_are_compared_and_the_whole_output(family: str) -> None:
    runner, inputs, recorded = read(family)
    found = compare(recorded, runner, inputs)
    assert found.ok and found.rows == ROWS
    assert f"first {ROWS} tokens" in found.reference
    assert not compare(spoilt(recorded, 0, ROWS - 1), runner, inputs).ok
    check_output_is_seen_everywhere(runner, inputs, recorded)


@pytest.mark.parametrize("family", ["bert", "bert with a head", "bart", "distilbert"])
def test_elsewhere_rows_from_all_over_the_text_are_compared_and_the_whole_output(family: str) -> None:
    runner, inputs, recorded = read(family)
    found = compare(recorded, runner, inputs)
    assert found.ok and found.rows == ROWS
    assert f"{ROWS} rows from all over the text" in found.reference
    assert not compare(spoilt(recorded, 1, *sample_of(range(COUNT), ROWS)), runner, inputs).ok
    check_output_is_seen_everywhere(runner, inputs, recorded)


@pytest.mark.parametrize("family", ["gpt_oss", "gemma2", "t5 encoder", "t5"])
def test_where_a_model_is_eager_by_itself_all_its_weights_are_compared_some_rows_at_a_time(
    family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attention_viz.analysis.blocks.CELLS_AT_A_TIME", 7 * 5 * COUNT)
    runner, inputs, recorded = read(family, attn_implementation="eager")
    heard: list[int] = []
    with monkeypatch.context() as patch:
        patch.setattr(EagerWeights, "hear", lambda _self, _module, _outputs: heard.append(1))
        found = compare(recorded, runner, inputs)
    assert found.ok and found.rows is None
    assert found.reference == "the same model with its own attention (eager)"
    assert not heard  # no module handed back the weights of a whole layer
    for position in (5, 17, 29):
        assert not compare(spoilt(recorded, 1, position), runner, inputs).ok


def test_padding_is_left_out_of_the_rows_that_are_compared() -> None:
    runner, inputs, recorded = read("llama", padded=5)
    real = [position >= 5 for position in range(COUNT)]
    found = compare(recorded, runner, inputs, Real(real, [real] * len(recorded.calls)))
    assert found.ok and f"{ROWS} rows" in found.reference


def test_a_model_that_reads_the_beginning_of_a_text_in_another_way_is_compared_whole() -> None:
    """Its positions are stretched by how long the text is, so that a part of it isn't what it is in the whole."""
    stretched = {"rope_type": "dynamic", "rope_theta": 10_000.0, "factor": 4.0}
    runner, inputs, recorded = read("llama", max_position_embeddings=16, rope_parameters=stretched)
    found = compare(recorded, runner, inputs)
    assert found.ok and found.rows is None and "eager attention for the weights" in found.reference
    assert not compare(spoilt(recorded, 0, COUNT - 1), runner, inputs).ok


def test_a_trace_says_how_many_rows_were_compared_and_a_file_keeps_it(tmp_path: Path) -> None:
    trace = av.wrap(build("llama")).trace_ids(ids(COUNT))
    assert trace.fidelity.rows == ROWS
    trace.save(tmp_path / "trace")
    assert av.Trace.load(tmp_path / "trace").fidelity == trace.fidelity


def test_an_output_is_made_piece_by_piece_and_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    runner, inputs, recorded = read("llama")
    monkeypatch.setattr("attention_viz.recording.twin.NUMBERS_AT_A_TIME", 7 * recorded.output.shape[1])
    pieces: list[tuple[slice, Tensor]] = []
    twin = runner.twin()
    twin.run_in_pieces(inputs, COUNT, lambda rows, numbers: pieces.append((rows, numbers)))
    assert [len(numbers) for _, numbers in pieces] == [7, 7, 7, 7, 7, 5]
    torch.testing.assert_close(torch.cat([numbers for _, numbers in pieces]), twin.run(inputs))
