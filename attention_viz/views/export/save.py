"""Save pictures as SVG, PNG and PDF with their provenance."""

import base64
import re
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import plotly.graph_objects as go

from attention_viz.errors import AttentionVizError
from attention_viz.trace.files.whole_file import write_whole
from attention_viz.trace.spelling import xml_text
from attention_viz.trace.trace import Trace
from attention_viz.views.export.fitted import fitted
from attention_viz.views.export.plain import plain_svg
from attention_viz.views.export.rendering import Draw, rendered
from attention_viz.views.export.sheet import AS_DRAWN, Sheet, px
from attention_viz.views.style.captions import provenance_line, provenance_lines
from attention_viz.views.style.theme import LIGHT, SANS
from attention_viz.views.style.wording import escaped

__all__ = ["FORMATS", "format_of", "on_sheet", "printed", "save"]

FORMATS = ("svg", "png", "pdf")

# Dots to a pixel of a PNG: on paper 15 cm wide about 400 an inch.
_SCALE = 3.0
_WIDTH = 800
_SIZE = re.compile(r'(<svg[^>]*) width="([\d.]+)" height="([\d.]+)"')
_NO_DOCUMENT = "the SVG document needs a width and a height in pixels, such as those of heatmap_svg"
# Of the line under a figure, in pixels.
_LETTER, _LINE, _SIDE = 5.4, 13, 8


def save(
    picture: go.Figure | str,
    path: str | Path,
    trace: Trace | Sequence[Trace] | None = None,
    *,
    layer: int | None = None,
    head: int | None = None,
    stream: str | None = None,
    width: str | float | None = None,
    height: str | float | None = None,
    title: str | bool | None = True,
    footer: bool = True,
    numbers: bool = True,
    font_size: float | None = None,
    latex: bool = False,
) -> None:
    """Write a picture to a file: SVG, PNG (three dots to a pixel) or PDF (lines and letters), by the path's ending.

    A width sets the layout: letters have the given size, titles wrap, labels are thinned, and numbers are printed only
    if they are readable. A PDF is exactly that wide and high. An SVG has live text in a generic face and a size in
    millimetres, and nothing that Inkscape doesn't read.

    A head's own picture, from `heatmap_svg`, is written as SVG without a browser. A local Chrome, Chromium or Edge
    draws everything else; nothing is downloaded for it.

    Args:
        picture: a figure from `views`, in the light theme for paper; or an SVG document from `heatmap_svg`.
        path: the file; an existing one stays until the new one is complete.
        trace: the figure's trace, or the several that it compares; an SVG document names its own.
        layer: the figure's layer, if any.
        head: the figure's head, if any.
        stream: the stream; None for the only one.
        width: such as "170mm", "85mm", "6.7in", "480pt", or a number of pixels, 96 an inch; by default as drawn.
        height: likewise, of the whole file; by default as high as needed at that width.
        title: another title, or None for none; the picture's own by default.
        footer: whether to draw the provenance line; the file has it in any case.
        numbers: whether to print numbers in cells.
        font_size: of the usual letters, in points; 8 by default with a width, 7 below 105mm.
        latex: whether an SVG's text is escaped for LaTeX, which sets it if Inkscape exports PDF+LaTeX. Characters that
            pdfLaTeX doesn't have become their code points.

    Raises:
        AttentionVizError: an unknown ending, a length that can't be read, a figure without its trace, settings that
            only `heatmap_svg` takes, or no browser that could draw it.
        OSError: the file can't be written.
    """
    form = format_of(path)
    if latex and form != "svg":
        raise AttentionVizError(f"latex=True is for .svg files, which Inkscape exports as PDF+LaTeX; got .{form}")
    sheet = replace(Sheet.asked(width, height, title, footer, numbers, font_size), latex=latex)
    write_whole(path, printed(picture, (form,), trace, layer=layer, head=head, stream=stream, sheet=sheet)[form])


def format_of(path: str | Path) -> str:
    """Return one of `FORMATS`, by the path's ending."""
    ending = Path(path).suffix
    form = ending.removeprefix(".").lower()
    if form not in FORMATS:
        found = f"ends in {ending}" if ending else "has no ending"
        raise AttentionVizError(
            f"a picture's file must end in {', '.join(f'.{one}' for one in FORMATS)}; {path} {found}"
        )
    return form


def printed(
    picture: go.Figure | str,
    forms: Sequence[str],
    trace: Trace | Sequence[Trace] | None = None,
    *,
    layer: int | None = None,
    head: int | None = None,
    stream: str | None = None,
    sheet: Sheet = AS_DRAWN,
) -> dict[str, bytes]:
    """Return the file bytes of a figure or SVG document in several formats, by one browser."""
    if isinstance(picture, str):
        document, figure, line = _sized(picture, sheet), None, ""
    elif trace is None:
        raise AttentionVizError("a figure needs its trace for the provenance line; pass the trace, too")
    else:
        traces = [trace] if isinstance(trace, Trace) else trace
        line = provenance_lines([_origin(one, layer, head, stream) for one in traces])
        document, figure = "", fitted(picture.to_plotly_json(), sheet, _below(line, sheet, picture))
    if figure is None and set(forms) == {"svg"}:
        return {"svg": plain_svg(document, latex=sheet.latex).encode()}

    async def work(draw: Draw) -> dict[str, bytes]:
        framed = (
            document
            if figure is None
            else on_sheet((await draw(figure, "svg", 1)).decode(), figure["layout"], line, sheet)
        )
        return {
            form: plain_svg(framed, latex=sheet.latex).encode() if form == "svg" else await _sheet(draw, framed, form)
            for form in forms
        }

    return rendered("this figure" if "svg" in forms else f"a {forms[0].upper()}", work)


def _origin(trace: Trace, layer: int | None, head: int | None, stream: str | None) -> str:
    named = stream is not None or len(trace.attention_streams) == 1
    tokens = trace.query_tokens(trace.stream(stream)) if named else None
    return provenance_line(trace, layer, head, tokens)


def _sized(document: str, sheet: Sheet) -> str:
    if sheet != replace(AS_DRAWN, width=sheet.width, height=sheet.height, latex=sheet.latex):
        raise AttentionVizError(
            "an SVG document is already drawn; pass title, footer, numbers and font_size to heatmap_svg"
        )
    found = _SIZE.search(document)
    if found is None:
        raise AttentionVizError(_NO_DOCUMENT)
    wide, high = float(found[2]), float(found[3])
    factors = [new / old for new, old in ((sheet.width, wide), (sheet.height, high)) if new is not None]
    factor = min(factors, default=1.0)
    if factor == 1:
        return document
    return document.replace(found[0], f'{found[1]} width="{px(wide * factor)}" height="{px(high * factor)}"', 1)


def _rows(line: str, sheet: Sheet, width: float) -> list[str]:
    factor = _small(sheet)
    return textwrap.wrap(line, max(8, int((width - 2 * _SIDE) / (_LETTER * factor)))) if sheet.footer else []


def _small(sheet: Sheet) -> float:
    """Scale letters; those under a figure stay readable."""
    return max(sheet.letters / 12, 0.75)


def _below(line: str, sheet: Sheet, picture: go.Figure) -> float:
    layout: Any = picture.layout
    rows = _rows(line, sheet, sheet.width or layout.width or _WIDTH)
    return _LINE * _small(sheet) * (len(rows) + 1) if rows else 0.0


def on_sheet(drawn: str, layout: dict[str, Any], line: str, sheet: Sheet) -> str:
    """Put Plotly's figure above its provenance, so that they can't overlap."""
    width, height, factor = layout["width"], layout["height"], _small(sheet)
    rows = _rows(line, sheet, width)
    page = layout.get("paper_bgcolor", LIGHT.background)
    texts = "".join(
        f'<text x="{_SIDE}" y="{px(height + _LINE * factor * (row + 1))}">{escaped(one)}</text>'
        for row, one in enumerate(rows)
    )
    whole = px(height + _LINE * factor * (len(rows) + 1) if rows else height)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="{px(width)}" '
        f'height="{whole}" viewBox="0 0 {px(width)} {whole}" role="img"><desc>{escaped(line)}</desc>'
        f'<rect width="100%" height="100%" fill="{escaped(page)}"/>{xml_text(drawn)}'
        f'<g font-family="{escaped(SANS)}" font-size="{px(9 * factor)}" fill="{LIGHT.muted}">{texts}</g></svg>\n'
    )


async def _sheet(draw: Draw, document: str, form: str) -> bytes:
    """Convert an SVG document as an empty figure's only content."""
    size = _SIZE.search(document)
    if size is None:
        raise AttentionVizError(_NO_DOCUMENT)
    hidden = {"visible": False}
    source = f"data:image/svg+xml;base64,{base64.b64encode(document.encode()).decode()}"
    everywhere = {"xref": "paper", "yref": "paper", "x": 0, "y": 1, "sizex": 1, "sizey": 1, "sizing": "stretch"}
    layout = {
        "width": float(size[2]),
        "height": float(size[3]),
        "margin": {"l": 0, "r": 0, "t": 0, "b": 0},
        "xaxis": hidden,
        "yaxis": hidden,
        "paper_bgcolor": LIGHT.background,
        "plot_bgcolor": LIGHT.background,
        "images": [{"source": source, **everywhere}],
    }
    return await draw({"data": [], "layout": layout}, form, _SCALE if form == "png" else 1)
