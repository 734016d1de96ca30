"""Addresses in, and what a page decides out: every page's parameters, typed by hand, of before, and by Back."""

import importlib
import re
from pathlib import Path
from urllib.parse import quote_plus, urlencode

import pytest

from attention_viz.sources import of_text
from attention_viz.ui.address import State
from attention_viz.ui.address.codec import Parameter, parameters
from attention_viz.ui.address.kinds import OneOf, WholeNumber
from attention_viz.ui.address.titles import folder_of
from attention_viz.ui.parts.menu import UNLISTED
from tests.ui.screens import PAGES, ROOT, Screen

OWN = "model=scratch&text=the+cat+sat"
# Every link into the app that the documents name.
NAMED = sorted(
    {
        link
        for document in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("docs/*.ipynb"))
        for link in re.findall(r"(?:[`(\"]|:8501)(/[a-z]*\?[^`)\"\s]+)", document.read_text("utf-8"))
    }
)


def declared(path: str) -> list[Parameter]:
    """What a page keeps in the address, its own and what all pages share."""
    folder = folder_of(path.strip("/") or "explore")
    groups = importlib.import_module(f"attention_viz.ui.pages.{folder}.page").PAGE.groups
    found = {one.name: one for one in parameters(State)}
    found |= {one.name: one for group in groups for one in parameters(type(group.default))}
    return list(found.values())


@pytest.fixture(scope="module")
def screen() -> Screen:
    """One visitor, who goes from page to page and back."""
    return Screen().open(f"/?{OWN}")


def test_the_documents_name_addresses() -> None:
    assert any(link.startswith("/?") for link in NAMED) and any(link.startswith("/learn?") for link in NAMED)


@pytest.mark.parametrize("link", NAMED)
def test_an_address_that_a_document_names_opens_what_it_says(screen: Screen, link: str) -> None:
    address, asked = screen.back_to(link).address, Screen.parts(link)
    assert not screen.warnings
    assert asked.items() <= address.items()


@pytest.mark.parametrize("path", PAGES)
def test_whatever_an_address_asks_for_and_cant_have_is_told_once_and_the_page_is_shown(
    screen: Screen, path: str
) -> None:
    # What is no position is a word on the Heads page, as links of before have it.
    words = ("query", "key") if path == "/heads" else ()
    wrong = [one for one in declared(path) if isinstance(one.kind, OneOf | WholeNumber) and one.name not in words]
    # The other model is one that our own module's settings are known of.
    asked = {one.name: "<b>" for one in wrong} | {"model": "scratch", "text": "the cat sat"}
    screen.back_to(f"{path}?{urlencode(asked)}")
    # What may be a teacher's key isn't repeated.
    told = [re.match(r"The URL asks for (?:(\w+) “<b>”|a (key) that)", one) for one in screen.warnings]
    assert sorted(one[1] or one[2] for one in told if one) == sorted(one.name for one in wrong)
    assert "<b>" not in screen.address.values()
    assert not screen.back_to(f"{path}?{OWN}").warnings


# As the version before wrote them: the address, what is now written, and what a widget holds.
OLDER = {
    "/masks?model=all-MiniLM-L6-v2&text=The+bank&mask=padding&row=longer&second=A+boat": (
        {"mask": "padding", "row": "longer", "batch": "A boat"},
        {"Second sentence": "A boat"},
    ),
    f"/heads?{OWN}&metric=next&view=map&beside=previous&search=words&query=sat&key=cat&detector=previous": (
        {"query_word": "sat", "key_word": "cat", "search": "words", "metric": "next"},
        {"Query word": "sat", "Key word": "cat"},
    ),
    "/compare?model=induction&text=moon+cheese+moon&what=snapshots&step=425&other_step=500&metric=previous": (
        {"what": "snapshots", "moment": "425", "other_moment": "500", "metric": "previous"},
        {"Checkpoint": 425, "Second checkpoint": 500},
    ),
    "/learn?model=all-MiniLM-L6-v2&text=The+cat+sat&seed=7&lesson=scores&notation=columns&done=why": (
        {"lesson": "scores", "exercise_seed": "7", "notation": "columns", "done": "why"},
        {"Notation": "columns"},
    ),
}


@pytest.mark.parametrize("link", OLDER)
def test_a_link_of_before_opens_the_same_screen_and_is_written_anew(link: str) -> None:
    screen = Screen().open(link)
    written, held = OLDER[link]
    assert written.items() <= screen.address.items()
    assert not {"second", "query", "key", "step", "other_step"} & screen.address.keys()
    assert {label: screen.picker(label).value for label in held} == held
    assert not screen.warnings


@pytest.mark.parametrize(
    ("path", "first", "then"),
    [
        ("/", {"head": "0", "reading": "rollout"}, {"head": "1", "words": "on"}),
        ("/steps", {"step": "scores", "query": "2", "scale": "none"}, {"step": "weights", "key": "1"}),
        ("/masks", {"mask": "window", "window": "3", "in_head": "1"}, {"mask": "prefix", "prefix": "1"}),
        ("/masks", {"mask": "drawn", "cells": "3-eNoLAAAAQQBB"}, {"mask": "causal"}),
        (
            "/heads",
            {"view": "scatter", "texts": "a dog", "edits": "zero@0.1"},
            {"search": "detector", "metric": "next"},
        ),
        ("/compare", {"what": "heads", "other_head": "0"}, {"what": "edit", "edits": "mean@0.1;temp:0.5"}),
        ("/learn", {"lesson": "scores", "notation": "columns"}, {"lesson": "why", "exercise_seed": "3"}),
    ],
)
def test_back_and_forward_show_what_their_address_says(
    screen: Screen, path: str, first: dict[str, str], then: dict[str, str]
) -> None:
    one = screen.back_to(f"{path}?{OWN}&{urlencode(first)}").address
    assert first.items() <= one.items()
    other = screen.back_to(f"{path}?{OWN}&{urlencode(then)}").address
    assert then.items() <= other.items()
    assert not (first.keys() - then.keys()) & other.keys() or other != one
    assert screen.back_to(f"{path}?{urlencode(one)}").address == one
    assert screen.run().address == one


@pytest.mark.parametrize("path", PAGES)
def test_the_chosen_pair_is_kept_by_a_link_by_back_and_forward_and_by_a_reload(screen: Screen, path: str) -> None:
    text = {"model": "translation", "text": "the boy finds the key"} if path == "/cross" else {}
    chosen = {"model": "coreference", "text": "the cat sat", **text, "layer": "0", "head": "1"}
    one, other = ({**chosen, "query": query, "key": key} for query, key in (("2", "1"), ("1", "0")))
    for pair in (one, other, one, other):
        assert pair.items() <= screen.back_to(f"{path}?{urlencode(pair)}").address.items()
    assert other.items() <= Screen().open(f"{path}?{urlencode(screen.address)}").address.items()


def test_a_page_takes_along_what_all_pages_share_and_keeps_its_own(screen: Screen) -> None:
    screen.back_to(f"/steps?{OWN}&step=scores&head=0")
    assert screen.open("/heads").address["head"] == "0"
    assert screen.open("/steps").address["step"] == "scores"
    assert screen.address["text"] == "the cat sat"


def test_a_model_that_cannot_be_had_is_told_with_its_reason(screen: Screen) -> None:
    screen.back_to("/?model=../../etc/passwd")
    (told,) = screen.warnings
    assert "model “../../etc/passwd”" in told and "Reason: " in told
    assert all(name in told for name in of_text())
    assert quote_plus("..") not in screen.address["model"]


def test_the_pages_are_all_there() -> None:
    others = {Path(page).stem for page in UNLISTED.values()}
    assert {Path(page).name or "app" for page in PAGES} | others == {
        "app",
        *(path.stem for path in (ROOT / "pages").glob("*.py")),
    }
