"""The button "Present", and the slides in the browser: from one to the next nothing is asked of the server."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, fields, replace
from typing import TYPE_CHECKING, Any

import streamlit as st
from streamlit.components import v2 as components

from attention_viz.analysis.slides import (
    PutIn,
    Slide,
    Wrote,
    changed_slides,
    compared_slides,
    found_slides,
    put_slides,
    role_slides,
    written_slides,
)
from attention_viz.explorer import present_source
from attention_viz.serving.run import Run
from attention_viz.trace.once import once_for_each
from attention_viz.trace.shown.seen import Seen
from attention_viz.ui import widgets
from attention_viz.ui.address import State
from attention_viz.ui.packing.run import long_id_of
from attention_viz.ui.parts.selection import pair_of
from attention_viz.ui.presenting.button import asked, wanted
from attention_viz.views.figures.seen.overlay import png_data

if TYPE_CHECKING:
    import pandas

    from attention_viz.analysis.comparison.compare import Comparison
    from attention_viz.steps.head import OpenHead

__all__ = [
    "packed_slides",
    "present",
    "present_change",
    "present_comparison",
    "present_findings",
    "present_roles",
    "present_steps",
    "present_written",
]

# Registered once, when the module is imported: a component's name stands for its code from then on.
_html, _css, _js = present_source()
_present = components.component("attention_viz_present", html=_html, css=_css, js=_js)


_KEY = "present-slides"


def present(
    slides: Sequence[Slide],
    *,
    deck: str = "",
    beyond: tuple[bool, bool] = (False, False),
    on_turn: Callable[[int], None] | None = None,
) -> None:
    """Hand slides to the browser, which shows them when "Present" is pressed.

    Args:
        slides: in their order; none where there is nothing to show, and then that is said.
    """

    def turned() -> None:
        by = widgets.sent(_KEY, "turn")
        # Anything can come from a browser.
        if on_turn is not None and by in (-1, 1) and beyond[by > 0]:
            on_turn(by)

    data = {**packed_slides(slides), "asked": asked(), "deck": deck, "beyond": beyond}
    with st.container(key="slides"):
        _present(key=_KEY, data=data, on_turn_change=turned)


def packed_slides(slides: Sequence[Slide]) -> dict[str, Any]:
    """Return slides for the browser: `slides` and `pictures`; a slide names its picture by its index."""
    pictures: dict[int, str] = {}
    found: list[dict[str, Any]] = []
    for one in slides:
        plain = asdict(replace(one, shown=None))
        if one.shown is not None:
            seen = one.shown.seen
            pictures[id(seen)] = _as_file(seen)
            plain["shown"] = {item.name: getattr(one.shown, item.name) for item in fields(one.shown)}
            plain["shown"]["seen"] = list(pictures).index(id(seen))
        found.append(plain)
    return {"slides": found, "pictures": [*pictures.values()]}


@once_for_each
def _as_file(seen: Seen) -> str:
    assert seen.picture is not None, "a slide shows a picture only where there is one"
    return png_data(seen.picture.cpu().numpy())


def present_findings(run: Run, state: State, *, shown: Run | None = None) -> None:
    """Hand over the link on the screen and what was found, a slide each.

    Of a long text the link takes as long to find as the head to draw, so that one is looked for once slides are wanted.

    Args:
        shown: what the page shows of it, such as a reading; by default what ran.
    """
    run = run if shown is None else shown
    if long_id_of(run) is None or wanted():
        present(_slides(run, state))


def present_change(before: Run, after: Run, state: State, change: str) -> None:
    """Hand over what a mask made of the link on the screen, and what was found with it.

    Args:
        after: the run with it; the same where nothing was added.
    """
    if after is before:
        present_findings(before, state)
        return
    stream = after.stream(state.stream)
    layer, head = after.place(stream, state.layer, state.head)
    query, key = pair_of(before, state)
    changed = changed_slides(before.trace, after.trace, stream, layer, head, query, key, change=change)
    present((*changed, *found_slides(after.trace, after.findings)))


def present_steps(opened: "OpenHead", query: int, key: int) -> None:
    """Hand over the way of one score to what the head adds, a slide a step."""
    from attention_viz.steps.slides import step_slides

    present(step_slides(opened, query, key))


def present_roles(run: Run, state: State, jobs: "pandas.DataFrame") -> None:
    """Hand over what heads do, a slide a role, and then the link on the screen."""
    present((*role_slides(run.trace, jobs, run.stream(state.stream)), *_slides(run, state)[:1]))


def present_comparison(comparison: "Comparison", pair: tuple[int, int] | None, called: str) -> None:
    """Hand over the chosen pair in both heads that are compared, and where these differ most.

    Args:
        pair: the places of the query and the key that are chosen; None where none are.
        called: the second side in a sentence, such as "in the second sentence".
    """
    present(compared_slides(comparison, pair, called=called))


def present_written(run: Run, state: State, wrote: Wrote | None, put: PutIn | None = None) -> None:
    """Hand over what wrote most of a number, the head of another text that changes it most, and what was found.

    Args:
        wrote: the head; None where no head wrote it.
        put: what heads of another text do; None where none are put.
    """
    first = () if wrote is None else written_slides(run.trace, wrote)
    second = () if put is None else put_slides(run.trace, put)
    present((*first, *second, *_slides(run, state)))


def _slides(run: Run, state: State) -> tuple[Slide, ...]:
    trace, stream = run.trace, run.stream(state.stream)
    chosen = (stream, *run.place(stream, state.layer, state.head), *pair_of(run, state))
    return found_slides(trace, run.findings, chosen)
