"""Pictures as files: the right kind, the right size, and the line that says where they come from in each."""

import logging
import re
import struct
import threading
import zlib
from pathlib import Path
from xml.etree import ElementTree

import pytest

import attention_viz as av
from attention_viz.errors import AttentionVizError
from attention_viz.scratch.model import Scratch
from attention_viz.trace.trace import Trace
from attention_viz.views import compare, head_grid, heatmap, heatmap_svg, save
from attention_viz.views.export import browsers, rendering
from attention_viz.views.export.plain import plain_svg
from attention_viz.views.export.save import printed
from attention_viz.views.style.captions import provenance_line

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def trace() -> Trace:
    return Scratch().trace("The <b>cat</b> & sat")


def words_of(pdf: bytes) -> str:
    """The text of a PDF as its reader would copy it: each font's glyphs by its own table of characters."""
    starts = [found.end() for found in re.finditer(rb"/FlateDecode[^>]*>>\s*stream\r?\n", pdf)]
    parts = [zlib.decompressobj().decompress(pdf[start:]) for start in starts]
    characters: dict[str, str] = {}
    for table in (part.decode("latin-1") for part in parts if b"begincmap" in part):
        for first, last, code in re.findall(r"<(\w{4})> <(\w{4})> <(\w{4})>", table.replace("<0000> <FFFF>", "")):
            for glyph in range(int(first, 16), int(last, 16) + 1):
                characters[f"{glyph:04X}"] = chr(int(code, 16) + glyph - int(first, 16))
        for glyph, code in re.findall(r"^<(\w{4})> <(\w{4})>$", table, re.M):
            characters[glyph] = chr(int(code, 16))
    shown = [line for part in parts if b" Tf" in part for line in re.findall(r"<([0-9A-F]+)>", part.decode("latin-1"))]
    return "".join(characters.get(line[at : at + 4], "?") for line in shown for at in range(0, len(line), 4))


def test_a_head_s_picture_is_written_as_svg_without_a_browser(
    trace: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(browsers.CHOICE, str(tmp_path / "none"))
    document = heatmap_svg(trace, 0, 1)
    save(document, tmp_path / "head.SVG")
    assert (tmp_path / "head.SVG").read_text("utf-8") == plain_svg(document)
    root = ElementTree.fromstring(document)
    assert provenance_line(trace, 0, 1, trace.query_tokens()) in (root.findtext(f"{SVG}desc") or "")


def test_what_no_browser_is_there_for_is_refused_by_name(
    trace: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(browsers.CHOICE, str(tmp_path / "none"))
    assert browsers.at_hand() is None
    for form, what in (("png", "a PNG"), ("pdf", "a PDF")):
        with pytest.raises(AttentionVizError, match=f"{what} needs Chrome, Chromium or Edge .*none isn't a program"):
            save(heatmap_svg(trace, 0, 1), tmp_path / f"head.{form}")
    with pytest.raises(AttentionVizError, match="this figure needs Chrome, Chromium or Edge"):
        save(heatmap(trace, 0, 1), tmp_path / "head.svg", trace)
    assert not list(tmp_path.iterdir())


def test_what_can_t_be_written_is_refused_before_any_browser(trace: Trace, tmp_path: Path) -> None:
    figure = heatmap(trace, 0, 1)
    with pytest.raises(AttentionVizError, match=r"must end in \.svg, \.png, \.pdf; .* ends in \.jpeg"):
        save(figure, tmp_path / "head.jpeg", trace)
    with pytest.raises(AttentionVizError, match="has no ending"):
        save(figure, tmp_path / "head", trace)
    with pytest.raises(AttentionVizError, match="needs its trace"):
        save(figure, tmp_path / "head.svg")


def test_a_program_that_is_no_browser_is_named(trace: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "browser"
    program.write_text("#!/bin/sh\nexit 3\n")
    program.chmod(0o755)
    monkeypatch.setenv(browsers.CHOICE, str(program))
    with pytest.raises(AttentionVizError, match=f"{re.escape(str(program))} can't draw a PNG: it ended at"):
        printed(heatmap_svg(trace, 0, 1), ("png",))


def test_a_browser_that_hangs_is_ended_with_all_its_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program, started = tmp_path / "browser", tmp_path / "started"
    program.write_text(f"#!/bin/sh\nsleep 300 &\necho $! > {started}\nwait\n")
    program.chmod(0o755)
    monkeypatch.setenv(browsers.CHOICE, str(program))
    monkeypatch.setattr(rendering, "LONGEST_CLOSING", 0.5)

    async def never(_: rendering.Draw) -> bytes:
        raise AssertionError("a browser that doesn't answer draws nothing")

    with pytest.raises(AttentionVizError, match="browser took more than 1 second"):
        rendering.rendered("a PNG", never, limit=1)
    status = Path(f"/proc/{started.read_text().strip()}/status")
    assert not status.exists() or "zombie" in status.read_text()


def test_others_pictures_are_waited_for_but_not_for_ever() -> None:
    holds, done = threading.Event(), threading.Event()

    def hold() -> None:
        with rendering._one_at_a_time:
            holds.set()
            done.wait()

    other = threading.Thread(target=hold)
    other.start()
    holds.wait()

    async def nothing(_: rendering.Draw) -> bytes:
        return b""

    try:
        with pytest.raises(AttentionVizError, match="other pictures took more than 0 seconds"):
            rendering.rendered("a PNG", nothing, wait=0.05)
    finally:
        done.set()
        other.join()


def test_under_a_figure_of_two_runs_stands_where_both_come_from(trace: Trace) -> None:
    if browsers.at_hand() is None:
        pytest.skip("no Chrome, Chromium or Edge by its usual name")
    other = Scratch().trace("another sentence")
    figure = compare(av.compare(trace, other, 0, 1))
    root = ElementTree.fromstring(printed(figure, ("svg",), [trace, other])["svg"])
    lines = [provenance_line(one, None, None, one.query_tokens()) for one in (trace, other)]
    assert root.findtext(f"{SVG}desc") == f"run 1: {lines[0]}; run 2: {lines[1]}"
    # Of two heads of one run that is said once.
    root = ElementTree.fromstring(printed(figure, ("svg",), [trace, trace])["svg"])
    assert root.findtext(f"{SVG}desc") == lines[0]


def test_a_figure_as_svg_png_and_pdf_by_one_browser(trace: Trace) -> None:
    if browsers.at_hand() is None:
        pytest.skip("no Chrome, Chromium or Edge by its usual name")
    figure = head_grid(trace, "previous").update_layout(width=500, height=300)
    made = printed(figure, ("svg", "png", "pdf"), trace, layer=0)
    line = provenance_line(trace, 0, None, trace.query_tokens())
    assert "· head" not in line and "layer 0" in line and av.__version__ in line
    root = ElementTree.fromstring(made["svg"])
    assert root.findtext(f"{SVG}desc") == line
    texts = ["".join(one.itertext()) for one in root.iter(f"{SVG}text")]
    assert "layer" in texts and "head" in texts  # the axes
    below = [one for one in root.findall(f"{SVG}g/{SVG}text") if float(one.attrib["y"]) > 300]
    assert " ".join(one.text or "" for one in below) == line
    assert float(root.attrib["width"].removesuffix("mm")) == pytest.approx(500 * 25.4 / 96, abs=0.001)
    size = tuple(int(one) for one in root.attrib["viewBox"].split()[2:])
    assert size[0] == 500 and size[1] > 300
    assert made["png"].startswith(b"\x89PNG\r\n\x1a\n")
    assert struct.unpack(">II", made["png"][16:24]) == (3 * size[0], 3 * size[1])
    assert made["pdf"].startswith(b"%PDF-")
    assert line.replace(" ", "") in words_of(made["pdf"]).replace(" ", "")


def test_half_a_message_of_a_closing_browser_is_not_printed_but_all_else_is(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.Logger("choreographer.channels.pipe")
    logger.addHandler(caplog.handler)
    logger.addFilter(rendering._of_use)
    logger.error("JSONError decoding message. Ignoring")
    logger.error("Error in trying to decode JSON off our read.")
    assert caplog.messages == ["Error in trying to decode JSON off our read."]
