"""Whatever a page's address holds, the page is shown: what it can't have is said in words, and no error is."""

import functools
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attention_viz.ui.address.kinds import OneOf
from tests.fuzz.settings import examples
from tests.fuzz.test_words import VALUES
from tests.ui.pages.test_addresses import declared
from tests.ui.screens import PAGES, Screen

pytestmark = pytest.mark.usefixtures("unchecked_module")

# Models that run at once, of each kind there is among those: what is asked is the page, and not the run.
_MODELS = ("scratch", "induction", "coreference", "translate", "nothing")


@pytest.fixture(scope="module")
def screen() -> Screen:
    """One visitor, who goes from address to address."""
    return Screen().open("/?model=scratch&text=the+cat+sat")


def asked_of(one: Any) -> st.SearchStrategy[str]:
    """What an address may say of a parameter: most often what there is."""
    there = one.kind.options if isinstance(one.kind, OneOf) else None
    some = st.sampled_from(sorted(there)) if isinstance(there, tuple) and there else st.integers(0, 5).map(str)
    return some | VALUES


@functools.cache
def asked_of_page(path: str) -> dict[str, st.SearchStrategy[str]]:
    """The same by parameter, once for all examples: what there is may change with what a page shows."""
    return {one.name: asked_of(one) for one in declared(path)}


@pytest.mark.parametrize("path", PAGES)
@examples(2)
@given(data=st.data())
def test_any_address_of_a_page_shows_the_page(path: str, screen: Screen, data: st.DataObject) -> None:
    asked = {
        "model": data.draw(st.sampled_from(_MODELS)),
        "text": data.draw(st.sampled_from(["the cat sat", "frog ring", ""])),
    }
    others = asked_of_page(path)
    names = [name for name in others if name not in asked]
    for name in data.draw(st.lists(st.sampled_from(names), max_size=5, unique=True)):
        asked[name] = data.draw(others[name])
    screen.back_to(f"{path}?{urlencode(asked, errors='replace')}")
    assert all(screen.warnings)
