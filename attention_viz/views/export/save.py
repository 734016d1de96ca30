"""Pictures as files of print quality: SVG, PNG and PDF, each with a line under it that says where it comes from."""

import base64
import re
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import plotly.graph_objects as go

from attention_viz.errors import AttentionVizError
from attention_viz.trace.trace import Trace
from attention_viz.trace.whole_file import write_whole
from attention_viz.views.export.rendering import Draw, rendered
from attention_viz.views.style.captions import provenance_line
from attention_viz.views.style.theme import LIGHT, SANS
from attention_viz.views.style.wording import escaped

__all__ = ["FORMATS", "format_of", "printed", "save"]

FORMATS = ("svg", "png", "pdf")

# Dots to a pixel of a PNG: on paper 15 cm wide about 400 an inch.
_SCALE = 3.0
_WIDTH, _HEIGHT = 800, 560
# Of the line under a figure, in pixels.
_LETTER, _LINE, _SIDE = 5.4, 13, 8


def save(
    picture: go.Figure | str,
    path: str | Path,
    trace: Trace | None = None,
    *,
    layer: int | None = None,
    head: int | None = None,
    stream: str | None = None,
) -> None:
    """Write a picture to a file: SVG, PNG (three dots to a pixel) or PDF (lines and letters), by the path's ending.

    A head's own picture, from `heatmap_svg`, needs no browser to be written as SVG. Everything else is drawn by Chrome,
    Chromium or Edge, where this machine has one; nothing is fetched for it.

    Args:
        picture: a figure from `views`, in the light theme if it is for paper; or an SVG document from `heatmap_svg`.
        path: where to; what is there already stays until the new one is whole.
        trace: what a figure was made from; an SVG document says so itself.
        layer: which layer a figure shows, if it shows one.
        head: which head a figure shows, if it shows one.
        stream: which stream; None for the only one there is.

    Raises:
        AttentionVizError: another ending, a figure without its trace, or no browser that could draw it.
        OSError: the file can't be written.
    """
    form = format_of(path)
    write_whole(path, printed(picture, (form,), trace, layer=layer, head=head, stream=stream)[form])


def format_of(path: str | Path) -> str:
    """One of `FORMATS`, by the path's ending.

    Raises:
        AttentionVizError: it has another ending, or none.
    """
    ending = Path(path).suffix
    form = ending.removeprefix(".").lower()
    if form not in FORMATS:
        found = f"ends in {ending}" if ending else "has no ending"
        raise AttentionVizError(f"a picture is written as {', '.join(f'.{one}' for one in FORMATS)}; {path} {found}")
    return form


def printed(
    picture: go.Figure | str,
    forms: Sequence[str],
    trace: Trace | None = None,
    *,
    layer: int | None = None,
    head: int | None = None,
    stream: str | None = None,
) -> dict[str, bytes]:
    """A picture as the bytes of files in several formats, by one browser.

    Args:
        picture: a figure from `views`, in the light theme if it is for paper; or an SVG document from `heatmap_svg`.
        forms: some of `FORMATS`.
        trace: what a figure was made from; an SVG document says so itself.
        layer: which layer a figure shows, if it shows one.
        head: which head a figure shows, if it shows one.
        stream: which stream; None for the only one there is.

    Raises:
        AttentionVizError: a figure without its trace, or no browser that could draw it.
    """
    if isinstance(picture, str):
        document, figure, line = picture, None, ""
    elif trace is None:
        raise AttentionVizError("a figure is written with the line that says where it comes from: give its trace too")
    else:
        document, figure, line = "", _plain(picture), _origin(trace, layer, head, stream)
    if figure is None and set(forms) == {"svg"}:
        return {"svg": document.encode()}

    async def work(draw: Draw) -> dict[str, bytes]:
        framed = (
            document if figure is None else _framed((await draw(figure, "svg", 1)).decode(), figure["layout"], line)
        )
        return {form: framed.encode() if form == "svg" else await _sheet(draw, framed, form) for form in forms}

    return rendered("this figure" if "svg" in forms else f"a {forms[0].upper()}", work)


def _origin(trace: Trace, layer: int | None, head: int | None, stream: str | None) -> str:
    named = stream is not None or len(trace.streams) == 1
    tokens = trace.query_tokens(trace.stream(stream)) if named else None
    return provenance_line(trace, layer, head, tokens)


def _plain(figure: go.Figure) -> dict[str, Any]:
    """The figure as plain values, with a size."""
    plain: dict[str, Any] = figure.to_plotly_json()
    layout = {**plain["layout"]}
    layout["width"], layout["height"] = layout.get("width") or _WIDTH, layout.get("height") or _HEIGHT
    return {**plain, "layout": layout}


def _framed(drawn: str, layout: dict[str, Any], line: str) -> str:
    """A figure as Plotly drew it, in a document with the line under it: so nothing of it can lie over the figure."""
    width, height = layout["width"], layout["height"]
    rows = textwrap.wrap(line, int((width - 2 * _SIDE) / _LETTER))
    page = layout.get("paper_bgcolor", LIGHT.background)
    texts = "".join(
        f'<text x="{_SIDE}" y="{height + _LINE * (row + 1)}">{escaped(one)}</text>' for row, one in enumerate(rows)
    )
    whole = height + _LINE * (len(rows) + 1)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="{width}" '
        f'height="{whole}" viewBox="0 0 {width} {whole}" role="img"><desc>{escaped(line)}</desc>'
        f'<rect width="100%" height="100%" fill="{escaped(page)}"/>{drawn}'
        f'<g font-family="{escaped(SANS)}" font-size="9" fill="{LIGHT.muted}">{texts}</g></svg>\n'
    )


async def _sheet(draw: Draw, document: str, form: str) -> bytes:
    """An SVG document in another format: it is the only thing in an empty figure of its size."""
    size = re.search(r'<svg[^>]* width="(\d+)" height="(\d+)"', document)
    if size is None:
        raise AttentionVizError(
            "this is no SVG document with a width and a height in pixels, such as heatmap_svg gives"
        )
    hidden = {"visible": False}
    source = f"data:image/svg+xml;base64,{base64.b64encode(document.encode()).decode()}"
    everywhere = {"xref": "paper", "yref": "paper", "x": 0, "y": 1, "sizex": 1, "sizey": 1, "sizing": "stretch"}
    layout = {
        "width": int(size[1]),
        "height": int(size[2]),
        "margin": {"l": 0, "r": 0, "t": 0, "b": 0},
        "xaxis": hidden,
        "yaxis": hidden,
        "paper_bgcolor": LIGHT.background,
        "plot_bgcolor": LIGHT.background,
        "images": [{"source": source, **everywhere}],
    }
    return await draw({"data": [], "layout": layout}, form, _SCALE if form == "png" else 1)
