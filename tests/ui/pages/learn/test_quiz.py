"""The test of learning on the Learn page: its answers stay in the browser, and reach a teacher in a file only."""

import re
from collections.abc import Callable, Sequence

from playwright.sync_api import Locator, Page, expect

from attention_viz.lesson import LESSONS
from attention_viz.lesson.progress.record import read_progress
from attention_viz.lesson.quiz import QUIZ, UNKNOWN
from tests.conftest import OpenPage, Recolour
from tests.ui.screens import Screen
from tests.ui.test_accessibility import AXE, assert_open_to_all

Idle = Callable[[Page], None]
RIGHT = [f"#{one.right}" for one in QUIZ]
# Three that aren't known, two wrong ones.
BEFORE = [*[UNKNOWN] * 3, *(f"#{(one.right + 1) % 4}" for one in QUIZ[3:5]), *RIGHT[5:]]
AFTER = [UNKNOWN, f"#{(QUIZ[1].right + 1) % 4}", *RIGHT[2:]]


def choose(quiz: Locator, answers: Sequence[str]) -> None:
    for at, answer in enumerate(answers):
        quiz.locator(f'[name="quiz-{at}"][value="{answer}"]').check()


def test_a_student_takes_both_tests_and_only_the_browser_knows(
    open_page: OpenPage, idle: Idle, recolour: Recolour
) -> None:
    page = open_page("/learn?student=7&lesson=why")
    page.get_by_role("link", name="Test before the course").click()
    heading, quiz = page.get_by_role("heading", level=1), page.get_by_test_id("quiz")
    expect(heading).to_have_text("Test before the course")
    expect(heading).to_be_focused()
    assert "test=before" in page.url
    idle(page)
    sent = list[object]()
    network = page.context.new_cdp_session(page)
    network.on("Network.webSocketFrameSent", lambda frame: sent.append(frame))
    network.send("Network.enable")
    choose(quiz, BEFORE[:9])
    quiz.get_by_role("button", name="Finish").click()
    expect(quiz.get_by_role("status")).to_have_text("Questions without an answer: 1.")
    expect(quiz.locator('[name="quiz-9"]').first).to_be_focused()
    quiz.locator(f'[name="quiz-9"][value="{BEFORE[9]}"]').check()
    expect(quiz.get_by_role("status")).to_be_hidden()
    quiz.get_by_role("button", name="Finish").click()
    expect(quiz).to_have_text("Your answers are in your progress. You see the right ones after the course.")
    expect(heading).to_be_focused()
    assert not sent
    page.get_by_role("button", name="Next →", exact=True).click()
    expect(page.locator("[aria-current=page]", has_text="1. Why attention")).to_be_visible()
    page.get_by_role("link", name="Test after the course").click()
    expect(heading).to_have_text("Test after the course")
    choose(quiz, AFTER)
    quiz.get_by_role("button", name="Finish").click()
    expect(quiz.locator(".av-quiz-score")).to_have_text("8 of 10 are right. Before the course: 5.")
    assert [one.get_attribute("data-right") for one in quiz.locator("li").all()] == ["false"] * 2 + ["true"] * 8
    unknown, wrong = quiz.locator("li").nth(0), quiz.locator("li").nth(1)
    expect(unknown).to_contain_text("I don't know")
    expect(wrong).to_contain_text(f"Not right: “{QUIZ[1].options[(QUIZ[1].right + 1) % 4]}”")
    expect(wrong.locator("b")).to_have_text(QUIZ[1].options[QUIZ[1].right])
    idle(page)
    page.evaluate(AXE)
    assert_open_to_all(page)
    recolour(page, True)
    assert_open_to_all(page, True)
    page.get_by_role("button", name="Options", exact=True).click()
    with page.expect_download() as download:
        page.get_by_test_id("progress").get_by_role("button", name="Save progress").click()
    saved = read_progress(download.value.path().read_bytes())
    assert (list(saved.before), list(saved.after), saved.student) == (BEFORE, AFTER, 7)
    # Anew, the test is a form again.
    page.get_by_test_id("progress").get_by_role("button", name="Start anew").click()
    page.get_by_test_id("progress").get_by_role("button", name="Clear progress").click()
    expect(quiz.get_by_role("button", name="Finish")).to_be_attached()


def test_a_wrong_answer_links_to_its_lesson(open_page: OpenPage) -> None:
    page = open_page("/learn?test=after&lessons=scaling.masks")
    quiz = page.get_by_test_id("quiz")
    choose(quiz, [UNKNOWN] * 10)
    quiz.get_by_role("button", name="Finish").click()
    # The class has two lessons of those that teach the ten.
    expect(quiz.get_by_role("link")).to_have_count(2)
    link = quiz.get_by_role("link").first
    assert re.search(r"lesson=scaling", link.get_attribute("href") or "") and "test=" not in (
        link.get_attribute("href") or ""
    )
    link.click()
    expect(page.locator("[aria-current=page]", has_text=LESSONS["scaling"].title)).to_be_visible()
    assert "test=" not in page.url


def test_on_a_phone_options_open_it_and_another_language_keeps_the_answers(open_page: OpenPage, idle: Idle) -> None:
    page = open_page("/learn?lesson=scores", width=390, height=844)
    page.get_by_role("button", name=re.compile("^Sentence and lesson")).click()
    page.get_by_role("button", name="Options", exact=True).click()
    page.get_by_role("button", name="Test before the course").click()
    quiz = page.get_by_test_id("quiz")
    expect(page.get_by_role("heading", level=1)).to_have_text("Test before the course")
    expect(page.get_by_test_id("progress")).to_be_hidden()
    choose(quiz, BEFORE[:4])
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.get_by_role("button", name="Options", exact=True).click()
    page.get_by_role("combobox", name=re.compile("Language$")).click()
    page.get_by_role("option", name="Deutsch").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Test vor dem Kurs")
    expect(quiz.locator("legend").first).to_contain_text("Warum")
    assert [one.get_attribute("value") for one in quiz.locator(":checked").all()] == BEFORE[:4]


def test_the_page_gives_right_answers_after_the_course_only_and_names_another_part() -> None:
    screen = Screen().open("/learn?test=before&student=7&lessons=scores.masks")
    sent = screen.channel("learn", "quiz")
    assert sent["lessons"] == ["scores", "masks"]
    assert sent["whose"] == {"language": "en", "course": {"lessons": ["scores", "masks"], "student": 7}}
    assert not any("right" in one for one in sent["questions"])
    assert "# Test before the course" in screen.words and LESSONS["scores"].idea not in screen.words
    entries = screen.channel("learn", "lessons")
    assert [one["name"] for one in entries["lessons"]] == ["before", "scores", "masks", "after"]
    assert entries["current"] == "before"
    screen.press("Next →")
    assert "test" not in screen.address and screen.address["lesson"] == "scores"
    sent = Screen().open("/learn?test=after").channel("learn", "quiz")
    assert [one["right"] for one in sent["questions"]] == [one.right for one in QUIZ]
    (warning,) = Screen().open("/learn?test=during").warnings
    assert "test “during”" in warning and "off, before, after" in warning
