"""The explorer as a page: one file, escaped, loading nothing."""

import html
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import attention_viz as av
from attention_viz.explorer import explore
from attention_viz.explorer.page import ExplorerPage, opening_of
from attention_viz.trace.trace import Provenance, Trace


def test_what_does_not_exist_is_refused_by_name(many_kinds: Trace) -> None:
    with pytest.raises(av.TraceError, match="unknown stream 'middle'"):
        explore(many_kinds, stream="middle")
    with pytest.raises(av.TraceError, match="no layer 9"):
        explore(many_kinds, layer=9)
    with pytest.raises(av.ShapeError, match="layer 0 of the cross has no head 4; choose 0 to 2"):
        explore(many_kinds, stream="cross", head=4)


@pytest.mark.parametrize("other", ["moon", None, 3, {}, Provenance("a model")], ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("show", [av.explore, av.atlas, av.steps, lambda other: av.mask(other, other)])
def test_what_is_no_trace_is_refused_by_name(show: Callable[[Any], object], other: object) -> None:
    with pytest.raises(av.TraceError, match=f"not {type(other).__name__}; record one with model.trace"):
        show(other)


def test_the_file_is_one_page_that_says_its_charset_and_allows_no_other_host(many_kinds: Trace, tmp_path: Path) -> None:
    file = tmp_path / "a file.html"
    explore(many_kinds).save_html(file)
    text = file.read_text("utf-8")
    assert text.startswith("<!DOCTYPE html>")
    assert text.index('<meta charset="utf-8">') < 1024
    assert "default-src 'none'; script-src 'sha256-" in text
    assert not re.search(r"(src|href)=[\"']", text.replace("srcdoc", ""))
    assert "http://" not in text and "https://" not in text


def test_nothing_that_was_typed_stands_in_the_page_unescaped(many_kinds: Trace) -> None:
    typed = "</title></script><script>alert(1)</script><img src=x onerror=alert(1)>\u2028\"'"
    trace = Trace(
        many_kinds.layers,
        many_kinds.queries,
        many_kinds.keys,
        many_kinds.output,
        Provenance("m", typed),
        many_kinds.fidelity,
    )
    text = explore(trace).html()
    assert "alert(1)</script>" not in text
    assert "<img" not in text
    assert text.count("</script>") == 2
    assert html.escape(typed.replace("\u2028", " ")) in text


def test_a_notebook_gets_the_page_in_a_frame_of_its_own(many_kinds: Trace) -> None:
    shown = ExplorerPage(many_kinds, opening_of(many_kinds))
    frame = shown._repr_html_()
    page = re.fullmatch(r'<iframe [^>]*srcdoc="([^"]*)"[^>]*></iframe>', frame)
    assert page is not None
    assert html.unescape(page[1]) == shown.html()
    assert 'sandbox="allow-scripts"' in frame


def test_it_says_in_one_line_what_it_is(many_kinds: Trace) -> None:
    shown = explore(many_kinds, stream="cross", layer=1, head=1)
    assert repr(shown) == "<Explorer of 'a text · random': cross, layer 1, head 1>"
    shown.selection = {"query": 2, "key": 0}
    assert repr(shown) == "<Explorer of 'a text · random': cross, layer 1, head 1, query 2, key 0>"


def test_half_of_a_pair_that_stands_for_one_sign_keeps_no_file_from_being_written(tmp_path: Path) -> None:
    path = tmp_path / "half.html"
    explore(av.scratch("bank \ud83d river")).save_html(path)
    assert "bank ⟨U+D83D⟩ river" in path.read_text("utf-8").partition("</title>")[0]
