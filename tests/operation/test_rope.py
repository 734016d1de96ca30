"""Rotary positions turn as transformers turns them, and anything else is refused by name."""

from typing import Any

import pytest
import torch
from transformers import LlamaConfig
from transformers.models.cohere.modeling_cohere import apply_rotary_pos_emb as neighbours_turned
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

import attention_viz as av
from attention_viz.operation.rope import rotated

TRAINED = 64
LLAMA3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": TRAINED}
YARN = {"factor": 4.0, "original_max_position_embeddings": TRAINED}
KINDS: dict[str, dict[str, Any]] = {
    "default": {},
    "linear": {"factor": 2.5},
    "llama3": LLAMA3,
    "yarn": YARN,
    "yarn mscale": {**YARN, "rope_type": "yarn", "mscale": 1.0, "mscale_all_dim": 0.5, "beta_fast": 16.0},
    "yarn factor": {**YARN, "rope_type": "yarn", "attention_factor": 1.3, "truncate": False, "beta_slow": 2.0},
}


def theirs(count: int, **parameters: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Transformers' cosines and sines of a Llama with heads of 32."""
    config = LlamaConfig(
        hidden_size=128,
        num_attention_heads=4,
        max_position_embeddings=TRAINED,
        rope_parameters={"rope_theta": 500.0, **parameters},
    )
    cos, sin = LlamaRotaryEmbedding(config)(torch.zeros(1), torch.arange(count)[None])
    return cos[0], sin[0]


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_scaling_has_transformers_angles(name: str) -> None:
    scaling = {"rope_type": name, "rope_theta": 500.0, **KINDS[name]}
    cos, sin = av.Rope(scaling=scaling).tables(range(200), 32)
    expected = theirs(200, **scaling)
    assert torch.allclose(cos, expected[0], atol=2e-5) and torch.allclose(sin, expected[1], atol=2e-5)
    plain = av.Rope(theta=500.0).tables(range(200), 32)
    assert torch.allclose(cos, plain[0], atol=1e-3) == (name == "default"), "a kind changes something"


@pytest.mark.parametrize("count", [TRAINED - 1, 2 * TRAINED])
def test_dynamic_scaling_follows_the_length_of_the_text(count: int) -> None:
    scaling = {"rope_type": "dynamic", "factor": 3.0}
    expected = theirs(count, **scaling)
    # Transformers scales by the configuration's own length, whatever else it names.
    for other in ({}, {"original_max_position_embeddings": TRAINED // 2}):
        made = av.Rope(500.0, scaling={**scaling, **other, "max_position_embeddings": TRAINED}).tables(range(count), 32)
        assert torch.allclose(made[0], expected[0], atol=2e-5) and torch.allclose(made[1], expected[1], atol=2e-5)
    with pytest.raises(av.ShapeError, match="needs max_position_embeddings"):
        av.Rope(scaling={**scaling, "original_max_position_embeddings": TRAINED})


@pytest.mark.parametrize(
    "arguments",
    [
        {"theta": float("nan")},
        {"dim": 8, "scaling": {"partial_rotary_factor": 0.25}},
        {"scaling": {"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 8, "truncate": "no"}},
    ],
    ids=str,
)
def test_what_is_no_rule_is_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(av.ShapeError):
        av.Rope(**arguments)


def test_positions_and_lists_that_nothing_would_use_are_refused() -> None:
    query = torch.randn(1, 5, 32)
    given: dict[str, Any] = {"layout": "flat", "d_k": 16}
    for wrong in (
        {"positions": range(5)},
        {"rope": [av.Rope(), av.Rope()]},
        {"rope": av.Rope(), "positions": "abc"},
        {"rope": av.Rope(), "positions": [True] * 5},
        {"allowed": [None, None]},
        {"bias": [None, None]},
        {"sinks": [None, None]},
    ):
        with pytest.raises(av.ShapeError):
            av.Trace.from_qkv(query, query, query, **given, **wrong)


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("interleaved", [False, True])
def test_vectors_turn_as_in_llama_and_in_cohere(interleaved: bool, kind: torch.dtype) -> None:
    query, key = torch.randn(4, 9, 32).to(kind), torch.randn(2, 9, 32).to(kind)
    rope = av.Rope(interleaved=interleaved)
    tables = rope.tables(range(9), 32)
    turn = neighbours_turned if interleaved else apply_rotary_pos_emb
    cos, sin = (one[None].to(kind) for one in tables)
    expected = turn(query[None], key[None], cos, sin)
    for way, positions in ((rope, None), (tables, None), (tuple(one[None] for one in tables), None), (rope, range(9))):
        turned = rotated(query, key, way, positions)
        exact = kind == torch.float32
        assert torch.allclose(turned[0], expected[0][0], atol=1e-6 if exact else 3e-2)
        assert torch.allclose(turned[1], expected[1][0], atol=1e-6 if exact else 3e-2)


def test_queries_have_the_positions_of_the_last_keys_and_the_rest_of_a_head_stays() -> None:
    key = torch.randn(1, 7, 8)
    query = key[:, 4:]
    turned, whole = rotated(query, key, av.Rope(dim=4), None)
    assert torch.equal(turned, whole[:, 4:]) and torch.equal(whole[..., 4:], key[..., 4:])
    share = rotated(query, key, av.Rope(scaling={"partial_rotary_factor": 0.5}), None)
    assert torch.equal(share[1], whole)
    apart = rotated(query, key, av.Rope(dim=4), torch.tensor([[3, 4, 5, 6, 7, 8, 9]]))
    assert torch.allclose(apart[0] @ apart[1].mT, turned @ whole.mT, atol=1e-5), "only distances matter"
    assert not torch.allclose(apart[1], whole)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"scaling": {"rope_type": "longrope"}}, av.UnsupportedModel, r"'longrope' .* choose default, .*rope=\(cos"),
        ({"scaling": {"type": "su"}}, av.UnsupportedModel, "'su'"),
        ({"scaling": {"rope_type": "linear"}}, av.ShapeError, "'linear' needs factor"),
        ({"scaling": {"mrope_section": [1, 2]}}, av.ShapeError, "'default' doesn't know mrope_section"),
        (
            {"scaling": {"rope_type": "linear", "factor": "2"}},
            av.ShapeError,
            "factor must be a number above 0",
        ),
        ({"theta": -1.0}, av.ShapeError, "theta must be a number above 0; got -1.0"),
        ({"theta": 5.0, "scaling": {"rope_theta": 6.0}}, av.ShapeError, "theta is 5, but scaling has rope_theta 6.0"),
        ({"dim": 3}, av.ShapeError, "dim must be an even whole number"),
    ],
)
def test_what_would_turn_by_wrong_angles_is_refused(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        av.Rope(**options)


@pytest.mark.parametrize(
    ("rope", "positions", "message"),
    [
        (av.Rope(dim=16), None, "16 numbers of a head can't turn in pairs; a head has 8"),
        (av.Rope(), [0, 1], r"positions must be 3 whole numbers .*got \(2,\)"),
        (av.Rope(), torch.ones(3), "whole numbers .* of torch.float32"),
        (av.Rope(), [-1, 0, 1], "at least 0"),
        ((torch.ones(3, 8), torch.zeros(3, 8)), [0, 1, 2], "positions belong to a Rope"),
        ((torch.ones(2, 8), torch.zeros(2, 8)), None, r"cos must be \(key, dim\) with 3 keys .*got \(2, 8\)"),
        ((torch.rand(3, 8), torch.rand(3, 8)), None, "cos and sin must have each column twice"),
        ((torch.ones(3, 4), torch.zeros(3, 8)), None, "must have one shape"),
        ("yarn", None, "rope must be an av.Rope or a pair of tensors"),
    ],
)
def test_positions_that_dont_fit_are_refused(rope: Any, positions: Any, message: str) -> None:
    with pytest.raises(av.ShapeError, match=message):
        rotated(torch.ones(1, 3, 8), torch.ones(1, 3, 8), rope, positions)
    with pytest.raises(av.ShapeError, match="a key for each query; got 3 queries and 2 keys"):
        rotated(torch.ones(1, 3, 8), torch.ones(1, 2, 8), rope, positions)
