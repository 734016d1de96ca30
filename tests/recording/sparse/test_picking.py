"""The keys that indexers pick are recorded with their scores: picked keys are exactly those that attention allows."""

import functools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close
from transformers import PreTrainedModel

import attention_viz as av
from attention_viz.recording.sparse import picking as listening
from attention_viz.steps.arithmetic import open_cell
from attention_viz.steps.head import open_head
from attention_viz.steps.steps import STEPS, steps_of
from attention_viz.trace.picking import Picking
from scripts.tiny import Family, tiny
from tests.models.families import ids

COUNT = 13
_MINIMAX: dict[str, Any] = {
    "layer_types": ["minimax_m3_sparse", "minimax_m3_sparse"],
    "index_block_size": 2,
    "index_topk_blocks": 2,
    "index_local_blocks": 1,
}


def _minimax() -> PreTrainedModel:
    model = tiny(Family("minimax_m3_vl_text", "MiniMaxM3VLForCausalLM"), scale=2)
    config = type(model.config)(**{**model.config.to_dict(), **_MINIMAX, "num_key_value_heads": 2, "index_n_heads": 2})
    torch.manual_seed(3)
    made = type(model)(config).eval()
    with torch.no_grad():
        for weights in made.parameters():
            if weights.ndim > 1:
                weights.mul_(4)
    return made


def _qwen4() -> PreTrainedModel:
    model = tiny(Family("qwen4_exp_text", "Qwen4ExpForCausalLM"), scale=2)
    for module in model.modules():
        if hasattr(module, "block_topk"):
            module.token_budget, module.compress_ratio, module.block_topk = 4, 2, 2
    return model


@functools.cache
def model_of(name: str) -> PreTrainedModel:
    if name == "minimax":
        return _minimax()
    if name == "qwen4":
        return _qwen4()
    return tiny(
        Family(name, {"deepseek_v32": "DeepseekV32ForCausalLM", "glm_moe_dsa": "GlmMoeDsaForCausalLM"}[name]), scale=2
    )


@functools.cache
def wrapped(name: str) -> Any:
    return av.wrap(model_of(name))


def indexers_of(model: PreTrainedModel) -> list[nn.Module]:
    return [one for one in model.modules() if type(one).__name__.endswith("Indexer")]


@pytest.mark.parametrize("padded", [0, 2, -2])
@pytest.mark.parametrize("name", ["deepseek_v32", "glm_moe_dsa", "minimax", "qwen4"])
def test_picked_keys_are_those_that_attention_allows(name: str, padded: int) -> None:
    mask = torch.ones(1, COUNT, dtype=torch.long)
    mask[:, slice(None, padded) if padded > 0 else slice(COUNT + padded, None)] = 0
    trace, real = wrapped(name).trace_ids(ids(COUNT), mask), mask[0].bool()
    assert trace.fidelity.ok, trace.fidelity
    found = 0
    for number in trace.layer_numbers("decoder"):
        layer = trace.layer(number, "decoder")
        if layer.picking is None:
            continue
        found += 1
        heads = layer.attention.shape[0]
        for head in range(heads):
            own = layer.picking.head(head, heads)
            weights = layer.attention.weights[head]
            assert not bool(weights[real][~own.picked[real]].any())
            assert float((weights[real] > 0).logical_or(~(own.picked & real)[real]).float().mean()) > 0.95
            # Nothing left out scores higher than what was picked.
            margins = own.margins
            assert bool((margins[own.left_out] <= 1e-6).all())
            assert bool((margins[own.picked & margins.isfinite()] >= 0).all())
            assert not bool(own.left_out.logical_and(~torch.ones(COUNT, COUNT).tril().bool()).any())
            assert not bool(own.left_out[:, ~real].any())
    assert found


def test_the_scores_are_the_indexers_own() -> None:
    """By the formula of DeepSeek-AI 2025, "DeepSeek-V3.2", eq. 1, from what enters the indexer."""
    model, heard = model_of("deepseek_v32"), list[Tensor]()
    (indexer, *_) = indexers_of(model)
    topk = torch.Tensor.topk

    def keep(scores: Tensor, *given: Any, **named: Any) -> Any:
        heard.append(scores.clone())
        return topk(scores, *given, **named)

    forward = indexer.forward

    def listened(*given: Any, **named: Any) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(torch.Tensor, "topk", keep)
            return forward(*given, **named)

    indexer.forward = listened
    try:
        with torch.no_grad():
            model(ids(COUNT), use_cache=False)
    finally:
        del indexer.forward
    layer = wrapped("deepseek_v32").trace_ids(ids(COUNT)).layer(0, "decoder")
    open_keys = torch.ones(COUNT, COUNT).tril().bool()
    assert_close(layer.picking.scores[0][open_keys], heard[0][0][open_keys], rtol=0, atol=1e-5)


def test_a_cut_that_is_moved_by_one_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    right = listening.HeardIndexer

    def moved(module: nn.Module, choices: Any) -> Any:
        return right(module, [(scores, places[..., :-1]) for scores, places in choices])

    assert wrapped("deepseek_v32").trace_ids(ids(COUNT)).layer(0, "decoder").picking is not None
    monkeypatch.setattr(listening, "HeardIndexer", moved)
    assert wrapped("deepseek_v32").trace_ids(ids(COUNT)).layer(0, "decoder").picking is None


def test_files_tables_and_steps_show_what_was_left_out(tmp_path: Path) -> None:
    trace = wrapped("deepseek_v32").trace_ids(ids(COUNT))
    trace.save(tmp_path / "picked.safetensors")
    back = av.Trace.load(tmp_path / "picked.safetensors")
    (one, other) = (found.layer(1, "decoder").picking for found in (trace, back))
    assert isinstance(one, Picking) and isinstance(other, Picking)
    assert torch.equal(one.scores, other.scores) and torch.equal(one.picked, other.picked)
    table = av.picked_table(back, layer=1)
    assert len(table) == COUNT * (COUNT + 1) // 2
    assert int((~table["picked"]).sum()) == int(one.left_out.sum()) > 0
    assert bool((table["margin"][~table["picked"]] <= 0).all())
    opened = open_head(back, 1, 0)
    names = list(steps_of(opened))
    assert names.index("picked") == names.index("allowed") - 1
    query, key = (int(place) for place in one.left_out[0].nonzero()[0])
    cell = open_cell(opened, "picked", query, key)
    assert cell.total == pytest.approx(float(one.margins[0, query, key])) and cell.total <= 0
    assert "didn't pick this key" in open_cell(opened, "allowed", query, key).sentence
    assert f"{int(one.left_out.sum())} of" in STEPS["picked"].change(opened)


def test_a_selection_that_does_not_fit_is_refused() -> None:
    trace = wrapped("deepseek_v32").trace_ids(ids(COUNT))
    layer = trace.layer(0, "decoder")
    wrong = layer.picking.changed(lambda one: one[:, :5])
    with pytest.raises(av.errors.TraceError, match="selection that fits"):
        _ = trace.derived(layers={"decoder": (_replaced(layer, wrong), *trace.layers["decoder"][1:])})


def _replaced(layer: Any, picking: Picking) -> Any:
    return replace(layer, picking=picking)
