"""Every picture is XML, whatever stands in a text, a token or a name."""

import re
import sys
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import attention_viz as av
from attention_viz.trace.spelling import table_in_html, xml_text
from attention_viz.trace.tokens import Tokens
from attention_viz.views import heatmap_svg
from attention_viz.views.export.save import on_sheet
from attention_viz.views.export.sheet import AS_DRAWN
from attention_viz.views.style.wording import escaped, readable

# What each part of XML 1.0's rule begins and ends with, and what is beside it.
EDGES = (
    "\x00\x08\t\n\x0b\x0c\r\x0e\x1f \x7f\x85"
    "\ud7ff\ud800\udbff\udc00\udfff\ue000\ufdd0\ufffd\ufffe\uffff\U00010000\U0001fffe"
)
ANYTHING = st.text(st.characters() | st.characters(categories=["Cs"]) | st.sampled_from(f"{EDGES}\U0010ffff<&>\"'"))


def test_every_code_point_can_stand_in_xml() -> None:
    every = "".join(map(chr, range(sys.maxunicode + 1)))
    for start in range(0, len(every), 1 << 16):
        part = every[start : start + (1 << 16)]
        ElementTree.fromstring(f'<a b="{escaped(part)}">{escaped(part)}</a>')
    allowed = re.sub("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]", "", every)
    assert xml_text(allowed) == allowed
    assert xml_text("a\ufffe\ud83d\x00b") == "a⟨U+FFFE⟩⟨U+D83D⟩⟨U+0000⟩b"


def named(text: str) -> av.Trace:
    """A trace in which a text stands wherever one can."""
    trace = av.scratch("the cat sat")
    tokens = Tokens((text, "cat", text), (0, 1, 2), spelling=("text",) * 3)
    origin = replace(trace.provenance, model=text, text=text, edits=(text,))
    stream = trace.streams[0]
    return trace.derived(queries={stream: tokens}, keys={stream: tokens}, provenance=origin)


@settings(max_examples=60, deadline=None)
@given(text=ANYTHING)
def test_a_head_of_any_text_is_xml(text: str) -> None:
    root = ElementTree.fromstring(heatmap_svg(named(text), 0, 0))
    assert root.tag.endswith("svg")
    ElementTree.fromstring(heatmap_svg(named(text), 0, 0, title=text))


@settings(max_examples=60, deadline=None)
@given(text=ANYTHING)
def test_what_plotly_drew_is_framed_as_xml(text: str) -> None:
    drawn = f"<text>{readable([text])[0]}</text><text>\ufffe\x07</text>"
    ElementTree.fromstring(on_sheet(drawn, {"width": 100, "height": 50}, text, AS_DRAWN))


@settings(max_examples=60, deadline=None)
@given(text=ANYTHING)
def test_a_table_of_any_text_is_xml(text: str) -> None:
    ElementTree.fromstring(table_in_html([text], [(text, text)]))


@pytest.mark.parametrize("text", ["a \ufffe b", "a \uffff b", "\x0c", "half \ud83d"])
def test_the_page_of_an_explorer_holds_only_what_a_file_can(text: str) -> None:
    page = av.explore(named(text)).html()
    assert xml_text(page) == page
