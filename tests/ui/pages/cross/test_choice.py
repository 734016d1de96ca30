"""What the Cross-attention page decides: what is said, by which numbers, and what the address keeps."""

import functools
import html
import re

import pytest

from attention_viz.trace.trace import Trace
from tests.shipped import shipped
from tests.ui.screens import Screen

SENTENCE = "the tired girl finds the red key"
FRENCH = "la fille fatiguée trouve la clé rouge"
TRANSLATION = "/cross?model=translation&text=the+tired+girl+finds+the+red+key&layer=0&head=1&target="


@functools.cache
def translated(text: str = SENTENCE, target: str | None = None) -> Trace:
    return shipped("translation").trace(text, target=target)


@pytest.fixture(scope="module")
def screen() -> Screen:
    """One visitor, who looks at one thing after the other."""
    return Screen().open("/cross")


def source(screen: Screen) -> str:
    """What the page writes as HTML, its style left out."""
    return "\n".join(one.value for one in screen.all("html") if not one.value.startswith("<style"))


def said(screen: Screen) -> str:
    (found,) = re.findall(r'data-testid="said">(.*?)</span>', source(screen))
    return html.unescape(found)


def test_the_example_is_translated_right_and_its_head_takes_every_word_from_the_right_one(screen: Screen) -> None:
    screen.back_to("/cross")
    assert "<b>Output</b>" in source(screen) and said(screen) == FRENCH
    from_places = [0, 2, 1, 3, 4, 6, 5]  # two adjectives stand after their nouns
    weights = translated().weights(0, 1, "cross")[: len(from_places)]
    assert weights.argmax(-1).tolist() == from_places and float(weights.amax(-1).min()) > 0.99
    assert screen.weights() == pytest.approx(translated().weights(0, 1, "cross").numpy(), abs=1e-6)


def test_another_head_is_shown_by_its_own_numbers(screen: Screen) -> None:
    screen.back_to(TRANSLATION).pick("Head", 2)
    assert screen.weights() == pytest.approx(translated().weights(0, 2, "cross").numpy(), abs=1e-6)
    assert screen.channel("explorer")["head"] == 2 and screen.address["head"] == "2"


def test_what_it_is_told_to_say_names_the_rows(screen: Screen) -> None:
    target = "la fille vend la clé"
    screen.back_to(TRANSLATION).pick("Target", target)
    assert "<b>Target</b>" in source(screen)
    assert screen.address["target"] == target
    expected = translated(SENTENCE, target).weights(0, 1, "cross").numpy()
    assert screen.weights() == pytest.approx(expected, abs=1e-6)
    assert said(screen.pick("Target", "")) == FRENCH


def test_a_link_reproduces_the_screen(screen: Screen) -> None:
    screen.back_to(TRANSLATION)
    screen.pick("Sentence", "the girl sees a red house").pick("Target", "la fille voit une maison").pick("Head", 3)
    again = Screen().open("/cross?" + "&".join(f"{name}={value}" for name, value in screen.address.items()))
    assert again.weights() == pytest.approx(screen.weights())
    assert said(again) == "la fille voit une maison"
    assert again.picker("Sentence").value == "the girl sees a red house"
    assert again.channel("explorer") == screen.channel("explorer")
    assert again.channel("explorer")["head"] == 3
    assert again.address == screen.address


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("/cross?text=", "the text is empty"),
        ("/cross?target=" + "cl%C3%A9+" * 60, "the model can generate at most 32"),
        ("/?model=translation&text=the+wizard", "doesn't know 1 word of the sentence"),
        ("/?model=coreference&text=the+wizard", "and reads “[UNK]” (unknown) instead"),
        ("/cross?text=the+boy+is+a+wizard+%F0%9F%91%A9", "doesn't know 2 words of the sentence"),
        ("/cross?text=the+boy&target=le+wizard", "doesn't know 1 word of the target"),
        ("/cross?text=" + "the+boy+" * 180, "reads at most 32"),
        ("/cross?layer=99", "layer “99”"),
        ("/cross?head=4", "head “4”"),
        ("/cross?stream=foo", "stream “foo”"),
    ],
)
def test_what_cannot_be_had_is_told_in_words(screen: Screen, address: str, told: str) -> None:
    screen.back_to(f"{address}{'' if 'model=' in address else '&model=translation'}")
    assert any(told.lower() in one.lower() for one in screen.alerts)


def test_words_are_written_as_words_whatever_they_are_made_of(screen: Screen) -> None:
    markup = "<img src=x onerror=document.title='x'> <b>the</b> $x$ :red[y] 👩‍👩‍👧"
    screen.back_to(TRANSLATION).pick("Sentence", markup).pick("Target", f"la {markup}"[:60])
    assert said(screen).startswith("la <img src=x")
    assert "<img" not in source(screen) and "<b>the" not in source(screen)
    assert screen.channel("explorer")


def test_another_model_is_told_in_words_and_loses_nothing(screen: Screen) -> None:
    screen.back_to("/cross?model=all-MiniLM-L6-v2&text=my+own+words&target=")
    assert any("translation (a toy encoder–decoder)" in one for one in screen.alerts)
    assert screen.picker("Sentence").value == "my own words"
    assert not screen.channel("explorer")
    assert said(screen.press("Show translation")) == FRENCH
