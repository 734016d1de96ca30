"""Parameters of a URL are read and written by their declarations."""

from dataclasses import replace

from attention_viz.ui.address.codec import modernised, read, write
from tests.ui.selection.dives import DEPTHS, WRITTEN, Dive


def test_a_link_of_before_opens_the_same_and_is_written_with_the_name_of_today() -> None:
    address = modernised([Dive], {"place": "sea", "level": "4"})
    assert address == {"place": "sea", "depth": "4"}
    assert modernised([Dive], {"level": "4"}) == {"level": "4"}
    assert modernised([Dive], {"place": "sea", "level": "4", "depth": "2"})["depth"] == "2"
    dive, notices = read(Dive(), address, DEPTHS)
    assert (dive, notices) == (Dive(depth=4), [])
    assert write(dive) == WRITTEN | {"depth": "4"}
    assert write(replace(dive, place="lake")) == {"place": "lake", "depth": "4"}
