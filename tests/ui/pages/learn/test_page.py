"""The Learn page as a reader and a teacher use it, in a real browser."""

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, quote_plus, urlsplit

import pytest
from playwright.sync_api import Page, expect

from attention_viz.edits.edit import Edit
from attention_viz.lesson import EXERCISES, LESSONS, Scene, answer_sheet
from attention_viz.lesson.exercise import Cells
from attention_viz.serving.request import Request
from attention_viz.serving.runs import draw
from attention_viz.trace.trace import Trace
from tests.conftest import OpenPage, Recolour

if TYPE_CHECKING:
    from attention_viz.models.model import AttentionModel

Idle = Callable[[Page], None]
TEXT = "The bank of the river was flooded"


def run(model: str, text: str, *, edits: Sequence[Edit] = ()) -> Trace:
    return draw(Request(model, text), edits=edits).trace


SCENE = Scene(TEXT, run)
LESSON_OF = {lesson.exercise: name for name, lesson in LESSONS.items()}


def parameters(screen: Page) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(screen.url).query, keep_blank_values=True).items()}


def press(screen: Page, name: str, idle: Idle) -> None:
    screen.get_by_role("button", name=name, exact=True).click()
    idle(screen)


def test_the_first_lesson_shows_real_numbers_on_the_first_screen(
    page: OpenPage, idle: Idle, minilm: "AttentionModel"
) -> None:
    screen = page("/learn")
    weight = float(minilm.trace(TEXT).weights(0, 4)[2, 5])
    text = screen.locator(".st-key-learn-text")
    expect(text).to_contain_text(f"takes {weight:.3f} from “river”")
    area = screen.locator(".st-key-learn-figure .js-plotly-plot").bounding_box()
    assert area is not None
    assert area["y"] + area["height"] <= 860
    assert screen.get_by_role("radio").count() >= len(LESSONS)
    screen.get_by_role("combobox", name=re.compile("Word that looks")).click()
    screen.get_by_role("option", name="flooded").click()
    idle(screen)
    expect(text).to_contain_text("in which “flooded” takes most from a word further off")
    assert parameters(screen)["choice"] == "7"
    term = text.locator(".learn-term").first
    expect(term.locator(".learn-meaning")).to_be_hidden()
    term.focus()
    expect(term.locator(".learn-meaning")).to_be_visible()


def test_an_exercise_is_checked_explained_hinted_and_kept_in_the_address(stay: OpenPage, idle: Idle) -> None:
    screen = stay("/learn?lesson=scores&seed=3&done=why")
    exercise = EXERCISES["score"].make(SCENE, 3)
    answer = screen.get_by_label("Your answer")
    answer.fill("no number")
    press(screen, "Check", idle)
    expect(screen.get_by_text(exercise.answer.form).last).to_be_visible()
    answer.fill("999")
    press(screen, "Check", idle)
    expect(screen.get_by_test_id("stAlert")).to_contain_text(f"Not yet. {exercise.check('999').words}")
    press(screen, f"Hint 1 of {len(exercise.hints)}", idle)
    expect(screen.get_by_text(exercise.hints[0])).to_be_visible()
    assert parameters(screen)["done"] == "why"
    expect(screen.get_by_text(exercise.working)).to_have_count(0)
    press(screen, "Solution", idle)
    expect(screen.get_by_text(f"Solution: {exercise.solution}. {exercise.working}")).to_be_visible()
    answer.fill(exercise.solution)
    answer.press("Enter")
    idle(screen)
    expect(screen.get_by_test_id("stAlert")).to_contain_text(f"Right. {exercise.working}")
    assert parameters(screen)["done"] == "why.scores"
    expect(screen.locator(".st-key-learn-lessons")).to_contain_text("5. Scores ✓")
    expect(screen.get_by_role("button", name="Go on: Scaling →")).to_be_visible()
    press(screen, "Another one", idle)
    assert parameters(screen)["exercise_seed"] == "4"
    expect(screen.get_by_text(EXERCISES["score"].make(SCENE, 4).question)).to_be_visible()
    expect(screen.get_by_test_id("stAlert")).to_have_count(0)


def test_a_mask_is_mended_cell_by_cell_and_a_choice_is_made(stay: OpenPage, idle: Idle) -> None:
    screen = stay("/learn?lesson=masks&seed=2")
    answer = EXERCISES["mask"].make(SCENE, 2).answer
    assert isinstance(answer, Cells)
    for row, column in sorted(answer.start ^ answer.right):
        line = screen.locator(".st-key-learn-cells").get_by_test_id("stButtonGroup").nth(row)
        line.get_by_role("button").nth(column).click()
    press(screen, "Check", idle)
    expect(screen.get_by_test_id("stAlert")).to_contain_text("Right.")
    assert parameters(screen)["done"] == "masks"
    screen = stay("/learn?lesson=why&seed=2")
    exercise = EXERCISES["strongest"].make(SCENE, 2)
    press(screen, "Check", idle)
    expect(screen.get_by_text("Choose or type an answer first.")).to_be_visible()
    screen.locator(".st-key-learn-screen").get_by_text(exercise.solution, exact=True).last.click()
    press(screen, "Check", idle)
    expect(screen.get_by_test_id("stAlert")).to_contain_text("Right.")


def test_the_notation_holds_through_the_course(stay: OpenPage, idle: Idle) -> None:
    screen = stay("/learn?lesson=scores&notation=columns")
    formula = screen.locator(".st-key-learn-text annotation").first
    columns = formula.text_content()
    press(screen, "Next →", idle)
    assert parameters(screen)["notation"] == "columns"
    assert parameters(screen)["lesson"] == "scaling"
    screen = stay("/learn?lesson=scores&notation=rows")
    assert formula.text_content() != columns


def test_a_room_is_led_through_the_whole_course_with_one_key(stay: OpenPage, idle: Idle) -> None:
    screen = stay("/learn?lesson=why&present=on")
    expect(screen.locator(".st-key-learn-lessons, .st-key-header, form")).to_have_count(0)
    screen.mouse.move(400, 300)
    screen.mouse.move(500, 320)
    expect(screen.get_by_test_id("learn-dot")).to_have_css("pointer-events", "none")
    assert "translate(491px, 311px)" in str(screen.get_by_test_id("learn-dot").get_attribute("style"))
    for place, (name, lesson) in enumerate(LESSONS.items(), 1):
        expect(screen.get_by_role("heading", name=f"{place}. {lesson.title}", exact=True)).to_be_visible()
        idle(screen)
        assert parameters(screen)["lesson"] == name
        expect(screen.locator(".st-key-learn-figure .js-plotly-plot")).to_be_visible()
        expect(screen.get_by_test_id("stAlert")).to_have_count(0)
        screen.keyboard.press("ArrowRight")
    screen.keyboard.press("ArrowLeft")
    expect(screen.get_by_role("heading", name=re.compile("^16"))).to_be_visible()
    idle(screen)
    screen.keyboard.press("Escape")
    expect(screen.get_by_label("Sentence", exact=True)).to_have_value(TEXT)
    idle(screen)
    assert "present" not in parameters(screen)
    expect(screen.get_by_test_id("learn-dot")).to_have_count(0)


def test_what_does_not_fit_is_shown_before_the_next_lesson_is(stay: OpenPage, idle: Idle) -> None:
    screen = stay("/learn?lesson=practice&present=on", width=1280, height=420)
    for key in ("PageDown", " ", "PageDown", "PageDown", " "):
        screen.keyboard.press(key)
        screen.wait_for_timeout(100)
        if screen.evaluate("document.querySelector('[data-testid=stMain]').scrollTop"):
            break
    expect(screen.get_by_role("heading", name=re.compile("^16"))).to_be_visible()
    bottom = "one => one.scrollTop + one.clientHeight >= one.scrollHeight - 24"
    for _ in range(5):
        if screen.get_by_test_id("stMain").evaluate(bottom):
            break
        screen.keyboard.press("PageDown")
        screen.wait_for_timeout(100)
    screen.keyboard.press("PageDown")
    expect(screen.get_by_role("heading", name=re.compile("^17"))).to_be_visible()
    idle(screen)


def test_a_list_that_was_chosen_from_does_not_hold_the_keys(stay: OpenPage, idle: Idle) -> None:
    screen = stay("/learn?lesson=cost&present=on")
    screen.get_by_role("combobox", name=re.compile("Tokens")).click()
    screen.keyboard.press("Escape")  # closes the list, and ends nothing
    expect(screen.get_by_role("option", name="256")).to_have_count(0)
    screen.get_by_role("combobox", name=re.compile("Tokens")).click()
    screen.get_by_role("option", name="256").click()
    idle(screen)
    screen.keyboard.press("ArrowRight")
    expect(screen.get_by_role("heading", name=re.compile("^16"))).to_be_visible()
    idle(screen)


def test_what_an_address_cant_have_and_strange_texts_are_answered_in_words(stay: OpenPage) -> None:
    screen = stay("/learn?lesson=magic&notation=x&done=magic&choice=99&seed=-1")
    expect(screen.get_by_text("The address asks for lesson “magic”")).to_be_visible()
    expect(screen.get_by_text("The address asks for choice “99”")).to_be_visible()
    expect(screen.get_by_text("The address asks for exercise_seed “-1”")).to_be_visible()
    expect(screen.get_by_role("heading", name="1. Why attention")).to_be_visible()
    screen = stay("/learn?lesson=scores&text=")
    expect(screen.get_by_text("There is no word in the box")).to_be_visible()
    screen = stay(f"/learn?lesson=scores&text={quote_plus('<b>bold</b> & $x$ :smile: ' * 9)}")
    expect(screen.get_by_text("The course reads the first 24 words")).to_be_visible()
    expect(screen.locator(".st-key-learn-text b")).to_have_count(0)
    expect(screen.get_by_role("heading", name="5. Scores")).to_be_visible()


def test_a_handout_has_text_picture_and_exercise_and_nothing_to_press(stay: OpenPage, recolour: Recolour) -> None:
    screen = stay("/learn?lesson=scores&seed=5")
    screen.emulate_media(media="print")
    for key in ("header", "learn-top", "learn-lessons", "learn-more", "learn-glossary"):
        expect(screen.locator(f".st-key-{key}").first).to_be_hidden()
    expect(screen.get_by_role("button", name="Check")).to_be_hidden()
    expect(screen.get_by_text(f"Sentence: “{TEXT}”, seed 5")).to_be_visible()
    expect(screen.locator(".st-key-learn-text")).to_have_css("color", "rgb(0, 0, 0)")
    expect(screen.locator(".learn-given table").first).to_be_visible()
    expect(screen.locator(".st-key-learn-figure .js-plotly-plot")).to_be_visible()
    screen.emulate_media(media="screen")
    recolour(screen, False)


def test_a_teacher_has_the_answers_and_a_link_to_this_state(stay: OpenPage) -> None:
    screen = stay("/learn?lesson=heads&seed=7&answers=on&done=why")
    sheet = screen.locator(".st-key-learn-answers")
    kinds = [lesson.exercise for lesson in LESSONS.values() if lesson.exercise not in ("matters", "head")]
    for solved in answer_sheet(SCENE, [7], kinds):
        place = sheet.locator(f".st-key-learn-solved-{LESSON_OF[solved.kind]}")
        expect(place).to_contain_text(solved.question)
        expect(place).to_contain_text(f"Answer: {solved.solution}")
        expect(place).to_contain_text(solved.working)
        expect(place.locator("table")).to_have_count(len(solved.given))
    screen.get_by_role("button", name="Link", exact=True).click()
    told = screen.get_by_test_id("stCode").inner_text()
    assert {"lesson=heads", "exercise_seed=7"} <= set(urlsplit(told).query.split("&"))
    assert "done" not in told


def test_progress_is_taken_away_as_a_file_and_brought_back(page: OpenPage, idle: Idle) -> None:
    screen = page("/learn?lesson=vectors&done=why.scores")
    screen.get_by_role("button", name="Progress", exact=True).click()
    with screen.expect_download() as download:
        screen.get_by_role("button", name="Save my progress").click()
    idle(screen)
    screen.goto(screen.url.replace("&done=why.scores", "&done=masks"))
    screen.get_by_role("button", name="Progress", exact=True).click()
    for content in (b"nonsense", download.value.path().read_bytes()):
        file = {"name": "progress.json", "mimeType": "application/json", "buffer": content}
        screen.get_by_test_id("stFileUploaderDropzoneInput").set_input_files(file)  # pyright: ignore[reportArgumentType]
        if content == b"nonsense":
            expect(screen.get_by_text("This can't be opened")).to_be_visible()
            idle(screen)  # the box is emptied by another in its place
    expect(screen.get_by_text("3 of 17 exercises solved")).to_be_visible()
    idle(screen)
    assert parameters(screen)["done"] == "why.scores.masks"


@pytest.mark.parametrize("dark", [False, True])
def test_on_a_phone_the_list_is_folded_and_nothing_is_wider_than_the_screen(stay: OpenPage, dark: bool) -> None:
    screen = stay("/learn?lesson=scores", dark=dark, width=390, height=844)
    expect(screen.locator(".st-key-learn-lessons")).to_be_hidden()
    expect(screen.get_by_role("combobox", name=re.compile("Lesson$"))).to_be_visible()
    assert screen.evaluate("document.documentElement.scrollWidth") <= 390
