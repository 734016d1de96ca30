"""Slides of heads: the one that leads a role, the one that writes most of a number, the one that changes it most."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attention_viz.analysis.roles import ROLES
from attention_viz.analysis.signed import has_channels
from attention_viz.analysis.slides.shares import patch_shares
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
    with_picture,
)
from attention_viz.trace.kind import Unit
from attention_viz.trace.slots import are_alike
from attention_viz.trace.trace import Trace

if TYPE_CHECKING:
    import pandas

# So many heads of a role are named.
_BEST = 5
# What is asked of each role; "mixed" says nothing of a head that could be asked.
_ASKED_OF_PATCHES = {
    "previous": "Which head looks most at the patch to the left?",
    "next": "Which head looks most at the patch to the right?",
}
_ASKED = {
    "previous": "Which head looks most at the {unit} before?",
    "next": "Which head looks most at the {unit} after?",
    "above": "Which head looks most at the patch above?",
    "itself": "Which head has each {unit} look most at itself?",
    "same token": "Which head looks back most at earlier occurrences of a word?",
    "induction": "Which head looks most at the word that followed a word last time?",
    "punctuation": "Which head looks most at punctuation marks?",
    "first": "Which head is the strongest attention sink?",
    "broad": "Which head spreads its weight most evenly?",
}
# Heads of layers without a softmax are measured by their rows' shares of size.
_ASKED_OF_MIXERS = {
    "previous": "Which head carries most from the {unit} before?",
    "next": "Which head carries most from the {unit} after?",
    "itself": "Which head carries most from each {unit} to itself?",
    "same token": "Which head carries most from earlier occurrences of a word?",
    "induction": "Which head carries most from the word that followed a word last time?",
    "punctuation": "Which head carries most from punctuation marks?",
    "first": "Which head carries most from the first {unit}?",
    "broad": "Which head carries most evenly?",
}
# So many heads are shown beside each other.
_BEST_WRITTEN = 5


def role_slides(trace: Trace, jobs: "pandas.DataFrame", stream: str | None = None) -> tuple[Slide, ...]:
    """Make a slide per role of a stream, the first by default: its leading head among five."""
    stream = trace.stream(trace.streams[0] if stream is None else stream)
    unit = trace.query_tokens(stream).unit
    asked = _ASKED | _ASKED_OF_PATCHES if unit is Unit.PATCH else _ASKED
    asked = _ASKED_OF_MIXERS if stream in trace.mixers else asked
    slides = (_of_role(trace, jobs, name, asked[name].format(unit=unit), stream) for name in asked)
    return tuple(one for one in slides if one is not None)


def _of_role(trace: Trace, jobs: "pandas.DataFrame", name: str, ask: str, stream: str) -> Slide | None:
    unit = trace.query_tokens(stream).unit
    scores = jobs.loc[jobs["role"] == name, "score"].dropna()
    if scores.empty:
        return None
    best = scores.sort_values(ascending=False, kind="stable").head(_BEST)
    layer, head = best.index[0]
    # In the model's order, which doesn't give the answer away.
    shown = best.sort_index()
    labels = tuple(f"layer {one}, head {other}" for one, other in shown.index)
    values = tuple(round(float(score), 6) for score in shown)
    place = list(shown.index).index((layer, head))
    more = (len(labels),) if len(scores) > len(labels) else ()
    picture = SlidePicture(
        "bars", labels, (False,) * len(labels), values, None, place, more, unit="share", neutral=True
    )
    have = "has" if len(scores) == 1 else "have"
    label = ROLES[name].wording("mixer" if stream in trace.mixers else unit)[0]
    tell: tuple[Part, ...] = (
        (f"Layer {layer}, head {head}: ", ""),
        (f"{float(best.iloc[0]):.2f}", "number"),
        (
            f". {len(scores)} of {len(jobs)} heads {have} the role “{label}”",
            "",
        ),
    )
    means = f"means over the {unit.plural} of this {'run' if unit.whole is None else unit.whole.one.split()[-1]}"
    return Slide(((ask, ""),), tell, picture, source_of(trace, means, picture))


@dataclass(frozen=True)
class Wrote:
    """A head and its part of a number, written at a position.

    Attributes:
        name: of the number, such as “the logit difference of “Mary” over “John””.
        also: positions of the words in the name, which the slide shows.
    """

    stream: str
    layer: int
    head: int
    at: int
    contribution: float
    total: float
    name: str
    also: tuple[int, ...] = ()


@dataclass(frozen=True)
class PutIn:
    """Effects on a number of each head's output from another text, measured by runs or estimated by a gradient."""

    name: str
    number: float
    other: str
    changes: Mapping[tuple[int, int], float]
    run: bool


def put_slides(trace: Trace, put: PutIn) -> tuple[Slide, ...]:
    """Show a number and the patched head that changes it most, if any."""
    ranked = sorted(put.changes, key=lambda place: -abs(put.changes[place]))[:_BEST_WRITTEN]
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
        (f". Which head changes it most with its output from “{shortened(put.other)}”?", ""),
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
    mixes = wrote.stream in trace.mixers
    queries, keys = trace.query_tokens(wrote.stream), trace.key_tokens(wrote.stream)
    row = row_of(trace, wrote.stream, wrote.layer, wrote.head, wrote.at)
    key = int(row.argmax())
    own = are_alike(wrote.stream, queries, keys) and queries == keys
    whole = has_channels(trace, wrote.stream, wrote.layer)
    where = f"layer {wrote.layer}, {'all channels' if whole else f'head {wrote.head}'}"
    against = wrote.contribution * wrote.total < 0
    ask: tuple[Part, ...] = (
        (f"{wrote.name} is ", ""),
        (f"{wrote.total:.2f}", "number"),
        (
            f": which head contributes most{', for it or against it' if against else ' to it'}, and "
            f"{'which word’s value does it carry' if mixes else 'where does it look'}?",
            "",
        ),
    )
    looking, seen = named(queries, wrote.at, "query"), named(keys, key, "key")
    if mixes:
        share = (f"{float(row[key]):.2f}", "number"), (" of all that arrives" if whole else " of the row’s size", "")
        middle: tuple[Part, ...] = (*looking, (" it carries ", ""), *seen, (" most, ", ""), *share)
    else:
        itself = own and key == wrote.at
        middle = (*looking, (" it looks at ", ""), *((("itself", "key"),) if itself else seen))
    way = "to" if mixes else "from"
    tell = (
        (f"{where} contributes ", ""),
        (_signed(wrote.contribution), "number"),
        (f", against it: {way} " if against else f": {way} ", ""),
        *middle,
    )
    unit = "share of size" if mixes else "weight"
    picture = patch_shares(keys, row, key) or picture_of(
        "line" if own else "bars", keys, row, wrote.at if own else None, key, unit=unit, also=wrote.also
    )
    slide = Slide(begun(ask), begun(tell), picture, source_of(trace, where, picture))
    return (with_picture(slide, trace, wrote.stream, row, wrote.at, key),)
