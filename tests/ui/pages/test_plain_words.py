"""What pages say where there is little to show: nothing that nobody asked for, and every number in words."""

import pytest

from tests.ui.screens import Screen


@pytest.fixture(scope="module")
def screen() -> Screen:
    """One visitor, who looks at one page after the other."""
    return Screen()


def said(screen: Screen) -> str:
    kinds = ("markdown", "caption", "info", "warning", "error")
    return "\n".join(one.value for kind in kinds for one in screen.app.get(kind)).replace("\\", "")


def test_a_single_token_is_met_with_no_complaint_about_words_that_nobody_typed(screen: Screen) -> None:
    screen.back_to("/heads?model=scratch&text=The&layer=0&head=0")
    assert "river" not in said(screen)
    assert "Type the word that looks and the word that it looks at." in said(screen)
    (numbers,) = [one.value for one in screen.app.dataframe if "entropy" in one.value]
    assert not numbers.isna().all().any(), "no column of nothing"
    assert "Nothing in this text has what" in said(screen)


def test_words_that_were_typed_are_looked_for_though_the_text_lacks_them(screen: Screen) -> None:
    screen.back_to("/heads?model=scratch&text=The&layer=0&head=0&query_word=boat&key_word=The")
    assert "boat" in said(screen)


def test_a_window_says_what_its_width_means(screen: Screen) -> None:
    screen.back_to("/masks?model=coreference&mask=window&window=2")
    assert "itself and the one on each side" in [one.value for one in screen.app.caption]


def test_of_a_model_without_moments_of_training_none_can_be_picked(screen: Screen) -> None:
    screen.back_to("/compare?what=snapshots&model=coreference")
    assert not [one for one in screen.app.get("select_slider") if one.label == "Checkpoint"]
    screen.back_to("/compare?what=snapshots&model=induction&layer=1&head=1")
    assert [one for one in screen.app.get("select_slider") if one.label == "Checkpoint"]


def test_what_enters_a_later_layer_is_called_hidden_states(screen: Screen) -> None:
    screen.back_to("/steps?model=coreference&step=embeddings&layer=0")
    assert "hidden states" not in said(screen)
    screen.back_to("/steps?model=coreference&step=embeddings&layer=1")
    assert "hidden states" in said(screen)


def test_a_text_too_long_for_a_link_is_said_whole(screen: Screen) -> None:
    screen.back_to("/?model=coreference&text=The+bank")
    screen.pick("Sentence", "bank " * 900)
    assert "A link leaves this text out: it is too long." in screen.words
    assert "text" not in screen.address


def test_line_breaks_at_the_end_of_a_text_never_reach_the_address(screen: Screen) -> None:
    screen.back_to("/?model=coreference&text=The+bank")
    screen.pick("Sentence", "The river\n\n")
    assert screen.address["text"] == "The river"
