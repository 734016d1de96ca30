"""The Learn page's parts."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import streamlit as st

from attention_viz.analysis.slides import Slide
from attention_viz.errors import AttentionVizError
from attention_viz.explorer import course_source, script
from attention_viz.lesson import LESSONS, Scene
from attention_viz.lesson.links import scene_link
from attention_viz.lesson.progress.record import first_seed
from attention_viz.lesson.quiz import PARTS
from attention_viz.lesson.scene import LONGEST, REAL_MODEL
from attention_viz.lesson.slides import lesson_slides
from attention_viz.lesson.translation import LANGUAGES, current_language, in_language, translate
from attention_viz.serving.run import Request
from attention_viz.serving.runs import Run, run_lesson, run_request
from attention_viz.ui import visit, widgets
from attention_viz.ui.address import EXAMPLES, State
from attention_viz.ui.controls.fold import show_fold
from attention_viz.ui.pages.learn.number import show_number
from attention_viz.ui.pages.learn.page import (
    ASK,
    LEARN_CHOICES,
    NOTATIONS,
    PAGE,
    LearnChoice,
    Tries,
    begin_lesson,
    begun,
    chosen,
    go,
    lesson_names,
    open_test,
    set_choice,
)
from attention_viz.ui.pages.learn.progress import send_notes, show_keeping
from attention_viz.ui.pages.learn.quiz import show_quiz
from attention_viz.ui.pages.learn.screen import Screen, asked_of, shown_of
from attention_viz.ui.pages.learn.sheet import opens_sheet, show_answers, wants_sheet
from attention_viz.ui.pages.learn.steps import made_exercise, show_lesson
from attention_viz.ui.parts.exports import file_button, link, show_reach
from attention_viz.ui.parts.language import course_language, spoken
from attention_viz.ui.parts.layout import theme_name
from attention_viz.ui.parts.markdown import plain
from attention_viz.ui.parts.notices import tell
from attention_viz.ui.parts.papers import paper_maker
from attention_viz.ui.parts.selection import ran
from attention_viz.ui.parts.unread import show_unread
from attention_viz.ui.presenting.button import asked, presented
from attention_viz.ui.presenting.host import present
from attention_viz.ui.runner.loading import study_as_it_is
from attention_viz.ui.runner.page import Part, Parts, Slots
from attention_viz.ui.selection import SHARED, Filled, Picked, Selection, answer, resolve, update

_paper = widgets.component("paper", js=script("page/paper.js"))
_course = widgets.component("course", *course_source())

study = study_as_it_is


# In the URL, but not for others: a reader's own, and the teacher's key.
_PRIVATE = ("done", "student", "answers")


def _show_export(parameters: Mapping[str, str], name: str, scene: Scene, seed: int) -> None:
    """Export the link without private choices, and the lesson on paper."""
    shared = {name: text for name, text in parameters.items() if name not in _PRIVATE}
    with st.popover("Export", key="export"):
        st.markdown(translate("**Link**: opens this lesson with your sentence, choice and exercise."))
        st.code(link(st.context.url or "", shared), language=None, wrap_lines=True)
        show_reach()
        st.markdown(translate("**Paper**: open the file in a browser and print it."))
        refusals = st.empty()
        for kind, label in (("handout", translate("Handout (HTML)")), ("worksheet", translate("Worksheet (HTML)"))):
            make = paper_maker(kind, [name], scene, seed)
            file_button(label, f"{kind}-{name}", "html", make, kind, refusals=refusals)


def _follow_reader(choice: LearnChoice) -> None:
    """Lead eyes and focus to the answer, and fit figures to paper."""
    tries = visit.memory(Tries)
    tried = tries.checks, tries.hints, tries.solved
    shown = f"{choice.lesson} {choice.test}"
    news = {"lesson": shown, "heading": bool(choice.guess), "verdict": repr(tried) if any(tried) else ""}
    _paper(key="learn-paper", data={**news, "language": current_language()})


@dataclass
class _Slides:
    """Whether this visit has made slides; then each lesson has them."""

    made: bool = False


def _present_lesson(name: str, scene: Scene, seed: int, lessons: Sequence[str]) -> None:
    """Make slides only on request: an exercise may run a model a dozen times."""
    wanted = bool(asked() or presented(st.query_params.to_dict()))
    memory = visit.memory(_Slides)
    if not wanted and not memory.made:
        return
    memory.made = True
    place = lessons.index(name)

    def turn(by: int) -> None:
        go(lessons[place + by])

    present(
        _slides(name, scene, seed, place + 1), deck=name, beyond=(place > 0, place < len(lessons) - 1), on_turn=turn
    )


def _slides(name: str, scene: Scene, seed: int, number: int) -> tuple[Slide, ...]:
    """Return a lesson's slides; none after a problem, shown on the page."""
    lesson = LESSONS[name]
    try:
        title = f"{number}. {translate(lesson.title)}"
        exercise = made_exercise(lesson.exercise, scene, seed)
        text = "" if lesson.sample else scene.text
        return lesson_slides(name, title, text, asked_of(name, scene), shown_of(name, scene), exercise, scene.notation)
    except AttentionVizError:
        return ()


@dataclass(frozen=True)
class Course:
    """The course's text, its notice or "", and its run if the other pages show the same one."""

    text: str
    note: str
    run: Run | None = None


def load(state: State, slots: Slots) -> Course:
    """Return the course's text without running anything."""
    if visit.is_unread(LEARN_CHOICES):
        visit.memory(Tries).answer = "", None
    slots.picture.place.empty()
    with in_language(course_language(chosen().lang)):
        text, note = begun(state.text, LONGEST, EXAMPLES[0])
    plain_text = Request(REAL_MODEL, text)
    try:
        return Course(text, note, run_request(plain_text) if state.request == plain_text else None)
    except AttentionVizError:  # the lesson itself says why
        return Course(text, note)


def settle(selection: Selection, course: Course) -> Selection:
    """Select an existing lesson, and keep its head and pressed word on the other pages."""
    selection = _numbered(answer(selection, LEARN_CHOICES, tuple(LESSONS)))
    if course.run is None:
        return selection
    selection = resolve(selection, ran(course.run))
    scene = _scene(course, selection)
    position = LESSONS[selection.of(LEARN_CHOICES).lesson].position(scene)
    if position in (None, selection.shared.query):
        return selection
    return update(selection, Picked(SHARED, {"query": position, "key": scene_link(scene, position).key}))


def _numbered(selection: Selection) -> Selection:
    """Give a student of a class the first of the student's own seeds."""
    choice = selection.of(LEARN_CHOICES)
    if not choice.student or choice.exercise_seed:
        return selection
    return update(selection, Filled(LEARN_CHOICES, {"exercise_seed": first_seed(choice.student)}, late=True))


def _scene(course: Course, selection: Selection) -> Scene:
    choice, shared = selection.of(LEARN_CHOICES), selection.shared
    scene = Scene(course.text, run_lesson, choice.choice, choice.notation, theme_name(), word=choice.word)
    return scene if course.run is None else replace(scene, head=(shared.layer, shared.head), query=shared.query)


def view(course: Course, selection: Selection) -> Parts:
    """Return the chosen lesson's parts."""
    choice = selection.of(LEARN_CHOICES)
    scene, code = _scene(course, selection), course_language(choice.lang)
    lesson = show_answers if opens_sheet(choice) else show_number if choice.student == ASK else _show_lesson
    parts = [
        Part("notes", functools.partial(_show_notes, course, choice)),
        Part("fold", lambda: show_fold(translate("Sentence and lesson"), _called(choice.lesson, choice))),
        Part("row", functools.partial(_show_pickers, choice, PAGE.address(selection), scene)),
        Part("lesson", functools.partial(lesson, choice, scene, choice.exercise_seed)),
        Part("notes", functools.partial(_show_unread, choice, scene)),
        Part("lesson", functools.partial(_follow_reader, choice)),
        Part("lesson", functools.partial(send_notes, choice)),
    ]
    slides = functools.partial(_present_lesson, choice.lesson, scene, choice.exercise_seed, lesson_names(choice))
    return Parts([Part(part.slot, spoken(code, part.draw)) for part in parts], slides=spoken(code, slides))


def _show_notes(course: Course, choice: LearnChoice) -> None:
    _show_chip(choice)
    if wants_sheet(choice) and not opens_sheet(choice):
        tell(
            translate("Only the teacher’s link opens the answer sheet."), loud=True, short=translate("No answer sheet")
        )
    if course.note:
        short = translate("Example instead") if course.text == EXAMPLES[0] else translate("Text cut")
        tell(course.note, loud=True, short=short)


def _show_unread(choice: LearnChoice, scene: Scene) -> None:
    """Name words that the model of the lessons doesn't know; the lesson has run it already."""
    if (
        opens_sheet(choice)
        or choice.test != "off"
        or LESSONS[choice.lesson].sample is not None
        or scene.model != REAL_MODEL
    ):
        return
    state = State(model=REAL_MODEL, text=scene.text)
    try:
        run = run_request(state.request)
    except AttentionVizError:  # the lesson itself says why
        return
    show_unread(run, state, offers=False)


def _show_pickers(choice: LearnChoice, address: Mapping[str, str], scene: Scene) -> None:
    widgets.show(
        st.selectbox,
        translate("Lesson"),
        of=LEARN_CHOICES,
        name="lesson",
        key="learn-lesson",
        options={name: _called(name, choice) for name in lesson_names(choice)},
        then=begin_lesson,
        label_visibility="collapsed",
        width=250,
    )
    _show_options(choice)
    _show_export(address, choice.lesson, scene, choice.exercise_seed)


def _show_options(choice: LearnChoice) -> None:
    with st.popover(translate("Options"), key=widgets.fresh("learn-options")):
        _show_languages()
        notations = {name: translate(words) for name, words in NOTATIONS.items()}
        widgets.show(
            st.selectbox,
            translate("Notation"),
            of=LEARN_CHOICES,
            name="notation",
            key="learn-notation",
            options=notations,
        )
        show_keeping()
        with st.container(horizontal=True, key="learn-tests"):
            for part, title in PARTS.items():
                st.button(translate(title), key=f"learn-test-{part}", on_click=_leave_options, args=(part,))


def _leave_options(part: str) -> None:
    open_test(part)
    widgets.renew("learn-options")


def _show_languages() -> None:
    key = "learn-lang"
    widgets.preset(key, current_language())

    def take() -> None:
        if (code := widgets.content(key)) in LANGUAGES:
            set_choice(lang=code)

    st.selectbox(translate("Language"), list(LANGUAGES), format_func=LANGUAGES.__getitem__, key=key, on_change=take)
    st.caption(translate("The models read English sentences."))


def _show_chip(choice: LearnChoice) -> None:
    if choice.notation != next(iter(NOTATIONS)):
        with st.container(key="learn-chips", horizontal=True, gap="xsmall"):
            label = translate(NOTATIONS[choice.notation])
            label = f"{label[:1].upper()}{label[1:]}"
            usual = {"notation": next(iter(NOTATIONS))}
            st.button(f"{label} ✕", key="chip-notation", on_click=set_choice, kwargs=usual, help=translate("Reset"))


def _show_lesson(choice: LearnChoice, scene: Scene, seed: int) -> None:
    left, right = st.columns([1, 6], gap="medium")
    with left.container(key="learn-list"):
        _list_lessons(choice)
    with right.container(key="learn-screen"):
        if choice.test != "off":
            show_quiz(choice)
            return
        with st.container(key="learn-printed"):
            made = {"text": LESSONS[choice.lesson].made_from(scene), "seed": seed}
            st.markdown(plain(translate("{text}, seed {seed}", **made)))
        names = lesson_names(choice)
        show_lesson(Screen(choice.lesson, names.index(choice.lesson), len(names), names), choice, scene)


def _list_lessons(choice: LearnChoice) -> None:
    before, after = ({"name": part, "title": translate(title), "test": True} for part, title in PARTS.items())
    lessons = [
        {"name": name, "title": f"{place}. {translate(lesson.title)}", "done": name in choice.done}
        for place, (name, lesson) in enumerate(((name, LESSONS[name]) for name in lesson_names(choice)), 1)
    ]
    words = {"label": translate("Lessons"), "done": translate("solved")}
    current = choice.lesson if choice.test == "off" else choice.test
    data = {**words, "current": current, "lessons": [before, *lessons, after]}

    def opened() -> None:
        name = widgets.sent("learn-lessons", "open")
        # Anything can come from a browser.
        if isinstance(name, str) and name in PARTS:
            open_test(name)
        elif isinstance(name, str) and name in lesson_names(choice):
            go(name)

    _course(key="learn-lessons", data=data, height="content", on_open_change=opened)


def _called(name: str, choice: LearnChoice) -> str:
    title, solved = translate(LESSONS[name].title), " ✓" if name in choice.done else ""
    return f"{lesson_names(choice).index(name) + 1}. {title}{solved}"
