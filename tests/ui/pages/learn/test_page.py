"""The Learn page as a reader and a teacher use it, in a real browser."""

import json
import re
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, expect

from attention_viz.lesson import LESSONS
from attention_viz.lesson.progress.record import Tried, read_progress
from tests.conftest import OpenPage, Recolour
from tests.ui.presenting.test_walk import SMALLEST

Idle = Callable[[Page], None]
TEXT = "The bank of the river was flooded"


def parameters(page: Page) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).query, keep_blank_values=True).items()}


def test_the_first_lesson_is_on_the_first_screen_and_a_term_tells_its_meaning(open_page: OpenPage) -> None:
    page = open_page("/learn?guess=shown")
    text = page.locator(".st-key-learn-text")
    expect(text).to_contain_text("at “river”")
    for part in (".st-key-learn-bars-all", ".st-key-learn-step-exercise"):
        area = page.locator(part).bounding_box()
        assert area is not None
        assert area["y"] + area["height"] <= 860
    expect(page.get_by_role("navigation", name="Lessons").get_by_role("link")).to_have_count(len(LESSONS) + 2)
    term = text.locator(".learn-term").first
    expect(term.locator(".learn-meaning")).to_be_hidden()
    term.focus()
    expect(term.locator(".learn-meaning")).to_be_visible()


def test_an_answer_is_given_from_the_keyboard(stay: OpenPage, idle: Idle) -> None:
    page = stay("/learn?lesson=scores&seed=3&done=why&guess=shown")
    answer = page.get_by_label("Your answer")
    answer.fill("999")
    answer.press("Enter")
    idle(page)
    expect(page.get_by_test_id("stAlert")).to_contain_text("Not yet.")


FOCUSED = """() => {
    let one = document.activeElement;
    while (one?.shadowRoot?.activeElement) one = one.shadowRoot.activeElement;
    return one.className + " " + one.tagName + " " + one.textContent;
}"""


def test_the_verdict_has_the_focus_and_is_on_a_low_screen(stay: OpenPage) -> None:
    for name in ("heads", "roles"):
        page = stay(f"/learn?lesson={name}&guess=shown&text=The+bank+of+the+river+was+flooded", width=1366, height=700)
        exercise = page.locator(".st-key-learn-step-exercise")
        expect(exercise.get_by_role("button", name="Check", exact=True)).to_be_visible()
        if name == "heads":
            exercise.get_by_role("radio").first.check(force=True)
        else:
            exercise.get_by_label("Your answer").fill("999")
        exercise.get_by_role("button", name="Check", exact=True).click()
        verdict = page.get_by_test_id("stAlert")
        expect(verdict).to_be_visible()
        page.wait_for_function("document.activeElement.matches('.st-key-learn-verdict')")
        expect(verdict).to_be_in_viewport(ratio=1)


def test_what_comes_next_begins_at_its_top_and_an_answer_has_the_focus(stay: OpenPage) -> None:
    page = stay("/learn?lesson=softmax&guess=shown", width=1366, height=700)
    page.get_by_test_id("stMain").evaluate("one => one.scrollTo(0, 400)")
    page.get_by_role("button", name="Next →", exact=True).click()
    heading = page.get_by_role("heading", level=1)
    expect(heading).to_contain_text("By how much do scores")
    page.wait_for_function("document.activeElement.tagName === 'H1'")
    assert page.get_by_test_id("stMain").evaluate("one => one.scrollTop") == 0
    page.get_by_role("button", name="Skip guess").click()
    expect(heading).to_contain_text("products spread by")
    page.wait_for_function("document.activeElement.textContent.includes('products spread by')")


@pytest.mark.parametrize("width", [1360, 390])
def test_what_introduces_a_question_stays_and_the_answer_moves_no_bar(stay: OpenPage, width: int) -> None:
    for name in ("roles", "mixture", "together"):
        page = stay(f"/learn?lesson={name}&text=The+bank+of+the+river+was+flooded", width=width)
        idea, premise, bars = (
            page.locator(f".{one}") for one in ("st-key-learn-idea", "st-key-learn-premise", "av-lesson")
        )
        expect(bars.locator("li").first).to_be_visible()
        expect(idea).to_contain_text(LESSONS[name].idea[:40])
        before = bars.bounding_box(), premise.text_content()
        page.get_by_role("button", name="Skip guess").click()
        expect(page.locator(".st-key-learn-text")).to_be_visible()
        expect(idea).to_contain_text(LESSONS[name].idea[:40])
        after = bars.bounding_box(), premise.text_content()
        assert before[0] is not None and after[0] is not None
        assert (before[0]["y"], before[1]) == (after[0]["y"], after[1])


def test_lessons_are_links_that_no_arrow_key_opens_and_the_menu_is_skipped(stay: OpenPage) -> None:
    page = stay("/learn?lesson=why")
    lessons = page.get_by_role("navigation", name="Lessons")
    expect(page.get_by_role("navigation", name="Pages")).to_be_visible()
    assert [one.text_content() for one in lessons.locator("[aria-current]").all()] == ["1. Why attention"]
    first = lessons.get_by_role("link").nth(1)
    first.focus()
    first.press("ArrowDown")
    assert "Words as vectors" in page.evaluate(FOCUSED)
    expect(page.get_by_role("heading", level=1)).to_contain_text("Which word does “bank”")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Where on this map")
    expect(lessons.locator("[aria-current]")).to_have_text("2. Words as vectors")
    page.get_by_test_id("stSkipToContent").focus()
    page.keyboard.press("Enter")
    assert "st-key-learn-screen" in page.evaluate(FOCUSED)


def test_random_numbers_stand_in_a_frame_and_unknown_words_are_named(stay: OpenPage) -> None:
    page = stay("/learn?lesson=scaling&guess=shown")
    frame = page.locator(".st-key-learn-random-figure")
    expect(frame).to_contain_text("Random numbers from a seed")
    expect(frame).to_have_css("border-top-style", "dashed")
    page = stay("/learn?lesson=why&text=The+bank+of+银+was+flooded")
    expect(page.locator(".st-key-learn-measured-bars")).to_have_css("border-top-style", "none")
    expect(page.get_by_role("button", name="Unknown words")).to_be_visible()


def test_the_text_of_a_question_is_in_sight_and_no_table_is_cut(stay: OpenPage) -> None:
    page = stay("/learn?lesson=together")
    expect(page.locator(".st-key-learn-asked")).to_contain_text("Text: “moon cheese frog ring moon cheese frog ring”")
    page = stay("/learn?lesson=heads&guess=shown&text=The+bank+of+the+river+was+flooded")
    tables = page.locator(".learn-given")
    expect(tables.first).to_be_visible()
    assert all(tables.evaluate_all("all => all.map(one => one.scrollWidth <= one.clientWidth)"))
    page = stay("/learn?lesson=older&guess=shown")
    expect(page.locator(".js-plotly-plot").first).to_be_visible()
    expect(page.locator(".legendtext", has_text="trace")).to_have_count(0)


def test_a_mask_is_a_matrix_that_is_pressed_from_the_keyboard_and_checked_on_the_first_screen(
    stay: OpenPage, idle: Idle
) -> None:
    page = stay("/learn?lesson=masks&exercise_seed=3&guess=shown")
    rows = page.locator(".st-key-learn-cells").get_by_role("toolbar")
    expect(rows).to_have_count(6)
    places = [[cell.bounding_box() for cell in row.get_by_role("button").all()] for row in rows.all()]
    assert all(len(row) == 6 and None not in row for row in places)
    lefts = [[round(cell["x"]) for cell in row if cell] for row in places]
    assert all(row == lefts[0] for row in lefts), "the cells of a column stand under each other"
    names = page.locator(".learn-columns span").evaluate_all("(all) => all.map((one) => one.getBoundingClientRect().x)")
    assert all(abs(name - left) <= 2 for name, left in zip(names, lefts[0], strict=True))
    check = page.get_by_role("button", name="Check").bounding_box()
    assert check is not None and check["y"] + check["height"] <= 862
    cell = rows.nth(2).get_by_role("button").nth(5)
    before = cell.get_attribute("aria-pressed")
    cell.focus()
    cell.press("Space")
    expect(cell).to_have_attribute("aria-pressed", "false" if before == "true" else "true")
    idle(page)


def test_the_longest_exercises_end_on_the_first_screen_beside_their_bars(stay: OpenPage) -> None:
    # A wrong guess has most said to it.
    for name, guess in (("roles", 1), ("heads", 0), ("together", 0), ("older", 0), ("limits", 0)):
        page = stay(f"/learn?lesson={name}&guess={guess}&text=The+bank+of+the+river+was+flooded")
        check = page.get_by_role("button", name="Check", exact=True)
        expect(check).to_be_visible()
        expect(page.locator(".st-key-learn-step-predict")).to_contain_text(re.compile("^(✓ Right|Not quite)"))
        area, bars = check.bounding_box(), page.get_by_test_id("prediction").bounding_box()
        assert area is not None and bars is not None
        assert area["y"] + area["height"] <= 862, name
        assert bars["y"] >= 0 and bars["y"] + bars["height"] <= 860


def test_a_place_is_guessed_on_the_image_and_then_blocked_there(stay: OpenPage, idle: Idle) -> None:
    page = stay("/learn?lesson=where")
    places = page.get_by_role("list", name="Places of the image")
    image = places.bounding_box()
    assert image is not None and abs(image["width"] - image["height"]) <= 1
    # Where the pixels are, not by name: the red ring, at the upper right.
    page.mouse.click(image["x"] + 0.85 * image["width"], image["y"] + 0.2 * image["height"])
    expect(places.get_by_role("button", name="top right")).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name="Show answer").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("“?” looks most at the middle centre")
    expect(page.locator(".st-key-learn-step-predict")).to_contain_text("Not quite: “top right”, ")
    expect(places.locator("[data-best=true] .av-number")).to_have_count(1)
    page.mouse.click(image["x"] + 0.5 * image["width"], places.bounding_box()["y"] + 0.5 * image["height"])  # pyright: ignore[reportOptionalSubscript] -- it is on the screen
    expect(page.get_by_role("heading", level=1)).to_contain_text("“none” instead of “yellow”")
    expect(places.locator("[data-blocked=true]")).to_have_count(1)
    places.get_by_role("button", name="top centre: block or unblock").press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Without the top centre: still “yellow”")
    expect(places.locator("li").nth(1)).to_have_attribute("data-blocked", "true")
    places.get_by_role("button", name="top centre: block or unblock").press("Enter")
    expect(places.locator("[data-blocked=true]")).to_have_count(0)
    idle(page)


def test_a_room_is_led_through_the_course_with_one_key(stay: OpenPage, idle: Idle) -> None:
    page = stay("/learn?lesson=writes&guess=shown", width=1280, height=720)
    idle(page)
    page.get_by_role("button", name="Present").click()
    dialog = page.locator("dialog.av-present")
    first = [*LESSONS].index("writes")
    *led, beyond = [*LESSONS][first : first + 4]
    source = dialog.locator(".av-source")
    last = ""
    for name in led:
        expect(source).to_contain_text(LESSONS[name].title)
        page.keyboard.press("End")
        place = page.evaluate("new URLSearchParams(location.search).get('slide')")
        count = int(place.partition(".")[0])
        assert count >= 2
        page.keyboard.press("Home")
        for slide in (f"{at}.{step}" for at in range(1, count + 1) for step in (1, 2)):
            expect(dialog.locator(".av-stage")).to_have_attribute("data-step", str(int(slide[-1]) - 1))
            last = parameters(page)["slide"]
            assert last == slide
            assert page.evaluate(SMALLEST) >= 20
            told = dialog.locator(".av-tell")
            expect(told).to_have_attribute("aria-hidden", "true" if slide.endswith("1") else "false")
            page.keyboard.press("ArrowRight")
    expect(source).to_contain_text(LESSONS[beyond].title)
    # Back before the first slide is the last of the lesson before.
    page.keyboard.press("ArrowLeft")
    expect(source).to_contain_text(LESSONS[led[-1]].title)
    assert parameters(page)["slide"] == last
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    idle(page)
    assert "slide" not in parameters(page) and parameters(page)["lesson"] == led[-1]


def test_a_handout_has_text_picture_and_exercise_and_nothing_to_press(stay: OpenPage, recolour: Recolour) -> None:
    page = stay("/learn?lesson=scores&seed=5&guess=shown")
    page.emulate_media(media="print")
    for key in ("header", "frame", "learn-lessons", "learn-more", "learn-glossary"):
        expect(page.locator(f".st-key-{key}").first).to_be_hidden()
    expect(page.get_by_role("button", name="Check")).to_be_hidden()
    expect(page.get_by_text(f"Sentence: “{TEXT}”, seed 5")).to_be_visible()
    expect(page.locator(".st-key-learn-text")).to_have_css("color", "rgb(0, 0, 0)")
    expect(page.locator(".learn-given table").first).to_be_visible()
    picture = page.locator(".st-key-learn-figure .js-plotly-plot")
    expect(picture).to_be_visible()
    # A page of A4 is 640 pixels wide without its margins and the page's own.
    expect(picture).to_have_css("zoom", re.compile(r"0\.\d+"))
    assert (picture.locator("svg").first.bounding_box() or {"width": 999})["width"] <= 640
    page.emulate_media(media="screen")
    expect(picture).to_have_css("zoom", "1")
    recolour(page, False)


def test_the_browser_keeps_answers_and_saves_opens_and_clears_them(open_page: OpenPage, idle: Idle) -> None:
    page = open_page("/learn?lesson=scores&guess=shown&done=vectors&student=7")
    page.get_by_role("textbox", name="Your answer").fill("999")
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_text("Not yet.")).to_be_visible()
    idle(page)
    kept = page.get_by_test_id("progress")

    def open_options() -> None:
        page.get_by_role("button", name="Options", exact=True).click()
        expect(kept).to_be_visible()

    open_options()
    expect(kept.get_by_role("status")).to_have_text("Exercises in this browser: 1 tried, 0 solved.")
    with page.expect_download() as download:
        kept.get_by_role("button", name="Save progress").click()
    assert re.fullmatch(r"attention-progress-7-[0-9a-f]{4}\.json", download.value.suggested_filename)
    saved = read_progress(download.value.path().read_bytes())
    assert saved.exercises == (Tried("scores", TEXT, 700, ("999",)),) and saved.student == 7
    # Another visit of the same browser goes on; cleared is cleared, ticks included.
    page.reload()
    idle(page)
    open_options()
    expect(kept.get_by_role("status")).to_have_text("Exercises in this browser: 1 tried, 0 solved.")
    kept.get_by_role("button", name="Start anew").click()
    expect(kept.get_by_role("button", name="Cancel")).to_be_focused()
    kept.get_by_role("button", name="Cancel").click()
    expect(kept.get_by_role("status")).to_have_text("Exercises in this browser: 1 tried, 0 solved.")
    kept.get_by_role("button", name="Start anew").click()
    kept.get_by_role("button", name="Clear progress").click()
    expect(kept.get_by_role("status")).to_have_text("Exercises in this browser: 0 tried, 0 solved.")
    idle(page)
    assert "done" not in parameters(page)
    # A file brings them back, and what it calls solved gets its tick; anything else is refused.
    field = kept.locator("input[type=file]")
    field.set_input_files({"name": "x.json", "mimeType": "application/json", "buffer": b"nonsense"})
    expect(kept.get_by_role("status")).to_contain_text("This isn’t a progress file")
    whole = json.loads(download.value.path().read_text())
    whole["exercises"][0]["solved"] = True
    field.set_input_files({"name": "x.json", "mimeType": "application/json", "buffer": json.dumps(whole).encode()})
    expect(kept.get_by_role("status")).to_have_text("Exercises in this browser: 1 tried, 1 solved.")
    expect(page.get_by_role("img", name="solved")).to_have_count(1)
    idle(page)
    assert parameters(page)["done"] == "scores"


def test_on_a_phone_the_list_is_folded_and_nothing_is_wider_than_the_screen(stay: OpenPage) -> None:
    page = stay("/learn?lesson=scores", dark=True, width=390, height=844)
    expect(page.locator(".st-key-learn-lessons")).to_be_hidden()
    lesson = page.get_by_role("combobox", name=re.compile("Lesson$"))
    expect(lesson).to_be_hidden()
    page.get_by_role("button", name=re.compile("^Sentence and lesson")).click()
    expect(lesson).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
