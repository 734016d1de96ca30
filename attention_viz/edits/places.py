"""Places of edits in a model, and their checks."""

from collections.abc import Collection, Mapping, Sequence
from numbers import Integral
from typing import ClassVar, Protocol, runtime_checkable

from torch import Tensor

from attention_viz.errors import ShapeError
from attention_viz.trace.kept import KeptLayers, no_such_layer


@runtime_checkable
class Placed(Protocol):
    """The place of an edit; None stands for all layers, all heads, or the only stream."""

    kind: ClassVar[str]

    @property
    def layer(self) -> int | None:
        """Return its layer."""
        ...

    @property
    def head(self) -> int | None:
        """Return its head."""
        ...

    @property
    def stream(self) -> str | None:
        """Return its stream."""
        ...


def where(edit: Placed) -> str:
    """Describe an edit's place."""
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
        return edit.layer in (layer, None if not attending else layer) and layer not in attending
    return edit.stream == stream and edit.layer in (None, layer)


def check_places(
    edits: Sequence[Placed], layers: Mapping[str, KeptLayers], mixers: Mapping[str, Collection[int]] | None = None
) -> None:
    """Refuse edits of missing layers, because they change nothing; `mixers` has layers without a softmax by stream."""
    mixers = mixers or {}
    if not isinstance(edits, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance] -- from outside
        raise ShapeError(f"edits must be in a list or tuple; got {type(edits).__name__}")
    for edit in edits:
        if not isinstance(edit, Placed):  # pyright: ignore[reportUnnecessaryIsInstance] -- from outside
            raise ShapeError(f"an edit must be an av.Ablate, av.Block or another edit; got {type(edit).__name__}")
        if edit.stream in mixers or edit.stream is None:
            mixing = edit.stream or next(iter(mixers), "")
            numbers = mixers.get(mixing, ())
            alone = edit.stream is not None or not layers
            if edit.layer in numbers or (alone and edit.layer is None):
                continue
            if alone:
                there = ", ".join(map(str, numbers))
                raise ShapeError(f"{edit.kind} needs a layer of the {mixing}, {there}; got {edit.layer!r}")
        if edit.stream not in layers and (edit.stream is not None or len(layers) > 1):
            asked = "no stream" if edit.stream is None else f"the {edit.stream}"
            raise ShapeError(f"{edit.kind} names {asked}; choose one of {', '.join((*layers, *mixers))}")
        there = layers[edit.stream or next(iter(layers))]
        if edit.layer is not None and edit.layer not in there.every:
            raise ShapeError(no_such_layer(edit.layer, there, asked=f"{edit.kind} names layer {{!r}}"))


def check_head(edit: Placed, layer: int, heads: int) -> None:
    """Refuse edits of missing heads."""
    if edit.head is not None and not 0 <= edit.head < heads:
        raise ShapeError(f"{edit.kind} names head {edit.head}; layer {layer} has heads 0 to {heads - 1}")


def check_shape(edit: Placed, matrix: Tensor, shape: tuple[int, int]) -> None:
    """Refuse edits whose matrix doesn't fit the layer."""
    if tuple(matrix.shape) != shape:
        got = tuple(matrix.shape)
        raise ShapeError(f"{edit.kind} must have the shape (query, key) = {shape}; got {got}")


def check_whole(name: str, number: object) -> None:
    """Check a whole number."""
    # A table's index has whole numbers of numpy's.
    if isinstance(number, bool) or not isinstance(number, Integral):
        raise ShapeError(f"{name} must be a whole number; got {number!r}")
