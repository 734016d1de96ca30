"""Whom a server has room for, and in which order the others come in."""

import pytest

from attention_viz.serving import visitors as line
from attention_viz.serving.visitors import Visitors


def test_so_many_have_a_place_and_the_others_hear_how_many_have_to_leave() -> None:
    visitors = Visitors(2, lambda _: True)
    assert [visitors.ahead(one) for one in "abcd"] == [0, 0, 1, 2]
    assert [visitors.ahead(one) for one in "dcba"] == [2, 1, 0, 0]


def test_who_came_first_comes_in_first() -> None:
    here = set("abcd")
    visitors = Visitors(2, here.__contains__, grace=0)
    for one in "abcd":
        visitors.ahead(one)
    here.remove("a")
    assert [visitors.ahead(one) for one in "dc"] == [1, 0]
    here.remove("c")
    assert visitors.ahead("d") == 0


def test_somebody_who_comes_again_comes_last() -> None:
    here = set("abc")
    visitors = Visitors(1, here.__contains__, grace=0)
    for one in "abc":
        visitors.ahead(one)
    here.remove("b")
    assert visitors.ahead("c") == 1
    here.add("b")
    assert visitors.ahead("b") == 2


def test_a_place_is_kept_for_a_moment_for_somebody_whose_connection_was_lost() -> None:
    here = set("ab")
    visitors = Visitors(1, here.__contains__, grace=3600)
    for one in "ab":
        visitors.ahead(one)
    here.remove("a")
    assert visitors.ahead("b") == 1
    assert visitors.ahead("a") == 0


def test_a_page_that_is_loaded_again_has_the_place_of_the_one_before() -> None:
    here = {"a", "b", "c"}
    visitors = Visitors(2, here.__contains__, grace=3600)
    for one in "abc":
        visitors.ahead(one, f"browser of {one}")
    here -= {"a"}
    here |= {"a again"}
    assert visitors.ahead("a again", "browser of a") == 0
    assert [visitors.ahead(one, f"browser of {one}") for one in "bc"] == [0, 1]


def test_somebody_who_waits_and_loads_the_page_again_waits_no_longer_for_that() -> None:
    here = {"a", "b", "c"}
    visitors = Visitors(1, here.__contains__, grace=3600)
    for one in "abc":
        visitors.ahead(one, f"browser of {one}")
    for time in range(5):
        here.remove("b" if time == 0 else f"b {time}")
        here.add(f"b {time + 1}")
        assert visitors.ahead(f"b {time + 1}", "browser of b") == 1
    assert visitors.ahead("c", "browser of c") == 2


def test_a_place_goes_over_also_where_the_page_before_is_heard_to_have_left_only_afterwards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(line, "AGAIN", 0.0)
    here = {"a", "b", "a again"}
    visitors = Visitors(1, here.__contains__, grace=3600)
    assert [visitors.ahead("a", "one"), visitors.ahead("b", "two"), visitors.ahead("a again", "one")] == [0, 1, 2]
    here.remove("a")
    assert [visitors.ahead("a again", "one"), visitors.ahead("b", "two")] == [0, 1]


def test_tabs_of_one_browser_that_are_open_have_a_place_each_and_a_browser_without_a_name_takes_none_over() -> None:
    here = {"a", "b", "c"}
    visitors = Visitors(2, here.__contains__, grace=3600)
    assert [visitors.ahead(one, "one") for one in "abc"] == [0, 0, 1]
    here = {"b"}
    visitors = Visitors(1, here.__contains__, grace=3600)
    assert [visitors.ahead("a"), visitors.ahead("b")] == [0, 1]
    assert visitors.ahead("b") == 1


def test_a_tab_that_has_a_place_leaves_another_of_its_browser_the_one_it_keeps() -> None:
    here = {"a", "b", "c"}
    visitors = Visitors(2, here.__contains__, grace=3600)
    assert [visitors.ahead(*one) for one in (("a", "one"), ("b", "one"), ("c", "two"))] == [0, 0, 1]
    here.clear()  # the network was away, and they connect again one after the other
    here.add("b")
    assert visitors.ahead("b", "one") == 0
    here.add("a")
    assert [visitors.ahead("a", "one"), visitors.ahead("c", "two")] == [0, 1]


def test_another_tab_that_waits_leaves_a_page_that_is_loaded_again_its_place() -> None:
    here = {"a", "b", "c"}
    visitors = Visitors(2, here.__contains__, grace=3600)
    assert [visitors.ahead(*one) for one in (("a", "one"), ("c", "two"), ("b", "one"))] == [0, 0, 1]
    here.remove("a")
    assert visitors.ahead("b", "one") == 1
    here.add("a again")
    assert [visitors.ahead("a again", "one"), visitors.ahead("b", "one")] == [0, 1]
