"""The counter finds attention that a trace neither has nor names."""

from dataclasses import replace

import pytest
import torch

import attention_viz as av
from attention_viz.models.model import AttentionModel
from scripts.counting import counted, unaccounted
from scripts.seen.building import tiny_seen
from scripts.seen.reading import example_of
from scripts.tiny import Family, tiny

IDS = torch.tensor([[5, 17, 29, 41, 53]])
INPUTS = {"input_ids": IDS, "attention_mask": torch.ones_like(IDS)}


@pytest.mark.parametrize(
    ("name", "model_class"),
    [
        ("gpt2", "GPT2LMHeadModel"),
        ("bloom", "BloomForCausalLM"),
        ("diffllama", "DiffLlamaForCausalLM"),
        ("longformer", "LongformerModel"),
    ],
)
def test_a_missing_layer_is_found(name: str, model_class: str) -> None:
    wrapped = av.wrap(tiny(Family(name, model_class)))
    assert unaccounted(wrapped, wrapped.trace_ids(IDS), INPUTS) == ""
    assert "neither has nor names" in unaccounted(wrapped, wrapped.trace_ids(IDS, layers=[0]), INPUTS)


def test_a_missing_head_is_found() -> None:
    wrapped = av.wrap(tiny(Family("gpt2", "GPT2LMHeadModel")))
    trace = wrapped.trace_ids(IDS)
    first, second = trace.layers["decoder"]
    call = second.attention
    fewer = replace(call, query=call.query[1:], key=call.key[1:], value=call.value[1:])
    without = trace.derived(layers={"decoder": (first, replace(second, attention=fewer))})
    assert "20 rows of heads in transformer.h.1.attn, and the trace has 15" in unaccounted(wrapped, without, INPUTS)


def test_attention_that_is_left_out_has_to_be_named() -> None:
    model = next(tiny_seen(Family("chameleon", "ChameleonForConditionalGeneration")))
    inputs = example_of(model)
    wrapped = av.wrap(model, inputs=inputs)
    trace = wrapped.trace(inputs)
    assert wrapped.left_out
    assert unaccounted(wrapped, trace, inputs) == ""
    parts = wrapped._parts  # pyright: ignore[reportPrivateUsage] -- a model that names nothing
    silent = AttentionModel(replace(parts, facts=replace(parts.facts, left_out=())))
    bare = trace.derived(provenance=replace(trace.provenance, notes=()))
    assert "attends in model.vqmodel.encoder.mid.attn_1, which" in unaccounted(silent, bare, inputs)


class Again(torch.nn.Module):
    """Attends again and again, with tensors that take the place of earlier ones in memory."""

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return (1, head, token, width)."""
        attend, found = torch.nn.functional.scaled_dot_product_attention, tokens
        for _ in range(8):
            found = attend(found + 1, found + 2, tokens)
        return found


def test_calls_in_one_place_of_memory_are_all_counted() -> None:
    heads, queries = 3, 64
    assert counted(Again(), {"tokens": torch.rand(1, heads, queries, 32)}, {}) == {"": 8 * heads * queries}
