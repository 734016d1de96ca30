"""The lines that tell what the chosen head writes: on Explore, Heads and Why, where there is something to tell."""

import pytest

import attention_viz as av
from attention_viz.circuits.next_word import next_word_effects
from attention_viz.trace.spelling import SPACE
from tests.shipped import MINILM, shipped
from tests.ui.screens import Screen

TOY = "model=induction&text=moon+cheese+frog+ring+moon&layer=1&head=1"


def told(position: int) -> tuple[list[str], list[str]]:
    """The words as `av.writes` says."""
    model = shipped("induction")
    trace = model.trace("moon cheese frog ring moon")
    found = av.writes(model, trace, 1, 1, position, 3)["token"].tolist()
    words = [trace.query_tokens().write(token).strip(f"{SPACE} ") for token in found]
    return words[:3], words[:2:-1]


def written(promoted: list[str], suppressed: list[str]) -> str:
    one, other = (", ".join(f"“{word}”" for word in words) for words in (promoted, suppressed))
    return f"Promotes: {one}  \nSuppresses: {other}"


def lines(screen: Screen) -> str:
    (line,) = [caption.value for caption in screen.app.caption if "Promotes" in caption.value]
    return line.replace("\\", "")


def test_explore_and_heads_tell_which_words_the_chosen_head_writes_for() -> None:
    words = written(*told(-1))
    # The same number as in a finding of that head.
    known = next_word_effects(shipped("induction").trace("moon cheese frog ring moon"), 5)
    assert known is not None
    effect = f"{known.heads['decoder', 1, 1]:+.2f}".replace("-", "−")
    on = f"After “moon₂”, on “{known.word}” over “{known.rival}”"
    expected = f"{on}: {effect}. Largest effects on all words:  \n{words}"
    assert lines(Screen().open(f"/?{TOY}")) == expected
    pair = "query=5&key=2"
    assert lines(Screen().open(f"/heads?{TOY}&{pair}")) == expected
    there = lines(Screen().open(f"/heads?{TOY}&query=3&key=2"))
    assert there.startswith("After “frog”, on ") and there.endswith(written(*told(3)))


def test_why_tells_them_of_the_next_word_and_not_of_a_score() -> None:
    screen = Screen().open(f"/why?{TOY}")
    promoted, suppressed = told(-1)
    assert screen.channel("why-board", "writes")["writes"] == [promoted, suppressed]
    screen = Screen().open(f"/why?{TOY}&why=pair&query=5&key=2")
    assert not screen.channel("why-board", "writes")


@pytest.mark.parametrize("stream", ["cross", "decoder"])
def test_of_an_encoder_decoder_they_are_told_of_what_it_says(stream: str) -> None:
    address = f"model=translation&text=the+red+house&layer=0&head=0&stream={stream}"
    assert lines(Screen().open(f"/?{address}")) == lines(Screen().open(f"/heads?{address}"))


@pytest.mark.parametrize(
    "asked",
    [f"model={MINILM}&text=the+cat", "model=scratch&text=the+cat", "model=translation&text=the+cat&stream=encoder"],
)
@pytest.mark.parametrize("path", ["/", "/heads"])
def test_there_are_none_where_rows_choose_no_word(path: str, asked: str) -> None:
    screen = Screen().open(f"{path}?{asked}")
    assert not screen.app.exception
    assert "Promotes" not in screen.words
