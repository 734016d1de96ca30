"""The answer sheet, for a teacher's key."""

import streamlit as st

from attention_viz.errors import AttentionVizError
from attention_viz.inputs.media.shipped import SAMPLES
from attention_viz.lesson import LESSONS, Scene, answer_sheet
from attention_viz.ui.front.teacher import is_answers_key
from attention_viz.ui.pages.learn.exercise import show_tables
from attention_viz.ui.pages.learn.page import LearnChoice, lesson_names, set_choice
from attention_viz.ui.parts.markdown import plain


def opens_sheet(choice: LearnChoice) -> bool:
    """Return whether the URL has the key of the answer sheet."""
    return wants_sheet(choice) and is_answers_key(choice.answers)


def wants_sheet(choice: LearnChoice) -> bool:
    """Return whether the URL asks for the answer sheet, with whatever key."""
    return choice.answers not in ("", "off")


def show_answers(choice: LearnChoice, scene: Scene, seed: int) -> None:
    """Show all answers for this sentence and seed."""
    names = lesson_names(choice)
    with st.container(key="learn-answers"):
        st.button("Back to lesson", on_click=set_choice, kwargs={"answers": "off"}, key="learn-back-from")
        st.markdown(f"# Answer sheet\n“{plain(scene.text)}”, seed {seed}: both together give these exercises.")
        # The printed sheet says whether it is complete, too.
        slot = st.empty()
        for place, name in enumerate(names):
            lesson = LESSONS[name]
            slot.caption(f"{place} of {len(names)} answers are here; computing the others …")
            called = f"**{place + 1}\\. {plain(lesson.title)}.**"
            if lesson.sample is not None:
                called = f"{called} It uses a bundled {_medium(lesson.sample(scene))} instead of the sentence."
            with st.container(key=f"learn-solved-{name}"):
                try:
                    found = answer_sheet(scene, [seed], [lesson.exercise])
                except AttentionVizError as error:
                    st.markdown(f"{called} Not available: {plain(str(error))}.")
                    continue
                if not found:
                    st.markdown(f"{called} Not available: its model isn't installed.")
                    continue
                (solved,) = found
                st.markdown(f"{called} {plain(solved.question)}")
                show_tables(solved.given)
                st.markdown(f"**Answer: {plain(solved.solution)}** &nbsp; {plain(solved.working)}")
        slot.caption(f"All {len(names)} answers are here.")


def _medium(sample: str) -> str:
    kind = SAMPLES[sample].kind
    return str(kind.medium or kind)
