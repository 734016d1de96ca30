"""Attention layers with weights: single, multi-head, fused, cross.

Source: Vaswani et al. 2017, "Attention Is All You Need", sections 3.2.2 (heads) and 3.2.3 (self- and cross-attention).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jaxtyping import Bool, Float
from torch import Tensor, nn

from attention_viz.errors import ShapeError, UnsupportedModel
from attention_viz.operation.attention import Attention, attend
from attention_viz.operation.shapes import (
    apart,
    check_sizes,
    check_width,
    for_all_heads,
    side_by_side,
    widths_of_a_head,
)
from attention_viz.operation.short_repr import ShortRepr

__all__ = ["AttentionHead", "CrossAttention", "MultiHeadAttention", "Projection", "SelfAttention", "from_torch"]

_PROJECTIONS = ("query", "key", "value")


class _Module(nn.Module):
    attention: Callable[..., Attention]
    join: Callable[[Attention], Tensor]

    def forward(self, *inputs: Any, **named: Any) -> Tensor:
        """Return `join` of `attention`; see there for shapes and errors."""
        return self.join(self.attention(*inputs, **named))


class AttentionHead(_Module):
    """One head: it projects each position to a query, a key and a value, and has no output projection.

    Source: Vaswani et al. 2017, eq. 1, with the projections of section 3.2.2, which have no bias.
    """

    def __init__(self, d_model: int, d_k: int, d_v: int | None = None) -> None:
        """Make three projections: d_model → d_k, d_k, d_v.

        Args:
            d_v: d_k by default.
        """
        super().__init__()
        d_v = d_k if d_v is None else d_v
        check_sizes(d_model=d_model, d_k=d_k, d_v=d_v)
        self.d_model = d_model
        self.query = nn.Linear(d_model, d_k, bias=False)
        self.key = nn.Linear(d_model, d_k, bias=False)
        self.value = nn.Linear(d_model, d_v, bias=False)

    def attention(self, x: Float[Tensor, "*batch n _d_model"], allowed: Bool[Tensor, "..."] | None = None) -> Attention:
        """Return the call behind the output. A lone head has no head axis: its query is (…, n, d_k).

        Args:
            x: (batch, n, d_model), or (n, d_model).
            allowed: True where a query may attend: (query, key), (batch, query, key), or (batch, 1, key) for padding.

        Raises:
            ShapeError: x is not d_model wide, or the mask doesn't fit.
        """
        check_width("x", x, "d_model", self.d_model)
        return attend(self.query(x), self.key(x), self.value(x), allowed)

    def join(self, attention: Attention) -> Float[Tensor, "*batch n d_v"]:
        """Return the values mixed by the weights; a single head needs no joining."""
        return attention.output


class _Heads(_Module):
    def __init__(
        self, d_model: int, heads: int, d_k: int | None, d_v: int | None, bias: bool, **widths: int | None
    ) -> None:
        super().__init__()
        d_k, d_v = widths_of_a_head(d_model, heads, d_k, d_v)
        self.widths = {name: d_model if width is None else width for name, width in widths.items()}
        check_sizes(**self.widths)
        sources = tuple(self.widths.values())  # the keys' input first, the values' last
        self.d_model, self.heads = d_model, heads
        self.query = nn.Linear(d_model, heads * d_k, bias)
        self.key = nn.Linear(sources[0], heads * d_k, bias)
        self.value = nn.Linear(sources[-1], heads * d_v, bias)
        self.output = nn.Linear(heads * d_v, d_model, bias)

    def join(self, attention: Attention) -> Float[Tensor, "*batch n d_model"]:
        """Join the heads' outputs side by side and project them by W_O."""
        return self.output(side_by_side(attention.output))

    def _attend(self, query: Tensor, key: Tensor, value: Tensor, allowed: Tensor | None) -> Attention:
        projected = self.query(query), self.key(key), self.value(value)
        queries, keys, values = (apart(one, self.heads) for one in projected)
        return attend(queries, keys, values, for_all_heads(allowed, query.ndim))


class MultiHeadAttention(_Heads):
    """Several heads on one sequence, joined and projected.

    Source: Vaswani et al. 2017, section 3.2.2.
    """

    def __init__(
        self,
        d_model: int,
        heads: int,
        d_k: int | None = None,
        d_v: int | None = None,
        bias: bool = True,
        *,
        key_width: int | None = None,
        value_width: int | None = None,
    ) -> None:
        """Make W_Q, W_K, W_V and W_O.

        Args:
            d_k: d_model / heads by default, as `d_v`.
            key_width: the key sequence's; d_model by default.
        """
        super().__init__(d_model, heads, d_k, d_v, bias, key_width=key_width, value_width=value_width)

    def attention(
        self,
        x: Float[Tensor, "*batch n _d_model"],
        allowed: Bool[Tensor, "..."] | None = None,
        *,
        keys: Float[Tensor, "*batch source _key_width"] | None = None,
        values: Float[Tensor, "*batch source _value_width"] | None = None,
    ) -> Attention:
        """Return the call behind the output: its query is (…, head, n, d_k).

        Args:
            x: (batch, n, d_model), or (n, d_model).
            allowed: True where a query may attend: (query, key), (batch, query, key), or (batch, 1, key) from
                `masks.padding`; you may add an axis for the heads before the last two.
            keys: input of the key projection; x by default.
            values: input of the value projection; as `keys` by default.

        Raises:
            ShapeError: an input of the wrong width, or a mask that doesn't fit.
        """
        keys = x if keys is None else keys
        values = keys if values is None else values
        check_width("x", x, "d_model", self.d_model)
        check_width("keys", keys, "key_width", self.widths["key_width"])
        check_width("values", values, "value_width", self.widths["value_width"])
        return self._attend(x, keys, values, allowed)


class CrossAttention(_Heads):
    """Several heads from one sequence to another: the target attends to the source.

    Source: Vaswani et al. 2017, section 3.2.3, "encoder-decoder attention".
    """

    def __init__(
        self,
        d_model: int,
        heads: int,
        d_k: int | None = None,
        d_v: int | None = None,
        bias: bool = True,
        *,
        d_source: int | None = None,
    ) -> None:
        """Make W_Q from the target, W_K and W_V from the source, and W_O.

        `d_source` is d_model by default; otherwise as `MultiHeadAttention`.
        """
        super().__init__(d_model, heads, d_k, d_v, bias, d_source=d_source)

    def attention(
        self,
        target: Float[Tensor, "*batch target _d_model"],
        source: Float[Tensor, "*batch source _d_source"],
        allowed: Bool[Tensor, "..."] | None = None,
    ) -> Attention:
        """Return the call behind the output: its weights are (…, head, target, source).

        Args:
            target: (batch, target, d_model), or (target, d_model).
            source: (batch, source, d_source), or (source, d_source).
            allowed: True where the target may attend to the source: (target, source), or with the batch before it;
                for padding, `masks.padding` of the source's ids.

        Raises:
            ShapeError: an input of the wrong width, or a mask that doesn't fit.
        """
        check_width("target", target, "d_model", self.d_model)
        check_width("source", source, "d_source", self.widths["d_source"])
        return self._attend(target, source, source, allowed)


class SelfAttention(_Module):
    """Several heads on one sequence, with queries, keys and values from one fused projection.

    One large product is faster than three small ones; the numbers are the same, as `unfused` shows.

    Source: Vaswani et al. 2017, section 3.2.2; dropout on the weights as in Radford et al. 2019 (GPT-2).
    """

    def __init__(self, d_model: int, heads: int, dropout: float = 0.0) -> None:
        """Make the fused projection, d_model → 3 · d_model, and W_O.

        Args:
            dropout: of weights in training, 0 to below 1.
        """
        super().__init__()
        widths_of_a_head(d_model, heads, None, None)
        if not 0 <= dropout < 1:
            raise ShapeError(f"dropout must be from 0 to below 1; got {dropout}")
        self.d_model, self.heads = d_model, heads
        self.fused = nn.Linear(d_model, 3 * d_model)
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(d_model, d_model)

    def attention(self, x: Float[Tensor, "*batch n _d_model"], allowed: Bool[Tensor, "..."] | None = None) -> Attention:
        """Return the call behind the output: its query is (…, head, n, d_k).

        Input, mask and errors are as in `MultiHeadAttention.attention`.
        """
        check_width("x", x, "d_model", self.d_model)
        query, key, value = (apart(part, self.heads) for part in self.fused(x).chunk(3, dim=-1))
        return attend(query, key, value, for_all_heads(allowed, x.ndim))

    def join(self, attention: Attention) -> Float[Tensor, "*batch n d_model"]:
        """Join the heads' outputs side by side and project them by W_O; in training, drop some weights first."""
        dropping = self.training and self.dropout.p > 0
        mixed = self.dropout(attention.weights) @ attention.value if dropping else attention.output
        return self.output(side_by_side(mixed))

    def unfused(self) -> MultiHeadAttention:
        """Copy this module into one with three separate projections and no dropout."""
        copy = MultiHeadAttention(self.d_model, self.heads).to(self.output.weight)
        state = _thirds("weight", self.fused.weight) | _thirds("bias", self.fused.bias)
        copy.load_state_dict(state | {f"output.{name}": part for name, part in self.output.state_dict().items()})
        return copy.train(self.training)


def from_torch(module: nn.MultiheadAttention) -> MultiHeadAttention:
    """Copy torch's module into ours, which always takes the batch first.

    Torch's masks are True where a key is blocked, ours where it is allowed.

    Raises:
        UnsupportedModel: it adds its own keys (add_bias_kv, add_zero_attn), or drops weights in training.
    """
    _refuse_what_differs(module)
    theirs = module.state_dict()
    bias = "in_proj_bias" in theirs
    widths = {"key_width": module.kdim, "value_width": module.vdim}
    copy = MultiHeadAttention(module.embed_dim, module.num_heads, bias=bias, **widths).to(module.out_proj.weight)
    # Torch keeps one matrix for all three if their inputs are equally wide, else three.
    separate = {f"{name}.weight": theirs.get(f"{name[0]}_proj_weight") for name in _PROJECTIONS}
    state = _thirds("weight", theirs["in_proj_weight"]) if "in_proj_weight" in theirs else separate
    if bias:
        state |= _thirds("bias", theirs["in_proj_bias"])
    copy.load_state_dict(state | {f"output.{name}": part for name, part in module.out_proj.state_dict().items()})
    return copy.train(module.training)


def _refuse_what_differs(module: nn.MultiheadAttention) -> None:
    terms = {
        "add_bias_kv, a learned key and value added to the text's": module.bias_k is not None,
        "add_zero_attn, a key and value of zeros added to the text's": module.add_zero_attn,
        f"dropout={module.dropout} in training mode (call .eval() first)": module.training and module.dropout > 0,
    }
    for term, present in terms.items():
        if present:
            raise UnsupportedModel(f"can't reproduce this nn.MultiheadAttention exactly: it has {term}")


def _thirds(kind: str, fused: Tensor) -> dict[str, Tensor]:
    return {f"{name}.{kind}": part for name, part in zip(_PROJECTIONS, fused.chunk(3), strict=True)}


@dataclass(frozen=True, eq=False, repr=False)
class Projection(ShortRepr):
    """One learned projection of a layer, for all its heads side by side: x · weight + bias.

    Attributes:
        weight: (in, out); the columns of head h of W_Q are h·d_k to (h + 1)·d_k, the rows of head h of W_O are
            h·d_v to (h + 1)·d_v.
        bias: (out,), or None.
    """

    weight: Float[Tensor, "_in out"]
    bias: Float[Tensor, " out"] | None = None
