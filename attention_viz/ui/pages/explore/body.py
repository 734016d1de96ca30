"""The Explore page's body: the explorer, and what comes next."""

import functools

from attention_viz.serving.settings import SETTINGS
from attention_viz.serving.verifying import verify
from attention_viz.ui.address import State
from attention_viz.ui.controls.reading import is_raw
from attention_viz.ui.pages.explore.cache import row_of_step, show_way_back, uncut_words, up_to_step
from attention_viz.ui.pages.explore.candidates import find_candidates, show_candidates
from attention_viz.ui.pages.explore.choice import ExploreChoice
from attention_viz.ui.pages.explore.picture import show_picture_of
from attention_viz.ui.pages.explore.places import HEIGHT, Places
from attention_viz.ui.pages.explore.region import show_region, without_region
from attention_viz.ui.parts.drawing import draw_in_place, show_notes
from attention_viz.ui.parts.files.reading_downloads import show_read_downloads
from attention_viz.ui.parts.readings import read_in_place, show_reading
from attention_viz.ui.parts.selection import pair_of, settle_selection, show_asked_page
from attention_viz.ui.parts.writes import hold_writes, show_writes
from attention_viz.ui.presenting.host import present_findings

__all__ = ["show_body"]


def show_body(state: State, choice: ExploreChoice, places: Places) -> None:
    """Run the sentence and fill the places.

    Args:
        state: what the pickers say.
        choice: what the page keeps in the address beside that.
        places: from `hold_places`.
    """
    drawn = draw_in_place(
        state,
        places.explorer.place,
        HEIGHT,
        whole=True,
        stays=places.explorer.stays,
        longest=SETTINGS.longest_text,
        settle=functools.partial(settle_selection, state=state),
    )
    if drawn is None:
        places.line.empty()
        show_way_back(places.candidates, state)
        return
    show_asked_page()
    whole, drawn = drawn, without_region(drawn, state, choice)
    stream = drawn.stream(state.stream)
    with places.notes:
        show_notes(drawn, state, rows=drawn.trace.seen.sound is None)
    back = min(choice.back, drawn.trace.provenance.generated)
    stepped = up_to_step(drawn, state, back)
    shown = read_in_place(stepped, state, places.explorer.place, HEIGHT)
    if shown is not None:
        show_picture_of(shown, stream, state, places, row_of_step(drawn, state, back))
        present_findings(shown, state)
        show_region(whole, drawn, state, choice, places.below)
        with places.downloads:
            show_read_downloads(drawn if is_raw(state) else stepped, shown, state, SETTINGS.longest_text)
    found = find_candidates(drawn, state, back)
    writes = show_candidates(places.candidates, drawn, found, state, uncut_words(drawn, state, back))
    if not found:
        with places.below:
            writes = hold_writes(drawn, state)
    show_reading(shown, state)
    if drawn.fit is not None:
        verify(drawn, still_wanted=places.badge.wait)
    places.badge.show(drawn.trace, from_file=drawn.fit is None)
    show_writes(writes, drawn, state, next(iter(found)) if found else pair_of(drawn, state)[0])
