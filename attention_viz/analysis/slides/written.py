"""Slides of a number: its main writing head, and its main patched head."""

from collections.abc import Mapping
from dataclasses import dataclass

from attention_viz.analysis.slides.slide import (
    Part,
    Slide,
    SlidePicture,
    begun,
    named,
    picture_of,
    row_of,
    shortened,
    source_of,
)
from attention_viz.trace.trace import Trace

__all__ = ["PutIn", "Wrote", "put_slides", "written_slides"]

# So many heads are shown beside each other.
_BEST = 5


@dataclass(frozen=True)
class Wrote:
    """A head and its part of a number.

    Attributes:
        at: the writing position.
        name: the number's, "“Mary” over “John”".
    """

    stream: str
    layer: int
    head: int
    at: int
    contribution: float
    total: float
    name: str


@dataclass(frozen=True)
class PutIn:
    """Effects on a number of each head's output patched from another text.

    Attributes:
        name: the number's, "“Mary” over “John”".
        number: its unpatched value.
        changes: by (layer, head).
        run: True if measured by runs, False if estimated by a gradient.
    """

    name: str
    number: float
    other: str
    changes: Mapping[tuple[int, int], float]
    run: bool


def put_slides(trace: Trace, put: PutIn) -> tuple[Slide, ...]:
    """Show a number and the patched head that changes it most, if any."""
    ranked = sorted(put.changes, key=lambda place: -abs(put.changes[place]))[:_BEST]
    if not ranked:
        return ()
    # In the model's order, which doesn't give the answer away.
    shown = sorted(ranked)
    (layer, head), change = ranked[0], put.changes[ranked[0]]
    labels = tuple(f"layer {one}, head {other}" for one, other in shown)
    values = tuple(round(put.changes[place], 6) for place in shown)
    picture = SlidePicture(
        "bars", labels, (False,) * len(labels), values, None, shown.index(ranked[0]), unit="change", neutral=True
    )
    ask: tuple[Part, ...] = (
        (f"{put.name} is ", ""),
        (_signed(put.number, plus=False), "number"),
        (f". Which head changes it most, with what it hands on in “{shortened(put.other)}”?", ""),
    )
    tell: tuple[Part, ...] = (
        (f"Layer {layer}, head {head}: ", ""),
        (_signed(change), "number"),
        ("" if put.run else ", estimated by a gradient", ""),
    )
    held = "total effects" if put.run else "estimates"
    return (Slide(begun(ask), tell, picture, source_of(trace, f"{held} of {len(put.changes)} heads", picture)),)


def _signed(value: float, *, plus: bool = True) -> str:
    return f"{value:{'+' if plus else ''}.2f}".replace("-", "−")


def written_slides(trace: Trace, wrote: Wrote) -> tuple[Slide, ...]:
    """Show a number, its main writing head, and that head's main key."""
    queries, keys = trace.query_tokens(wrote.stream), trace.key_tokens(wrote.stream)
    row = row_of(trace, wrote.stream, wrote.layer, wrote.head, wrote.at)
    key = int(row.argmax())
    own = wrote.stream != "cross" and queries == keys
    where = f"layer {wrote.layer}, head {wrote.head}"
    against = wrote.contribution * wrote.total < 0
    ask: tuple[Part, ...] = (
        (f"{wrote.name} is ", ""),
        (f"{wrote.total:.2f}", "number"),
        (f": which head writes most{', for it or against it' if against else ' of it'}, and where does it look?", ""),
    )
    looking, seen = named(queries, wrote.at, "query"), named(keys, key, "key")
    tell = (
        (f"{where} writes ", ""),
        (_signed(wrote.contribution), "number"),
        (", against it: from " if against else ": from ", ""),
        *looking,
        (" it looks at ", ""),
        *(seen if not own or key != wrote.at else (("itself", "key"),)),
    )
    picture = picture_of("line" if own else "bars", keys, row, wrote.at if own else None, key)
    return (Slide(begun(ask), begun(tell), picture, source_of(trace, where, picture)),)
