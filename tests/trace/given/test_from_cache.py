"""Traces of a cache's tensors, by the names that TransformerLens gives them; test_tools.py has the package's own."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import attention_viz as av

MADE = torch.Generator().manual_seed(0)
Q, K, V = (torch.randn(heads, 5, 8, generator=MADE) for heads in (4, 2, 2))
CAUSAL = av.masks.causal(5)
BIAS = -torch.arange(5.0).flip(0)[None] * 0.5


def cached(layer: int = 0, *, window: bool = False, half: bool = False, **terms: Any) -> dict[str, Tensor]:
    """One layer's hooks of a call with these terms."""
    mask = CAUSAL & av.masks.sliding_window(5, 2) if window else CAUSAL
    parts = [one.half() if half else one.clone() for one in (Q, K, V)]
    call = av.attend(*parts, mask, **terms)
    hooks = {"q": parts[0], "k": parts[1], "v": parts[2], "z": call.output}
    swapped = {f"hook_{name}": one.transpose(0, 1)[None] for name, one in hooks.items()}
    scores = call.masked[None]
    return {
        f"blocks.{layer}.attn.{name}": one
        for name, one in {**swapped, "hook_attn_scores": scores, "hook_pattern": call.weights[None]}.items()
    }


def without(hooks: dict[str, Tensor], *names: str) -> dict[str, Tensor]:
    return {name: one for name, one in hooks.items() if not name.endswith(names)}


@pytest.mark.parametrize("half", [False, True], ids=["float32", "float16"])
def test_queries_keys_and_values_are_taken_if_they_give_the_weights(half: bool) -> None:
    trace = av.Trace.from_cache({**cached(0, half=half), **cached(1, half=half)}, list("abcde"))
    call = trace.attention(1)
    assert torch.equal(call.query, Q.half() if half else Q) and call.key.shape == (2, 5, 8)
    assert trace.streams == ("decoder",) and trace.layer_numbers() == (0, 1) and trace.fidelity.ok
    assert "hook_pattern, and its heads' outputs, hook_z" in trace.fidelity.reference
    assert call.allowed is not None and torch.equal(call.allowed, CAUSAL)


def test_a_scale_and_softcap_that_a_dict_doesnt_name_are_passed() -> None:
    hooks = cached(scale=0.9, softcap=1.5)
    with pytest.raises(
        av.TraceError, match=r"differs by 0\.\d+ of its largest weight .* \(scale 0.3536, softcap None\)"
    ):
        av.Trace.from_cache(hooks)
    trace = av.Trace.from_cache(hooks, scale=0.9, softcap=1.5)
    assert (trace.attention(0).scale, trace.attention(0).softcap) == (0.9, 1.5) and trace.fidelity.ok


def test_the_mask_is_the_scores_or_where_weights_are_0() -> None:
    hooks = cached(window=True)
    masked = av.Trace.from_cache(hooks)
    bare = av.Trace.from_cache(without(hooks, "scores"))
    for trace in (masked, bare):
        assert trace.attention(0).allowed is not None and trace.fidelity.ok
        assert torch.equal(trace.attention(0).allowed, CAUSAL & av.masks.sliding_window(5, 2))
    assert len(masked.provenance.notes) == 1 and "taken as blocked" in bare.provenance.notes[1]


def test_other_numbers_in_the_scores_hook_are_no_mask() -> None:
    """A Bridge's hook may have scores before the mask, or the weights themselves."""
    hooks = cached()
    hooks["blocks.0.attn.hook_attn_scores"] = hooks["blocks.0.attn.hook_pattern"]
    trace = av.Trace.from_cache(hooks)
    assert trace.attention(0).allowed is not None and torch.equal(trace.attention(0).allowed, CAUSAL)
    assert trace.fidelity.ok


def test_a_bias_that_isnt_in_the_cache_leaves_the_weights_alone_if_asked() -> None:
    hooks = cached(bias=BIAS)
    with pytest.raises(av.TraceError, match=r'A bias such as ALiBi .* what="weights"'):
        av.Trace.from_cache(hooks)
    trace = av.Trace.from_cache(hooks, what="weights")
    assert torch.allclose(trace.attention(0).weights, hooks["blocks.0.attn.hook_pattern"][0], atol=1e-6)
    assert not trace.fidelity.ok and "rows sum to 1 within" in trace.fidelity.reference
    assert len(trace.provenance.notes) == 1


def test_outputs_of_heads_that_a_hook_changed_are_not_verified() -> None:
    hooks = cached()
    hooks["blocks.0.attn.hook_z"] = torch.zeros_like(hooks["blocks.0.attn.hook_z"])
    assert not av.Trace.from_cache(hooks).fidelity.ok
    bare = av.Trace.from_cache(without(cached(), "hook_z"))
    assert bare.fidelity.output_error is None and not bare.fidelity.ok and "without hook_z" in bare.fidelity.reference


def test_weights_of_unknown_modules_are_named_as_left_out() -> None:
    trace = av.Trace.from_cache({**cached(), "vision.3.hook_pattern": torch.eye(2)[None, None]})
    assert trace.provenance.left_out == ("vision.3",)


def changed(change: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    hooks: dict[str, Any] = cached()
    change(hooks)
    return hooks


@pytest.mark.parametrize(
    ("cache", "error", "message"),
    [
        ({}, av.TraceError, "no blocks.{layer}.attn.hook_pattern .no name that ends with hook_pattern."),
        (without(cached(), "pattern"), av.TraceError, "no blocks.{layer}.attn.hook_pattern"),
        ({**cached(), 7: torch.eye(3)}, av.ShapeError, r"names must be str.* got 7"),
        (3, av.ShapeError, "cache must be an ActivationCache or a dict of its tensors; got int"),
        ({"blocks.0.attn.hook_pattern": torch.eye(3)}, av.ShapeError, r"must have the shape .* got \(3, 3\)"),
        (
            {"blocks.0.attn.hook_pattern": torch.eye(3)[None, None] / 2},
            av.TraceError,
            "row 0 of head 0 of bl.*0.5",
        ),
        ({"blocks.0.attn.hook_pattern": torch.eye(3)[None, None] * torch.nan}, av.TraceError, "not finite"),
        ({"blocks.0.attn.hook_pattern": torch.eye(3)[None, None, :1]}, av.ShapeError, r"got \(query, key\) = 1 × 3"),
        ({"blocks.0.attn.hook_pattern": torch.eye(3).expand(2, 1, 3, 3)}, av.ShapeError, "batch=0 to 1"),
        (
            changed(lambda hooks: hooks["blocks.0.attn.hook_q"].fill_(torch.nan)),
            av.TraceError,
            "blocks.0.attn.hook_q has numbers that aren't finite",
        ),
        (
            changed(lambda hooks: hooks.update({"blocks.0.attn.hook_q": torch.randn(1, 5, 8, 8)})),
            av.ShapeError,
            r"queries and keys of blocks.0.attn. give weights .*8, 5, 5.* has .*4, 5, 5",
        ),
    ],
)
def test_what_isnt_a_cache_of_one_text_is_refused_by_name(cache: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        av.Trace.from_cache(cache)


def test_labels_and_names_that_dont_fit_are_refused() -> None:
    with pytest.raises(av.TraceError, match="tokens of the decoder need 5 labels, one each; got 2"):
        av.Trace.from_cache(cached(), ["a", "b"])
    with pytest.raises(av.ShapeError, match='unknown what \'terms\'; choose "all" or "weights"'):
        av.Trace.from_cache(cached(), what="terms")  # pyright: ignore[reportArgumentType]
    with pytest.raises(av.TraceError, match="unknown stream 'left'"):
        av.Trace.from_cache(cached(), stream="left")
