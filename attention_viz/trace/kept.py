"""Which of a model's attention layers a trace keeps, and by which numbers they are asked for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jaxtyping import Float
from torch import Tensor

from attention_viz.errors import ShapeError, TraceError
from attention_viz.operation.attention import Attention
from attention_viz.operation.shapes import is_whole

if TYPE_CHECKING:
    from attention_viz.trace.layers import Layer

__all__ = ["ByNumber", "Kept", "check_kept", "chosen_layers", "some_layers"]

# So many numbers are listed in a message.
_MOST_LISTED = 20


@dataclass(frozen=True)
class Kept:
    """Which of a stream's attention layers are kept.

    Attributes:
        numbers: their numbers among all of the stream's, rising.
        of: how many the stream has in its model.
    """

    numbers: tuple[int, ...]
    of: int

    @classmethod
    def every(cls, count: int) -> "Kept":
        """All of so many."""
        return cls(tuple(range(count)), count)

    def of_as_many(self, count: int) -> "Kept":
        """The same numbers for other layers; where none is missing, those of any count of them."""
        return Kept.every(count) if self.whole else self

    @property
    def whole(self) -> bool:
        """Whether no layer is missing."""
        return len(self.numbers) == self.of

    @property
    def listed(self) -> str:
        """Their numbers as text, as many as a message can hold."""
        return ", ".join(map(str, self.numbers[:_MOST_LISTED])) + " …" * (len(self.numbers) > _MOST_LISTED)

    def __str__(self) -> str:
        """Which ones, in words."""
        every = f"0 to {self.of - 1}"
        return f"layers {every}" if self.whole else f"layer{'s' * (len(self.numbers) > 1)} {self.listed} of {every}"


def check_kept(kept: Mapping[str, Kept], layers: Mapping[str, Sequence[object]]) -> None:
    """Refuse numbers that can't be those of the layers.

    Raises:
        TraceError: other streams, another count, or numbers that don't rise from 0 to below the number of all layers.
    """
    if set(kept) != set(layers):
        raise TraceError(f"each stream needs the numbers of its layers; got those of {', '.join(kept) or 'none'}")
    for stream, found in kept.items():
        numbers = found.numbers
        rising = list(numbers) == sorted(set(numbers))
        if len(numbers) != len(layers[stream]) or not rising or numbers[0] < 0 or numbers[-1] >= found.of:
            raise TraceError(
                f"the {stream} has {len(layers[stream])} layers, which need as many rising numbers from 0 to "
                f"{found.of - 1}; got {list(numbers)[:_MOST_LISTED]}"
            )


def chosen_layers(layers: Sequence[int], counts: Mapping[str, int]) -> Mapping[str, Kept]:
    """What is kept of each stream where only layers of some numbers are; a stream without any of them is left out.

    Args:
        layers: the numbers, in any order.
        counts: how many layers each stream of the model has.

    Raises:
        ShapeError: no numbers, one twice, something else than whole numbers, or one that no stream has.
    """
    if not isinstance(layers, Sequence) or isinstance(layers, str | bytes):  # pyright: ignore[reportUnnecessaryIsInstance] -- from outside
        raise ShapeError(f"layers to keep are several, in a list or tuple; got {type(layers).__name__}")
    if not layers:
        raise ShapeError("no layers were asked for; name one or more, or leave layers out to keep all")
    most = max(counts.values())
    for layer in layers:
        if not is_whole(layer) or not 0 <= layer < most:
            there = "only layer 0" if most == 1 else f"layers 0 to {most - 1}"
            raise ShapeError(f"layer {layer!r} was to be kept; the model has {there}")
    numbers = sorted({int(layer) for layer in layers})
    if len(numbers) != len(layers):
        raise ShapeError(f"layers to keep are named once each; got {list(layers)}")
    found = {stream: Kept(tuple(one for one in numbers if one < count), count) for stream, count in counts.items()}
    return {stream: one for stream, one in found.items() if one.numbers}


def some_layers(trace: "ByNumber", layers: Sequence[int] | None) -> dict[str, Kept]:
    """Which layers of a trace are meant, by stream, where some are named; all that it keeps by default.

    Raises:
        ShapeError: no numbers, one twice, something else than whole numbers, or one that no stream has.
        TraceError: one of them isn't kept.
    """
    if layers is None:
        return dict(trace.kept)
    found = dict(chosen_layers(layers, {stream: kept.of for stream, kept in trace.kept.items()}))
    for stream, wanted in found.items():
        for number in wanted.numbers:
            _ = trace.attention(number, stream)
    return found


class ByNumber:
    """The attention layers of a run, asked for by stream and number.

    Attributes:
        layers: by stream, the layers that are kept, in the order they ran.
        kept: by stream, which numbers these have.
    """

    layers: "Mapping[str, tuple[Layer, ...]]"
    kept: Mapping[str, Kept]

    @property
    def streams(self) -> tuple[str, ...]:
        """The kinds of attention recorded: ("encoder",), ("decoder",) or ("encoder", "decoder", "cross")."""
        return tuple(self.layers)

    def stream(self, name: str | None = None) -> str:
        """The stream of that name; None stands for the only one there is.

        Raises:
            TraceError: no such stream, or several to choose from and none chosen.
        """
        if name is None and len(self.layers) == 1:
            return self.streams[0]
        if name is None or name not in self.layers:
            asked = "no stream was named" if name is None else f"the stream {name!r} was asked for"
            raise TraceError(f"{asked}; this trace has {', '.join(self.streams)}")
        return name

    def layer_count(self, stream: str | None = None) -> int:
        """How many attention layers are kept; all of the model's, unless only some were asked for."""
        return len(self.layers[self.stream(stream)])

    def layer_numbers(self, stream: str | None = None) -> tuple[int, ...]:
        """The numbers of the layers that are kept, rising: 0, 1, 2 …, unless only some were asked for."""
        return self.kept[self.stream(stream)].numbers

    def check_every_layer(self, what: str, stream: str | None = None) -> None:
        """Refuse what can't be had of some layers alone.

        Args:
            what: was asked for.
            stream: of which stream; of every one by default.

        Raises:
            TraceError: a layer is missing.
        """
        for name in self.streams if stream is None else (self.stream(stream),):
            if not self.kept[name].whole:
                raise TraceError(
                    f"{what} needs every layer of the {name}, and this trace keeps {self.kept[name]}; trace the text "
                    "without layers=…"
                )

    def head_count(self, layer: int, stream: str | None = None) -> int:
        """How many heads a layer has."""
        return self.attention(layer, stream).shape[0]

    def attention(self, layer: int, stream: str | None = None) -> Attention:
        """The attention call of one layer, head first: query is (head, query, d_k).

        Raises:
            TraceError: there is no such layer or stream, or the layer isn't kept.
        """
        stream, place = self._place(layer, stream)
        return self.layers[stream][place].attention

    def label(self, layer: int, stream: str | None = None) -> str:
        """The model's own number for a layer, as text.

        Raises:
            TraceError: there is no such layer or stream, or the layer isn't kept.
        """
        stream, place = self._place(layer, stream)
        return self.layers[stream][place].label

    def weights(self, layer: int, head: int, stream: str | None = None) -> Float[Tensor, "query key"]:
        """How much each query takes from each key, in one head; errors as of `attention` and its `head`."""
        return self.attention(layer, stream).head(head).weights

    def _place(self, layer: int, stream: str | None) -> tuple[str, int]:
        """The stream's name, and where among the layers that are kept the one with a number stands."""
        stream = self.stream(stream)
        kept = self.kept[stream]
        if not is_whole(layer) or layer not in kept.numbers:
            there = f"the {stream} has" if kept.whole else f"of the {stream} this trace keeps"
            raise TraceError(f"layer {layer!r} was asked for; {there} {kept}")
        return stream, kept.numbers.index(layer)
