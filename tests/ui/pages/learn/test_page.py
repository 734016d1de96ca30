"""The Learn page as a reader and a teacher use it, in a real browser."""

import re
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Page, expect

from attention_viz.lesson import LESSONS
from tests.conftest import OpenPage, Recolour

Idle = Callable[[Page], None]
TEXT = "The bank of the river was flooded"


def parameters(screen: Page) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(screen.url).query, keep_blank_values=True).items()}


def test_the_first_lesson_is_on_the_first_screen_and_a_term_tells_its_meaning(page: OpenPage) -> None:
    screen = page("/learn?guess=shown")
    text = screen.locator(".st-key-learn-text")
    expect(text).to_contain_text("from “river”")
    for part in (".st-key-learn-bars-all", ".st-key-learn-step-exercise"):
        area = screen.locator(part).bounding_box()
        assert area is not None
        assert area["y"] + area["height"] <= 860
    assert screen.get_by_role("radio").count() >= len(LESSONS)
    term = text.locator(".learn-term").first
    expect(term.locator(".learn-meaning")).to_be_hidden()
    term.focus()
    expect(term.locator(".learn-meaning")).to_be_visible()


def test_an_answer_is_given_from_the_keyboard(stay: OpenPage, idle: Idle) -> None:
    screen = stay("/learn?lesson=scores&seed=3&done=why&guess=shown")
    answer = screen.get_by_label("Your answer")
    answer.fill("999")
    answer.press("Enter")
    idle(screen)
    expect(screen.get_by_test_id("stAlert")).to_contain_text("Not yet.")


def test_a_mask_is_a_matrix_that_is_pressed_from_the_keyboard_and_checked_on_the_first_screen(
    stay: OpenPage, idle: Idle
) -> None:
    screen = stay("/learn?lesson=masks&exercise_seed=3&guess=shown")
    rows = screen.locator(".st-key-learn-cells").get_by_role("toolbar")
    expect(rows).to_have_count(6)
    places = [[cell.bounding_box() for cell in row.get_by_role("button").all()] for row in rows.all()]
    assert all(len(row) == 6 and None not in row for row in places)
    lefts = [[round(cell["x"]) for cell in row if cell] for row in places]
    assert all(row == lefts[0] for row in lefts), "the cells of a column stand under each other"
    names = screen.locator(".learn-columns span").evaluate_all(
        "(all) => all.map((one) => one.getBoundingClientRect().x)"
    )
    assert all(abs(name - left) <= 2 for name, left in zip(names, lefts[0], strict=True))
    check = screen.get_by_role("button", name="Check").bounding_box()
    assert check is not None and check["y"] + check["height"] <= 862
    cell = rows.nth(2).get_by_role("button").nth(5)
    before = cell.get_attribute("aria-pressed")
    cell.focus()
    cell.press("Space")
    expect(cell).to_have_attribute("aria-pressed", "false" if before == "true" else "true")
    idle(screen)


def test_a_room_is_led_through_the_course_with_one_key(stay: OpenPage, idle: Idle) -> None:
    screen = stay("/learn?lesson=why&present=on")
    expect(screen.locator(".st-key-learn-lessons, .st-key-header, form")).to_have_count(0)
    screen.mouse.move(400, 300)
    screen.mouse.move(500, 320)
    expect(screen.get_by_test_id("learn-dot")).to_have_css("pointer-events", "none")
    assert "translate(491px, 311px)" in str(screen.get_by_test_id("learn-dot").get_attribute("style"))
    for place, (name, lesson) in list(enumerate(LESSONS.items(), 1))[:3]:
        expect(screen.get_by_role("heading", name=f"{place}. {lesson.title}", exact=True)).to_be_visible()
        idle(screen)
        assert parameters(screen)["lesson"] == name
        expect(screen.locator(".st-key-learn-figure .js-plotly-plot")).to_be_visible()
        screen.keyboard.press("ArrowRight")
    screen.keyboard.press("ArrowLeft")
    expect(screen.get_by_role("heading", name=re.compile("^3"))).to_be_visible()
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
    expect(screen.get_by_role("heading", name=re.compile("In practice$"))).to_be_visible()
    bottom = "one => one.scrollTop + one.clientHeight >= one.scrollHeight - 24"
    for _ in range(5):
        if screen.get_by_test_id("stMain").evaluate(bottom):
            break
        screen.keyboard.press("PageDown")
        screen.wait_for_timeout(100)
    screen.keyboard.press("PageDown")
    expect(screen.get_by_role("heading", name=re.compile("What weights don.t tell$"))).to_be_visible()
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
    expect(screen.get_by_role("heading", name=re.compile("In practice$"))).to_be_visible()
    idle(screen)


def test_a_handout_has_text_picture_and_exercise_and_nothing_to_press(stay: OpenPage, recolour: Recolour) -> None:
    screen = stay("/learn?lesson=scores&seed=5&guess=shown")
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


def test_progress_is_taken_away_as_a_file(page: OpenPage, idle: Idle) -> None:
    screen = page("/learn?lesson=vectors&done=why.scores")
    screen.get_by_role("button", name="Progress", exact=True).click()
    with screen.expect_download() as download:
        screen.get_by_role("button", name="Save my progress").click()
    idle(screen)
    assert '"why"' in download.value.path().read_text()


def test_on_a_phone_the_list_is_folded_and_nothing_is_wider_than_the_screen(stay: OpenPage) -> None:
    screen = stay("/learn?lesson=scores", dark=True, width=390, height=844)
    expect(screen.locator(".st-key-learn-lessons")).to_be_hidden()
    expect(screen.get_by_role("combobox", name=re.compile("Lesson$"))).to_be_visible()
    assert screen.evaluate("document.documentElement.scrollWidth") <= 390
