import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attention_viz.errors import ShapeError, UnsupportedModel
from attention_viz.operation import masks
from attention_viz.operation.modules import AttentionHead, CrossAttention, MultiHeadAttention, SelfAttention, from_torch

BATCH, HEADS, N, SOURCE, D_MODEL, D_SOURCE = 2, 3, 5, 7, 12, 11


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def loud(module: Any) -> Any:
    """The module with weights large enough that attention is far from uniform, and biases that aren't 0."""
    with torch.no_grad():
        for seed, parameter in enumerate(module.parameters()):
            parameter.copy_(random(*parameter.shape, seed=seed + 50))
    return module


def padded() -> Tensor:
    return masks.padding(torch.tensor([[3, 4, 5, 6, 0], [3, 4, 0, 0, 0]]), 0)


def twin_of_torch(**terms: Any) -> tuple[nn.MultiheadAttention, MultiHeadAttention]:
    theirs = loud(nn.MultiheadAttention(D_MODEL, HEADS, **terms)).eval()
    return theirs, from_torch(theirs)


def test_a_head_is_its_three_projections_and_the_operation() -> None:
    head, x = loud(AttentionHead(D_MODEL, 4, 13)), random(N, D_MODEL)
    query, key, value = (x @ part.weight.T for part in (head.query, head.key, head.value))
    weights = (query @ key.T / math.sqrt(4)).softmax(-1)
    torch.testing.assert_close(head.attention(x).weights, weights)
    torch.testing.assert_close(head(x), weights @ value)
    assert head(random(BATCH, N, D_MODEL)).shape == (BATCH, N, 13)
    assert head.attention(random(BATCH, N, D_MODEL), padded()).weights[1, :, 2:].sum() == 0


def test_one_head_of_several_is_a_lone_head_with_its_part_of_the_weights() -> None:
    # In float64: a product of other sizes may be rounded otherwise, and what is claimed is not about rounding.
    several = loud(MultiHeadAttention(D_MODEL, HEADS, 4, 13, bias=False)).double()
    x = random(BATCH, N, D_MODEL).double()
    for index in range(HEADS):
        lone = AttentionHead(D_MODEL, 4, 13).double()
        lone.load_state_dict(
            {f"{name}.weight": getattr(several, name).weight.chunk(HEADS)[index] for name in ("query", "key", "value")}
        )
        torch.testing.assert_close(several.attention(x).head(index).weights, lone.attention(x).weights)
        torch.testing.assert_close(several.attention(x).head(index).output, lone(x))


def test_joined_heads_are_the_outputs_side_by_side_times_w_o() -> None:
    module, x = loud(MultiHeadAttention(D_MODEL, HEADS, d_v=13)), random(BATCH, N, D_MODEL)
    call = module.attention(x)
    side_by_side = torch.cat([call.head(index).output for index in range(HEADS)], dim=-1)
    torch.testing.assert_close(module(x), side_by_side @ module.output.weight.T + module.output.bias)
    assert call.query.shape == (BATCH, HEADS, N, D_MODEL // HEADS)
    assert call.value.shape == (BATCH, HEADS, N, 13)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("widths", [{}, {"kdim": 10, "vdim": 14}, {"vdim": 14}])
def test_a_module_from_torch_gives_torchs_output_and_weights(
    bias: bool, batch_first: bool, widths: dict[str, int]
) -> None:
    theirs, ours = twin_of_torch(bias=bias, batch_first=batch_first, **widths)
    x, keys, values = (
        random(BATCH, N, D_MODEL),
        random(BATCH, SOURCE, theirs.kdim),
        random(BATCH, SOURCE, theirs.vdim),
    )
    arranged = [one if batch_first else one.transpose(0, 1) for one in (x, keys, values)]
    output, weights = theirs(*arranged, average_attn_weights=False)
    assert weights.std() > 0.1
    torch.testing.assert_close(ours(x, keys=keys, values=values), output if batch_first else output.transpose(0, 1))
    torch.testing.assert_close(ours.attention(x, keys=keys, values=values).weights, weights)


def test_a_module_from_torch_agrees_on_masks_padding_and_single_texts() -> None:
    theirs, ours = twin_of_torch(batch_first=True)
    x, causal = random(BATCH, N, D_MODEL), masks.causal(N)
    expected = theirs(x, x, x, attn_mask=~causal, key_padding_mask=~padded()[:, 0])[0]
    torch.testing.assert_close(ours(x, masks.combine(causal, padded())), expected)
    torch.testing.assert_close(ours(x[0], causal), theirs(x[0], x[0], x[0], attn_mask=~causal)[0])


def test_a_module_from_torch_shares_no_weights_with_it() -> None:
    theirs, ours = twin_of_torch()
    before = ours.query.weight.clone()
    nn.init.zeros_(theirs.in_proj_weight)
    assert torch.equal(ours.query.weight, before) and ours.query.weight.requires_grad
    assert not ours.training


def test_a_module_from_torch_keeps_its_kind_of_number() -> None:
    ours = from_torch(nn.MultiheadAttention(D_MODEL, HEADS).double())
    assert {parameter.dtype for parameter in ours.parameters()} == {torch.float64} and ours.training


@pytest.mark.parametrize(
    ("terms", "name"), [({"add_bias_kv": True}, "add_bias_kv"), ({"add_zero_attn": True}, "add_zero_attn")]
)
def test_what_torch_adds_to_the_keys_is_refused_by_name(terms: dict[str, bool], name: str) -> None:
    with pytest.raises(UnsupportedModel, match=name):
        from_torch(nn.MultiheadAttention(D_MODEL, HEADS, **terms))


def test_dropout_of_torch_is_refused_only_while_it_drops() -> None:
    theirs = nn.MultiheadAttention(D_MODEL, HEADS, dropout=0.25)
    with pytest.raises(UnsupportedModel, match=r"dropout=0\.25 in training mode \(call \.eval\(\) first\)"):
        from_torch(theirs)
    x = random(N, D_MODEL)
    torch.testing.assert_close(from_torch(theirs.eval())(x), theirs(x, x, x)[0])


def test_fused_and_unfused_are_equal() -> None:
    fused, x = loud(SelfAttention(D_MODEL, HEADS)), random(BATCH, N, D_MODEL)
    unfused = fused.unfused()
    torch.testing.assert_close(fused(x, padded()), unfused(x, padded()))
    torch.testing.assert_close(fused.attention(x).weights, unfused.attention(x).weights)
    assert fused.fused.weight.shape == (3 * D_MODEL, D_MODEL)
    assert torch.equal(torch.cat([unfused.query.weight, unfused.key.weight, unfused.value.weight]), fused.fused.weight)


def test_dropout_acts_on_the_weights_in_training_and_never_else() -> None:
    module, x = loud(SelfAttention(D_MODEL, HEADS, dropout=0.5)), random(BATCH, N, D_MODEL)
    torch.manual_seed(3)
    dropped = module(x)
    torch.manual_seed(3)
    call = module.attention(x)
    kept = nn.functional.dropout(call.weights, 0.5) @ call.value
    torch.testing.assert_close(dropped, module.output(kept.transpose(1, 2).flatten(-2)))
    module.eval()
    torch.testing.assert_close(module(x), module.unfused()(x))
    assert not torch.allclose(module(x), dropped)


def test_cross_attention_asks_from_the_target_and_looks_at_the_source() -> None:
    module = loud(CrossAttention(D_MODEL, HEADS, d_k=4, d_v=13, d_source=D_SOURCE))
    target, source = random(BATCH, N, D_MODEL), random(BATCH, SOURCE, D_SOURCE, seed=1)
    allowed = masks.padding(torch.tensor([[1, 2, 3, 4, 5, 6, 0], [1, 2, 0, 0, 0, 0, 0]]), 0)
    call = module.attention(target, source, allowed)
    assert call.shape == (BATCH, HEADS, N, SOURCE)
    assert not call.weights[1, ..., 2:].any() and call.weights[0, ..., 2:6].any()
    torch.testing.assert_close(call.weights.sum(-1), torch.ones(BATCH, HEADS, N))
    assert module(target, source, allowed).shape == (BATCH, N, D_MODEL)
    torch.testing.assert_close(module(target[1], source[1], allowed[1]), module(target, source, allowed)[1])


def test_cross_attention_is_that_of_torch() -> None:
    theirs = loud(nn.MultiheadAttention(D_MODEL, HEADS, kdim=D_SOURCE, vdim=D_SOURCE, batch_first=True))
    ours = CrossAttention(D_MODEL, HEADS, d_source=D_SOURCE)
    ours.load_state_dict(from_torch(theirs).state_dict())
    target, source = random(BATCH, N, D_MODEL), random(BATCH, SOURCE, D_SOURCE, seed=1)
    torch.testing.assert_close(ours(target, source), theirs(target, source, source)[0])


MODULES = [lambda: MultiHeadAttention(D_MODEL, HEADS), lambda: SelfAttention(D_MODEL, HEADS)]


@pytest.mark.parametrize("make", MODULES)
def test_one_text_comes_out_as_in_a_batch(make: Any) -> None:
    module, x = loud(make()), random(BATCH, N, D_MODEL)
    assert module(x[0]).shape == (N, D_MODEL)
    torch.testing.assert_close(module(x[0]), module(x)[0])
    assert module.attention(x[0]).shape == (HEADS, N, N)


@pytest.mark.parametrize("make", MODULES)
@pytest.mark.parametrize(
    "shape", [(N, N), (1, N), (BATCH, N, N), (BATCH, 1, N), (BATCH, HEADS, N, N), (1, HEADS, 1, N)]
)
def test_a_mask_means_the_same_in_each_shape_it_may_have(make: Any, shape: tuple[int, ...]) -> None:
    module, x = loud(make()), random(BATCH, N, D_MODEL)
    allowed = random(*shape, seed=8) > -0.5
    weights = module.attention(x, allowed).weights
    for batch in range(BATCH):
        for head in range(HEADS):
            one = allowed
            while one.ndim > 2:
                place = {4: batch, 3: batch if len(shape) == 3 else head}[one.ndim]
                one = one[place if len(one) > 1 else 0]
            lone = module.attention(x[batch], one).head(head).weights
            torch.testing.assert_close(weights[batch, head], lone)


def test_more_batch_axes_than_one_are_taken() -> None:
    module, x = loud(MultiHeadAttention(D_MODEL, HEADS)), random(4, BATCH, N, D_MODEL)
    torch.testing.assert_close(module(x, padded())[3], module(x[3], padded()))


def test_gradients_reach_every_weight() -> None:
    for module in (MultiHeadAttention(D_MODEL, HEADS), SelfAttention(D_MODEL, HEADS, dropout=0.1)):
        module(random(BATCH, N, D_MODEL), padded()).square().sum().backward()
        for name, parameter in module.named_parameters():
            assert parameter.grad is not None and parameter.grad.isfinite().all(), name


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MultiHeadAttention(10, 3), "d_model 10 isn't a multiple of 3 heads"),
        (lambda: MultiHeadAttention(10, 3, d_k=4), "d_model 10 isn't a multiple of 3 heads"),
        (lambda: SelfAttention(10, 3), "d_model 10 isn't a multiple of 3 heads"),
        (lambda: CrossAttention(10, 3), "d_model 10 isn't a multiple of 3 heads"),
        (lambda: MultiHeadAttention(12, 0), "heads must be a whole number, 1 or more; got 0"),
        (lambda: MultiHeadAttention(-12, 3), "d_model must be a whole number, 1 or more; got -12"),
        (lambda: MultiHeadAttention(12, 3, d_v=0), "d_v must be a whole number, 1 or more; got 0"),
        (lambda: MultiHeadAttention(12, 3, key_width=0), "key_width must be"),
        (lambda: CrossAttention(12, 3, d_source=-1), "d_source must be"),
        (lambda: AttentionHead(12, 0), "d_k must be"),
        (lambda: SelfAttention(12, 3, dropout=1.0), "dropout must be from 0 to below 1; got 1.0"),
        (lambda: SelfAttention(12, 3, dropout=-0.1), "dropout"),
    ],
)
def test_sizes_of_which_no_module_can_be_made_are_refused_by_name(make: Any, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        make()


def test_heads_that_do_not_share_d_model_evenly_may_have_widths_of_their_own() -> None:
    assert MultiHeadAttention(10, 3, d_k=4, d_v=5)(random(N, 10)).shape == (N, 10)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: AttentionHead(12, 4)(random(N, 13)), r"x must be \(…, n, d_model\) with d_model 12; got \(5, 13\)"),
        (lambda: MultiHeadAttention(12, 3)(random(N, 13)), "x must be"),
        (lambda: MultiHeadAttention(12, 3, key_width=5)(random(N, 12)), "keys must be .* with key_width 5"),
        (lambda: MultiHeadAttention(12, 3, value_width=5)(random(N, 12)), "values must be .* with value_width 5"),
        (lambda: SelfAttention(12, 3)(random(N, 13)), "x must be"),
        (lambda: CrossAttention(12, 3)(random(N, 13), random(N, 12)), "target must be"),
        (lambda: CrossAttention(12, 3, d_source=4)(random(N, 12), random(N, 12)), "source .* with d_source 4"),
        (lambda: SelfAttention(12, 3)(random(N, 12), masks.causal(N + 1)), r"allowed .*\(3, 5, 5\); got \(6, 6\)"),
    ],
)
def test_inputs_that_do_not_fit_are_refused_by_name(call: Any, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        call()
