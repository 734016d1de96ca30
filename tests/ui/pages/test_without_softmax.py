"""The pages of a model without any softmax attention: the toy Mamba-2 that ships."""

from functools import cache

import pytest

import attention_viz as av
from tests.shipped import shipped
from tests.ui.screens import Screen

TEXT = "hugo pink , ida gold , karl white , ida black . ida ?"
ADDRESS = f"?model=recall-mamba&text={TEXT.replace(' ', '+').replace(',', '%2C').replace('?', '%3F')}"


@cache
def trace() -> av.Trace:
    return shipped("recall-mamba").trace(TEXT)


def test_explore_draws_the_mixers_and_predicts_the_next_token() -> None:
    screen = Screen().open(f"/{ADDRESS}&layer=1&head=1")
    assert not screen.alerts and "Stream" not in [one.label for one in screen.app.selectbox]
    assert "Next token" in screen.words
    likely = shipped("recall-mamba").candidates(trace(), -1, 1)
    assert f"“{likely.token[0]}”" in screen.words
    assert "Evict old keys" not in [one.label for one in screen.app.toggle]


@pytest.mark.parametrize("page", ["/heads", "/compare", "/masks", "/steps", "/why"])
def test_pages_of_heads_show_a_model_without_a_softmax(page: str) -> None:
    screen = Screen().open(f"{page}{ADDRESS}")
    assert not screen.alerts and not screen.app.exception


def test_cross_attention_says_that_there_is_no_softmax_attention() -> None:
    screen = Screen().open(f"/cross{ADDRESS}")
    assert any("Cross-attention needs softmax attention" in one for one in screen.written)
    linked = [one.proto.label for one in screen.all("page_link")]
    assert linked[-2:] == ["Explore", "Step by step"] and "Stay on Cross-attention with translation" in [
        one.label for one in screen.app.button
    ]


def test_the_url_holds_what_is_shown_of_a_mixer() -> None:
    screen = Screen().open(f"/{ADDRESS}&mixing=arrived&channels=one")
    assert (screen.address["mixing"], screen.address["channels"]) == ("arrived", "one")
    screen = Screen().open(f"/{ADDRESS}&mixing=sums")
    assert "mixing" not in screen.address
    assert any("mixing “sums”" in warning for warning in screen.warnings)
