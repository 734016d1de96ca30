"""A desk lesson: question, picture, text and steps."""

import functools
import html
from dataclasses import dataclass

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_viz.errors import AttentionVizError
from attention_viz.inputs.media.shipped import SAMPLES
from attention_viz.lesson import EXERCISES, LESSONS, TERMS, Ask, Exercise, Lesson, Scene, Shown, lesson_text
from attention_viz.lesson.export.picture import has_few_words
from attention_viz.lesson.question import SHOWN, how_to_guess, read_guess, reply
from attention_viz.lesson.translation import current_language, translate
from attention_viz.trace.kind import InputKind
from attention_viz.ui import visit
from attention_viz.ui.pages.learn.exercise import answer_key, show_exercise, show_question
from attention_viz.ui.pages.learn.page import LearnChoice, go, lesson_names, mark_done, set_choice
from attention_viz.ui.pages.learn.progress import note
from attention_viz.ui.pages.learn.screen import (
    Screen,
    asked_of,
    framed,
    show_control,
    show_deeper,
    show_heading,
    show_picture_of,
    show_words,
    shown_of,
)
from attention_viz.ui.parts.drawing import show_problem
from attention_viz.ui.parts.markdown import plain

# The most options of short bars.
_FEW_BARS = 4
# The width of a sample image, in pixels.
_SAMPLE = 300


def term(words: str, meaning: str) -> str:
    """Format a term with its meaning, which the page's style hides."""
    tooltip = f'<span class="learn-meaning" role="tooltip">{html.escape(meaning)}</span>'
    return f'<span class="learn-term" tabindex="0">{words}{tooltip}</span>'


def _show_text(name: str, shown: Shown, notation: str) -> None:
    st.markdown(lesson_text(name, shown.facts, notation, escape=plain, term=term), unsafe_allow_html=True)


def _show_glossary() -> None:
    with st.expander(translate("Glossary"), key="learn-glossary"):
        meanings = {translate(name): translate(meaning) for name, meaning in TERMS.items()}
        names = sorted(meanings, key=str.casefold)
        st.markdown("\n".join(f"- **{plain(name)}**: {plain(meanings[name])}" for name in names))


@dataclass
class _Made:
    wish: tuple[str, str, int, str] | None = None
    exercise: Exercise | None = None


def show_lesson(screen: Screen, choice: LearnChoice, scene: Scene) -> None:
    """Show the chosen lesson with its exercise."""
    name, lesson = screen.name, LESSONS[screen.name]
    held = st.empty()
    show_computing(held, lesson)
    try:
        ask = asked_of(name, scene)
        guess = read_guess(ask, choice.guess)
        seen = guess is not None or choice.guess == SHOWN
        shown = shown_of(name, scene) if seen else None
    except AttentionVizError as error:
        show_heading(screen, lesson, scene)
        show_problem(error, held)
        return
    held.empty()
    show_heading(screen, lesson, scene, ask=ask, seen=seen)
    picture, steps = st.columns([5, 2], gap="medium")
    with picture.container(key="learn-picture"):
        with framed("bars", drawn=ask.drawn), st.container(key=_bars_key(ask)):
            _show_bars(ask, choice.guess, seen=seen)
        _show_sample(lesson, scene, ask, seen=seen)
        if shown is not None:
            with st.container(key="learn-figure"):
                show_control(name, scene)
                show_words(name, scene)
                if not ask.complete:
                    with framed("figure", drawn=shown.drawn):
                        show_picture_of(name, shown, few=has_few_words(scene))
            with st.container(key="learn-text"):
                _show_text(name, shown, scene.notation)
            show_deeper(lesson, ask.place)
            _show_glossary()
    with steps.container(key="learn-steps"):
        _show_predict(lesson, ask, guess, shown)
        with st.container(border=True, key="learn-step-exercise"):
            if seen:
                _show_exercise(name, scene, choice.exercise_seed)
            else:
                label = translate(EXERCISES[lesson.exercise].label)
                st.markdown(f"**3** {plain(translate('Exercise: {label}', label=label))}")
        _show_next(choice)


def show_computing(place: DeltaGenerator, lesson: Lesson) -> None:
    """Name a slow lesson in its slot."""
    doing = translate("Computing “{title}” …", title=translate(lesson.title))
    place.html(f'<p class="waiting learn-computing" role="status">{html.escape(doing)}</p>')


def _bars_key(ask: Ask) -> str:
    """Key the bars by their height, which the page's style reserves."""
    if ask.opening is not None:
        return "learn-bars-opening"
    if ask.complete:
        return "learn-bars-all"
    return "learn-bars-few" if len(ask.options) <= _FEW_BARS else "learn-bars"


def _show_bars(ask: Ask, guess: str, *, seen: bool) -> None:
    def pressed(place: int) -> None:
        # Another word, another row: the guess was about the one before.
        found = ask.pressed[place]
        changes = {"word": int(found)} if ask.word else {"choice": found}
        set_choice(guess=SHOWN, **changes)

    show_question(ask, guess, shown=seen, on_guess=lambda text: set_choice(guess=text), on_press=pressed)


def _show_sample(lesson: Lesson, scene: Scene, ask: Ask, *, seen: bool) -> None:
    if lesson.sample is None or ask.opening is not None:
        return
    sample = SAMPLES[lesson.sample(scene)]
    if sample.kind == InputKind.SOUND:
        st.audio(sample.path)
    elif not seen and ask.seen is not None and ask.seen.seen.picture is not None:
        with st.container(key="learn-sample"):
            st.image(ask.seen.seen.picture.numpy(), caption=plain(translate(sample.shows)), width=_SAMPLE)


def _show_predict(lesson: Lesson, ask: Ask, guess: tuple[int, ...] | None, shown: Shown | None) -> None:
    with st.container(border=True, key="learn-step-predict"):
        if shown is None:
            st.markdown(f"**1** {translate('Predict')}\n\n{plain(how_to_guess(lesson, ask))}")
        else:
            answer = None if guess is None else reply(ask, guess)
            said = "" if answer is None else f"{'**✓** ' if answer.right else ''}{plain(answer.words)}\n\n"
            click = f" *{translate('Click a word to choose it.')}*" if ask.word else ""
            st.markdown(f"{said}**2** {plain(shown.says)}{click}")
    if shown is None:
        with st.container(border=True, key="learn-step-see"):
            st.markdown(f"**2** {translate('See the answer')}")


def _show_exercise(name: str, scene: Scene, seed: int) -> None:
    kind = LESSONS[name].exercise
    held = st.empty()
    show_computing(held, LESSONS[name])
    try:
        exercise = made_exercise(kind, scene, seed)
    except AttentionVizError as error:
        show_problem(error, held)
    else:
        held.empty()
        on_note = functools.partial(_note, name, scene.text, seed)
        label = translate(EXERCISES[kind].label)
        show_exercise(exercise, label, answer_key(kind, scene.text, seed), on_note)


def _note(name: str, text: str, seed: int, **what: object) -> None:
    note(name, text, seed, **what)
    if what.get("right"):
        mark_done()


def made_exercise(kind: str, scene: Scene, seed: int) -> Exercise:
    """Return the cached exercise: some run a model many times."""
    wish = kind, scene.text, seed, current_language()
    memory = visit.memory(_Made)
    if memory.exercise is None or memory.wish != wish:
        memory.wish, memory.exercise = wish, EXERCISES[kind].make(scene, seed)
    return memory.exercise


def _show_next(choice: LearnChoice) -> None:
    names = lesson_names(choice)
    after = [*names, ""][names.index(choice.lesson) + 1]
    if after and choice.lesson in choice.done:
        label = translate("Next: {title} →", title=plain(translate(LESSONS[after].title)))
        st.button(label, key="learn-on", on_click=go, args=(after,), type="primary", width="stretch")
