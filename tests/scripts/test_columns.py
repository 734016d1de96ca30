"""The page of pictures for print shows each at its true width."""

import re
from xml.etree import ElementTree

import pytest

from attention_viz.views import VIEWS
from attention_viz.views.export.sheet import in_pixels
from scripts import columns


def test_the_page_is_as_the_script_writes_it_and_shows_every_picture() -> None:
    assert columns.DOCUMENT.read_text("utf-8") == columns.page()
    assert re.findall(r"^## (\w+)$", columns.page(), re.MULTILINE) == list(VIEWS)
    there = {path.name for path in columns.PRINTED.glob("*")}
    assert there == {f"{name}-{where}.svg" for name in VIEWS for where in columns.ACROSS}


@pytest.mark.parametrize("name", VIEWS)
def test_each_picture_is_as_wide_as_it_says_and_no_word_begins_outside(name: str) -> None:
    for where, width in columns.ACROSS.items():
        root = ElementTree.parse(columns.PRINTED / f"{name}-{where}.svg").getroot()
        wide, high = (float(root.attrib[side]) for side in ("width", "height"))
        assert wide == pytest.approx(in_pixels(width, "width"), abs=1)
        titles = [one for one in root.iter() if one.get("class") == "gtitle"]
        assert all(0 <= float(one.attrib["x"]) <= wide and 0 < float(one.attrib["y"]) <= high for one in titles)
