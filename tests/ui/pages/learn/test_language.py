"""The Learn page in another language: by its address, by the browser, and by hand; and what it forgot to translate."""

import re
from collections.abc import Callable
from urllib.parse import quote_plus

import pytest
from playwright.sync_api import Browser, Page, expect

from attention_viz.lesson import LESSONS
from attention_viz.lesson.translation import in_language, translate
from tests.conftest import OpenPage
from tests.pages import Server, wait_until_drawn
from tests.ui.screens import WIDGETS, WORDS, Screen

Idle = Callable[[Page], None]
TEXT = "The bank of the river was flooded"


def pieces(screen: Screen) -> set[str]:
    """Every text on the page: labels of widgets and menus, and lines of what is written."""
    found = [*screen.menus, *(str(one.label) for one in screen.all(*WIDGETS))]
    for one in screen.all(*WORDS, "info", "warning", "success"):
        if not str(one.value).startswith("<style"):
            found += re.sub(r"<[^>]*>|[*#\\]", "", str(one.value)).splitlines()
    for name in ("lessons", "predict"):
        channel = screen.channel("learn", name)
        found += [str(one) for one in (channel.get("label"), *channel.get("words", {}).values())]
        found += [str(one["title"]) for one in channel.get("lessons", ())]
    return {" ".join(one.split()) for one in found}


@pytest.fixture(scope="module")
def frame() -> set[str]:
    """What each page of the app has around its own part, in English."""
    return pieces(Screen().open(f"/?text={quote_plus(TEXT)}"))


def shared(name: str, more: str, frame: set[str]) -> set[str]:
    """What the page shows alike in both languages, without the app's frame, tokens and numbers."""
    address = f"/learn?lesson={name}&text={quote_plus(TEXT)}{more}"
    english, german = (pieces(Screen().open(f"{address}&lang={code}")) for code in ("en", "de"))
    data = re.compile(r"[^\W\d_]{4,}")
    alike = {one for one in english & german if data.search(one)} - frame
    titles = {translate(lesson.title) for lesson in LESSONS.values()}
    with in_language("de"):
        same = titles & {translate(lesson.title) for lesson in LESSONS.values()}
    alike = {one for one in alike if not one.startswith("$$")}
    return {one for one in alike if one not in TEXT and not any(one.endswith(title) for title in same)}


@pytest.mark.parametrize(("name", "more"), [("scores", ""), ("scores", "&guess=shown"), ("masks", "&answers=on")])
def test_every_label_of_the_page_has_both_languages(name: str, more: str, frame: set[str]) -> None:
    assert not sorted(shared(name, more, frame))


def test_a_language_is_chosen_by_hand_and_kept_by_links() -> None:
    screen = Screen().open(f"/learn?lesson=scores&guess=shown&text={quote_plus(TEXT)}")
    assert "lang" not in screen.address
    screen.picker("Your answer").set_value("999")
    screen.press("Check")
    assert "Not yet." in screen.words
    screen.pick("Language", "de")
    assert screen.address["lang"] == "de"
    assert "Noch nicht." in screen.words and "Du hast 999 geantwortet" in screen.words
    assert screen.picker("Deine Antwort").value == "999"
    screen.pick("Sprache", "en")
    assert screen.address["lang"] == "en" and "Not yet." in screen.words


def test_an_option_that_was_chosen_stays_chosen_in_another_language() -> None:
    screen = Screen().open(f"/learn?lesson=heads&guess=shown&lang=de&text={quote_plus(TEXT)}")
    screen.picker("Deine Antwort").set_value(0)
    screen.press("Prüfen")
    german = "Richtig." in screen.words, "Noch nicht." in screen.words
    screen.pick("Sprache", "en")
    assert (("Right." in screen.words), ("Not yet." in screen.words)) == german and any(german)


def test_a_language_that_the_course_lacks_is_named() -> None:
    (warning,) = Screen().open("/learn?lang=fr&lesson=scores").warnings
    assert "lang “fr”" in warning and "en and de" in warning and "the browser’s language" in warning


def test_the_address_sets_the_language_of_the_page_and_its_verdict(open_page: OpenPage, idle: Idle) -> None:
    page = open_page("/learn?lang=de&lesson=scores&guess=shown")
    expect(page.locator(".st-key-learn-body")).to_have_attribute("lang", "de")
    exercise = page.locator(".st-key-learn-step-exercise")
    exercise.get_by_label("Deine Antwort").fill("999")
    exercise.get_by_role("button", name="Prüfen", exact=True).click()
    idle(page)
    expect(page.get_by_test_id("stAlert")).to_contain_text("Noch nicht.")
    expect(page.get_by_test_id("stAlert")).to_contain_text("Du hast 999 geantwortet")


@pytest.mark.parametrize(("locale", "button"), [("de-AT", "Weiter →"), ("fr-FR", "Next →"), ("en-US", "Next →")])
def test_the_browsers_language_is_taken_if_the_course_has_it(
    browser: Browser, app_server: Server, idle: Idle, locale: str, button: str
) -> None:
    context = browser.new_context(locale=locale, viewport={"width": 1360, "height": 860})
    try:
        page = context.new_page()
        page.goto(f"{app_server.address}/learn?lesson=scores")
        wait_until_drawn(page, idle)
        expect(page.get_by_role("button", name=button, exact=True)).to_be_visible()
        assert "lang=" not in page.url
    finally:
        context.close()
