"""The explorer as one offline HTML page, or a notebook frame."""

import base64
import hashlib
import html
import math
from collections.abc import Collection
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Literal

from attention_viz.analysis.measured import word_stream
from attention_viz.errors import ShapeError
from attention_viz.explorer.mixers import mixer_cells, pictures_of
from attention_viz.explorer.payload import Choice, is_long, pack
from attention_viz.explorer.source import page_source, style_sheet
from attention_viz.operation.token_mixer import TokenMixer
from attention_viz.trace.ahead import Progress, ahead
from attention_viz.trace.files.whole_file import write_whole
from attention_viz.trace.spelling import xml_text
from attention_viz.views.style.theme import DARK, LIGHT, SANS
from attention_viz.views.style.wording import one_line

if TYPE_CHECKING:
    from attention_viz.trace.trace import Trace

__all__ = ["Explorer", "explore"]

_THEMES = ("auto", "light", "dark")
# Of a text's beginning, in characters.
_LONGEST_TITLE = 300
# A file goes with all weights as long as they are no more than this, some thirty megabytes.
MOST_IN_A_FILE = 64_000_000
# What two cores of 2023 do in a second: weights, bytes of heads that come as their terms, layers that are pictures.
WEIGHTS_A_SECOND, _BYTES, _PICTURES = 3e7, 1e7, 15
# Around the component there is only the page's ground and its heading.
_PAGE_STYLE = f"""
html {{ color-scheme: light dark; }}
html[data-theme="light"] {{ color-scheme: light; }}
html[data-theme="dark"] {{ color-scheme: dark; }}
html {{
  background: light-dark({LIGHT.background}, {DARK.background});
  color: light-dark({LIGHT.ink}, {DARK.ink});
}}
body {{ margin: 0 auto; padding: 16px; max-width: 1480px; box-sizing: border-box; }}
h1 {{
  display: -webkit-box;
  margin: 0 0 8px;
  overflow: hidden;
  overflow-wrap: anywhere;
  font: 600 16px/1.4 {SANS};
  -webkit-box-orient: vertical;
  -webkit-line-clamp: 2;
}}
"""

_PAGE = """<!DOCTYPE html>
<html lang="en" data-theme="{theme}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
<h1>{title}</h1>
<div id="explorer"></div>
</main>
<script id="payload" type="application/octet-stream">{payload}</script>
<script type="module">{script}</script>
</body>
</html>
"""


@dataclass(frozen=True, repr=False)
class Explorer:
    """An interactive view of a trace; notebooks display it.

    Attributes:
        payload: the trace as bytes for the browser.
        theme: "light", "dark", or "auto" for the reader's system setting.
        title: the page's title.
    """

    payload: bytes
    theme: Literal["auto", "light", "dark"]
    title: str

    def __repr__(self) -> str:
        """Return title and size."""
        return f"<Explorer of {self.title!r}, {len(self.payload):,} bytes>"

    def html(self) -> str:
        """Return an offline HTML page, which allows no other host."""
        style, script = _element_text(_PAGE_STYLE + style_sheet()), _element_text(page_source())
        own = f"script-src '{_digest(script)}'; style-src '{_digest(style)}'"
        policy = f"default-src 'none'; {own}; media-src blob:; img-src blob:"
        return _PAGE.format(
            policy=policy,
            title=html.escape(xml_text(self.title)),
            style=style,
            script=script,
            theme=self.theme,
            payload=base64.b64encode(self.payload).decode("ascii"),
        )

    def save_html(self, path: str | PathLike[str]) -> None:
        """Write the page to one file at exactly that path; an existing file stays until the new one is complete.

        Args:
            path: the file.

        Raises:
            OSError: the file can't be written.
        """
        write_whole(path, self.html().encode())

    def _repr_html_(self) -> str:
        """Return the page in its own frame, because the notebook's styles and scripts would clash."""
        return (
            f'<iframe title="{html.escape(self.title)}" srcdoc="{html.escape(self.html())}" sandbox="allow-scripts" '
            'style="width:100%;height:900px;border:0;resize:vertical" loading="lazy"></iframe>'
        )


def explore(
    trace: "Trace",
    *,
    stream: str | None = None,
    layer: int | None = None,
    head: int = 0,
    theme: Literal["auto", "light", "dark"] = "auto",
    layers: Collection[int] | None = None,
    progress: Progress | None = None,
) -> Explorer:
    """Show a trace: arcs over its tokens, the grid of all heads, and one head as a matrix.

    A long text, with more than some sixty million weights, includes the numbers of some layers only: their heads'
    queries and keys, and one normaliser per row. The browser computes every weight from these, exact to 1e-5. The other
    heads have a thumbnail. Work of more than ten seconds reports its size, expected time and progress on standard
    error.

    Args:
        trace: the trace, with all its streams, layers and heads.
        stream: the stream to open on; by default the first, or the words' beside an image. "mixer" has the layers
            without a softmax.
        layer: the layer to open on; by default the first kept one.
        head: the head to open on.
        theme: "light", "dark", or "auto" for the reader's system setting.
        layers: for a long text, the layers of that stream to include numbers of; by default the one it opens on.
            For 8,000 tokens, a layer of nine heads with d_k 64 takes some 25 MB.
        progress: called with the finished share, from 0 to 1, after each layer, instead of lines on standard error; its
            exceptions stop the work.

    Raises:
        TraceError: the stream or layer doesn't exist, or the layer isn't kept.
        ShapeError: the head doesn't exist.
        ValueError: the theme doesn't exist.
    """
    if theme not in _THEMES:
        raise ValueError(f"unknown theme {theme!r}; choose {', '.join(_THEMES)}")
    stream = trace.stream(stream or word_stream(trace))
    # A table's index has whole numbers of numpy's, which JSON knows nothing of.
    layer, head = trace.layer_numbers(stream)[0] if layer is None else int(layer), int(head)
    call = trace.attention(layer, stream)
    heads = pictures_of(call) if isinstance(call, TokenMixer) else call.shape[0]
    if not 0 <= head < heads:
        raise ShapeError(f"layer {layer} of the {stream} has no head {head}; choose 0 to {heads - 1}")
    text = one_line(trace.provenance.text or "", _LONGEST_TITLE)
    title = " · ".join(part for part in (text, trace.provenance.model) if part)
    terms = None
    if layers is not None or is_long(trace, MOST_IN_A_FILE):
        terms = [(stream, wanted) for wanted in ([layer] if layers is None else layers)]
        for _, wanted in terms:
            _ = trace.attention(wanted, stream)
    report = ahead("explore", *_size(trace, terms), progress, "bytes")
    return Explorer(pack(trace, choice=Choice(stream, layer, head), terms=terms, progress=report), theme, title)


def _size(trace: "Trace", terms: Collection[tuple[str, int]] | None) -> tuple[float, float]:
    calls = [layer.attention for layers in trace.layers.values() for layer in layers]
    if terms is None:
        weights = sum(math.prod(call.shape) for call in calls) + sum(map(mixer_cells, trace.mixers.values()))
        return 2.0 * weights, weights / WEIGHTS_A_SECOND
    wanted = [trace.attention(layer, stream) for stream, layer in terms]
    carried = 4 * sum(call.query.numel() + call.key.numel() for call in wanted)
    return carried * 4 / 3, carried / _BYTES + len(calls) / _PICTURES


def _element_text(text: str) -> str:
    """Return our text for <script> or <style>; untrusted text never goes there."""
    if "</" in text or "<!--" in text:
        raise AssertionError("the component's source must not contain an end tag or the start of a comment")
    return text


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
