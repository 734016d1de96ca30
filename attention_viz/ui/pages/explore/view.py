"""The Explore page's parts."""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pandas

from attention_viz.serving.runs import Run
from attention_viz.serving.settings import SETTINGS
from attention_viz.ui.address import State
from attention_viz.ui.controls.reading import is_raw
from attention_viz.ui.pages.explore.candidates import (
    find_candidates,
    row_of_step,
    show_candidates,
    show_way_back,
    uncut_words,
    up_to_step,
)
from attention_viz.ui.pages.explore.page import EXPLORE, show_picture_of
from attention_viz.ui.pages.explore.region import show_region, without_region
from attention_viz.ui.panels.drawing import show_panels
from attention_viz.ui.parts.downloads import show_read_downloads
from attention_viz.ui.parts.drawing import show_notes
from attention_viz.ui.parts.matters import answer_later
from attention_viz.ui.parts.predictions import hold_writes, show_writes
from attention_viz.ui.parts.readings import read_in_place, show_reading
from attention_viz.ui.parts.selection import pair_of
from attention_viz.ui.presenting.host import present_findings
from attention_viz.ui.runner.loading import load_text, settle_text
from attention_viz.ui.runner.page import Part, Parts, Slots
from attention_viz.ui.selection import Selection

_Find = Callable[[], Mapping[int, pandas.DataFrame]]
settle = settle_text


@dataclass(frozen=True, eq=False)
class ExploreStudy:
    """A run and its readings.

    Attributes:
        run: with patches blocked, if any.
        back: tokens before the last one.
        stepped: the run up to that token.
        shown: `stepped` as read; None if impossible.
    """

    whole: Run
    run: Run
    back: int
    stepped: Run
    shown: Run | None


def load(state: State, slots: Slots) -> Run | None:
    """Run the sentence; None after a problem."""
    whole = load_text(state, slots, SETTINGS.longest_text)
    if whole is None:
        show_way_back(slots["candidates"], state)
    return whole


def study(whole: Run, selection: Selection, slots: Slots) -> ExploreStudy:
    """Block patches, go back to a token, and read the weights."""
    state, choice = selection.shared, selection.of(EXPLORE)
    run = without_region(whole, state, choice)
    back = min(choice.back, run.trace.provenance.generated)
    stepped = up_to_step(run, state, back)
    return ExploreStudy(whole, run, back, stepped, read_in_place(stepped, state, slots.picture.place, slots.height))


def view(study: ExploreStudy, selection: Selection) -> Parts:
    """Return the page's parts."""
    state, run, shown = selection.shared, study.run, study.shown
    rows = run.trace.seen.sound is None
    parts = [Part("notes", functools.partial(show_notes, run, state, rows=rows))]
    if shown is not None:
        row = row_of_step(run, state, study.back)
        region = functools.partial(show_region, study.whole, run, state, selection.of(EXPLORE))
        parts += [
            Part("picture", functools.partial(_show_picture, shown, run, state, row)),
            Part("below", region),
        ]
    # Computed once, when the first of these is drawn: the picture comes before.
    found = functools.cache(functools.partial(find_candidates, run, state, study.back))
    parts.append(Part("candidates", functools.partial(_show_candidates, study, state, found)))
    parts.append(Part("below", functools.partial(_hold_writes, study, state, found)))
    if shown is None:
        return Parts(parts, runs=[("", run)])
    parts.append(Part("words", functools.partial(show_reading, shown, state)))
    parts.append(Part("words", functools.partial(show_panels, run, state)))
    exported = run if is_raw(state) else study.stepped
    return Parts(
        parts,
        exports=functools.partial(show_read_downloads, exported, shown, state, SETTINGS.longest_text),
        slides=functools.partial(present_findings, shown, state),
        runs=[("", run)],
    )


def _show_picture(shown: Run, run: Run, state: State, row: tuple[int, int] | None) -> Callable[[], object] | None:
    show_picture_of(shown, run.stream(state.stream), state, row)
    return answer_later(run, state)


def _show_candidates(study: ExploreStudy, state: State, find: _Find) -> Callable[[], object] | None:
    found = find()
    writes = show_candidates(study.run, found, state, uncut_words(study.run, state, study.back))
    return functools.partial(show_writes, writes, study.run, state, next(iter(found))) if found else None


def _hold_writes(study: ExploreStudy, state: State, find: _Find) -> Callable[[], object] | None:
    if find():
        return None
    writes = hold_writes(study.run, state)
    return functools.partial(show_writes, writes, study.run, state, pair_of(study.run, state)[0])
