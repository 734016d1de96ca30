"""Hear RWKV-4's linear attention, which is softmax attention with one head per channel.

The weight of an earlier token s for token t is a softmax of k_s − w·(t − 1 − s), that of the token itself has u + k_t.
So k is the key, a query is 1, and the bias has the decay w by distance and the bonus u.

Source: Peng et al. 2023, "RWKV: Reinventing RNNs for the Transformer Era", eq. 16.
"""

import functools
import inspect
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from attention_viz.errors import UnsupportedModel
from attention_viz.operation.attention import Attention, attend
from attention_viz.operation.cutting import first as cut_to_first
from attention_viz.operation.masks import causal
from attention_viz.operation.shapes import widened
from attention_viz.recording.recorder import Call, recording

__all__ = ["OwnChannels", "hear_channels", "kernels_compared", "of_channels"]

_KERNEL = "rwkv_linear_attention"
_LISTENER = "_attention_viz_listener"
# Each channel has a bias of its own for each pair of tokens; a layer's may take so many bytes: 2 GiB.
_MOST_BYTES = 2**31
_installing = threading.Lock()


@dataclass(eq=False)
class OwnChannels:
    """Compares recorded weights with those of the model's own kernel, on the first tokens.

    Attributes:
        calls: each recorded call in order; None if it wasn't kept.
        most: how many tokens are compared.
        heard: how many calls of the kernel were heard.
        error: the largest difference of a weight.
    """

    calls: Sequence[Attention | None]
    most: int
    heard: int = 0
    error: float = 0.0

    def compare(self, kernel: Callable[..., Any], decay: Tensor, first: Tensor, key: Tensor) -> None:
        """Run the kernel on values that are 1 at one token each, and compare its outputs with the next call."""
        number, self.heard = self.heard, self.heard + 1
        ours = self.calls[number] if number < len(self.calls) else None
        if ours is None:
            return
        key = key[:, : self.most]
        count, channels = key.shape[1:]
        values = torch.eye(count, dtype=key.dtype, device=key.device)[:, :, None].expand(-1, -1, channels)
        columns = kernel(decay, first, key.expand(count, -1, -1).contiguous(), values.contiguous())[0]
        own = columns.permute(2, 1, 0)
        found = cut_to_first(ours, queries=count, keys=count).weights
        self.error = max(self.error, float((found - own).abs().max()))


_comparing: ContextVar[OwnChannels | None] = ContextVar("comparing_channels", default=None)


@contextmanager
def kernels_compared(own: OwnChannels) -> Generator[None]:
    """Compare the kernel of each pass inside that isn't recorded."""
    token = _comparing.set(own)
    try:
        yield
    finally:
        _comparing.reset(token)


def of_channels(module: nn.Module) -> bool:
    """Return whether a module calls RWKV-4's linear attention."""
    return _calls_it(type(module))


def hear_channels(model: nn.Module) -> None:
    """Let recorders hear RWKV-4's linear attention in a model, for good."""
    for kind in {type(module) for module in model.modules() if of_channels(module)}:
        namespace: dict[str, Any] = inspect.unwrap(kind.forward).__globals__
        with _installing:
            if getattr(namespace[_KERNEL], _LISTENER, None) is not namespace[_KERNEL]:
                namespace[_KERNEL] = _listener(namespace[_KERNEL])


@functools.cache
def _calls_it(kind: type[nn.Module]) -> bool:
    forward = inspect.unwrap(kind.forward)
    code = getattr(forward, "__code__", None)
    return code is not None and _KERNEL in code.co_names and _KERNEL in forward.__globals__


def _listener(kernel: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(kernel)
    def listen(
        time_decay: Tensor,
        time_first: Tensor,
        key: Tensor,
        value: Tensor,
        state: Any = None,
        return_state: bool = False,
    ) -> tuple[Tensor, Any]:
        if (recorder := recording.get()) is None:
            if (own := _comparing.get()) is not None:
                own.compare(kernel, time_decay, time_first, key)
            return kernel(time_decay, time_first, key, value, state, return_state)
        if state is not None or return_state:
            raise UnsupportedModel(f"{_KERNEL} starts from a kept state; run the whole text without a cache")
        module: nn.Module = sys._getframe(1).f_locals["self"]  # pyright: ignore[reportPrivateUsage] -- the only way
        output = recorder.compute(Call(module, attention_of_channels(time_decay, time_first, key, value)))
        return output[..., 0].mT.to(key.dtype), None

    setattr(listen, _LISTENER, listen)
    return listen


def attention_of_channels(decay: Tensor, first: Tensor, key: Tensor, value: Tensor) -> Attention:
    """Return the attention of RWKV-4's terms: decay and first are (channel,), key and value (batch, token, channel)."""
    count, channels = key.shape[1:]
    if (size := 4 * channels * count**2) > _MOST_BYTES:
        most = int((_MOST_BYTES / 4 / channels) ** 0.5)
        raise UnsupportedModel(
            f"each of the {channels} channels has weights of its own, {size / 2**30:.0f} GiB per layer for {count} "
            f"tokens; use at most {most} tokens"
        )
    rate = decay.float().exp()[:, None, None]
    steps = torch.arange(count, device=key.device)
    # The token before has a distance of 0; later tokens are blocked.
    distance = (steps[:, None] - steps - 1).clamp_min(0)
    own = torch.eye(count, dtype=torch.bool, device=key.device)
    bias = torch.where(own, first.float()[:, None, None], -rate * distance)[None]
    keys, values = (widened(one).transpose(1, 2)[..., None] for one in (key, value))
    query = torch.ones_like(keys)
    return attend(query, keys, values, causal(count).to(key.device), scale=1.0, bias=bias.to(keys.dtype))
