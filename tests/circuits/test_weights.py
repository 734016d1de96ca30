"""What weights alone tell of heads, against d_model × d_model matrices put together by hand from a state dict."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pytest
import torch
from torch import Tensor

import attention_viz as av
from scripts.tiny import Family, tiny
from tests.circuits.test_by_hand import with_everything
from tests.models.families import build
from tests.shipped import MINILM, SMOLLM2, circuits, shipped

ALONE = ("gpt2", "llama", "gemma2", "gpt_neox")


@dataclass(frozen=True)
class Layer:
    """Each head's matrices, (head, d_model, d_k) and W_O (head, d_v, d_model), gains folded in unless not wanted."""

    query: Tensor
    key: Tensor
    value: Tensor
    output: Tensor

    def ov(self, head: int) -> Tensor:
        return self.value[head] @ self.output[head]

    def qk(self, head: int) -> Tensor:
        return self.query[head] @ self.key[head].T


def norm(gain: Tensor, *, centred: bool) -> Tensor:
    """What of a norm is linear, as a matrix: taking the mean away, and the gain."""
    width = len(gain)
    away = torch.eye(width).double() - (1 / width if centred else 0)
    return away @ gain.double().diag()


def by_hand(family: str, hf: Any, *, folded: bool = True) -> tuple[list[Layer], Tensor]:
    """The layers, and what stands between what heads write and read of words: last norm · W_U · W_E."""
    state: Mapping[str, Tensor] = {name: tensor.double() for name, tensor in hf.state_dict().items()}
    config = hf.config
    heads = config.num_attention_heads
    centred = family in ("gpt2", "gpt_neox")

    def gain(name: str) -> Tensor:
        vector = state[name] + (1.0 if family == "gemma2" else 0.0)
        return norm(vector if folded else torch.ones_like(vector), centred=centred)

    def split(matrix: Tensor, count: int) -> Tensor:
        """(d_model, count · d_k) to one for each query head."""
        each = matrix.unflatten(1, (count, -1)).transpose(0, 1)
        return each.repeat_interleave(heads // count, dim=0)

    found: list[Layer] = []
    for number in range(config.num_hidden_layers):
        if family == "gpt2":
            at = f"transformer.h.{number}."
            before = gain(at + "ln_1.weight")
            read = [before @ one for one in state[at + "attn.c_attn.weight"].chunk(3, dim=1)]
            output, counts = state[at + "attn.c_proj.weight"], (heads, heads)
        elif family == "gpt_neox":
            at = f"gpt_neox.layers.{number}."
            before = gain(at + "input_layernorm.weight")
            fused = (before @ state[at + "attention.query_key_value.weight"].T).unflatten(1, (heads, 3, -1))
            read = [fused[:, :, part].flatten(1) for part in range(3)]
            output, counts = state[at + "attention.dense.weight"].T, (heads, heads)
        else:
            at = f"model.layers.{number}."
            before = gain(at + "input_layernorm.weight")
            read = [before @ state[f"{at}self_attn.{name}_proj.weight"].T for name in "qkv"]
            output, counts = state[at + "self_attn.o_proj.weight"].T, (heads, config.num_key_value_heads)
            if family == "qwen3" and folded:
                for place, name in enumerate("qk"):
                    after = state[f"{at}self_attn.{name}_norm.weight"]
                    read[place] = (read[place].unflatten(1, (-1, len(after))) * after).flatten(1)
            if family == "gemma2":
                output = output @ gain(at + "post_attention_layernorm.weight")
        query, key, value = (split(one, count) for one, count in zip(read, (counts[0], *counts[1:] * 2), strict=True))
        found.append(Layer(query, key, value, output.unflatten(0, (heads, -1))))
    last = {"gpt2": "transformer.ln_f.weight", "gpt_neox": "gpt_neox.final_layer_norm.weight"}
    words = gain(last.get(family, "model.norm.weight")) @ hf.get_output_embeddings().weight.double().T
    return found, words.detach() @ hf.get_input_embeddings().weight.detach().double()


def fraction(matrix: Tensor) -> float:
    values = torch.linalg.eigvals(matrix)
    return float(values.real.sum() / values.abs().sum())


@pytest.mark.parametrize("family", ALONE)
def test_each_head_s_numbers_are_those_of_its_whole_matrices(family: str) -> None:
    hf = with_everything(build(family))
    layers, between = by_hand(family, hf)
    embedding = hf.get_input_embeddings().weight.detach().double()
    table = av.circuits(av.wrap(hf))
    assert table.index.names == ["layer", "head"] and table.attrs["missing"] == {}
    for (layer, head), row in table.iterrows():
        ov, qk = layers[layer].ov(head), layers[layer].qk(head)
        expected = [
            fraction(ov @ between),
            fraction(qk @ embedding.T @ embedding),
            float(ov.norm()),
            float(qk.norm()),
        ]
        assert row.tolist() == pytest.approx(expected, rel=1e-4, abs=1e-4)
    unfolded, plain = by_hand(family, hf, folded=False)
    assert abs(fraction(unfolded[0].ov(0) @ plain) - table["ov"].iloc[0]) > 1e-3
    assert abs(float(unfolded[0].qk(0).norm()) / table["qk_norm"].iloc[0] - 1) > 1e-3


@pytest.mark.parametrize("family", ALONE)
def test_compositions_are_ratios_of_whole_matrices(family: str) -> None:
    hf = with_everything(build(family))
    layers, _ = by_hand(family, hf)
    model = av.wrap(hf)
    table = av.compositions(model)
    heads = len(layers[0].query)
    assert len(table) == 3 * heads**2 and (table["from_layer"] < table["to_layer"]).all()
    for row in table.sample(9, random_state=0).itertuples():
        written = layers[row.from_layer].ov(row.from_head)
        later = layers[row.to_layer]
        for found, read in (
            (row.q, later.qk(row.to_head)),
            (row.k, later.qk(row.to_head).T),
            (row.v, later.ov(row.to_head)),
        ):
            assert found == pytest.approx(float((written @ read).norm() / written.norm() / read.norm()), rel=1e-4)
    some = av.compositions(model, into=[(2, 1), (1, 0)])
    same = table[[place in ((2, 1), (1, 0)) for place in zip(table["to_layer"], table["to_head"], strict=True)]]
    pd.testing.assert_frame_equal(some, same.reset_index(drop=True), rtol=1e-4)
    with pytest.raises(av.ShapeError, match=f"no layer 1, head 9; there are 3 layers × {heads} heads"):
        av.compositions(model, into=[(1, 9)])
    unfolded, _ = by_hand(family, hf, folded=False)
    written, read = unfolded[0].ov(0), unfolded[1].qk(0)
    assert abs(float((written @ read).norm() / written.norm() / read.norm()) / table["q"].iloc[0] - 1) > 1e-3


def test_half_precision_is_told_of_by_the_same_numbers() -> None:
    hf = with_everything(build("llama")).bfloat16()
    model, full = av.wrap(hf), av.wrap(copy.deepcopy(hf).float())
    pd.testing.assert_frame_equal(av.circuits(model), av.circuits(full))
    pd.testing.assert_frame_equal(av.compositions(model), av.compositions(full))
    assert hf.dtype == torch.bfloat16 and av.circuits(model).attrs["missing"] == {}


def test_the_induction_head_copies_and_reads_the_word_before() -> None:
    model = shipped("induction")
    table, pairs = av.circuits(model), av.compositions(model)
    assert table["ov"][1, 1] == pytest.approx(1.0, abs=0.001)
    into = pairs[(pairs["to_layer"] == 1) & (pairs["to_head"] == 1)].set_index("from_head")
    before = av.head_table(model.trace("red cat blue dog red")).loc[0]["previous"].idxmax()
    assert into["k"].idxmax() == before and into["k"].max() == into[["q", "k", "v"]].max().max()


def test_smollm2_s_induction_heads_read_by_their_keys_what_layer_16_head_0_writes() -> None:
    model = shipped(SMOLLM2)
    body, table, induction = model.hf_model.model, circuits(SMOLLM2), ((18, 6), (17, 4), (17, 3))
    one, embedding = body.layers[18], body.embed_tokens.weight.detach()
    value = norm(one.input_layernorm.weight.detach(), centred=False) @ one.self_attn.v_proj.weight[128:].T.double()
    ov = (value @ one.self_attn.o_proj.weight[:, 6 * 64 : 7 * 64].T.double()).detach()
    between = norm(body.norm.weight.detach(), centred=False) @ (embedding.T @ embedding).double()
    assert table["ov"][18, 6] == pytest.approx(fraction(ov @ between), abs=1e-3)
    assert table["ov_norm"][18, 6] == pytest.approx(float(ov.norm()), rel=1e-4)
    pairs = av.compositions(model, into=induction)
    assert pairs["k"].median() == pytest.approx(0.045, abs=0.001)
    assert pairs["q"].median() == pytest.approx(576**-0.5, rel=0.15)  # of random matrices
    for layer, head in induction:
        into = pairs[(pairs["to_layer"] == layer) & (pairs["to_head"] == head)].set_index(["from_layer", "from_head"])
        assert len(into) == 9 * layer and 0.15 < into["k"][16, 0] < 0.18
        assert (16, 0) in into["k"].nlargest(2).index


def test_what_weights_do_not_tell_is_not_told() -> None:
    table = av.circuits(shipped(MINILM))
    assert table[["ov", "qk"]].isna().all(axis=None) and table[["ov_norm", "qk_norm"]].notna().all(axis=None)
    assert "no unembedding that is one matrix" in table.attrs["missing"]["ov"]
    with pytest.raises(av.UnsupportedModel, match=r"compositions of all-MiniLM-L6-v2 .* more than a matrix"):
        av.compositions(shipped(MINILM))  # a norm after adding


@pytest.mark.parametrize("of", [av.circuits, av.compositions])
def test_models_that_do_more_than_multiply_are_refused_by_name(of: Any) -> None:
    gated = av.wrap(build("laguna"))  # behind its heads, not before them
    assert "W_O of LagunaForCausalLM is not one matrix" in av.circuits(gated).attrs["missing"]["ov"]
    with pytest.raises(av.UnsupportedModel, match=r"W_O of LagunaForCausalLM is not one matrix"):
        _ = av.compositions(gated)
    with pytest.raises(av.UnsupportedModel, match="W_V of MiniCPM3ForCausalLM is not one matrix"):
        of(av.wrap(tiny(Family("minicpm3", "MiniCPM3ForCausalLM"))))
    with pytest.raises(av.UnsupportedModel, match="scratch"):
        of(av.load("scratch"))
    with pytest.raises(av.ShapeError, match="encoder, decoder, cross"):
        of(shipped("translation"))


def test_norms_on_queries_and_keys_are_folded_in_and_leave_their_lengths_open() -> None:
    hf = with_everything(build("qwen3"))
    layers, between = by_hand("qwen3", hf)
    model, embedding = av.wrap(hf), hf.get_input_embeddings().weight.detach().double()
    table, pairs = av.circuits(model), av.compositions(model)
    assert list(table.attrs["missing"]) == ["qk_norm"] and pairs.attrs["missing"] == {}
    assert "Qwen3ForCausalLM normalizes queries and keys" in table.attrs["missing"]["qk_norm"]
    assert table["qk_norm"].isna().all()
    for (layer, head), row in table.iterrows():
        qk = layers[layer].qk(head)
        assert row["qk"] == pytest.approx(fraction(qk @ embedding.T @ embedding), abs=1e-4)
        assert row["ov"] == pytest.approx(fraction(layers[layer].ov(head) @ between), abs=1e-4)
    for row in pairs.sample(9, random_state=0).itertuples():
        written, read = layers[row.from_layer].ov(row.from_head), layers[row.to_layer].qk(row.to_head)
        for found, one in ((row.q, read), (row.k, read.T)):
            assert found == pytest.approx(float((written @ one).norm() / written.norm() / one.norm()), rel=1e-4)
    unfolded, _ = by_hand("qwen3", hf, folded=False)
    assert abs(fraction(unfolded[0].qk(0) @ embedding.T @ embedding) - table["qk"].iloc[0]) > 1e-3


@pytest.mark.parametrize(
    ("family", "architecture"), [("gemma3_text", "Gemma3ForCausalLM"), ("olmo2", "Olmo2ForCausalLM")]
)
def test_norms_before_and_after_heads_are_split_are_both_known(family: str, architecture: str) -> None:
    model = av.wrap(with_everything(tiny(Family(family, architecture))))
    assert list(av.circuits(model).attrs["missing"]) == ["qk_norm"] and av.compositions(model).attrs["missing"] == {}


def test_a_norm_after_positions_are_turned_in_is_refused_for_queries_and_keys_alone() -> None:
    model = av.wrap(tiny(Family("hunyuan_v1_dense", "HunYuanDenseV1ForCausalLM")))
    table, pairs = av.circuits(model), av.compositions(model)
    assert sorted(table.attrs["missing"]) == ["qk", "qk_norm"] and sorted(pairs.attrs["missing"]) == ["k", "q"]
    assert table[["ov", "ov_norm"]].notna().all(axis=None) and pairs["v"].notna().all()
