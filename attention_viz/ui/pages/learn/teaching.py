"""The teacher's link, progress file and answer sheet."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from attention_viz.errors import AttentionVizError
from attention_viz.explorer import script
from attention_viz.inputs.media.shipped import SAMPLES
from attention_viz.lesson import Lesson, Scene, answer_sheet
from attention_viz.ui import visit, widgets
from attention_viz.ui.pages.learn.exercise import show_tables
from attention_viz.ui.pages.learn.page import read_progress
from attention_viz.ui.parts.exports import link, show_reach
from attention_viz.ui.parts.markdown import plain

__all__ = ["fit_paper", "show_answers", "show_export", "show_progress"]

_paper = widgets.component("paper", js=script("page/paper.js"))

# The name of the upload field, which is emptied once its file was read.
_FIELD = "learn-file"


@dataclass
class _ProgressRefusal:
    reason: str = ""


def show_export(parameters: Mapping[str, str], done: Sequence[str]) -> None:
    """Export the link without private choices, and progress, never kept on the server."""
    shared = {name: text for name, text in parameters.items() if name != "done"}
    with st.popover("Export", key="export"):
        st.markdown("**Link**: whoever opens it starts from what you see now: lesson, sentence, choice and exercise.")
        st.code(link(st.context.url or "", shared), language=None, wrap_lines=True)
        show_reach()
        content = json.dumps({"done": list(done)}, indent=1)
        st.download_button("Save my progress", content, "attention-progress.json", "application/json", width="stretch")
        st.caption(
            "For a handout, show the answer or skip the guess, then print the page from the browser (Ctrl+P): text, "
            "picture, exercise and tables, with these numbers, and none of the buttons."
        )


def fit_paper() -> None:
    """Fit pictures to the printed page."""
    _paper(key="learn-paper")


def show_progress(done: Sequence[str], lessons: Sequence[str], on_read: Callable[[tuple[str, ...]], None]) -> None:
    """Show the solved count, and a progress file field."""
    key = widgets.fresh(_FIELD)
    st.markdown(f"{len(done)} of {len(lessons)} exercises solved. The address keeps it, and so does a file (*Export*).")
    st.file_uploader(
        "Open my progress", type=["json"], max_upload_size=1, key=key, on_change=_read, args=(key, lessons, on_read)
    )
    if refusal := visit.memory(_ProgressRefusal).reason:
        st.error(plain(f"This can't be opened: {refusal}."))


def _read(key: str, lessons: Sequence[str], on_read: Callable[[tuple[str, ...]], None]) -> None:
    uploaded = widgets.content(key)
    if not isinstance(uploaded, UploadedFile):
        return
    widgets.renew(_FIELD)
    refusal = visit.memory(_ProgressRefusal)
    refusal.reason = ""
    try:
        on_read(read_progress(uploaded.getvalue(), lessons))
    except AttentionVizError as error:
        refusal.reason = str(error)


def show_answers(scene: Scene, seed: int, lessons: Mapping[str, Lesson]) -> None:
    """Show every question, its numbers and answer for this sentence and seed, printable."""
    st.markdown(f"#### Answer sheet\n“{plain(scene.text)}”, seed {seed}: whoever has both has these exercises.")
    # On paper, too, it says whether all are there.
    slot = st.empty()
    for place, (name, lesson) in enumerate(lessons.items()):
        slot.caption(f"{place} of {len(lessons)} answers are here, the others are being worked out …")
        called = f"**{place + 1}\\. {plain(lesson.title)}.**"
        if lesson.sample is not None:
            called = f"{called} With a {SAMPLES[lesson.sample(scene)].kind} that ships, in place of the sentence."
        with st.container(key=f"learn-solved-{name}"):
            try:
                (solved,) = answer_sheet(scene, [seed], [lesson.exercise])
            except AttentionVizError as error:
                st.markdown(f"{called} This can't be had: {plain(str(error))}.")
                continue
            st.markdown(f"{called} {plain(solved.question)}")
            show_tables(solved.given)
            st.markdown(f"**Answer: {plain(solved.solution)}** &nbsp; {plain(solved.working)}")
    slot.caption(f"All {len(lessons)} answers are here.")
