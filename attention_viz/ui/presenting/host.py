"""The slides' data."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, fields, replace
from typing import TYPE_CHECKING, Any

import streamlit as st
from streamlit import runtime

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
from attention_viz.trace.seen import Seen
from attention_viz.ui import widgets
from attention_viz.ui.address import State
from attention_viz.ui.packing import long_id_of
from attention_viz.ui.parts.selection import pair_of
from attention_viz.ui.presenting.button import asked, wanted
from attention_viz.views.export.browser_script import PLOTLY_SCRIPT
from attention_viz.views.figures.seen import png_data

if TYPE_CHECKING:
    import pandas

    from attention_viz.analysis.comparison.compare import Comparison
    from attention_viz.steps.head import OpenHead
    from attention_viz.steps.mixing import MixerHead

_present = widgets.component("present", *present_source())
_KEY = "present-slides"


def present(
    slides: Sequence[Slide],
    *,
    deck: str = "",
    beyond: tuple[bool, bool] = (False, False),
    on_turn: Callable[[int], None] | None = None,
) -> None:
    """Send slides for "Present", or a notice if there are none."""

    def turned() -> None:
        by = widgets.sent(_KEY, "turn")
        # Anything can come from a browser.
        if on_turn is not None and by in (-1, 1) and beyond[by > 0]:
            on_turn(by)

    data = {**packed_slides(slides), "asked": asked(), "deck": deck, "beyond": beyond}
    if data["figures"]:
        data["plotly"] = _served_plotly()
    with st.container(key="slides"):
        _present(key=_KEY, data=data, on_turn_change=turned)


def _served_plotly() -> str:
    """Return this server's URL of Plotly's script, which the browser loads with the first figure."""
    if not runtime.exists():
        return ""
    return runtime.get_instance().media_file_mgr.add(str(PLOTLY_SCRIPT), "text/javascript", _KEY)


def packed_slides(slides: Sequence[Slide]) -> dict[str, Any]:
    """Pack slides; each names its picture and its figure by index."""
    pictures: dict[int, str] = {}
    figures: list[str] = []
    found: list[dict[str, Any]] = []
    for one in slides:
        plain = asdict(replace(one, shown=None))
        plain["figure"] = len(figures) if one.figure else None
        figures += [one.figure] if one.figure else []
        if one.shown is not None:
            seen = one.shown.seen
            pictures[id(seen)] = _as_file(seen)
            plain["shown"] = {item.name: getattr(one.shown, item.name) for item in fields(one.shown)}
            plain["shown"]["seen"] = list(pictures).index(id(seen))
        found.append(plain)
    return {"slides": found, "pictures": [*pictures.values()], "figures": figures}


@once_for_each
def _as_file(seen: Seen) -> str:
    assert seen.picture is not None, "a slide shows a picture only where there is one"
    return png_data(seen.picture.cpu().numpy())


def present_findings(run: Run, state: State, *, shown: Run | None = None) -> None:
    """Present the chosen link and findings; a long text's on request only: its link is slow."""
    run = run if shown is None else shown
    if long_id_of(run) is None or wanted():
        present(_slides(run, state))


def present_change(before: Run, after: Run, state: State, change: str) -> None:
    """Present a mask's effect and findings; without a mask, the findings."""
    if after is before:
        present_findings(before, state)
        return
    stream = after.stream(state.stream)
    layer, head = after.place(stream, state.layer, state.head)
    query, key = pair_of(before, state)
    changed = changed_slides(before.trace, after.trace, stream, layer, head, query, key, change=change)
    present((*changed, *found_slides(after.trace, after.findings)))


def present_steps(opened: "OpenHead", query: int, key: int) -> None:
    """Present a score's way to the head's output, a slide per step."""
    from attention_viz.steps.slides import step_slides

    present(step_slides(opened, query, key))


def present_mixer_steps(opened: "MixerHead", query: int, key: int) -> None:
    """Present a pair's way to its weight in a layer without a softmax, a slide per step."""
    from attention_viz.steps.pair import open_pair
    from attention_viz.steps.slides import mixer_slides

    present(mixer_slides(open_pair(opened, query, key)))


def present_roles(run: Run, state: State, jobs: "pandas.DataFrame") -> None:
    """Present heads' roles, a slide each, then the chosen link."""
    present((*role_slides(run.trace, jobs, run.stream(state.stream)), *_slides(run, state)[:1]))


def present_comparison(comparison: "Comparison", pair: tuple[int, int] | None, called: str) -> None:
    """Present the chosen pair and the largest differences; `called` names the second head."""
    present(compared_slides(comparison, pair, called=called))


def present_written(run: Run, state: State, wrote: Wrote | None, put: PutIn | None = None) -> None:
    """Present a number's main writer, strongest patched head and findings."""
    first = () if wrote is None else written_slides(run.trace, wrote)
    second = () if put is None else put_slides(run.trace, put)
    present((*first, *second, *_slides(run, state)))


def _slides(run: Run, state: State) -> tuple[Slide, ...]:
    trace, stream = run.trace, run.stream(state.stream)
    chosen = (stream, *run.place(stream, state.layer, state.head), *pair_of(run, state))
    return found_slides(trace, run.findings, chosen)
