"""The kernels that models call to mix tokens, each with its arguments as the terms of a token mixer.

Each family has its own copy of a kernel under the same name, with the same arguments. A kernel returns the mixed values
first; `shape_as` gives ours their layout.

Source: transformers 5.23, the functions of these names.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from attention_viz.errors import UnsupportedModel
from attention_viz.operation.token_mixer import TokenMixer

__all__ = ["KERNELS", "Kernel", "first_of", "fourier", "lightning", "mlstm"]

# What kernels add to the squared length before they divide by its root.
_LENGTH_EPSILON = 1e-6


@dataclass(frozen=True)
class Kernel:
    """One kernel: how its arguments become a call, and how a call's output becomes the kernel's.

    Attributes:
        call: the mixer of the kernel's arguments by name, heads behind the batch.
        shape_as: reshapes (batch, head, query, d_v) to the kernel's own layout.
        one_column: the kernel's output for values with one column, as (head, query).
        value: the argument with the values.
        token_axis: the axis of the values that has the tokens.
        state: the argument with the state before the first token, which a whole text has not.
    """

    call: Callable[[Mapping[str, Any]], TokenMixer]
    shape_as: Callable[[Tensor, Mapping[str, Any]], Tensor]
    one_column: Callable[[Tensor], Tensor]
    value: str
    token_axis: int
    state: str = ""

    def matrix_error(self, mixer: TokenMixer, arguments: Mapping[str, Any], run: Callable[..., Any]) -> float:
        """Return how far our weights are from the kernel's own, relative to the largest.

        The kernel runs once per token, on values of 1 at that token and 0 elsewhere: its output is a column.

        Args:
            run: the kernel, with some arguments replaced by name.
        """
        value: Tensor = arguments[self.value]
        nothing, columns = torch.zeros_like(value), list[Tensor]()
        # A convolution's bias is no part of the matrix.
        constant = self.one_column(first_of(run(**{self.value: nothing})))
        for token in range(value.shape[self.token_axis]):
            unit = nothing.clone()
            unit.select(self.token_axis, token).fill_(1)
            columns.append(self.one_column(first_of(run(**{self.value: unit}))) - constant)
        own = torch.stack(columns, dim=-1)
        # RG-LRU's kernel gets values that are written already.
        ours = (replace(mixer, write=None) if mixer.kind == "RG-LRU" else mixer).weights[0]
        largest = float(own.abs().max())
        return float((ours - own).abs().max()) / (largest or 1.0)

    def check(self, name: str, arguments: Mapping[str, Any]) -> None:
        """Refuse a call that goes on from an earlier state or packs several texts."""
        state = arguments.get(self.state)
        if isinstance(state, Tensor) and bool(state.any()):
            raise UnsupportedModel(f"{name} starts from a kept state; run the whole text without a cache")
        packed = [one for one in ("cu_seqlens", "seq_idx") if arguments.get(one) is not None]
        if packed:
            raise UnsupportedModel(f"{name} got several texts in one row ({packed[0]}); run one text at a time")


def _delta_rule(kind: Any) -> Callable[[Mapping[str, Any]], TokenMixer]:
    """Bind a delta rule's arguments, (batch, token, head, width); decays by head or by dimension."""

    def call(arguments: Mapping[str, Any]) -> TokenMixer:
        query, key, value, decay, write = (
            _heads_first(arguments[name]) for name in ("query", "key", "value", "g", "beta")
        )
        if arguments.get("use_qk_l2norm_in_kernel"):
            query, key = _normalized(query), _normalized(key)
        decay = decay if decay.ndim == 4 else decay[..., None]
        return TokenMixer(kind, query, key, value, decay, write[..., None], scale=query.shape[-1] ** -0.5)

    return call


def _ssd(arguments: Mapping[str, Any]) -> TokenMixer:
    """Bind Mamba-2's arguments: (batch, token, head, width), its input and output maps by group of heads."""
    step = arguments["dt"]
    if arguments.get("dt_bias") is not None:
        step = step + arguments["dt_bias"].to(step.dtype)
    if arguments.get("dt_softplus"):
        step = functional.softplus(step)
    step = step.clamp(*arguments.get("dt_limit", (0.0, float("inf")))).float()
    rate, skip = arguments["A"].float(), arguments.get("D")
    value, key, query = (_heads_first(arguments[name]) for name in ("hidden_states", "B", "C"))
    step = step.transpose(1, 2)[..., None]
    return TokenMixer(
        "SSD", query, key, value, rate[:, None, None] * step, step, skip=None if skip is None else skip.float()
    )


def _selective_scan(arguments: Mapping[str, Any]) -> TokenMixer:
    """Bind Mamba-1's arguments, (batch, channel, token): each channel is a head with its own decays."""
    step = arguments["dt"]
    if arguments.get("delta_bias") is not None:
        step = step + arguments["delta_bias"].to(step.dtype)[..., None]
    if arguments.get("delta_softplus"):
        step = functional.softplus(step)
    step = step.float()[..., None]
    query, key = (arguments[name].float().transpose(1, 2)[:, None] for name in ("C", "B"))
    gate, skip = arguments.get("z"), arguments.get("D")
    return TokenMixer(
        "selective scan",
        query,
        key,
        arguments["hidden_states"].float()[..., None],
        step * arguments["A"].float()[None, :, None, :],
        step,
        gate=None if gate is None else functional.silu(gate.float())[..., None],
        skip=None if skip is None else skip.float(),
        per="channel",
    )


def _convolution(arguments: Mapping[str, Any]) -> TokenMixer:
    """Bind a short convolution's arguments, (batch, channel, token), each channel with its own taps."""
    if arguments.get("activation") is not None:
        raise UnsupportedModel(
            f"a convolution with {arguments['activation']} behind it isn't a matrix of tokens by tokens"
        )
    value, taps = _wide(arguments["hidden_states"])[..., None], _wide(arguments["weight"])
    one = value.new_ones(1, 1, value.shape[-2], 1)
    # The last tap is that of the token itself.
    return TokenMixer("convolution", one, one, value, taps=taps.flip(-1)[:, None, :], per="channel")


def _rg_lru(arguments: Mapping[str, Any]) -> TokenMixer:
    """Bind RG-LRU's scan, (batch, token, channel): its value is the layer's input, its write both gates on it."""
    if bool(arguments["reset"][:, 1:].any()):
        raise UnsupportedModel("the RG-LRU starts anew inside the text; run one text at a time")
    written, read = (_wide(one).mT[..., None] for one in (arguments["hidden_states"], arguments["activations"]))
    kept = _wide(arguments["recurrent_gate"]).mT[..., None]
    decay = kept.clamp_min(torch.finfo(kept.dtype).tiny).log()
    write = torch.where(read == 0, 0.0, written / torch.where(read == 0, 1.0, read))
    one = read.new_ones(1, 1, read.shape[-2], 1)
    return TokenMixer("RG-LRU", one, one, read, decay, write, per="channel")


def _yoso(arguments: Mapping[str, Any]) -> TokenMixer:
    """Bind YOSO's expectation of collisions, (batch · head, token, width)."""
    if not bool((arguments["query_mask"] == 1).all()):
        raise UnsupportedModel("YOSO got padding; run one text at a time")
    query, key, value = (_wide(arguments[name])[None] for name in ("query", "key", "value"))
    return TokenMixer("YOSO", query, key, value, exponent=float(arguments["config"]["hash_code_len"]))


def mlstm(arguments: Mapping[str, Any], epsilon: float) -> TokenMixer:
    """Bind mLSTM's arguments, (batch, head, token, width), with gates relative to their largest sum so far."""
    rise, fall = (arguments[name].double() for name in ("igate", "fgate"))
    kept = functional.logsigmoid(fall).cumsum(dim=-1)
    largest = kept + (rise - kept).clamp_min(0).cummax(dim=-1).values
    before = functional.pad(largest[..., :-1], (1, 0))
    decay = functional.logsigmoid(fall) + before - largest
    query, key, value = (_wide(arguments[name]) for name in ("query", "key", "value"))
    write, floor = ((one).exp().to(query.dtype)[..., None] for one in (rise - largest, -largest))
    scale = query.shape[-1] ** -0.5
    decay = decay.to(query.dtype)[..., None]
    return TokenMixer("mLSTM", query, key, value, decay, write, floor=floor, scale=scale, epsilon=epsilon)


def fourier(hidden: Tensor) -> TokenMixer:
    """Bind a Fourier transform over tokens and dimensions as two heads, cosine and sine; their sum is the output."""
    count, width = hidden.shape[-2:]
    along, across = (_angles(size, hidden.device) for size in (count, width))
    dtype = _wide(hidden).dtype
    value = torch.stack([_wide(hidden) @ part.to(dtype) for part in (across.cos(), across.sin())], dim=1)
    factor = torch.stack([along.cos(), -along.sin()]).to(dtype)
    one = value.new_ones(1, 1, count, 1)
    return TokenMixer("Fourier", one, one, value, factor=factor)


def lightning(activated: Tensor, heads: int, slope: Tensor) -> TokenMixer:
    """Bind lightning attention's activated projections, (batch, token, head · 3 · width), and its decay by head."""
    apart = _wide(activated).unflatten(-1, (heads, -1)).transpose(1, 2)
    query, key, value = apart.chunk(3, dim=-1)
    decay = -slope.to(query.dtype).reshape(heads, 1, 1).expand(-1, query.shape[-2], 1)
    return TokenMixer("lightning", query, key, value, decay)


def _angles(size: int, device: torch.device) -> Tensor:
    steps = torch.arange(size, dtype=torch.float64, device=device)
    return 2 * torch.pi / size * (torch.outer(steps, steps) % size)


def _wide(tensor: Tensor) -> Tensor:
    return tensor if tensor.dtype == torch.float64 else tensor.float()


def _heads_first(tensor: Tensor) -> Tensor:
    """(batch, token, head, …) to (batch, head, token, …), in float32 at least."""
    return _wide(tensor.transpose(1, 2))


def _normalized(vectors: Tensor) -> Tensor:
    return vectors * torch.rsqrt(vectors.square().sum(dim=-1, keepdim=True) + _LENGTH_EPSILON)


def _tokens_first(output: Tensor, _: Mapping[str, Any]) -> Tensor:
    return output.transpose(1, 2).contiguous()


def _channels(output: Tensor, arguments: Mapping[str, Any]) -> Tensor:
    return output[..., 0].to(arguments["hidden_states"].dtype)


def _channels_last(output: Tensor, arguments: Mapping[str, Any]) -> Tensor:
    return output[..., 0].mT.to(arguments["hidden_states"].dtype)


def _with_bias(output: Tensor, arguments: Mapping[str, Any]) -> Tensor:
    found, bias = output[..., 0], arguments.get("bias")
    return (found if bias is None else found + bias[:, None]).to(arguments["hidden_states"].dtype)


def first_of(result: Any) -> Tensor:
    """Return the output of a kernel that may return a state, too."""
    return result[0] if isinstance(result, tuple) else result


def _column_of_heads(output: Tensor) -> Tensor:
    """(batch, token, head, d_v) to (head, token)."""
    return output[0, ..., 0].T


def _by_head(call: Callable[[Mapping[str, Any]], TokenMixer], value: str, state: str) -> Kernel:
    """Return a kernel whose values are (batch, token, head, d_v)."""
    return Kernel(call, _tokens_first, _column_of_heads, value, 1, state)


KERNELS: Mapping[str, Kernel] = {
    "torch_chunk_gated_delta_rule": _by_head(_delta_rule("gated delta"), "value", "initial_state"),
    "chunk_kimi_delta_attention": _by_head(_delta_rule("Kimi delta"), "value", "initial_state"),
    "mamba2_chunk_scan": _by_head(_ssd, "hidden_states", "initial_states"),
    "mamba_selective_scan": Kernel(_selective_scan, _channels, lambda output: output[0], "hidden_states", 2),
    "causal_conv1d_fn": Kernel(_convolution, _with_bias, lambda output: output[0], "hidden_states", 2),
    "_rnn_scan": Kernel(_rg_lru, _channels_last, lambda output: output[0].T, "hidden_states", 1),
    "YosoCumulation": Kernel(_yoso, lambda output, _: output[0], lambda output: output[..., 0], "value", 1),
}
