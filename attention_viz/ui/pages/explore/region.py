"""A blocked region of an image, chosen by a head's weights."""

import re

import numpy as np
import streamlit as st
import torch

from attention_viz.edits.kinds.masks import Allow
from attention_viz.errors import AttentionVizError
from attention_viz.serving.runs import Run, run_request
from attention_viz.trace.trace import Trace
from attention_viz.ui.address import State
from attention_viz.ui.pages.explore.page import ExploreChoice, block
from attention_viz.ui.parts.drawing import show_problem
from attention_viz.ui.parts.markdown import plain
from attention_viz.ui.parts.notices import show_notices
from attention_viz.ui.parts.selection import pair_of
from attention_viz.views.figures.seen import called, over_patches, touching

_RUNS = re.compile(r"\d{1,4}(-\d{1,4})?(\.\d{1,4}(-\d{1,4})?)*")


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
    """Return the run with patches blocked; unchanged if none are."""
    positions = _positions(run.trace)
    if run.fit is None or not choice.blocked or not positions:
        return run
    patches = patches_of(choice.blocked, len(positions))
    if patches is None:
        asked = f"The URL asks for the blocked patches “{choice.blocked[:40]}”. Allowed here: numbers below "
        show_notices([f"{asked}{len(positions)}, such as 3-5.9, but not all of them. Shown instead: none blocked."])
        return run
    allowed = torch.ones(2 * (len(run.trace.key_tokens()),), dtype=torch.bool)
    allowed[:, [positions[one] for one in patches]] = False
    try:
        return run_request(state.request, edits=(Allow(allowed),))
    except AttentionVizError as error:
        show_problem(error, st.empty())
        return run


def show_region(before: Run, after: Run, state: State, choice: ExploreChoice) -> None:
    """Draw the region's blocking button and its effect."""
    if before.fit is None or before.trace.seen.picture is None or not _positions(before.trace):
        return
    query = pair_of(after, state)[0]
    found, share = _looked_at(after.trace, *after.place(None, state.layer, state.head), query)
    blocked = patches_of(choice.blocked, len(_positions(before.trace))) or [] if after is not before else []
    with st.container(key="region", horizontal=True, vertical_alignment="center", gap="small"):
        label = "Block these patches" if len(found) > 1 else "Block this patch"
        st.button(label, on_click=block, args=(to_runs([*blocked, *found]),), key="block-region")
        if after is not before:
            st.button("Unblock", on_click=block, args=("",), key="unblock-region")
            st.caption(plain(_phrase(before, state, query, len(blocked), len(found), share)))


def _phrase(before: Run, state: State, query: int, blocked: int, count: int, share: float) -> str:
    old, had = _looked_at(before.trace, *before.place(None, state.layer, state.head), query)
    tokens = before.trace.query_tokens()
    name = "the class token" if tokens.labels[query] == "[CLS]" else called(tokens, query)
    return (
        f"{blocked} {'patch is' if blocked == 1 else 'patches are'} blocked for all positions, layers and "
        "heads. "
        f"In this head, {name} gave {had:.2f} to {len(old)} adjacent patches; now it gives {share:.2f} to {count}."
    )


def _looked_at(trace: Trace, layer: int, head: int, query: int) -> tuple[list[int], float]:
    row = trace.weights(layer, head)[query].detach().double().cpu().numpy()
    weights = over_patches(row, trace.key_tokens())
    region = touching(weights)
    return np.flatnonzero(region.ravel()).tolist(), float(weights[region].sum())


def _positions(trace: Trace) -> list[int]:
    """Return patch positions, row by row."""
    if trace.seen.picture is None or len(trace.attention_streams) != 1:
        return []
    patches = trace.key_tokens().patches
    return sorted(patches, key=patches.__getitem__)
