"""The Explore page's parts: the explorer, and what the model predicts next."""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pandas

from attention_viz.serving.runs import Drawn
from attention_viz.serving.settings import SETTINGS
from attention_viz.ui.address import State
from attention_viz.ui.controls.reading import is_raw
from attention_viz.ui.pages.explore.cache import row_of_step, show_way_back, uncut_words, up_to_step
from attention_viz.ui.pages.explore.candidates import find_candidates, show_candidates
from attention_viz.ui.pages.explore.choice import EXPLORE
from attention_viz.ui.pages.explore.picture import show_picture_of
from attention_viz.ui.pages.explore.region import show_region, without_region
from attention_viz.ui.parts.drawing import show_notes
from attention_viz.ui.parts.files.reading_downloads import show_read_downloads
from attention_viz.ui.parts.readings import read_in_place, show_reading
from attention_viz.ui.parts.selection import pair_of
from attention_viz.ui.parts.writes import hold_writes, show_writes
from attention_viz.ui.presenting.host import present_findings
from attention_viz.ui.runner.loading import load_text, settle_text
from attention_viz.ui.runner.page import Part, Parts, Slots
from attention_viz.ui.selection import Selection

__all__ = ["ExploreRun", "load", "settle", "study", "view"]

_Find = Callable[[], Mapping[int, pandas.DataFrame]]


@dataclass(frozen=True, eq=False)
class ExploreRun:
    """A run, and what is shown of it.

    Attributes:
        whole: the run of the text or the picture as it is.
        drawn: the same, or the run in which some patches of the picture are blocked.
        back: how many tokens before the last one the page looks at.
        stepped: the run up to that token.
        shown: the same as it is read; None if it can't be read so, which the page says.
    """

    whole: Drawn
    drawn: Drawn
    back: int
    stepped: Drawn
    shown: Drawn | None


def load(state: State, slots: Slots) -> Drawn | None:
    """Run the sentence; None after a problem.

    Args:
        state: what is chosen.
        slots: the page's slots.
    """
    whole = load_text(state, slots, SETTINGS.longest_text)
    if whole is None:
        show_way_back(slots["candidates"], state)
    return whole


settle = settle_text


def study(whole: Drawn, selection: Selection, slots: Slots) -> ExploreRun:
    """Run the picture without what is blocked, go back to a token, and read the weights.

    Args:
        whole: the run of the text or the picture as it is.
        selection: what is chosen.
        slots: the page's slots.
    """
    state, choice = selection.shared, selection.of(EXPLORE)
    drawn = without_region(whole, state, choice)
    back = min(choice.back, drawn.trace.provenance.generated)
    stepped = up_to_step(drawn, state, back)
    return ExploreRun(whole, drawn, back, stepped, read_in_place(stepped, state, slots.picture.place, slots.height))


def view(run: ExploreRun, selection: Selection) -> Parts:
    """Return the page's parts.

    Args:
        run: the run, and what is shown of it.
        selection: what is chosen.
    """
    state, drawn, shown = selection.shared, run.drawn, run.shown
    rows = drawn.trace.seen.sound is None
    parts = [Part("notes", functools.partial(show_notes, drawn, state, rows=rows))]
    if shown is not None:
        row = row_of_step(drawn, state, run.back)
        region = functools.partial(show_region, run.whole, drawn, state, selection.of(EXPLORE))
        parts += [
            Part("picture", functools.partial(show_picture_of, shown, drawn.stream(state.stream), state, row)),
            Part("below", region),
        ]
    # Computed once, when the first of these is drawn: the picture comes before.
    found = functools.cache(functools.partial(find_candidates, drawn, state, run.back))
    parts.append(Part("candidates", functools.partial(_show_candidates, run, state, found)))
    parts.append(Part("below", functools.partial(_hold_writes, run, state, found)))
    if shown is None:
        return Parts(parts, runs=[("", drawn)])
    parts.append(Part("words", functools.partial(show_reading, shown, state)))
    exported = drawn if is_raw(state) else run.stepped
    return Parts(
        parts,
        exports=functools.partial(show_read_downloads, exported, shown, state, SETTINGS.longest_text),
        slides=functools.partial(present_findings, shown, state),
        runs=[("", drawn)],
    )


def _show_candidates(run: ExploreRun, state: State, find: _Find) -> Callable[[], object] | None:
    """Show what the model predicts; return what shows the words that the head writes for there."""
    found = find()
    writes = show_candidates(run.drawn, found, state, uncut_words(run.drawn, state, run.back))
    return functools.partial(show_writes, writes, run.drawn, state, next(iter(found))) if found else None


def _hold_writes(run: ExploreRun, state: State, find: _Find) -> Callable[[], object] | None:
    """If nothing is predicted beside the explorer, reserve those words below it; return what shows them."""
    if find():
        return None
    writes = hold_writes(run.drawn, state)
    return functools.partial(show_writes, writes, run.drawn, state, pair_of(run.drawn, state)[0])
