"""Slides of roles and the heads that lead them."""

from typing import TYPE_CHECKING

from attention_viz.analysis.roles import ROLES
from attention_viz.analysis.slides.slide import Part, Slide, SlidePicture, source_of
from attention_viz.trace.trace import Trace
from attention_viz.trace.unit import Unit

if TYPE_CHECKING:
    import pandas

__all__ = ["role_slides"]

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
    "itself": "Which head lets each {unit} look most at itself?",
    "same token": "Which head looks back most at where a word came before?",
    "induction": "Which head looks most at what followed a word last time?",
    "punctuation": "Which head looks most at punctuation marks?",
    "first": "Which head rests most on tokens that say nothing?",
    "broad": "Which head spreads its weight most evenly?",
}


def role_slides(trace: Trace, jobs: "pandas.DataFrame", stream: str | None = None) -> tuple[Slide, ...]:
    """Make a slide per role: its leading head among five.

    Args:
        stream: the first by default.
    """
    unit = trace.query_tokens(trace.streams[0] if stream is None else stream).unit
    asked = _ASKED | _ASKED_OF_PATCHES if unit is Unit.PATCH else _ASKED
    slides = (_of_role(trace, jobs, name, asked[name].format(unit=unit), unit) for name in asked)
    return tuple(one for one in slides if one is not None)


def _of_role(trace: Trace, jobs: "pandas.DataFrame", name: str, ask: str, unit: Unit) -> Slide | None:
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
    tell: tuple[Part, ...] = (
        (f"Layer {layer}, head {head}: ", ""),
        (f"{float(best.iloc[0]):.2f}", "number"),
        (f". {len(scores)} of {len(jobs)} heads {have} the role “{ROLES[name].wording(unit)[0]}”", ""),
    )
    means = f"means over the {unit.plural} of this {unit.whole}"
    return Slide(((ask, ""),), tell, picture, source_of(trace, means, picture))
