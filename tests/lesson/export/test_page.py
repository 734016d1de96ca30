"""The course's page from a disk, with the network off: the walk that a student takes."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect

from attention_viz.lesson.course import EXERCISES, LESSONS
from attention_viz.lesson.exercise import Cells, NumberAnswer, OptionAnswer
from attention_viz.lesson.export.writing import write_course
from attention_viz.lesson.progress.record import read_progress
from attention_viz.lesson.quiz import QUIZ
from attention_viz.lesson.scene import RunText, Scene
from attention_viz.lesson.translation import in_language, translate
from tests.conftest import OpenPage
from tests.lesson.export.conftest import HOSTILE, TEXT
from tests.lesson.export.conftest import LESSONS as THREE
from tests.ui.test_accessibility import AXE, RUN

pytestmark = pytest.mark.browser


@pytest.fixture
def read(browser: Browser) -> Iterator["Reader"]:
    """Opens a course without a network; an error on its console, or a request for anything else, fails the test."""
    reader = Reader(browser)
    yield reader
    reader.context.close()
    assert not reader.problems, reader.problems


class Reader:
    """A reader with a disk alone."""

    def __init__(self, browser: Browser) -> None:
        self.context = browser.new_context(viewport={"width": 1360, "height": 800}, offline=True)
        self.problems: list[str] = []

    def __call__(self, folder: Path, place: str = "") -> Page:
        page = self.context.new_page()
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on(
            "request",
            lambda one: (
                None
                if one.url.startswith(folder.as_uri()) or one.url.startswith(("data:", "blob:"))
                else self.problems.append(one.url)
            ),
        )
        page.goto(f"{(folder / 'index.html').as_uri()}{place}")
        expect(page.locator("h1")).to_be_visible()
        return page

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.problems.append(message.text)


def _answer(page: Page, text: str) -> None:
    page.get_by_role("textbox").fill(text)
    page.get_by_role("button", name="Check").click()


def test_a_guess_is_answered_with_the_model_s_numbers_and_the_address_keeps_it(
    course: Path, read: Reader, run: RunText
) -> None:
    ask = LESSONS["why"].ask(Scene(TEXT, run))
    page = read(course)
    expect(page.locator("h1")).to_have_text(ask.question)
    expect(page.locator(".course-figure")).to_be_hidden()
    show = page.get_by_role("button", name="Show answer")
    expect(show).to_be_disabled()
    right = min(ask.right)
    page.locator(".av-option").nth(right).click()
    show.click()
    expect(page.locator("h1")).to_have_text(ask.finding)
    expect(page.locator("h1")).to_be_focused()
    expect(page.locator("#news")).to_contain_text(ask.finding)
    expect(page.locator(".course-predict .course-reply")).to_have_text(ask.said(right))
    expect(page.locator(".av-number")).to_have_text(list(ask.written))
    again = read(course, page.url[page.url.index("#") :])
    expect(again.locator(".course-predict .course-reply")).to_have_text(ask.said(right))
    page.go_back()
    expect(page.locator("h1")).to_have_text(ask.question)


def test_a_setting_and_a_pressed_word_lead_to_the_numbers_that_python_has(
    course: Path, read: Reader, run: RunText
) -> None:
    scene = Scene(TEXT, run)
    page = read(course, "#lesson=masks&guess=shown")
    control = LESSONS["masks"].control
    option = list(control.options(scene))[-1]
    shown = LESSONS["masks"].show(Scene(TEXT, run, choice=option))
    page.locator(".course-choices select").select_option(option)
    expect(page.locator(".course-predict")).to_contain_text(shown.says)
    expect(page.locator(".course-sheet svg").first).to_be_visible()
    words, asking = LESSONS["masks"].words(scene) if LESSONS["masks"].words else ({}, "")
    word = [one for one in words if one != asking][-1]
    shown = LESSONS["masks"].show(Scene(TEXT, run, choice=option, word=int(word)))
    page.locator(f'.course-pills input[value="{word}"]').check(force=True)
    expect(page.locator(".course-predict")).to_contain_text(shown.says)
    assert f"word={word}" in page.url and f"choice={option}" in page.url


def test_a_wrong_number_gets_python_s_diagnosis_then_the_right_one_is_kept(
    course: Path, read: Reader, run: RunText
) -> None:
    exercise = EXERCISES["score"].make(Scene(TEXT, run), 0)
    assert isinstance(exercise.answer, NumberAnswer)
    page = read(course, "#lesson=scores&guess=shown")
    verdict = page.locator(".course-verdict")
    expect(page.get_by_role("button", name="Solution")).to_be_disabled()
    slip = next(one for one in exercise.slips if not exercise.answer.accepts(one.answer))
    for typed in (f"{slip.answer}".replace(".", ","), "123", "what?"):
        _answer(page, typed)
        expect(verdict.locator(".course-reply")).to_contain_text(exercise.check(typed).words)
        expect(verdict).to_be_focused()
        expect(verdict).to_be_in_viewport()
    assert slip.words in exercise.check(f"{slip.answer}").words
    expect(page.locator("[aria-current] .av-done")).to_have_count(0)
    _answer(page, exercise.solution)
    expect(verdict.locator(".course-reply")).to_contain_text(exercise.working)
    expect(page.locator("[aria-current] .av-done")).to_have_count(1)
    page.reload()
    expect(page.locator("[aria-current] .av-done")).to_have_count(1)


def test_hints_come_one_by_one_the_solution_after_a_try_and_another_seed_another_exercise(
    course: Path, read: Reader, run: RunText
) -> None:
    first, other = (EXERCISES["score"].make(Scene(TEXT, run), seed) for seed in (0, 7))
    page = read(course, "#lesson=scores&guess=shown")
    for count, hint in enumerate(first.hints, 1):
        page.get_by_role("button", name=f"Hint {count} of").click()
        expect(page.locator(".course-hints p")).to_have_count(count)
        expect(page.locator(".course-hints")).to_contain_text(hint)
    page.get_by_role("button", name="Solution").click()
    expect(page.locator(".course-solution")).to_contain_text(first.working)
    page.get_by_role("button", name="New exercise").click()
    expect(page.locator(".course-exercise")).to_contain_text(other.question)
    assert "seed=7" in page.url


def test_options_and_cells_are_checked_with_the_same_words(course: Path, read: Reader, run: RunText) -> None:
    choice, cells = (EXERCISES[LESSONS[name].exercise].make(Scene(TEXT, run), 0) for name in ("why", "masks"))
    assert isinstance(choice.answer, OptionAnswer) and isinstance(cells.answer, Cells)
    page = read(course, "#lesson=why&guess=shown")
    reply = page.locator(".course-verdict .course-reply")
    page.get_by_role("button", name="Check").click()
    expect(reply).to_contain_text(translate("Choose or type an answer first."))
    for at in range(len(choice.answer.options)):
        page.get_by_role("radio").nth(at).check()
        page.get_by_role("button", name="Check").click()
        expect(reply).to_contain_text(choice.check(str(at)).words)
    page = read(course, "#lesson=masks&guess=shown")
    reply = page.locator(".course-verdict .course-reply")
    page.get_by_role("button", name="Check").click()
    start = ",".join(f"{row}>{column}" for row, column in cells.answer.start)
    expect(reply).to_contain_text(cells.check(start).words)
    for row, column in cells.answer.wrong:
        page.locator(f'[data-cell="{row},{column}"]').click()
    page.get_by_role("button", name="Check").click()
    expect(reply).to_contain_text(cells.working)


def test_a_course_goes_on_by_the_list_the_buttons_and_the_other_text(course: Path, read: Reader, run: RunText) -> None:
    page = read(course)
    page.get_by_role("button", name="Next →").click()
    expect(page.locator("h1")).to_have_text(LESSONS["scores"].ask(Scene(TEXT, run)).question)
    expect(page.locator("h1")).to_be_focused()
    page.get_by_role("link", name="3. Masks").click()
    expect(page.locator("[aria-current]")).to_contain_text("Masks")
    page.get_by_role("link", name="Why attention").click()
    page.get_by_label("Sentence").select_option("1")
    expect(page.locator("h1")).to_have_text(
        LESSONS["why"].ask(Scene("The cat sat because it was tired.", run)).question
    )


def test_progress_is_saved_as_a_file_cleared_and_opened_again(
    course: Path, read: Reader, run: RunText, tmp_path: Path
) -> None:
    exercise = EXERCISES["score"].make(Scene(TEXT, run), 0)
    page = read(course, "#lesson=scores&guess=shown")
    _answer(page, "123")
    _answer(page, exercise.solution)
    page.locator("summary", has_text="Progress").click()
    with page.expect_download() as saving:
        page.get_by_role("button", name="Save progress").click()
    file = tmp_path / "progress.json"
    saving.value.save_as(file)
    (done,) = json.loads(file.read_text("utf-8"))["exercises"]
    assert (done["lesson"], done["text"], done["seed"], done["solved"]) == ("scores", TEXT, 0, True)
    assert done["tries"] == ["123", exercise.solution]
    page.get_by_role("button", name="Start anew").click()
    page.get_by_role("button", name="Clear progress").click()
    expect(page.locator(".av-done")).to_have_count(0)
    page.locator('input[type="file"]').set_input_files(file)
    expect(page.locator(".av-done")).to_have_count(1)


def test_both_tests_of_learning_need_no_server(course: Path, read: Reader) -> None:
    right = [f"#{one.right}" for one in QUIZ]

    def take(answers: list[str]) -> None:
        for at, answer in enumerate(answers):
            page.locator(f'[name="quiz-{at}"][value="{answer}"]').check()
        page.get_by_role("button", name="Finish").click()
        expect(page.locator("h1")).to_be_focused()

    page = read(course)
    page.get_by_role("link", name="Test before the course").click()
    expect(page.locator("h1")).to_have_text("Test before the course")
    expect(page.locator("h1")).to_be_focused()
    expect(page).to_have_title(re.compile("^Test before the course · "))
    assert page.url.endswith("#test=before")
    take(["?"] * 9 + right[9:])
    expect(page.locator(".av-test")).to_contain_text("You see the right ones after the course.")
    page.get_by_role("link", name="Test after the course").click()
    expect(page.locator("[aria-current]")).to_have_text("Test after the course")
    take(["?"] * 2 + right[2:])
    expect(page.locator(".av-quiz-score")).to_have_text("8 of 10 are right. Before the course: 1.")
    # This course lacks the lessons of the first two questions.
    assert page.locator(".av-test a").count() == sum(one.lesson in THREE for one in QUIZ[:2]) == 0
    page.reload()
    expect(page.locator(".av-quiz-score")).to_be_visible()
    page.locator("summary", has_text="Progress").click()
    with page.expect_download() as saving:
        page.get_by_role("button", name="Save progress").click()
    saved = read_progress(saving.value.path().read_bytes())
    assert (list(saved.before), list(saved.after)) == (["?"] * 9 + right[9:], ["?"] * 2 + right[2:])
    page.get_by_role("button", name="Start anew").click()
    page.get_by_role("button", name="Clear progress").click()
    expect(page.locator(".av-test fieldset")).to_have_count(10)
    page.go_back()
    expect(page.locator("h1")).to_have_text("Test before the course")
    page.get_by_role("link", name="2. Scores").click()
    expect(page.locator("[aria-current]")).to_have_text("2. Scores")
    assert "test=" not in page.url


@pytest.mark.parametrize("text", range(len(HOSTILE)))
def test_a_hostile_text_is_only_ever_text(hostile: Path, read: Reader, text: int) -> None:
    page = read(hostile)
    page.on("dialog", lambda dialog: pytest.fail(dialog.message))
    for lesson in ("why", "plain"):
        page.goto(f"{(hostile / 'index.html').as_uri()}#lesson={lesson}&text={text + 1}&guess=shown")
        expect(page.locator("[aria-current]")).to_have_attribute("data-lesson", lesson)
        expect(page.locator(".course-text")).to_contain_text("Try it:")
        assert page.locator("main img, main script, main b").count() == 0
    expect(page.get_by_label("Sentence").locator("option:checked")).to_have_text(" ".join(HOSTILE[text].split()))


@pytest.mark.parametrize(
    "place",
    ["", "#test=nope", "#lesson=nope&text=9&guess=9.9&word=x&choice=<b>&seed=-1", "#%", "#lesson=scores&guess=1.2.3"],
)
def test_any_address_leads_to_a_lesson(course: Path, read: Reader, place: str) -> None:
    expect(read(course, place).locator("[aria-current]")).to_have_count(1)


@pytest.mark.parametrize(("asked", "recorded"), [(0, 0), (7, 7), (712, 0), (713, 7)])
def test_a_seed_leads_to_a_recorded_exercise_that_the_address_names(
    course: Path, read: Reader, run: RunText, asked: int, recorded: int
) -> None:
    page = read(course, f"#lesson=scores&guess=shown&seed={asked}")
    question = EXERCISES["score"].make(Scene(TEXT, run), recorded).question
    expect(page.locator(".course-exercise")).to_contain_text(question)
    assert (page.url.partition("&seed=")[2] or "0") == str(recorded)


@pytest.mark.parametrize("junk", ["junk", "9", "0.0", "-1", "1e3", "Shown"])
def test_a_guess_that_is_none_leaves_the_question_open(course: Path, read: Reader, run: RunText, junk: str) -> None:
    page = read(course, f"#lesson=why&guess={junk}")
    expect(page.locator("h1")).to_have_text(LESSONS["why"].ask(Scene(TEXT, run)).question)
    expect(page.locator(".course-figure")).to_be_hidden()
    assert "guess" not in page.url
    page.goto(page.url.partition("#")[0] + f"#lesson=why&guess={junk}")
    expect(page).not_to_have_url(re.compile("guess"))
    expect(page.locator(".course-figure")).to_be_hidden()


def test_a_missing_file_is_named(run: RunText, tmp_path: Path, browser: Browser) -> None:
    write_course(tmp_path, (TEXT,), run, lessons=("plain",), seeds=(0,))
    (tmp_path / "data" / "plain-1.js").unlink()
    reader = Reader(browser)
    page = reader(tmp_path)
    expect(page.locator("h1")).to_contain_text("plain-1.js is missing")
    assert all("ERR_FILE_NOT_FOUND" in one for one in reader.problems)
    reader.context.close()


def test_next_leads_from_test_to_test_and_each_place_opens_at_its_top(course: Path, read: Reader) -> None:
    page, turn = read(course, "#test=before"), ".course-turn button"
    titles = [
        "Test before the course",
        *page.locator(".av-course a").all_text_contents()[1:-1],
        "Test after the course",
    ]
    expect(page.locator(turn).first).to_be_disabled()
    expect(page.locator(turn).last).to_have_text(f"{titles[1]} →")
    page.set_viewport_size({"width": 390, "height": 400})
    for at, title in enumerate(titles[1:-1], 1):
        page.evaluate("scrollTo(0, document.body.scrollHeight)")
        assert page.evaluate("scrollY") > 0
        page.locator(turn).last.evaluate("one => one.click()")
        expect(page.locator("[aria-current]")).to_have_text(title)
        expect(page.locator("html")).to_have_js_property("scrollTop", 0)
        expect(page.locator("h1")).to_be_focused()
        expect(page.locator(turn).first).to_have_text("← Back" if at > 1 else f"← {titles[0]}")
        expect(page.locator(turn).last).to_have_text("Next →" if at < len(titles) - 2 else f"{titles[-1]} →")
    page.locator(turn).last.click()
    expect(page.locator("h1")).to_have_text(titles[-1])
    expect(page.locator(turn).last).to_be_disabled()
    page.locator(turn).first.click()
    expect(page.locator("[aria-current]")).to_have_text(titles[-2])


def test_what_comes_under_a_resting_pointer_does_not_look_chosen(course: Path, read: Reader) -> None:
    page = read(course)
    page.locator(".av-option").first.click()
    edge = "getComputedStyle(document.querySelector('button.av-option')).borderTopColor"
    pointed = page.evaluate(edge)
    page.keyboard.press("Tab")
    page.locator(".av-show").evaluate("one => one.click()")
    expect(page.locator("[data-shown=true]")).to_have_count(1)
    assert page.locator(".av-lesson").get_attribute("data-still") == "true" and page.evaluate(edge) != pointed
    page.mouse.move(*_middle(page, ".av-option", 3))
    page.mouse.move(*_middle(page, ".av-option", 0))
    assert page.locator(".av-lesson").get_attribute("data-still") is None


def _middle(page: Page, place: str, at: int) -> tuple[float, float]:
    box = page.locator(place).nth(at).bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_a_column_of_the_mask_to_fix_is_named_whole_and_its_cells_are_in_line(course: Path, read: Reader) -> None:
    page = read(course, "#lesson=masks&guess=shown")
    tops = "rows => rows.map(row => new Set([...row.querySelectorAll('button')].map(one => one.offsetTop)).size)"
    sizes = page.locator(".course-mask tr:has(button)").evaluate_all(tops)
    assert sizes and set(sizes) == {1}
    cut = "ones => ones.filter(one => one.scrollHeight > one.clientHeight || one.scrollWidth > one.clientWidth).length"
    assert page.locator(".course-mask th").evaluate_all(cut) == 0


@pytest.mark.parametrize("width", [1360, 390])
@pytest.mark.parametrize("dark", [False, True])
def test_nobody_is_shut_out_and_nothing_is_cut(course: Path, open_page: OpenPage, width: int, dark: bool) -> None:
    for place in ("#lesson=scores", "#lesson=masks&guess=shown", "#test=before"):
        page = open_page(f"{(course / 'index.html').as_uri()}{place}", dark=dark, width=width)
        expect(page.locator("h1")).to_have_count(1)
        if "shown" in place:
            expect(page.locator(".course-sheet svg").first).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.evaluate(AXE)
        found = page.evaluate(RUN.replace("resultTypes", "preload: false, resultTypes"), [])
        assert [one["id"] for one in found if one["impact"] in ("serious", "critical")] == []


def test_the_keyboard_alone_leads_through_a_lesson(course: Path, read: Reader, run: RunText) -> None:
    page = read(course)
    page.keyboard.press("Tab")
    expect(page.locator("#skip")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.className") == "av-option":
            break
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Show answer").focus()
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text(LESSONS["why"].ask(Scene(TEXT, run)).finding)


def test_the_page_speaks_german(run: RunText, tmp_path: Path, read: Reader) -> None:
    with in_language("de"):
        write_course(tmp_path, (TEXT,), run, lessons=("scores",), seeds=(0,))
        exercise = EXERCISES["score"].make(Scene(TEXT, run), 0)
        wrong = exercise.check("123").words
        question = LESSONS["scores"].ask(Scene(TEXT, run)).question
    page = read(tmp_path)
    expect(page.locator("html")).to_have_attribute("lang", "de")
    expect(page.locator("h1")).to_have_text(question)
    page.goto(f"{page.url.partition('#')[0]}#lesson=scores&guess=shown")
    page.get_by_role("textbox").fill("123")
    page.get_by_role("button", name="Prüfen").click()
    expect(page.locator(".course-verdict .course-reply")).to_contain_text(wrong)
    assert re.search(r"Du hast|Deine Antwort", wrong)
