"""What heads write, worked out by hooks on plain transformers in many families: a slice of W_O through frozen norms."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import attention_viz as av
from tests.models.families import build, ids
from tests.shipped import MINILM, plain, shipped

LENGTH = 9


@dataclass(frozen=True)
class Family:
    """Where plain transformers keeps what a head writes by.

    Attributes:
        layers: the layers of a model.
        joining: of a layer, what joins the heads, W_O.
        norms: of a model and a layer's number, the norms that what is written passes through, in their order.
        turned: whether W_O stands as (heads · d_v, d_model).
        added: what a norm adds to its gain.
    """

    layers: Callable[[Any], Sequence[Any]]
    joining: Callable[[Any], nn.Module]
    norms: Callable[[Any, int], list[nn.Module]]
    turned: bool = False
    added: float = 0.0


def of_bert(body: Any, number: int) -> list[nn.Module]:
    """Both post-norms of the layer itself and of every layer after it."""
    return [
        norm for one in body.encoder.layer[number:] for norm in (one.attention.output.LayerNorm, one.output.LayerNorm)
    ]


BERT = Family(lambda m: m.encoder.layer, lambda one: one.attention.output.dense, of_bert)
FAMILIES = {
    "bert": BERT,
    "gpt2": Family(
        lambda m: m.transformer.h, lambda one: one.attn.c_proj, lambda m, _: [m.transformer.ln_f], turned=True
    ),
    "gemma2": Family(
        lambda m: m.model.layers,
        lambda one: one.self_attn.o_proj,
        lambda m, number: [m.model.layers[number].post_attention_layernorm, m.model.norm],
        added=1.0,
    ),
    "qwen3": Family(lambda m: m.model.layers, lambda one: one.self_attn.o_proj, lambda m, _: [m.model.norm]),
    "gpt_oss": Family(lambda m: m.model.layers, lambda one: one.self_attn.o_proj, lambda m, _: [m.model.norm]),
    "gpt_neox": Family(
        lambda m: m.gpt_neox.layers, lambda one: one.attention.dense, lambda m, _: [m.gpt_neox.final_layer_norm]
    ),
    "laguna": Family(lambda m: m.model.layers, lambda one: one.self_attn.o_proj, lambda m, _: [m.model.norm]),
    "opt": Family(
        lambda m: m.model.decoder.layers,
        lambda one: one.self_attn.out_proj,
        lambda m, _: [m.model.decoder.final_layer_norm],
    ),
    "t5 encoder": Family(
        lambda m: m.encoder.block, lambda one: one.layer[0].SelfAttention.o, lambda m, _: [m.encoder.final_layer_norm]
    ),
}


def by_hand(model: Any, family: Family, given: Tensor, heads: int, direction: Tensor, row: int = -1) -> Tensor:
    """What each head adds to a row of the output in a direction: (layer, head)."""
    entered: dict[int, Tensor] = {}
    modules = [family.joining(one) for one in family.layers(model)]
    modules += [norm for number in range(len(modules)) for norm in family.norms(model, number)]
    handles = [
        module.register_forward_pre_hook(lambda m, args: entered.__setitem__(id(m), args[0].detach()[0]))
        for module in set(modules)
    ]
    with torch.no_grad():
        _ = model(given)
    for handle in handles:
        handle.remove()
    found: list[Tensor] = []
    for number, layer in enumerate(family.layers(model)):
        joining = family.joining(layer)
        matrix = joining.weight if family.turned else joining.weight.T
        joined = entered[id(joining)][row].unflatten(0, (heads, -1))
        written = torch.einsum("hd,hdm->hm", joined, matrix.unflatten(0, (heads, -1)))
        for norm in family.norms(model, number):
            written = frozen(norm, entered[id(norm)][row], written, family.added)
        head = model.get_output_embeddings()
        found.append(written @ (direction if head is None else head.weight.T @ direction))
    return torch.stack(found).detach()


def frozen(norm: Any, before: Tensor, written: Tensor, added: float) -> Tensor:
    """A part of what a norm was given, through that norm with the size of the whole held fixed; the bias is no part."""
    small = next(getattr(norm, name) for name in ("eps", "variance_epsilon") if hasattr(norm, name))
    if isinstance(norm, nn.LayerNorm):
        centred = before - before.mean()
        return (written - written.mean(dim=-1, keepdim=True)) * (centred.square().mean() + small).rsqrt() * norm.weight
    return written * (before.square().mean() + small).rsqrt() * (norm.weight + added)


def with_everything(model: nn.Module) -> nn.Module:
    """Gains and biases that aren't those of a fresh model, under which a dropped one would not show."""
    torch.manual_seed(5)
    for parameter in model.parameters():
        if parameter.ndim == 1:
            parameter.data += 0.3 * torch.randn_like(parameter)
    return model


def ours(model: av.AttentionModel, trace: av.Trace, direction: Tensor, shape: tuple[int, int]) -> Tensor:
    """What each head adds as `decompose` says; the sum over positions, of which a last row has one."""
    table = av.decompose(model, trace, av.Direction(direction)).table
    found = torch.zeros(shape)
    for row in table[table["kind"] == "head"].itertuples():
        found[row.layer, row.head] += row.contribution
    return found


@pytest.mark.parametrize("family", FAMILIES)
def test_a_head_s_row_is_its_slice_of_the_output_matrix_through_frozen_norms(family: str) -> None:
    changes = {"final_logit_softcapping": None} if family == "gemma2" else {}
    hf = with_everything(build(family, **changes))
    hf.set_attn_implementation("eager")
    given, known = ids(LENGTH), FAMILIES[family]
    model = av.wrap(hf)
    trace = model.trace_ids(given)
    heads = trace.head_count(0)
    direction = torch.randn(trace.output.shape[1], generator=torch.Generator().manual_seed(3))
    expected = by_hand(hf, known, given, heads, direction)
    assert expected.abs().min() > 0
    size = float(expected.abs().max())
    torch.testing.assert_close(
        ours(model, trace, direction, tuple(expected.shape)), expected, atol=2e-5 * size, rtol=1e-4
    )


def test_minilm_s_heads_through_both_of_its_post_norms() -> None:
    model, hf = shipped(MINILM), plain(MINILM)
    trace = model.trace("The bank of the river was flooded")
    direction = torch.randn(trace.output.shape[1], generator=torch.Generator().manual_seed(3))
    expected = by_hand(hf, BERT, torch.tensor([trace.query_tokens().ids]), 12, direction)
    torch.testing.assert_close(ours(model, trace, direction, (6, 12)), expected, atol=1e-5, rtol=1e-4)


def test_a_class_of_bert_is_opened_through_its_pooler_s_tanh_held_fixed() -> None:
    hf = with_everything(build("bert that classifies"))
    hf.set_attn_implementation("eager")
    given = ids(LENGTH)
    with torch.no_grad():
        before = hf.bert.pooler.dense(hf.bert(given).last_hidden_state[0, 0])
        through = (hf.classifier.weight[1] * before.tanh() / before) @ hf.bert.pooler.dense.weight
    expected = by_hand(hf.bert, BERT, given, 5, through, row=0)
    model = av.wrap(hf)
    trace = model.trace_ids(given)
    found = ours(model, trace, torch.tensor([0.0, 1.0]), tuple(expected.shape))
    torch.testing.assert_close(found, expected, atol=2e-5 * float(expected.abs().max()), rtol=1e-4)
    whole = av.decompose(model, trace, av.Direction(torch.tensor([0.0, 1.0])))
    assert whole.total == pytest.approx(float(trace.output[0, 1]), abs=1e-5)
    assert float(whole.table["contribution"].sum()) == pytest.approx(whole.total, abs=1e-5)


@pytest.mark.parametrize("family", ["gpt2", "gemma2", "qwen3", "gpt_oss", "gpt_neox"])
def test_the_words_that_a_head_writes_for_are_its_slice_of_the_output_matrix_through_the_word_head(family: str) -> None:
    changes = {"final_logit_softcapping": None} if family == "gemma2" else {}
    hf = with_everything(build(family, **changes))
    hf.set_attn_implementation("eager")
    given, known = ids(LENGTH), FAMILIES[family]
    model = av.wrap(hf)
    trace = model.trace_ids(given)
    heads, words = trace.head_count(0), trace.output.shape[1]
    every = torch.stack([by_hand(hf, known, given, heads, one, row=-2) for one in torch.eye(words)], dim=-1)
    every = every - every.mean(dim=-1, keepdim=True)
    for head in range(heads):
        expected = every[-1, head]
        found = av.writes(model, trace, trace.layer_count() - 1, head, position=-2, count=3)
        assert found["id"].tolist()[:3] == expected.topk(3).indices.tolist()
        assert found["id"].tolist()[3:] == expected.topk(3, largest=False).indices.tolist()[::-1]
        numbers = torch.tensor(found["logit"].tolist())
        torch.testing.assert_close(numbers, expected[found["id"].tolist()], atol=2e-5, rtol=1e-4)
