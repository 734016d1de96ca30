"""Numbers of hybrids opened into what layers without a softmax carried, against hooks on plain transformers by hand."""

from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
import torch
from torch import Tensor

import attention_viz as av
from attention_viz.circuits.decomposition import Decomposition
from attention_viz.errors import ShapeError, TraceError, UnsupportedModel
from attention_viz.recording.mixers.kernels import KERNELS
from tests.recording.mixers.by_hand import IDS, changed_kernel, own
from tests.recording.mixers.hybrids import build

COUNT = IDS.shape[1]
# One for each kind of mixer and of what follows it: gated norms, two branches in one layer, gates, one mixer a head.
FAMILIES = (
    "qwen3_next",
    "kimi_linear",
    "falcon_h1",
    "granitemoehybrid",
    "bamba",
    "nemotron_h",
    "jamba",
    "zamba",
    "lfm2",
    "recurrent_gemma",
    "minimax",
    "inkling_text",
)


def opened(name: str, **options: Any) -> tuple[av.AttentionModel, av.Trace, Decomposition]:
    model = av.wrap(build(name))
    trace = model.trace_ids(IDS, **options)
    return model, trace, av.decompose(model, trace, av.Logit(int(trace.output[-1].argmax())))


def mixers_of(found: Decomposition) -> pd.DataFrame:
    return found.table[found.table["kind"] == "mixer"]


@pytest.mark.parametrize("name", FAMILIES)
def test_a_logit_through_a_hybrid_closes_with_no_other_rows(name: str) -> None:
    _, trace, found = opened(name)
    assert found.total == pytest.approx(float(trace.output[-1].max()), rel=1e-5)
    assert abs(found.remainder) <= 1e-5 * abs(found.total)
    assert "other" not in set(found.table["kind"])
    rows = mixers_of(found)
    assert set(rows["stream"]) <= set(trace.mixers) and len(rows) > 0
    for (stream, layer), some in rows.groupby(["stream", "layer"]):
        by_channel = trace.attention(int(layer), stream=stream).per == "channel"
        assert some["head"].isna().all() == by_channel
        assert len(some) == len(some[["head", "position"]].drop_duplicates())
        assert set(some["position"]) <= set(range(COUNT))


def test_a_mixers_rows_are_its_kernel_on_one_value_at_a_time_with_gate_and_norms_held() -> None:
    model, trace, found = opened("qwen3_next")
    plain, token = model.hf_model, int(trace.output[-1].argmax())
    layer = plain.model.layers[0].linear_attn
    heard: dict[str, Any] = {}

    def hear(kernel: Any, values: dict[str, Any]) -> Tensor:
        heard.update(kernel=kernel, value=values["value"])
        return own(kernel())

    handles = [
        layer.norm.register_forward_pre_hook(lambda _, inputs: heard.update(mixed=inputs[0], gate=inputs[1])),
        plain.model.norm.register_forward_pre_hook(lambda _, inputs: heard.update(last=inputs[0][0, -1])),
    ]
    with torch.no_grad(), changed_kernel(plain, "torch_chunk_gated_delta_rule", hear):
        plain(input_ids=IDS, use_cache=False)
    for handle in handles:
        handle.remove()
    norm, last = plain.model.norm, heard["last"]
    with torch.no_grad():
        size = (last.square().mean() + norm.eps).rsqrt()
        direction = plain.lm_head.weight[token] * (1 + norm.weight) * size
        held = (heard["mixed"].square().mean(-1, keepdim=True) + layer.norm.variance_epsilon).rsqrt()
        held = held * layer.norm.weight * torch.nn.functional.silu(heard["gate"])
        rows = mixers_of(found).set_index(["head", "position"])["contribution"]
        for head in range(4):
            for position in (0, 7, COUNT - 1):
                alone = torch.zeros_like(heard["value"])
                alone[:, position, head] = heard["value"][:, position, head]
                mixed = own(heard["kernel"](value=alone)).reshape(held.shape) * held
                written = layer.out_proj(mixed.reshape(1, COUNT, -1))[0, -1]
                assert float(rows[head, position]) == pytest.approx(float(written @ direction), abs=2e-6)


def test_a_convolutions_rows_are_its_taps_by_hand_summed_over_channels() -> None:
    model, trace, found = opened("lfm2")
    plain, token = model.hf_model, int(trace.output[-1].argmax())
    layer = plain.model.layers[0].conv
    states: dict[str, Tensor] = {}
    handles = [
        layer.in_proj.register_forward_hook(lambda _, __, output: states.update(read=output[0])),
        plain.model.embedding_norm.register_forward_pre_hook(lambda _, inputs: states.update(last=inputs[0][0, -1])),
    ]
    with torch.no_grad():
        plain(input_ids=IDS, use_cache=False)
        for handle in handles:
            handle.remove()
        norm, last = plain.model.embedding_norm, states["last"]
        direction = plain.lm_head.weight[token] * norm.weight * (last.square().mean() + norm.variance_epsilon).rsqrt()
        before, after, x = states["read"].chunk(3, dim=-1)
        taps = layer.conv.weight[:, 0]
        rows = mixers_of(found).set_index("position")["contribution"]
        assert sorted(rows.index) == [COUNT - taps.shape[1] + at for at in range(taps.shape[1])]
        for at, position in enumerate(sorted(rows.index)):
            carried = after[-1] * taps[:, at] * (before * x)[position]
            assert float(rows[position]) == pytest.approx(float(layer.out_proj(carried) @ direction), abs=1e-6)


def test_a_decomposition_without_the_gate_or_the_skip_misses_and_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    model = av.wrap(build("jamba"))
    of = av.Logit(int(model.trace_ids(IDS).output[-1].argmax()))
    kernel = KERNELS["mamba_selective_scan"]
    for term in ("gate", "skip"):
        trace = model.trace_ids(IDS)
        wrong = replace(kernel, call=lambda arguments, term=term: replace(kernel.call(arguments), **{term: None}))
        with monkeypatch.context() as patch:
            patch.setitem(KERNELS, "mamba_selective_scan", wrong)
            with pytest.raises(UnsupportedModel, match="miss"):
                av.decompose(model, trace, of)


@pytest.mark.parametrize("name", ["qwen3_next", "jamba", "falcon_h1"])
def test_sources_of_a_mixers_head_sum_to_its_rows(name: str) -> None:
    _, trace, found = opened(name)
    fetched, rows = found.fetched(), mixers_of(found)
    taken = fetched[fetched["stream"] == "mixer"].groupby(["layer", "source"])["contribution"].sum()
    table = rows.groupby(["layer", "position"])["contribution"].sum()
    torch.testing.assert_close(torch.tensor(taken.to_numpy()), torch.tensor(table.to_numpy()))
    layer = int(rows["layer"].iloc[0])
    heads = range(trace.head_count(layer, "mixer"))
    one = found.sources(layer, 1, stream="mixer")
    at = one.iloc[0]
    weights = trace.weights(layer, 1, stream="mixer")
    assert at["weight"] == pytest.approx(float(weights[int(at["position"]), int(at["source"])]))
    every = sum(float(found.sources(layer, head, stream="mixer")["contribution"].sum()) for head in heads)
    assert every == pytest.approx(float(rows[rows["layer"] == layer]["contribution"].sum()), abs=1e-5)


def test_an_edited_mixer_is_opened_as_it_ran() -> None:
    _, trace, found = opened("qwen3_next", edits=[av.Allow(without_column(9), layer=0, stream="mixer")])
    assert found.total == pytest.approx(float(trace.output[-1].max()), rel=1e-5)
    rows = mixers_of(found)
    assert len(rows) > 0 and 9 not in set(rows["position"])
    assert 9 in set(mixers_of(opened("qwen3_next")[2])["position"])


def without_column(token: int) -> Tensor:
    allowed = torch.ones(COUNT, COUNT, dtype=torch.bool)
    allowed[:, token] = False
    return allowed


def test_a_score_behind_a_mixer_has_its_rows_on_both_sides() -> None:
    model, trace, _ = opened("qwen3_next")
    found = av.decompose(model, trace, av.Score(1, 2, 11, 5, stream="decoder"))
    for _, rows in found.table.groupby("side"):
        assert float(rows["contribution"].sum()) == pytest.approx(found.total, rel=1e-5)
        assert set(rows[rows["kind"] == "mixer"]["layer"]) == {0}


@pytest.mark.parametrize(("name", "head"), [("qwen3_next", 2), ("jamba", 3), ("jamba", None)])
def test_what_a_mixers_head_writes_is_what_its_rows_say(name: str, head: int | None) -> None:
    model, trace, _ = opened(name)
    written = av.writes(model, trace, 0, head, count=97 // 2, stream="mixer").set_index("id")["logit"]
    best, worst = int(written.index[0]), int(written.index[-1])
    found = av.decompose(model, trace, av.Logit(best, against=worst))
    own_rows = mixers_of(found) if head is None or name == "qwen3_next" else found.sources(0, head, stream="mixer")
    if name == "qwen3_next":
        own_rows = own_rows[own_rows["head"] == head]
    assert written[best] - written[worst] == pytest.approx(float(own_rows["contribution"].sum()), rel=1e-4)


def test_what_makes_no_sense_for_a_mixer_is_refused_by_name() -> None:
    model, trace, found = opened("qwen3_next")
    with pytest.raises(ShapeError, match="layer 0 of the mixer has no softmax, so it has no scores"):
        av.decompose(model, trace, av.Score(0, 1, 5, 3, stream="mixer"))
    with pytest.raises(UnsupportedModel, match=r"values of layer 0 \(gated delta\)"):
        found.through(0, 1, stream="mixer")
    with pytest.raises(ShapeError, match="no head 9; layer 0 has heads 0 to 3"):
        av.writes(model, trace, 0, 9, stream="mixer")
    with pytest.raises(ShapeError, match="no head None; layer 1"):
        av.writes(model, trace, 1, None)
    with pytest.raises(TraceError, match="layer 1 has no mixer; choose 0"):
        found.sources(1, 0, stream="mixer")
    for table in (av.circuits, av.compositions):
        with pytest.raises(ShapeError, match="mixer has no circuits from the weights alone"):
            table(model, "mixer")
