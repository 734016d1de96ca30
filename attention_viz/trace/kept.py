"""The model's layer numbers in a trace, and their wording."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NewType

from attention_viz.errors import ShapeError, TraceError
from attention_viz.operation.shapes import is_whole

# The model's own number of a layer. A hybrid's attention layers may be 3, 7 and 11.
LayerNumber = NewType("LayerNumber", int)
# A layer's index in a list of layers, from 0: a trace's kept layers, or all attention layers.
LayerIndex = NewType("LayerIndex", int)


# So many numbers are listed in a message.
_MOST_LISTED = 20
# Digits: no model has a layer whose number is longer.
_LONGEST = 6


@dataclass(frozen=True)
class KeptLayers:
    """The attention layers of one stream in a trace, numbered by `numbers_of`.

    Attributes:
        numbers: the kept layers, rising.
        every: all attention layers, rising.
        without: layers without softmax attention, as in hybrids.
        unknown: how many attention layers' numbers an old file lacks.
    """

    numbers: tuple[LayerNumber, ...]
    every: tuple[LayerNumber, ...]
    without: tuple[LayerNumber, ...] = ()
    unknown: int = 0

    @classmethod
    def first(cls, count: int) -> "KeptLayers":
        """Keep all `count` layers, numbered from 0."""
        return cls.all_of(range(count))

    @classmethod
    def all_of(cls, numbers: Sequence[int], without: Sequence[int] = ()) -> "KeptLayers":
        """Keep every layer."""
        every = tuple(map(LayerNumber, numbers))
        return cls(every, every, tuple(map(LayerNumber, without)))

    @classmethod
    def by_labels(cls, labels: Sequence[str]) -> "KeptLayers":
        """Keep every layer under its label's number."""
        return cls.all_of(numbers_of(labels))

    def relabelled(self, labels: Sequence[str]) -> "KeptLayers":
        """Renumber by labels if no layer is missing and the count changed."""
        return KeptLayers.by_labels(labels) if self.whole and len(labels) != len(self.numbers) else self

    def index(self, number: LayerNumber) -> LayerIndex:
        """Return a kept layer's index among the kept layers."""
        return LayerIndex(self.numbers.index(number))

    @property
    def of(self) -> int:
        """The stream's attention layer count in the model."""
        return len(self.every) + self.unknown

    @property
    def whole(self) -> bool:
        """Whether no layer is missing."""
        return len(self.numbers) == self.of

    @property
    def listed(self) -> str:
        """The numbers, shortened to fit a message."""
        return ", ".join(map(str, self.numbers[:_MOST_LISTED])) + " …" * (len(self.numbers) > _MOST_LISTED)

    @property
    def counts(self) -> bool:
        """Whether the layers count from 0 without a gap."""
        return not self.unknown and self.every == tuple(range(len(self.every)))

    @property
    def note(self) -> str:
        """Layers without softmax attention, as a clause; "" for none."""
        return without_words(self.without)

    @property
    def counted(self) -> str:
        """The layer count, with numbers unless 0, 1, 2 …, and layers without attention."""
        listed = "" if self.whole and self.counts else self.listed
        count = f"{self.of}" if self.whole else f"{len(self.numbers)} of {self.of}"
        parts = "; ".join(one for one in (listed, self.note) if one)
        return f"{count} layers" + f" ({parts})" * bool(parts)

    @property
    def there(self) -> str:
        """The stream's layers, to end a sentence."""
        if self.counts:
            return "has only layer 0" if self.of == 1 else f"has layers 0 to {self.of - 1}"
        return f"attends in {layers_in_words(self.every)}"

    def __str__(self) -> str:
        """Name the kept layers."""
        every = f"0 to {self.of - 1}" if self.counts else f"{self.of} layers" if self.unknown else _and(self.every)
        if self.whole:
            return f"layers {every}" if self.counts else layers_in_words(self.every)
        return f"layer{'s' * (len(self.numbers) > 1)} {self.listed} of {every}"


@dataclass(frozen=True)
class KeptCells:
    """The heads and rows of each layer that a trace keeps.

    Attributes:
        heads: the model's numbers of the kept heads, rising; None for all.
        queries: how many rows are kept, the last ones; None for all.
    """

    heads: tuple[int, ...] | None
    queries: int | None

    @classmethod
    def of(cls, heads: object, queries: object, counts: Sequence[int]) -> "KeptCells | None":
        """Check the heads and rows to keep; `counts` are the layers' numbers of heads. None keeps everything."""
        if heads is None and queries is None:
            return None
        if queries is not None and (not is_whole(queries) or int(queries) < 1):  # pyright: ignore[reportArgumentType]
            raise ShapeError(f"queries must be a whole number, 1 or more: the last rows to keep; got {queries!r}")
        if heads is None:
            return cls(None, int(queries))  # pyright: ignore[reportArgumentType]
        if not isinstance(heads, Sequence) or isinstance(heads, str | bytes) or not heads:
            raise ShapeError(f"heads must be a list of one or more heads; got {heads!r:.40}")
        least = min(counts, default=0)
        if wrong := [one for one in heads if not is_whole(one) or not 0 <= one < least]:
            raise ShapeError(f"can't keep head {wrong[0]!r}; each layer has heads 0 to {least - 1}")
        if len({*heads}) != len(heads):
            raise ShapeError(f"name each head to keep once; got {list(heads)}")
        return cls(tuple(sorted(map(int, heads))), None if queries is None else int(queries))  # pyright: ignore[reportArgumentType]

    def __str__(self) -> str:
        """Name the kept heads and rows."""
        found = list[str]()
        if self.heads is not None:
            found.append(f"head{'s' * (len(self.heads) != 1)} {_and(self.heads)}")
        if self.queries is not None:
            found.append("the last row" if self.queries == 1 else f"the last {self.queries:,} rows")
        return " and ".join(found)


def numbers_of(labels: Sequence[str]) -> tuple[LayerNumber, ...]:
    """Return the labels' layer numbers, or 0, 1, 2 … unless they are unique, rising integers.

    They aren't if a module is called several times, has stages or attends over windows.
    """
    if all(label.isascii() and label.isdigit() and len(label) <= _LONGEST for label in labels):
        numbers = [int(label) for label in labels]
        if numbers == sorted(set(numbers)) and list(map(str, numbers)) == list(labels):
            return tuple(map(LayerNumber, numbers))
    return tuple(map(LayerNumber, range(len(labels))))


def layers_in_words(numbers: Sequence[int]) -> str:
    """Name layers: "layer 3", "layers 1, 3 and 5"."""
    return f"layer{'s' * (len(numbers) != 1)} {_and(numbers)}"


def without_words(numbers: Sequence[int]) -> str:
    """Name layers without softmax attention as a clause; "" for none."""
    return f"{layers_in_words(numbers)} {'has' if len(numbers) == 1 else 'have'} no softmax attention" * bool(numbers)


def _and(numbers: Sequence[int]) -> str:
    parts = [*map(str, numbers[:_MOST_LISTED]), *["more"] * (len(numbers) > _MOST_LISTED)]
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def no_such_layer(layer: object, kept: KeptLayers, whose: str = "the model", asked: str = "no layer {!r}") -> str:
    """Report a missing layer and the existing ones."""
    silent = is_whole(layer) and layer in kept.without
    return f"{f'layer {layer} has no softmax attention' if silent else asked.format(layer)}; {whose} {kept.there}"


def check_kept(kept: Mapping[str, KeptLayers], layers: Mapping[str, Sequence[object]]) -> None:
    """Refuse impossible layer numbers."""
    if set(kept) != set(layers):
        raise TraceError(f"each stream needs the numbers of its layers; got those of {', '.join(kept) or 'none'}")
    for stream, found in kept.items():
        rising = all(list(some) == sorted(set(some)) for some in (found.numbers, found.every, found.without))
        apart = not set(found.without) & set(found.every)
        there = set(found.numbers) <= set(found.every) and min((*found.every, *found.without), default=0) >= 0
        if len(found.numbers) != len(layers[stream]) or not (rising and apart and there) or found.unknown < 0:
            raise TraceError(
                f"the {stream} has {len(layers[stream])} layers and needs as many rising numbers of its layers, "
                f"from 0; got {list(found.numbers)[:_MOST_LISTED]} of {list(found.every)[:_MOST_LISTED]}"
            )


def chosen_layers(layers: Sequence[int], streams: Mapping[str, KeptLayers]) -> Mapping[str, KeptLayers]:
    """Keep the given layers of each stream; leave out streams without any."""
    if not isinstance(layers, Sequence) or isinstance(layers, str | bytes):  # pyright: ignore[reportUnnecessaryIsInstance] -- from outside
        raise ShapeError(f"layers must be in a list or tuple; got {type(layers).__name__}")
    if not layers:
        raise ShapeError("layers is empty; name one or more, or leave layers out to keep all")
    every = sorted({number for kept in streams.values() for number in kept.every})
    without = sorted({number for kept in streams.values() for number in kept.without} - set(every))
    for layer in layers:
        if not is_whole(layer) or layer not in every:
            raise ShapeError(no_such_layer(layer, KeptLayers.all_of(every, without), asked="can't keep layer {!r}"))
    numbers = [LayerNumber(layer) for layer in sorted({int(layer) for layer in layers})]
    if len(numbers) != len(layers):
        raise ShapeError(f"name each layer to keep once; got {list(layers)}")
    found = {
        stream: replace(kept, numbers=tuple(one for one in numbers if one in kept.every))
        for stream, kept in streams.items()
    }
    return {stream: one for stream, one in found.items() if one.numbers}
