"""Places of edits in a model, and their checks."""

from collections.abc import Collection, Mapping, Sequence
from numbers import Integral
from typing import ClassVar, Protocol, runtime_checkable

from torch import Tensor

from attention_viz.errors import ShapeError
from attention_viz.trace.kept import KeptLayers, no_such_layer


@runtime_checkable
class Placed(Protocol):
    """What every edit knows: its place, where None stands for all layers, all heads, or the only stream there is.

    Attributes:
        kind: what messages call it.
    """

    kind: ClassVar[str]

    @property
    def layer(self) -> int | None:
        """Which layer of its stream."""
        ...

    @property
    def head(self) -> int | None:
        """Which head."""
        ...

    @property
    def stream(self) -> str | None:
        """Which stream."""
        ...


def where(edit: Placed) -> str:
    """An edit's place in words."""
    parts = ["all layers" if edit.layer is None else f"layer {edit.layer}"]
    parts.append("all heads" if edit.head is None else f"head {edit.head}")
    parts += [] if edit.stream is None else [f"of the {edit.stream}"]
    return ", ".join(parts)


def concerns(edit: Placed, place: tuple[str, int]) -> bool:
    """Return whether an edit concerns a stream's layer."""
    stream, layer = place
    return edit.stream in (None, stream) and edit.layer in (None, layer)


def concerns_mixer(edit: Placed, place: tuple[str, int], attending: Collection[int]) -> bool:
    """Return whether an edit concerns a layer without a softmax.

    Without a stream, it does only for a layer of its own that has no softmax attention.
    """
    stream, layer = place
    if edit.stream is None:
        return edit.layer == layer and layer not in attending
    return edit.stream == stream and edit.layer in (None, layer)


def check_places(
    edits: Sequence[Placed], layers: Mapping[str, KeptLayers], mixers: Mapping[str, Collection[int]] | None = None
) -> None:
    """Refuse edits of missing layers, because they change nothing; `mixers` has layers without a softmax by stream."""
    mixers = mixers or {}
    if not isinstance(edits, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance] -- from outside
        raise ShapeError(f"edits are several, in a list or tuple; got {type(edits).__name__}")
    for edit in edits:
        if not isinstance(edit, Placed):  # pyright: ignore[reportUnnecessaryIsInstance] -- from outside
            raise ShapeError(f"an edit is one of av.Ablate, av.Block and their like; got {type(edit).__name__}")
        if edit.stream in mixers or edit.stream is None:
            numbers = mixers.get(edit.stream or next(iter(mixers), ""), ())
            if edit.layer in numbers or (edit.stream is not None and edit.layer is None):
                continue
            if edit.stream is not None:
                there = ", ".join(map(str, numbers))
                raise ShapeError(f"{edit.kind} needs a layer of the {edit.stream}, {there}; got {edit.layer!r}")
        if edit.stream not in layers and (edit.stream is not None or len(layers) > 1):
            asked = "without its stream" if edit.stream is None else f"for the {edit.stream}"
            raise ShapeError(f"{edit.kind} was asked for {asked}; the model has {', '.join(layers)}")
        there = layers[edit.stream or next(iter(layers))]
        if edit.layer is not None and edit.layer not in there.every:
            raise ShapeError(no_such_layer(edit.layer, there, asked=f"{edit.kind} for layer {{!r}} was asked for"))


def check_head(edit: Placed, layer: int, heads: int) -> None:
    """Refuse edits of missing heads."""
    if edit.head is not None and not 0 <= edit.head < heads:
        raise ShapeError(f"{edit.kind} for head {edit.head} was asked for; layer {layer} has heads 0 to {heads - 1}")


def check_shape(edit: Placed, matrix: Tensor, shape: tuple[int, int]) -> None:
    """Refuse edits whose matrix doesn't fit the layer."""
    if tuple(matrix.shape) != shape:
        got = tuple(matrix.shape)
        raise ShapeError(f"{edit.kind} of {got} was asked for; this text needs (query, key) = {shape}")


def check_whole(name: str, number: object) -> None:
    """Refuse what counts nothing."""
    # A table's index has whole numbers of numpy's.
    if isinstance(number, bool) or not isinstance(number, Integral):
        raise ShapeError(f"{name} has to be a whole number; got {number!r}")
