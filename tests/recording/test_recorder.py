"""What our function records inside a model is what transformers' eager attention computes, in every head."""

import dataclasses
from pathlib import Path

import pytest
import torch
from torch import Tensor

import attention_viz as av
from tests.models.families import DECODERS, ENCODERS, build, eager, eager_twin, ids, wrapped

COUNT = 13
PADDINGS = {
    "unpadded": [1] * COUNT,
    "padded left": [0] * 3 + [1] * (COUNT - 3),
    "padded right": [1] * (COUNT - 3) + [0] * 3,
}


def relative(ours: Tensor, theirs: Tensor) -> float:
    return ((ours - theirs).abs().max() / theirs.abs().max()).item()


@pytest.mark.parametrize("family", [*ENCODERS, *DECODERS])
def test_every_head_and_the_output_equal_eager(family: str) -> None:
    model = wrapped(family)
    reference = eager_twin(build(family))
    assert model.stream == ("encoder" if family in ENCODERS else "decoder")
    for padding, mask in PADDINGS.items():
        attention_mask = torch.tensor([mask])
        real = attention_mask[0].bool()
        trace = model.trace_ids(ids(COUNT), attention_mask)
        output, weights = eager(reference, input_ids=ids(COUNT), attention_mask=attention_mask)
        assert trace.layer_count() == len(weights), padding
        for layer, theirs in enumerate(weights):
            ours = trace.attention(layer).weights
            assert ours.shape == theirs.shape
            assert theirs[:, real].max() > 1.4 / COUNT, "uniform attention would prove nothing"
            assert relative(ours[:, real], theirs[:, real]) < 1e-5, (padding, layer)
            assert not ours[:, :, ~real].any(), (padding, layer)
        rows = real if len(output) == COUNT else slice(None)
        assert trace.output.shape == output.shape
        assert relative(trace.output[rows], output[rows]) < 1e-5, padding
        assert trace.fidelity.ok
        assert trace.query_tokens().padding == tuple((~real).tolist())


@pytest.mark.parametrize("family", DECODERS)
def test_a_decoder_reads_a_single_token(family: str) -> None:
    trace = wrapped(family).trace_ids(ids(1))
    assert trace.attention(0).shape[1:] == (1, 1)
    assert trace.fidelity.ok


def test_a_sliding_window_shorter_than_the_text_blocks_what_is_further_away() -> None:
    trace = wrapped("mistral").trace_ids(ids(COUNT))
    expected = av.masks.combine(av.masks.causal(COUNT), av.masks.sliding_window(COUNT, 4))
    for layer in range(3):
        assert torch.equal(trace.attention(layer).weights > 0, expected.expand(6, -1, -1))


def test_sinks_take_their_share_so_that_rows_sum_to_less_than_one() -> None:
    trace = wrapped("gpt_oss").trace_ids(ids(COUNT))
    sums = trace.attention(1).weights.sum(dim=-1)
    assert trace.attention(1).sinks is not None
    assert (sums < 1).all()


def test_a_softcap_bounds_what_enters_the_softmax() -> None:
    attention = wrapped("gemma2").trace_ids(ids(COUNT)).attention(0)
    assert attention.softcap == 0.5
    assert attention.scaled.abs().max() > 0.5
    assert attention.masked[attention.masked.isfinite()].abs().max() <= 0.5


def test_position_biases_are_kept_beside_the_scores() -> None:
    attention = wrapped("t5 encoder").trace_ids(ids(COUNT)).attention(0)
    assert attention.scale == 1
    assert attention.bias is not None
    assert attention.allowed is None


def test_grouped_heads_keep_the_keys_they_share() -> None:
    attention = wrapped("llama").trace_ids(ids(COUNT)).attention(0)
    assert attention.query.shape == (6, COUNT, 8)
    assert attention.key.shape == attention.value.shape == (2, COUNT, 8)


def test_layers_that_share_a_mask_share_its_memory() -> None:
    trace = wrapped("llama").trace_ids(ids(COUNT))
    first = trace.attention(0).allowed
    assert first is not None
    assert all(trace.attention(layer).allowed.data_ptr() == first.data_ptr() for layer in (1, 2))


def test_a_module_that_serves_every_layer_is_as_many_layers_as_calls() -> None:
    trace = wrapped("albert").trace_ids(ids(COUNT))
    assert trace.layer_count() == 3
    assert [layer.label for layer in trace.layers["encoder"]] == ["0", "1", "2"]


def test_a_hybrid_shows_its_attention_layers_under_the_models_own_numbers() -> None:
    trace = av.wrap(build("jamba", num_hidden_layers=4)).trace_ids(ids(COUNT))
    assert [layer.label for layer in trace.layers["decoder"]] == ["1", "3"]


def test_heads_that_speak_of_the_whole_text_give_one_row() -> None:
    assert wrapped("bert that classifies").trace_ids(ids(COUNT)).output.shape == (1, 2)
    assert wrapped("bert that answers").trace_ids(ids(COUNT)).output.shape == (COUNT, 2)


@pytest.mark.parametrize(("dtype", "bound"), [(torch.bfloat16, 5e-2), (torch.float16, 1e-2), (torch.float64, 1e-5)])
@pytest.mark.parametrize("family", ["bert with a head", "llama", "gemma2"])
def test_other_precisions_stay_within_their_stated_bound(family: str, dtype: torch.dtype, bound: float) -> None:
    trace = av.wrap(build(family).to(dtype)).trace_ids(ids(COUNT))
    assert trace.provenance.dtype == str(dtype).removeprefix("torch.")
    assert trace.fidelity.bound == bound
    assert trace.fidelity.ok


def test_recording_twice_gives_the_same_bits() -> None:
    model = wrapped("llama")
    first, second = model.trace_ids(ids(COUNT)), model.trace_ids(ids(COUNT))
    assert torch.equal(first.output, second.output)
    for layer in range(3):
        for field in dataclasses.fields(first.attention(layer)):
            ours, again = (getattr(trace.attention(layer), field.name) for trace in (first, second))
            assert torch.equal(ours, again) if isinstance(ours, Tensor) else ours == again


def test_a_saved_trace_is_the_same_to_the_last_bit(tmp_path: Path) -> None:
    trace = wrapped("gpt_oss").trace_ids(ids(COUNT), torch.tensor([PADDINGS["padded left"]]))
    trace.save(tmp_path / "trace")
    loaded = av.Trace.load(tmp_path / "trace")
    assert torch.equal(loaded.output, trace.output)
    assert loaded.fidelity == trace.fidelity
    assert loaded.provenance == trace.provenance
    assert loaded.query_tokens() == trace.query_tokens()
    for layer in range(3):
        assert torch.equal(loaded.attention(layer).weights, trace.attention(layer).weights)
        assert torch.equal(loaded.attention(layer).sinks, trace.attention(layer).sinks)
