"""Write and read which layers a stream of a trace file holds."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from attention_viz.errors import TraceError
from attention_viz.trace.files.facts import MOST_LAYERS
from attention_viz.trace.numbered.kept import KeptLayers, numbers_of
from attention_viz.trace.numbered.number import LayerIndex, LayerNumber

__all__ = ["pack_kept", "unpack_kept"]


def pack_kept(kept: KeptLayers, labels: Sequence[str]) -> dict[str, Any]:
    """Return the entry, or nothing if the layers' labels suffice.

    "numbers" are indices among the attention layers, as in version 1.0.0; "every" and "without" are model numbers.
    """
    if kept == KeptLayers.by_labels(labels):
        return {}
    entry: dict[str, Any] = {"numbers": [kept.every.index(number) for number in kept.numbers], "of": kept.of}
    if not kept.counts or kept.without:
        entry |= {"every": kept.every, "without": kept.without}
    return {"kept": entry}


def unpack_kept(entry: Mapping[str, Any], labels: Sequence[str]) -> KeptLayers:
    """Read a stream's entry; without one it has all layers."""
    if "kept" not in entry:
        return KeptLayers.by_labels(labels)
    kept = entry["kept"]
    places, of = tuple(map(LayerIndex, _numbers(kept["numbers"]))), _number(kept["of"])
    if of > MOST_LAYERS:
        raise TraceError(f"its model is said to have {of:,} layers, and a file holds {MOST_LAYERS:,} at most")
    if (
        not places
        or len(places) != len(labels)
        or list(places) != sorted(set(places))
        or not 0 <= places[0] <= places[-1] < of
    ):
        raise TraceError(f"its {len(labels)} layers have the places {list(places)} among {of}, which can't be")
    if "every" in kept:
        every = tuple(map(LayerNumber, _numbers(kept["every"])))
        if not places[-1] < len(every) <= of:
            raise TraceError(f"its layers have the places {list(places)} among {len(every)} numbers of {of}")
        numbers = tuple(every[place] for place in places)
        without = tuple(map(LayerNumber, _numbers(kept.get("without", []))))
        return KeptLayers(numbers, every, without, of - len(every))
    numbers = numbers_of(labels)
    if numbers in (places, tuple(range(len(labels)))):
        # Without a gap a layer's number is its index.
        return replace(KeptLayers.first(of), numbers=tuple(map(LayerNumber, places)))
    # A hybrid's file of version 1.0.0: the numbers of the layers that it leaves out are in no label.
    return KeptLayers(numbers, numbers, unknown=of - len(numbers))


def _numbers(value: object) -> tuple[int, ...]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r:.40}, where a list belongs")
    if len(cast("list[object]", value)) > MOST_LAYERS:
        raise TraceError(f"{len(cast('list[object]', value)):,} layers are named; a file names {MOST_LAYERS:,} at most")
    return tuple(_number(one) for one in cast("list[object]", value))


def _number(value: object) -> int:
    if type(value) is not int:
        raise TypeError(f"{value!r:.40}, where int belongs")
    return value
