"""Round a run's numbers for a file and measure the weights' error."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from attention_viz.errors import TraceError
from attention_viz.operation.attention import Attention
from attention_viz.operation.terms import map_terms
from attention_viz.operation.token_mixer import TokenMixer
from attention_viz.trace.files.format import WEIGHTS
from attention_viz.trace.given.from_weights import attention_of, mixer_of_weights
from attention_viz.trace.provenance import Provenance
from attention_viz.trace.trace_data import TraceData

# bfloat16 isn't among them: its logits are so far off that a model couldn't be recognised by them.
DTYPES: Mapping[str, torch.dtype] = MappingProxyType({"float16": torch.float16, "float32": torch.float32})
# Weights that are computed at a time.
_AT_ONCE = 2**22


@dataclass
class Rounding:
    """The kept part of a run, its number type and the measured error.

    Attributes:
        dtype: the type that wider numbers are rounded to; None keeps each number's own.
        weight_error: the largest absolute weight difference so far.
    """

    what: str
    dtype: torch.dtype | None
    weight_error: float = 0.0

    @property
    def measures(self) -> bool:
        """Whether the file's weights may differ from the run's."""
        return self.what == WEIGHTS or self.dtype is not None

    @property
    def change(self) -> str:
        """The rounding, to follow "before"; empty for none."""
        return "" if self.dtype is None else f"the numbers were rounded to {self._named}"

    @property
    def _named(self) -> str:
        return str(self.dtype).removeprefix("torch.")

    def item_size(self, own: torch.dtype) -> int:
        """Return a number's bytes in the file."""
        return own.itemsize if self.dtype is None else min(own.itemsize, self.dtype.itemsize)

    def of(self, tensor: Tensor, where: str) -> Tensor:
        """Round a tensor for the file."""
        if (kind := self.kind_of(tensor)) == tensor.dtype:
            return tensor
        self.check(tensor, where)
        return tensor.to(kind)

    def kind_of(self, tensor: Tensor) -> torch.dtype:
        """Return a tensor's dtype in the file."""
        wider = self.dtype is not None and tensor.is_floating_point() and tensor.dtype.itemsize > self.dtype.itemsize
        return self.dtype if wider and self.dtype is not None else tensor.dtype

    def check(self, tensor: Tensor, where: str) -> None:
        """Refuse numbers that the file's dtype can't hold."""
        assert self.dtype is not None
        if bool((tensor.to(self.dtype).isinf() & tensor.isfinite()).any()):
            largest = float(tensor[tensor.isfinite()].abs().max())
            raise TraceError(
                f"{where} has numbers up to {largest:.4g}, over {self._named}'s limit of "
                f'{torch.finfo(self.dtype).max:.5g}; leave out dtype, or save what="weights"'
            )

    def measure(self, call: Attention | TokenMixer, where: str) -> None:
        """Measure how far a call's weights change in the file."""
        if not self.measures:
            return
        if self.what == WEIGHTS and isinstance(call, Attention) and call.sinks is not None:
            raise TraceError(
                f'{where} has attention sinks, so its weights alone don\'t describe the run; save what="terms"'
            )
        for some in _some_rows(call):
            own = some.weights.detach()
            back = self._back(some, own, where).weights
            if own.numel():
                self.weight_error = max(self.weight_error, float((own.double() - back.double()).abs().max()))

    def _back(self, call: Attention | TokenMixer, weights: Tensor, where: str) -> Attention | TokenMixer:
        if self.what == WEIGHTS:
            rounded = self.of(weights, where).to(weights.dtype)
            mixes = isinstance(call, TokenMixer)
            return mixer_of_weights(rounded, call.kind, call.per) if mixes else attention_of(rounded, call.allowed)

        def there_and_back(_: object, value: Any) -> Any:
            return self.of(value, where).to(value.dtype) if isinstance(value, Tensor) else value

        return map_terms(call, there_and_back)

    def described(self, trace: TraceData) -> Provenance:
        """Add the kept part and errors, and an earlier file's, to the provenance."""
        origin, far = trace.provenance, 0.0
        if self.dtype is not None and (output := trace.output.detach()).numel():
            off = (output.double() - self.of(output, "the output").double()).abs()
            far = float(off.nan_to_num().max())
        added = [*([] if self.what == "all" else [self.what]), *([] if self.dtype is None else [self._named])]
        said = dict.fromkeys([*filter(None, origin.stored.split(", ")), *added])
        return replace(
            origin,
            stored=", ".join(one for one in said if one != "terms" or WEIGHTS not in said),
            stored_weight_error=origin.stored_weight_error + self.weight_error,
            stored_output_error=origin.stored_output_error + far,
        )


def weights_of(call: Attention | TokenMixer) -> Float[Tensor, "head query key"]:
    """Compute a call's weights, some rows at a time."""
    if isinstance(call, TokenMixer):
        return call.weights.detach()
    return torch.cat([some.weights.detach() for some in _some_rows(call)], dim=-2)


def _some_rows(call: Attention | TokenMixer) -> Iterator[Attention | TokenMixer]:
    heads, queries, keys = call.shape
    if isinstance(call, TokenMixer):
        # Its rows cost least together with the others of their head.
        together = max(1, _AT_ONCE // max(1, queries * keys))
        for first in range(0, heads, together):
            yield call.heads(slice(first, first + together))
        return
    step = max(1, _AT_ONCE // max(1, heads * keys))
    for start in range(0, queries, step):
        yield call.rows(slice(start, min(start + step, queries)))
