"""The answer sheet, for a teacher's key."""

import streamlit as st

from attention_viz.errors import AttentionVizError
from attention_viz.inputs.media.shipped import SAMPLES
from attention_viz.lesson import LESSONS, Scene, answer_sheet
from attention_viz.lesson.translation import translate
from attention_viz.trace.kind import InputKind
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
        st.button(translate("Back to lesson"), on_click=set_choice, kwargs={"answers": "off"}, key="learn-back-from")
        st.markdown(f"# {translate('Answer sheet')}")
        made = translate("“{text}”, seed {seed}: both together give these exercises.", text=scene.text, seed=seed)
        st.markdown(plain(made))
        # The printed sheet says whether it is complete, too.
        slot = st.empty()
        for place, name in enumerate(names):
            lesson = LESSONS[name]
            done = {"done": place, "count": len(names)}
            slot.caption(translate("{done} of {count} answers are here; computing the others …", **done))
            called = f"**{place + 1}\\. {plain(translate(lesson.title))}.**"
            if lesson.sample is not None:
                called = f"{called} {_note(lesson.sample(scene))}"
            with st.container(key=f"learn-solved-{name}"):
                try:
                    found = answer_sheet(scene, [seed], [lesson.exercise])
                except AttentionVizError as error:
                    st.markdown(f"{called} {plain(translate('Not available: {why}.', why=error))}")
                    continue
                if not found:
                    missing = translate("Not available: its model isn't installed.")
                    st.markdown(f"{called} {missing}")
                    continue
                (solved,) = found
                st.markdown(f"{called} {plain(solved.question)}")
                show_tables(solved.given)
                solution = plain(translate("Answer: {answer}", answer=solved.solution))
                st.markdown(f"**{solution}** &nbsp; {plain(solved.working)}")
        one = len(names) == 1
        all_here = (
            translate("The answer is here.") if one else translate("All {count} answers are here.", count=len(names))
        )
        slot.caption(all_here)


def _note(sample: str) -> str:
    if SAMPLES[sample].kind == InputKind.SOUND:
        return translate("It uses a bundled sound instead of the sentence.")
    return translate("It uses a bundled picture instead of the sentence.")
