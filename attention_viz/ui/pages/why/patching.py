"""The number with heads patched from another text, estimated, then run."""

from dataclasses import dataclass

import streamlit as st

from attention_viz.circuits.asked import Score
from attention_viz.errors import AttentionVizError
from attention_viz.serving.why import Patched, patched, run_patches
from attention_viz.ui import visit, widgets
from attention_viz.ui.pages.why.board import tell_put
from attention_viz.ui.pages.why.choice import WHY_CHOICES
from attention_viz.ui.pages.why.silencing import Silenced, runs_at_once
from attention_viz.ui.pages.why.taking import offer_puts
from attention_viz.ui.parts.markdown import as_sentence, plain
from attention_viz.ui.runner.page import Slots

__all__ = ["ask_other", "put_all"]


@dataclass
class _StoppedRuns:
    """Runs the visitor stopped, by heads, text and number."""

    of: tuple[str, str] | None = None


def ask_other() -> None:
    """Draw the other text's box, by which heads are ordered."""
    widgets.show(
        st.text_input,
        "Other text",
        of=WHY_CHOICES,
        name="put_from",
        placeholder="The sentence with a word changed: each head's output there is put here, one at a time",
        label_visibility="collapsed",
    )


def put_all(one: Silenced, slots: Slots) -> Patched | None:
    """Patch every head if that orders them; return known numbers, None if none is patched."""
    choice = visit.chosen(WHY_CHOICES)
    if choice.ranked != "put":
        return None
    if isinstance(one.of, Score):
        slots["told"].caption("A score is opened here: heads of another text are put for a next word.")
        return None
    if not choice.put_from.strip():
        slots["told"].caption("Type the sentence with a word changed, and press Enter.")
        return None
    try:
        return _put(one, slots, choice.put_from)
    except AttentionVizError as error:
        slots["told"].warning(plain(as_sentence(str(error))))
        return None


def _put(one: Silenced, slots: Slots, other: str) -> Patched:
    request, of = one.state.request, one.of
    assert not isinstance(of, Score)
    found = patched(one.run, request, other, of)
    with slots["board"]:
        tell_put(one.name, one.place, other, found.known, "estimated")
    count = len(found.estimates)
    if len(found.runs) == count:
        _end(one, found, other, slots)
        return found
    stopped = visit.memory(_StoppedRuns).of == (other, one.name)
    with slots["told"].container(horizontal=True, vertical_alignment="center", gap="small"):
        if stopped or not runs_at_once(one, count):
            if not st.button(f"Run {count - len(found.runs)} heads", key="why-put-run"):
                but = f", but for {len(found.runs)} heads that were run" if found.runs else ""
                st.caption(f"Estimated by a gradient{but}.")
                offer_puts(one.run.trace, of, other, found)
                return found
        # A press anywhere ends the run; what was done by then is kept.
        st.button("Stop", key="why-put-stop", on_click=_stop, args=(other, one.name))
        slot = st.empty()

    def report(done: int) -> None:
        slot.caption(f"Estimated by a gradient; {done} of {count} heads run")

    found = run_patches(one.run, request, other, of, report)
    visit.memory(_StoppedRuns).of = None
    _end(one, found, other, slots)
    with slots["board"]:
        tell_put(one.name, one.place, other, found.known, "run")
    return found


def _end(one: Silenced, found: Patched, other: str, slots: Slots) -> None:
    assert not isinstance(one.of, Score)
    with slots["told"].container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(_words(found))
        offer_puts(one.run.trace, one.of, other, found)


def _stop(other: str, name: str) -> None:
    visit.memory(_StoppedRuns).of = (other, name)


def _words(found: Patched) -> str:
    mine, theirs = found.lengths
    phrase = f"Each of {len(found.runs)} heads was put and run: total effects."
    if found.other_number is not None:
        phrase += f" There the number is {found.other_number:.2f}.".replace("-", "−")
    if mine != theirs:
        phrase += f" Paired token by token: {theirs} of that text with {mine} of this."
    return plain(phrase)
