"""Chips for changed options, and the phone's folded row."""

from collections.abc import Collection
from importlib import resources

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_viz.analysis.readings import READINGS
from attention_viz.explorer import script
from attention_viz.serving import permissions as allowed
from attention_viz.ui import visit, widgets
from attention_viz.ui.address import DEFAULT, State
from attention_viz.ui.controls.model import name_in_file
from attention_viz.ui.controls.thing import reads, thing_label
from attention_viz.ui.controls.wording import asks_target
from attention_viz.ui.parts import open_trace as opening
from attention_viz.ui.parts.markdown import plain
from attention_viz.ui.parts.open_trace import opened
from attention_viz.ui.selection import SHARED
from attention_viz.views.style.wording import one_line

# Options that only pages with attention weights have.
READ = ("reading", "words")
# Characters of a text in a chip.
_LONGEST = 28
_LONGEST_TEXT, _LONGEST_MODEL = 80, 24

_css = resources.files("attention_viz").joinpath("explorer", "static", "page", "fold.css").read_text("utf-8")
_fold = widgets.component("fold", css=_css, js=script("page/fold.js"))


def show_chips(place: DeltaGenerator, state: State, leave_out: Collection[str] = ()) -> None:
    """Draw a button that resets each changed option."""
    found = _chips(state, leave_out)
    if not found:
        place.empty()
        return
    with place.container(key="chips", horizontal=True, gap="xsmall"):
        for name, words in found.items():
            st.button(f"{plain(words)} ✕", key=f"chip-{name}", on_click=_put_back, args=(name,), help="Reset")


def _chips(state: State, leave_out: Collection[str] = ()) -> dict[str, str]:
    # Keys are evicted and tokens sampled during generation, so a page without it shows no chip.
    hidden = {*leave_out, "evict", "sample"} if "more" in leave_out else {*leave_out}
    can = state.facts
    # An open file can't be rerun, only read in another way.
    runs = opening.opened() is None
    words = {
        "second": (runs and can.reads_pairs, f"Second sentence: “{one_line(state.second, _LONGEST)}”"),
        "target": (asks_target(state), f"Target: “{one_line(state.target, _LONGEST)}”"),
        "more": (runs and can.continues_text, f"Generate {state.more} token{'s' * (state.more != 1)}"),
        "evict": (
            runs and can.continues_text and state.more > 0,
            f"Evict old keys: keep {state.first_keys} first, {state.last_keys} recent",
        ),
        "sample": (runs and can.continues_text and state.more > 0, "Sample tokens"),
        "chat": (runs and can.has_chat_template, "Chat template"),
        "special": (runs and can.adds_special_tokens, "Without special tokens"),
        "reading": (True, READINGS[state.reading].label),
        "words": (True, "Whole words"),
        "d_model": (runs and state.own, f"Width {state.d_model}"),
        "heads": (runs and state.own, f"{state.heads} head{'s' * (state.heads != 1)}"),
        "seed": (runs and state.own, f"Seed {state.seed}"),
        "positions": (runs and state.own, "Without positions"),
    }
    return {
        name: said
        for name, (applies, said) in words.items()
        if applies and name not in hidden and getattr(state, name) != getattr(DEFAULT, name)
    }


def _put_back(name: str) -> None:
    visit.pick(SHARED, **{name: getattr(DEFAULT, name)})


def show_fold(what: str, place: str = "", leave_out: Collection[str] | None = None) -> None:
    """Draw the line, which CSS hides if the row fits.

    Args:
        place: by default model, layer and head.
        leave_out: useless changed options; None for all.
    """
    state = visit.shared()
    place = place or f"{_model(state)} · {state.layer}·{state.head}"
    text = one_line(_read(state), _LONGEST_TEXT)
    changed = "" if leave_out is None else ", ".join(_chips(state, leave_out).values())
    _fold(key="fold", data={"text": text, "place": place, "what": what, "changed": changed})


def _model(state: State) -> str:
    run = opened()
    return (
        one_line(allowed.display_name(state.model), _LONGEST_MODEL)
        if run is None
        else name_in_file(run.trace, _LONGEST_MODEL)
    )


def _read(state: State) -> str:
    return state.text if reads(state).has_text else thing_label(state)
