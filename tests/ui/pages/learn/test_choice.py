"""What the course reads of addresses, of texts and of files, and writes back; no browser is asked."""

import json

import pytest

from attention_viz.errors import AttentionVizError
from attention_viz.lesson.exercise import Table
from attention_viz.ui.address.codec import read, write
from attention_viz.ui.pages.learn.exercise import answer_key, table_html
from attention_viz.ui.pages.learn.page import (
    LEARN_CHOICES,
    LONGEST_FILE,
    LearnChoice,
    begun,
    read_progress,
)
from attention_viz.ui.pages.learn.steps import term
from attention_viz.ui.parts.exports import link
from attention_viz.ui.presenting.button import presented
from attention_viz.ui.selection import PageOpened, Picked, Selection, answer, update

LESSONS = ("why", "vectors", "plain")


@pytest.mark.parametrize(
    "choice",
    [
        LearnChoice("why"),
        LearnChoice("plain", "3", "columns", ("why", "plain"), 7, "off"),
        LearnChoice("vectors", "", "rows", (), 0, "on"),
    ],
)
def test_what_an_address_says_is_what_was_chosen(choice: LearnChoice) -> None:
    assert read(LearnChoice(), write(choice), LESSONS) == (choice, [])


def test_what_an_address_asks_for_and_cant_have_is_told_and_the_rest_is_kept() -> None:
    asked = {"lesson": "magic", "notation": "keys down", "answers": "1", "done": "plain.magic.why", "choice": "5" * 99}
    choice, notices = read(LearnChoice(), asked, LESSONS)
    assert choice == LearnChoice("why", "5" * 40, "rows", ("why", "plain"))
    assert [notice.split("“")[1].split("”")[0] for notice in notices] == ["magic", "keys down", "magic", "1"]
    assert all("Allowed here" in notice for notice in notices)


def test_a_link_that_asked_to_present_shows_the_first_slide() -> None:
    assert presented({"lesson": "why", "present": "on"}) == {"slide": "1.1"}
    assert presented({"present": "on", "slide": "2.1"}) == {"slide": "2.1"}
    assert presented({"present": "off"}) == presented({"slide": "<b>"}) == {}


def test_a_lesson_that_is_done_stays_done_at_the_next_run() -> None:
    selection = update(Selection(), PageOpened({"lesson": "plain", "done": "why"}, (LEARN_CHOICES,)))
    selection = answer(selection, LEARN_CHOICES, LESSONS)
    selection = update(selection, Picked(LEARN_CHOICES, {"done": ("why", "plain")}))
    selection = answer(update(selection, PageOpened({}, (LEARN_CHOICES,))), LEARN_CHOICES, LESSONS)
    assert selection.of(LEARN_CHOICES).done == ("why", "plain")
    assert selection.part(LEARN_CHOICES).written()["done"] == "why.plain"


@pytest.mark.parametrize("text", ["", "  \n", "\u200b"])
def test_an_empty_text_gives_way_to_an_example(text: str) -> None:
    read, said = begun(text, 24, "An example")
    assert read == "An example"
    assert "“An example”" in said


def test_a_text_is_read_up_to_so_many_words_and_no_further() -> None:
    assert begun("The cat sat.", 24, "x") == ("The cat sat.", "")
    assert begun("one  two, three four", 3, "x")[0] == "one two,"
    assert begun("語" * 30, 24, "x")[0].split() == ["語"] * 24
    assert len(begun("a" * 40_000, 24, "x")[0]) < 2_000
    assert "stays in the box" in begun("one two three", 2, "x")[1]


def test_progress_goes_into_a_file_and_comes_back() -> None:
    assert read_progress(json.dumps({"done": ["plain", "why"]}).encode(), LESSONS) == ("why", "plain")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"{", "valid JSON"),
        (b"\xff\xfe\x00", "valid JSON"),
        (b"[" * 9_000, "valid JSON"),
        (b"[]", "no list “done”"),
        (b'{"done": "why"}', "no list “done”"),
        (b'{"done": [1]}', "no list “done”"),
        (b'{"done": ["magic"]}', "unknown lesson 'magic'"),
        (b" " * (LONGEST_FILE + 1), "at most 10,000 bytes; this one has 10,001"),
    ],
)
def test_a_file_that_holds_no_progress_is_refused_by_reason(content: bytes, why: str) -> None:
    with pytest.raises(AttentionVizError, match=why):
        read_progress(content, LESSONS)


def test_a_link_leaves_out_what_the_address_carried() -> None:
    found = link("http://room:8501/learn?old=1", {"lesson": "why", "text": "a & b"})
    assert found == "http://room:8501/learn?lesson=why&text=a+%26+b"


def test_words_of_a_reader_are_text_in_a_table_and_a_meaning_is_none_in_a_term() -> None:
    table = table_html(Table("<i>", ("<b>x</b>",), ("&",), ((-0.5,),)))
    assert "<b>" not in table
    assert "&lt;b&gt;x&lt;/b&gt;" in table
    assert "<td>−0.5</td>" in table
    assert 'tabindex="0"' in term("a head", "One of <several>.")
    assert "One of &lt;several&gt;." in term("a head", "One of <several>.")


def test_another_sentence_or_seed_is_another_exercise() -> None:
    keys = {answer_key("score", text, seed) for text in ("a", "b", "\ud800") for seed in (0, 1)}
    assert len(keys) == 6
