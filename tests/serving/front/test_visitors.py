"""Whom a server has room for, and in which order the others come in."""

from attention_viz.serving.front.visitors import Visitors


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
