"""A slide of the head that wrote most of a number, and of where it looks."""

from dataclasses import dataclass

from attention_viz.analysis.slides.slide import Part, Slide, begun, named, picture_of, row_of, source_of
from attention_viz.trace.trace import Trace

__all__ = ["Wrote", "written_slides"]


@dataclass(frozen=True)
class Wrote:
    """A head, and what it wrote of a number.

    Attributes:
        stream: whose head.
        layer: by its number.
        head: from 0.
        at: the position at which it wrote.
        contribution: what it wrote.
        total: the number.
        name: of the number, such as "“Mary” over “John”".
    """

    stream: str
    layer: int
    head: int
    at: int
    contribution: float
    total: float
    name: str


def written_slides(trace: Trace, wrote: Wrote) -> tuple[Slide, ...]:
    """Asked with the number, answered with the head that wrote most of it and the word it looks at most there.

    Args:
        trace: the run.
        wrote: the head.
    """
    queries, keys = trace.query_tokens(wrote.stream), trace.key_tokens(wrote.stream)
    row = row_of(trace, wrote.stream, wrote.layer, wrote.head, wrote.at)
    key = int(row.argmax())
    own = wrote.stream != "cross" and queries == keys
    where = f"layer {wrote.layer}, head {wrote.head}"
    ask: tuple[Part, ...] = (
        (f"{wrote.name} is ", ""),
        (f"{wrote.total:.2f}", "number"),
        (": which head writes most of it, and where does it look?", ""),
    )
    looking, seen = named(queries, wrote.at, "query"), named(keys, key, "key")
    tell = (
        (f"{where} writes ", ""),
        (f"{wrote.contribution:+.2f}".replace("-", "−"), "number"),
        (": from ", ""),
        *looking,
        (" it looks at ", ""),
        *(seen if not own or key != wrote.at else (("itself", "key"),)),
    )
    picture = picture_of("line" if own else "bars", keys, row, wrote.at if own else None, key)
    return (Slide(begun(ask), begun(tell), picture, source_of(trace, where, picture)),)
