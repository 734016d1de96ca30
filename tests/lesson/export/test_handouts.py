"""Lessons on paper: each fits its pages, blank sheets give nothing away, and a reader's words stay words."""

import html
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from attention_viz.errors import AttentionVizError
from attention_viz.lesson import EXERCISES, LESSONS, Scene
from attention_viz.lesson.export.handouts import PAPERS, paper
from attention_viz.lesson.scene import RunText

TEXT = "The bank of the river was flooded"
# A4 without its margins, in pixels of paper.
WIDTH, HEIGHT = 178 / 25.4 * 96, 269 / 25.4 * 96
# An exercise of a dozen runs each, and times that are measured.
SLOW = ("matters", "head")
Printed = Callable[[str], list[float]]


@pytest.fixture
def printed(browser: Browser, tmp_path: Path) -> Printed:
    """Returns each lesson's height on paper, in pages, from a file with the network cut off."""

    def measure(markup: str) -> list[float]:
        file = tmp_path / "paper.html"
        file.write_text(markup, encoding="utf-8")
        page = browser.new_page(viewport={"width": round(WIDTH), "height": round(HEIGHT)}, offline=True)
        problems = list[str]()
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda message: problems.append(message.text))
        page.on("request", lambda one: None if one.url.startswith(("file:", "data:")) else problems.append(one.url))
        try:
            page.emulate_media(media="print")
            page.goto(file.as_uri())
            expect(page.locator(".figure:not(:has(svg))")).to_have_count(0)
            heights = page.locator("article").evaluate_all("all => all.map(one => one.getBoundingClientRect().height)")
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        finally:
            page.close()
        assert not problems
        return [height / HEIGHT for height in heights]

    return measure


def test_a_handout_takes_two_pages_at_most_and_a_worksheet_one(run: RunText, printed: Printed) -> None:
    names = [name for name, lesson in LESSONS.items() if lesson.exercise not in SLOW]
    scene = Scene(TEXT, run)
    for kind, most in (("handout", 2), ("worksheet", 1)):
        heights = printed(paper(kind, names, scene, 3))
        assert len(heights) == len(names)
        assert not {name: height for name, height in zip(names, heights, strict=True) if height > most}
    # All answers take less than a third of a page each.
    assert sum(printed(paper("answers", names, scene, 3))) < len(names) / 3


@pytest.mark.parametrize("name", ["scores", "heads", "masks"])
def test_a_worksheet_asks_all_and_gives_no_answer_away(name: str, run: RunText) -> None:
    scene, lesson = Scene(TEXT, run), LESSONS[name]
    exercise, ask = EXERCISES[lesson.exercise].make(scene, 3), lesson.ask(scene)
    blank, answers = (paper(kind, [name], scene, 3) for kind in ("worksheet", "answers"))
    for told in (exercise.working, ask.finding):
        assert told in _words(answers)
        assert told not in _words(blank)
    assert all(table.title in _words(blank) for table in exercise.given)
    assert all(option in _words(blank) for option in ask.options)


@pytest.mark.parametrize("kind", PAPERS)
def test_a_readers_words_stay_words(kind: str, run: RunText, printed: Printed) -> None:
    hostile = "<img src=x onerror=alert(1)> </script> {{ title }} $x$ \u2028 bank"
    markup = paper(kind, ["scores", "plain"], Scene(hostile, run), 0)
    assert "<img src=x" not in markup and "&lt;" in markup
    assert len(re.findall("</script>", markup)) == len(re.findall("<script>", markup))
    assert len(printed(markup)) == 2


def test_what_there_isnt_is_refused_by_name(run: RunText) -> None:
    scene = Scene(TEXT, run)
    with pytest.raises(AttentionVizError, match="unknown kind of paper 'poster'; choose handout, worksheet, answers"):
        paper("poster", ["scores"], scene, 0)
    with pytest.raises(AttentionVizError, match="unknown lesson 'magic'; choose from why"):
        paper("handout", ["magic"], scene, 0)


def test_a_lesson_that_cant_be_shown_says_why_and_the_others_are_there(run: RunText) -> None:
    def broken(model: str, text: str, **more: object) -> object:
        raise AttentionVizError("the model isn't here")

    markup = paper("handout", ["scores", "cost"], Scene(TEXT, broken), 0)  # pyright: ignore[reportArgumentType] -- it raises
    assert "the model isn&#39;t here" in markup
    assert LESSONS["cost"].title in markup


def _words(markup: str) -> str:

    body = markup[markup.index("<main>") : markup.index("</main>")]
    return " ".join(html.unescape(re.sub(r"<[^>]+>", "", body)).split())
