"""What the course reads of addresses, and of texts, and writes back; no browser is asked."""

import re

import pytest

from attention_viz.lesson.exercise import Table
from attention_viz.ui.address.codec import read, write
from attention_viz.ui.pages.learn.exercise import answer_key, table_html
from attention_viz.ui.pages.learn.page import LEARN_CHOICES, LearnChoice, begun, lesson_names
from attention_viz.ui.pages.learn.steps import term
from attention_viz.ui.parts.exports import link
from attention_viz.ui.presenting.button import presented
from attention_viz.ui.selection import PageOpened, Picked, Selection, answer, update

LESSONS = ("why", "vectors", "plain")


@pytest.mark.parametrize(
    "choice",
    [
        LearnChoice(lesson="why"),
        LearnChoice(lesson="plain", choice="3", notation="columns", done=("why", "plain"), exercise_seed=7),
        LearnChoice(lesson="vectors", answers="0123456789abcdef"),
        LearnChoice(lessons=("plain", "why"), lesson="plain", exercise_seed=703, student=7),
    ],
)
def test_what_an_address_says_is_what_was_chosen(choice: LearnChoice) -> None:
    assert read(LearnChoice(), write(choice), LESSONS) == (choice, [])


def test_what_an_address_asks_for_and_cant_have_is_told_and_the_rest_is_kept() -> None:
    asked = {
        "lesson": "magic",
        "notation": "keys down",
        "student": "100",
        "done": "plain.magic.why",
        "choice": "5" * 99,
    }
    choice, notices = read(LearnChoice(), asked, LESSONS)
    assert choice == LearnChoice(lesson="why", choice="5" * 40, done=("why", "plain"))
    assert [notice.split("“")[1].split("”")[0] for notice in notices] == ["magic", "keys down", "magic", "100"]
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


def test_a_class_has_its_lessons_in_its_order_and_each_student_seeds_of_their_own() -> None:
    asked = {"lessons": "plain.magic.why.plain", "lesson": "vectors", "student": "7"}
    choice, notices = read(LearnChoice(), asked, LESSONS)
    assert lesson_names(choice) == ("plain", "why") and choice.lesson == "plain"
    assert [re.findall("“(.*?)”", one)[0] for one in notices] == ["magic", "vectors"]
    assert "Allowed here: plain and why" in notices[1]
    assert lesson_names(LearnChoice())[0] == "why" and len(lesson_names(LearnChoice())) > 20


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
