"""Edits that only layers without a softmax have: a token that never came, and another decay."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar

from jaxtyping import Bool
from torch import Tensor

from attention_viz.edits.edit import rows_of_each_head
from attention_viz.edits.places import check_head, check_whole, where
from attention_viz.errors import ShapeError, UnsupportedModel
from attention_viz.operation.attention import Attention
from attention_viz.operation.shapes import with_heads
from attention_viz.operation.token_mixer import TokenMixer

__all__ = ["Decay", "Skip"]


@dataclass(frozen=True)
class Skip:
    """Skip a token in layers without a softmax: it is neither written nor does anything decay as it comes.

    To take away only what a token contributes, block its column with `Allow`: it then still erases and decays.

    Attributes:
        key: the token's position, from 0.
        layer: only in this layer; in all of the stream by default.
        head: only in this head or channel; in all by default.
        stream: "mixer", or "mixer 2" for a layer's second one.

    Raises:
        ShapeError: a position below 0; in a run, one that the text doesn't have, or a place that isn't there.
        UnsupportedModel: in a run, a layer without a state, such as a convolution.
    """

    key: int
    layer: int | None = None
    head: int | None = None
    stream: str | None = "mixer"
    kind: ClassVar[str] = "a skipped token"
    masks_only: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Refuse a position below 0."""
        check_whole("key", self.key)
        if self.key < 0:
            raise ShapeError(f"positions count from 0; got key {self.key}")

    def __str__(self) -> str:
        """Describe the edit for provenance."""
        return f"skip: token {self.key} is neither written nor decays anything in {where(self)}"

    def snapshot(self, real: Bool[Tensor, " query"] | None) -> "Skip":
        """Return the edit itself, because it holds no tensor."""
        return self

    def apply(self, attention: Attention, place: tuple[str, int]) -> Attention:
        """Refuse a layer with a softmax."""
        return _refused(self, place)

    def mix(self, mixer: TokenMixer, place: tuple[str, int]) -> TokenMixer:
        """Return the call with the token left out: it writes nothing and keeps the whole state."""
        _check_state(self, mixer, place)
        count = mixer.shape[-1]
        if self.key >= count:
            raise ShapeError(f"token {self.key} can't be skipped; this text has {count}, counted from 0")
        write = mixer.value.new_ones(1, count, 1) if mixer.write is None else mixer.write
        changed = replace(mixer, write=_without(write, self, mixer))
        return changed if mixer.decay is None else replace(changed, decay=_without(mixer.decay, self, mixer))


@dataclass(frozen=True)
class Decay:
    """Multiply the logarithms of the decays in layers without a softmax: 0 forgets nothing, 2 forgets twice as fast.

    Attributes:
        factor: multiplies the logarithms; finite, at least 0.
        layer: only in this layer; in all of the stream by default.
        head: only in this head or channel; in all by default.
        stream: "mixer", or "mixer 2" for a layer's second one.

    Raises:
        ShapeError: a factor that isn't finite and at least 0; in a run, a place that isn't there.
        UnsupportedModel: in a run, a layer without decay.
    """

    factor: float
    layer: int | None = None
    head: int | None = None
    stream: str | None = "mixer"
    kind: ClassVar[str] = "another decay"
    masks_only: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Refuse a factor that isn't finite and at least 0."""
        number = isinstance(self.factor, int | float) and not isinstance(self.factor, bool)  # pyright: ignore[reportUnnecessaryIsInstance] -- from outside
        if not number or not math.isfinite(self.factor) or self.factor < 0:
            raise ShapeError(f"factor must be a finite number, 0 or more; got {self.factor!r}")

    def __str__(self) -> str:
        """Describe the edit for provenance."""
        return f"decay: log decays times {self.factor:g} in {where(self)}"

    def snapshot(self, real: Bool[Tensor, " query"] | None) -> "Decay":
        """Return the edit itself, because it holds no tensor."""
        return self

    def apply(self, attention: Attention, place: tuple[str, int]) -> Attention:
        """Refuse a layer with a softmax."""
        return _refused(self, place)

    def mix(self, mixer: TokenMixer, place: tuple[str, int]) -> TokenMixer:
        """Return the call with other decays."""
        _check_state(self, mixer, place)
        if mixer.decay is None:
            raise UnsupportedModel(f"layer {place[1]} ({mixer.kind}) has no decay to change")
        decay = _of_each_head(mixer.decay, mixer)
        chosen = slice(None) if self.head is None else self.head
        decay[chosen] = decay[chosen] * self.factor
        return replace(mixer, decay=decay)


def _refused(edit: Skip | Decay, place: tuple[str, int]) -> Attention:
    raise ShapeError(f"{edit.kind} changes layers without a softmax; layer {place[1]} of the {place[0]} has one")


def _check_state(edit: Skip | Decay, mixer: TokenMixer, place: tuple[str, int]) -> None:
    check_head(edit, place[1], mixer.shape[0])
    if not mixer.keeps_state:
        raise UnsupportedModel(f"layer {place[1]} ({mixer.kind}) keeps no state, so {edit.kind} means nothing there")


def _of_each_head(term: Tensor, mixer: TokenMixer) -> Tensor:
    return rows_of_each_head(with_heads(term, mixer.shape[0]), mixer)


def _without(term: Tensor, edit: Skip, mixer: TokenMixer) -> Tensor:
    """Copy a term per head with 0 at the skipped token, in the heads that are meant."""
    changed = _of_each_head(term, mixer)
    changed[slice(None) if edit.head is None else edit.head, edit.key] = 0
    return changed
