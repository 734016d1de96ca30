"""What a visitor without a browser makes of the parts of a page, and what many at once have found."""

import asyncio
import random
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from streamlit.proto.Alert_pb2 import Alert
from streamlit.proto.Delta_pb2 import Delta

import attention_viz as av
from attention_viz.inputs.media.picture import Picture
from attention_viz.inputs.media.sound import Sound
from benchmarks.classroom import sentences
from benchmarks.crowd import texts
from benchmarks.errands import first_errand, word_of
from benchmarks.soak import Soak, others, soak, verdicts
from benchmarks.visitor import Answer, Visitor
from tests.shipped import load_once


def test_an_error_on_a_page_is_heard_and_a_hint_is_none() -> None:
    visitor, error, hint, crash = Visitor("http://127.0.0.1:1", {}), Delta(), Delta(), Delta()
    error.new_element.alert.body, error.new_element.alert.format = "This can't be shown", Alert.ERROR
    hint.new_element.alert.body, hint.new_element.alert.format = "Type a word", Alert.INFO
    crash.new_element.exception.type, crash.new_element.exception.message = "KeyError", "lesson"
    heard = [visitor._read(delta) for delta in (error, hint, crash)]  # pyright: ignore[reportPrivateUsage]
    assert heard == [["This can't be shown"], [], ["KeyError: lesson"]]


def test_only_a_button_that_can_be_pressed_is_offered() -> None:
    visitor = Visitor("http://127.0.0.1:1", {})
    for label, disabled in (("Next", False), ("Back", True)):
        delta = Delta()
        delta.new_element.button.label, delta.new_element.button.disabled = label, disabled
        visitor._read(delta)  # pyright: ignore[reportPrivateUsage]
    assert visitor.offers("Next")
    assert not visitor.offers("Back")


def test_answers_are_given_in_the_boxes_that_a_page_has() -> None:
    visitor, typed, chosen, reply = Visitor("http://127.0.0.1:1", {}), Delta(), Delta(), Delta()
    typed.new_element.text_input.label, typed.new_element.text_input.id = "A number", "box"
    chosen.new_element.radio.label, chosen.new_element.radio.id = "One of these", "list"
    chosen.new_element.radio.options.extend(["first", "second"])
    reply.new_element.alert.body = "**Not yet.** 1 + 1 = 2"
    for delta in (typed, chosen, reply):
        visitor._read(delta)  # pyright: ignore[reportPrivateUsage]
    given = {label: (box.id, box.string_value) for label, box in visitor._boxes.items()}  # pyright: ignore[reportPrivateUsage]
    assert given == {"A number": ("box", "1"), "One of these": ("list", "first")}
    assert visitor.was_told("**Not yet.**")
    assert not visitor.was_told("**Right.**")


async def _brings_in_vain() -> Answer:
    return await Visitor("http://127.0.0.1:1", {}).upload("A file", "mine.png", b"")


def test_a_page_without_the_field_is_an_error_of_that_page() -> None:
    with ThreadPoolExecutor(1) as other:  # as below
        assert other.submit(lambda: asyncio.run(_brings_in_vain())).result().errors == (
            "the page has no field to bring mine.png",
        )


def test_pandas_is_there_before_anything_can_be_drawn() -> None:
    # Thirty visitors found it: Plotly fails on a pandas that another thread is just loading.
    import pandas

    import attention_viz.trace.trace

    # Of which a trace is one, so that it is loaded with it.
    assert any(
        vars(sys.modules[one.__module__]).get("pandas") is pandas for one in attention_viz.trace.trace.Trace.mro()
    )


def test_no_two_visitors_have_the_same_sentence() -> None:
    assert len(set(sentences())) == 30


def test_what_is_said_of_what_is_under_way_is_kept() -> None:
    visitor, waiting, other = Visitor("http://127.0.0.1:1", {}), Delta(), Delta()
    waiting.new_element.html.body = (
        '<p class="waiting" role="status">Others were first: 3 runs are before this one.</p>'
    )
    other.new_element.html.body = "<p>Others</p>"
    visitor._read(waiting)  # pyright: ignore[reportPrivateUsage]
    visitor._read(other)  # pyright: ignore[reportPrivateUsage]
    assert visitor.waiting == [waiting.new_element.html.body]


def test_no_two_of_a_crowd_have_the_same_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(av, "load", load_once)
    found = texts(30, 300)
    assert len(set(found)) == 30


def test_a_word_that_somebody_else_typed_is_told_from_one_s_own() -> None:
    content = f"The {word_of(3, 1)} and the {word_of(12, 4)}".encode()
    assert others(content, 3) == {12}
    assert others(content, 12) == {3}
    assert others(f"only {word_of(3, 1)}".encode(), 3) == set()
    assert others(content, 1) == {3, 12}


def test_a_soak_fails_by_an_error_a_mixed_up_word_or_memory_that_grows() -> None:
    answers = {"Explore": [Answer(1.0, (), 10)]}
    steady, growing = ([(float(second), size(second)) for second in range(1800)] for size in (lambda _: 500.0, float))
    assert [reached for reached, _ in verdicts(Soak(answers, memory=steady), 30)] == [True, True, True, True]
    assert [reached for reached, _ in verdicts(Soak(answers, memory=growing), 30)] == [True, True, True, False]
    mixed, wrong = Soak(answers, ["a word of 1 was shown to 2"]), Soak({"Explore": [Answer(1.0, ("KeyError",), 10)]})
    left = Soak(answers, remaining=["3 bytes of uploads in memory"])
    found = [[reached for reached, _ in verdicts(one, 1)] for one in (wrong, left, mixed)]
    assert found == [[False, True, True], [True, False, True], [True, True, False]]


def test_what_visitors_bring_is_each_one_s_own_and_can_be_opened(tmp_path: Path) -> None:
    brought = [first_errand(random.Random(one), one).file for one in range(3)]
    assert [file and file.kind for file in brought] == ["trace", "picture", "sound"]
    for number, file in enumerate(brought):
        assert file is not None
        assert file.name.startswith(word_of(number, 1))
        path = tmp_path / file.name
        path.write_bytes(file.content)
        thing = {"trace": av.Trace.load, "picture": Picture, "sound": Sound}[file.kind](path)
        if isinstance(thing, av.Trace):
            assert word_of(number, 1) in (thing.provenance.text or "")
    contents = {file.content for file in brought if file is not None}
    again = [first_errand(random.Random(one + 9), one).file for one in (1, 2)]
    assert len(contents | {file.content for file in again if file is not None}) == 5


def test_visitors_come_and_go_for_a_while_without_an_error_or_a_word_of_another() -> None:
    # In a thread of its own, since a browser that other tests left open has its loop in this one.
    with ThreadPoolExecutor(1) as other:
        found = other.submit(soak, 0.2, 3, kept=1).result()
    assert found.errors == []
    assert found.mixed == []
    assert found.brought >= 3, "a trace, a picture and a sound"
    assert found.remaining == [], "nothing of them stays"
    assert sum(map(len, found.answers.values())) >= 3
    assert found.memory[-1][1] > 100
