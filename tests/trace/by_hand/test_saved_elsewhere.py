"""Queries, keys and values saved elsewhere, flat and before their positions, against transformers' weights."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers import (
    CohereConfig,
    CohereForCausalLM,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    SmolLM3Config,
    SmolLM3ForCausalLM,
)

import attention_viz as av

NUMBERS = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 50}
OTHERS = {"intermediate_size": 64, "max_position_embeddings": 64, "initializer_range": 0.3, "pad_token_id": 0}
SIZE: dict[str, Any] = {**NUMBERS, **OTHERS}
GROUPED: dict[str, Any] = {**SIZE, "num_key_value_heads": 2}
# Every second layer without positions.
SPARSE: dict[str, Any] = {
    **GROUPED,
    "no_rope_layers": [1, 0],
    "rope_parameters": {"rope_theta": 2e6, "rope_type": "default"},
}
IDS = torch.arange(1, 24)[None]
YARN = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 2.0, "original_max_position_embeddings": 16}


def keeper(kept: list[Tensor]) -> Callable[[nn.Module, Any, Tensor], None]:
    """A hook that keeps a module's outputs."""

    def keep(_module: nn.Module, _args: Any, output: Tensor) -> None:
        kept.append(output)

    return keep


def saved(model: PreTrainedModel) -> tuple[dict[str, list[Tensor]], list[Tensor]]:
    """Each layer's projections before positions, and transformers' weights."""
    model.set_attn_implementation("eager")
    parts: dict[str, list[Tensor]] = {"query": [], "key": [], "value": []}
    for name, kind in (("q_proj", "query"), ("k_proj", "key"), ("v_proj", "value")):
        for path, module in model.named_modules():
            if path.endswith(name):
                module.register_forward_hook(keeper(parts[kind]))
    with torch.no_grad():
        weights = model(IDS, output_attentions=True).attentions
    return parts, [one[0] for one in weights]


def difference(trace: av.Trace, weights: list[Tensor]) -> float:
    return max(float((trace.attention(layer).weights - one).abs().max()) for layer, one in enumerate(weights))


@pytest.mark.parametrize(
    ("model", "rope"),
    [
        (LlamaForCausalLM(LlamaConfig(**GROUPED)), av.Rope()),
        (LlamaForCausalLM(LlamaConfig(**GROUPED, rope_parameters=YARN)), av.Rope(scaling=YARN)),
        (CohereForCausalLM(CohereConfig(**GROUPED)), av.Rope(5e5, interleaved=True)),
        (
            SmolLM3ForCausalLM(SmolLM3Config(**SPARSE)),
            [av.Rope(2e6), None],
        ),
    ],
    ids=["llama", "yarn", "cohere", "smollm3"],
)
def test_flat_projections_and_their_positions_give_transformers_weights(model: Any, rope: Any) -> None:
    parts, weights = saved(model.eval())
    given: dict[str, Any] = {**parts, "allowed": av.masks.causal(23), "layout": "flat", "d_k": 16}
    trace = av.Trace.from_qkv(**given, rope=rope, labels=[str(one) for one in IDS[0].tolist()])
    assert difference(trace, weights) <= 1e-5 and trace.head_count(0) == 4 and trace.fidelity.ok
    assert "rotated to their positions afterwards, by Rope(theta=" in trace.provenance.notes[0]
    assert difference(av.Trace.from_qkv(**given), weights) > 1e-3, "without positions they are other weights"


def test_a_models_own_tables_and_its_scale_are_taken() -> None:
    model: Any = GPTNeoXForCausalLM(GPTNeoXConfig(**SIZE, rotary_pct=0.5)).eval()  # pyright: ignore[reportCallIssue]
    model.set_attn_implementation("eager")
    fused: list[Tensor] = []
    for layer in model.gpt_neox.layers:
        layer.attention.query_key_value.register_forward_hook(keeper(fused))
    with torch.no_grad():
        weights = [one[0] for one in model(IDS, output_attentions=True).attentions]
        tables = model.gpt_neox.rotary_emb(torch.zeros(1), torch.arange(23)[None])
    query, key, value = ([one.unflatten(-1, (4, 48)).chunk(3, -1)[at] for one in fused] for at in range(3))
    for rope in (tables, [tables, tables], av.Rope(dim=8)):
        trace = av.Trace.from_qkv(query, key, value, av.masks.causal(23), layout="bshd", rope=rope)
        assert difference(trace, weights) <= 1e-5


def test_the_last_rows_of_a_text_have_their_own_positions() -> None:
    parts, weights = saved(LlamaForCausalLM(LlamaConfig(**GROUPED)).eval())
    last = [one[:, -5:] for one in parts["query"]]
    trace = av.Trace.from_qkv(
        last, parts["key"], parts["value"], av.masks.causal(5, 23), layout="flat", d_k=16, rope=av.Rope()
    )
    assert trace.attention(0).shape == (4, 5, 23)
    assert difference(trace, [one[:, -5:] for one in weights]) <= 1e-5


FLAT = torch.randn(5, 32)


@pytest.mark.parametrize(
    ("query", "value", "options", "message"),
    [
        (FLAT, FLAT, {"layout": "flat"}, 'layout="flat" needs the width of a head'),
        (FLAT, FLAT, {"layout": "bshd", "d_k": 8}, "no other layout takes one; got layout='bshd', d_k=8"),
        (FLAT, FLAT, {"layout": "flat", "d_k": 7}, r"a flat query must be .* with d_k 7; got \(5, 32\)"),
        (FLAT, FLAT, {"layout": "flat", "d_k": 0}, "d_k must be a whole number, 1 or more; got 0"),
        (FLAT[None, None], FLAT, {"layout": "flat", "d_k": 8}, "a flat query must be"),
        (FLAT, FLAT[:, :30], {"layout": "flat", "d_k": 8}, r"with 4 key heads, a flat value must be .*got \(5, 30\)"),
        ([FLAT], FLAT, {"layout": "flat", "d_k": 8}, "a flat query must be .*got list"),
    ],
)
def test_flat_tensors_that_dont_fit_are_refused(query: Any, value: Any, options: Any, message: str) -> None:
    with pytest.raises(av.ShapeError, match=message):
        av.Trace.from_qkv(query, FLAT, value, **options)


def test_lists_of_other_lengths_are_refused_as_in_every_layout() -> None:
    with pytest.raises(av.ShapeError, match="each a list with one tensor per layer"):
        av.Trace.from_qkv([FLAT], [FLAT, FLAT], [FLAT], layout="flat", d_k=8)
    with pytest.raises(av.ShapeError, match="1 entries for 2 layers"):
        av.Trace.from_qkv([FLAT] * 2, [FLAT] * 2, [FLAT] * 2, layout="flat", d_k=8, rope=[av.Rope()])


def test_a_long_texts_output_is_computed_some_rows_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    query, key, value = torch.randn(2, 50, 8), torch.randn(2, 50, 8), torch.randn(2, 50, 3)
    whole = av.Trace.from_qkv(query, key, value, av.masks.causal(50), softcap=2.0)
    monkeypatch.setattr("attention_viz.trace.given.from_tensors.WEIGHTS_AT_ONCE", 700)
    parts = av.Trace.from_qkv(query, key, value, av.masks.causal(50), softcap=2.0)
    assert torch.allclose(parts.output, whole.output, atol=1e-6)
