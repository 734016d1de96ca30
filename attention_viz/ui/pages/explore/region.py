"""A blocked region of an image, chosen by a head's weights."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from attention_viz.analysis.places import without_patches
from attention_viz.errors import AttentionVizError
from attention_viz.explorer.seen import sheet_of
from attention_viz.serving.runs import Run, candidates, run_request
from attention_viz.trace.spelling import set_apart, weight_text
from attention_viz.ui import widgets
from attention_viz.ui.address import State
from attention_viz.ui.pages.explore.page import ExploreChoice, block
from attention_viz.ui.parts.drawing import show_problem
from attention_viz.ui.parts.markdown import plain
from attention_viz.ui.parts.notices import show_notices
from attention_viz.ui.parts.predictions import likelier_at
from attention_viz.ui.parts.selection import pair_of
from attention_viz.views.figures.seen import called, over_patches, touching

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SWITCH = ("Attends to", "Changes the answer")
_RUNS = re.compile(r"\d{1,4}(-\d{1,4})?(\.\d{1,4}(-\d{1,4})?)*")

_WHY_NO_ANSWER = (
    "“Changes the answer” blocks a region of one image in one grid of patches. This text has several images, an image "
    "in tiles, or a video."
)


def to_runs(patches: list[int]) -> str:
    """Shorten patch numbers: 3-5.9 for 3, 4, 5 and 9."""
    runs = list[list[int]]()
    for one in sorted(set(patches)):
        if runs and runs[-1][1] == one - 1:
            runs[-1][1] = one
        else:
            runs.append([one, one])
    return ".".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def patches_of(code: str, count: int) -> list[int] | None:
    """Parse `to_runs` numbers; None if invalid for this picture."""
    if not _RUNS.fullmatch(code):
        return None
    ends = [[int(one) for one in run.split("-")] for run in code.split(".")]
    found = sorted({one for run in ends for one in range(run[0], run[-1] + 1)})
    return found if found and found[-1] < count and len(found) < count else None


def without_region(run: Run, state: State, choice: ExploreChoice) -> Run:
    """Return the run with patches blocked, without generated words; unchanged if none are."""
    positions = _positions(run)
    if run.fit is None or not choice.blocked or not positions:
        return run
    patches = patches_of(choice.blocked, len(positions))
    if patches is None:
        asked = f"The URL asks for the blocked patches “{choice.blocked[:40]}”. Allowed here: numbers below "
        show_notices([f"{asked}{len(positions)}, such as 3-5.9, but not all of them. Shown instead: none blocked."])
        return run
    try:
        return _blocked(run, state, patches)
    except AttentionVizError as error:
        show_problem(error, st.empty())
        return run


def _blocked(run: Run, state: State, patches: Sequence[int]) -> Run:
    """Run it with patches blocked: in an image for all positions, beside words for the words."""
    request = replace(state.request, more=0)
    tokens = run_request(request).trace.key_tokens(run.words)
    positions = _positions(run)
    hidden = without_patches(tokens, [positions[one] for one in patches], run.words if run.beside else None)
    return run_request(request, edits=(hidden,))


def show_region(before: Run, after: Run, state: State, choice: ExploreChoice) -> None:
    """Draw the region's blocking button and its effect."""
    if before.fit is None or before.stream(state.stream) != before.words:
        return
    if before.beside and sheet_of(before.trace) is not None:
        st.caption(_WHY_NO_ANSWER)
    if not _positions(before):
        return
    if before.beside:
        _show_answer(before, after, state, choice)
        return
    query = pair_of(after, state)[0]
    found, share = _looked_at(after, state, query)
    blocked = patches_of(choice.blocked, len(_positions(before))) or [] if after is not before else []
    with st.container(key="region", horizontal=True, vertical_alignment="center", gap="small"):
        label = "Block these patches" if len(found) > 1 else "Block this patch"
        st.button(label, on_click=block, args=(to_runs([*blocked, *found]),), key="block-region")
        if after is not before:
            st.button("Unblock", on_click=block, args=("",), key="unblock-region")
            st.caption(plain(_phrase(before, state, query, len(blocked), len(found), share)))


def _show_answer(before: Run, after: Run, state: State, choice: ExploreChoice) -> None:
    """Draw the switch between what a word attends to and what changes the next word without it."""
    state = replace(state, more=0)
    plain_run = run_request(state.request)
    query = min(pair_of(before, state)[0], len(plain_run.trace.query_tokens(plain_run.words)) - 1)
    found, _ = _looked_at(plain_run, state, query)
    blocked = patches_of(choice.blocked, len(_positions(before))) if after is not before else None
    shown = _SWITCH[blocked is not None]
    with st.container(key="region"):
        widgets.preset("answer-switch", shown)
        st.segmented_control(
            "Picture",
            _SWITCH,
            key="answer-switch",
            required=True,
            label_visibility="collapsed",
            on_change=_switch,
            args=(to_runs(found),),
        )
        if blocked is None:
            return
        row = _row_over_patches(plain_run, state, query)
        least = np.argsort(row.ravel(), kind="stable")[: len(blocked)].tolist()
        st.markdown(plain(_answer_words(plain_run, after, _blocked(before, state, least), state, len(blocked))))
        now = pair_of(after, state)[0]
        more, share = _looked_at(after, state, now)
        name = called(after.trace.query_tokens(after.words), now)
        st.button(
            plain(f"Block what “{name}” attends to now: {weight_text(share)}"),
            on_click=block,
            args=(to_runs([*blocked, *more]),),
            key="block-region",
        )


def _switch(region: str) -> None:
    block(region if widgets.content("answer-switch") == _SWITCH[True] else "")


def _answer_words(before: Run, after: Run, control: Run, state: State, count: int) -> str:
    """Compare the next word with the region blocked, and with as many patches elsewhere."""
    (place,) = candidates(state.request, before.trace, 1)
    (word, old, new), others = _likelier(before, after, state, place), _likelier(before, control, state, place)
    now = max(likelier_at(before, after, state, place), key=lambda row: row[2])
    was, then = weight_text(old), weight_text(new)
    change = f"stays at {was}" if was == then else f"goes from {was} to {then}"
    instead = "" if now[0] == word else f", and “{set_apart(now[0])}” has {weight_text(now[2])}"
    patches = "this patch is" if count == 1 else f"these {count} patches are"
    return (
        f"If {patches} blocked from every word, in all layers and heads of the decoder, the next token “"
        f"{set_apart(word)}” {change}{instead}. Without as many patches that it attends to least: "
        f"{weight_text(others[2])}."
    )


def _likelier(before: Run, after: Run, state: State, place: int) -> tuple[str, float, float]:
    return likelier_at(before, after, state, place)[0]


def _phrase(before: Run, state: State, query: int, blocked: int, count: int, share: float) -> str:
    old, had = _looked_at(before, state, query)
    tokens = before.trace.query_tokens()
    was, now = weight_text(had), weight_text(share)
    name = "the class token" if tokens.labels[query] == "[CLS]" else called(tokens, query)
    return (
        f"{blocked} {'patch is' if blocked == 1 else 'patches are'} blocked for all positions, layers and "
        "heads. "
        f"In this head, {name} gave {was} to {len(old)} adjacent patches; now it gives {now} to {count}."
    )


def _row_over_patches(run: Run, state: State, query: int) -> "NDArray[np.float64]":
    place = run.place(run.words, state.layer, state.head)
    row = run.trace.weights(*place, run.words)[query].detach().double().cpu().numpy()
    return over_patches(row, run.trace.key_tokens(run.words))


def _looked_at(run: Run, state: State, query: int) -> tuple[list[int], float]:
    weights = _row_over_patches(run, state, query)
    region = touching(weights)
    return np.flatnonzero(region.ravel()).tolist(), float(weights[region].sum())


def _positions(run: Run) -> list[int]:
    """Return patch positions, row by row."""
    if run.trace.seen.picture is None or (len(run.trace.attention_streams) != 1 and not run.beside):
        return []
    if sheet_of(run.trace) is not None:
        return []
    patches = run.trace.key_tokens(run.words).patches
    return sorted(patches, key=patches.__getitem__)
