"""The explorer as one offline HTML page, or a notebook frame."""

import base64
import functools
import hashlib
import html
import json
import math
import re
import zlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit, urlunsplit

from attention_viz.analysis.measured import word_stream
from attention_viz.errors import TraceError
from attention_viz.explorer.mixers import mixer_cells, pictures_of
from attention_viz.explorer.payload import Choice, is_long, pack
from attention_viz.explorer.source import embed_source, page_source, style_sheet
from attention_viz.explorer.widgets.head_selection import check_head
from attention_viz.explorer.widgets.selection import Selecting, Selection, checked
from attention_viz.operation.token_mixer import TokenMixer
from attention_viz.trace.ahead import Progress, ahead
from attention_viz.trace.files.whole_file import write_whole
from attention_viz.trace.spelling import xml_text
from attention_viz.views.style.theme import DARK, LIGHT, SANS
from attention_viz.views.style.wording import one_line

if TYPE_CHECKING:
    from attention_viz.trace.trace import Trace

__all__ = ["Explorer", "ExplorerPage", "Opening", "check_trace", "opening_of"]

_THEMES = ("auto", "light", "dark")
# Of a text's beginning, in characters.
_LONGEST_TITLE = 300
# A file goes with all weights as long as they are no more than this, some thirty megabytes.
MOST_IN_A_FILE = 64_000_000
# What two cores of 2023 do in a second: weights, bytes of heads that come as their terms, layers that are pictures.
WEIGHTS_A_SECOND, _BYTES, _PICTURES = 3e7, 1e7, 15
# Of a frame that shows the page, in pixels.
_WIDTH, _HEIGHT = 960, 900
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
{preview}<style>{style}</style>
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

# The same code as text would be three times as long. A page's script may begin a module only from an address.
_LOADER = """"use strict";
(async (script) => {{
  const packed = Uint8Array.from(atob("{code}"), (letter) => letter.charCodeAt(0));
  const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const {{code, style}} = await new Response(unpacked).json();
  const address = URL.createObjectURL(new Blob([code], {{type: "text/javascript"}}));
  const {{embedExplorer}} = await import(address);
  URL.revokeObjectURL(address);
  embedExplorer({{script, style, ...{values}}});
}})(document.currentScript);
"""


@dataclass(frozen=True, eq=False)
class Opening:
    """What an explorer opens on, and how its page is made."""

    selection: Selection
    theme: Literal["auto", "light", "dark"] = "auto"
    layers: Collection[int] | None = None
    progress: Progress | None = None


class Explorer(Selecting):
    """An interactive view of a trace; notebooks display it.

    Attributes:
        selection: the head on the screen and its pair: a dictionary with stream, layer (the model's number), head,
            query and key (positions; None for the head's own pair). Assign a dictionary to change it; missing names
            stay. A head that doesn't exist raises an error.
        theme: "light", "dark", or "auto" for the notebook's theme or the reader's system setting.
        title: the page's title.
    """

    selection: Any

    def __init__(self, trace: "Trace", opening: Opening) -> None:
        """Open on a head."""
        self._trace, self._opening = trace, opening
        self._page_data: tuple[Choice, bytes] | None = None
        self._listeners = list[Callable[[Selection], object]]()
        self.theme = opening.theme
        text = one_line(trace.provenance.text or "", _LONGEST_TITLE)
        self.title = " · ".join(part for part in (text, trace.provenance.model) if part)

    def __repr__(self) -> str:
        """Return title and head."""
        chosen = self.selection
        pair = "" if chosen["query"] is None else f", query {chosen['query']}, key {chosen['key']}"
        return f"<Explorer of {self.title!r}: {chosen['stream']}, layer {chosen['layer']}, head {chosen['head']}{pair}>"

    @property
    def payload(self) -> bytes:
        """The page's data: the trace as bytes, opened on the selection."""
        choice = Choice(**self.selection)
        if self._page_data is None or self._page_data[0] != choice:
            self._page_data = choice, self._pack(choice)
        return self._page_data[1]

    def _pack(self, choice: Choice) -> bytes:
        trace, layers, terms = self._trace, self._opening.layers, None
        if layers is not None or is_long(trace, MOST_IN_A_FILE):
            stream = self._opening.selection["stream"]
            terms = [(choice.stream, choice.layer)] if layers is None else [(stream, one) for one in layers]
        report = ahead("explore", *_size(trace, terms), self._opening.progress, "bytes")
        return pack(trace, choice=choice, terms=terms, progress=report)

    def html(self, *, url: str | None = None) -> str:
        """Return an offline HTML page, which allows no other host and opens on the selection.

        Args:
            url: the address that the page is published at, for previews of links to it. `save_html` writes the oEmbed
                file that it then names.
        """
        style, script = _element_text(_PAGE_STYLE + style_sheet()), _element_text(page_source())
        own = f"script-src '{_digest(script)}'; style-src '{_digest(style)}'"
        policy = f"default-src 'none'; {own}; media-src blob:; img-src blob:"
        return _PAGE.format(
            policy=policy,
            title=html.escape(xml_text(self.title)),
            preview=_preview(self.title, url),
            style=style,
            script=script,
            theme=self.theme,
            payload=base64.b64encode(self.payload).decode("ascii"),
        )

    def save_html(self, path: str | PathLike[str], *, url: str | None = None) -> None:
        """Write the page to one file at exactly that path; an existing file stays until the new one is complete.

        Args:
            path: the file.
            url: the address that you publish the page at, such as "https://example.org/bank.html". A second file beside
                it, "bank.json", then holds the oEmbed answer, which lets a blog show the explorer for a pasted link.

        Raises:
            OSError: a file can't be written.
            ValueError: the address isn't one of https or http, or `path` isn't an .html file.
        """
        page = self.html(url=url).encode()
        if url is not None:
            if Path(path).suffix.lower() not in (".html", ".htm"):
                raise ValueError(f"a page with an address is an .html file; got {Path(path).name!r}")
            write_whole(Path(path).with_suffix(".json"), oembed(self.title, url).encode())
        write_whole(path, page)

    def embed(self) -> str:
        """Return a script that shows the explorer behind its own ``<script src="…"></script>`` in any page.

        It needs no other file and asks no host. A shadow root keeps the page's style sheets out.
        """
        own = {
            "payload": base64.b64encode(self.payload).decode("ascii"),
            "title": xml_text(self.title),
            "theme": self.theme,
        }
        # JSON in ASCII is JavaScript; a page that inlines the script must not find its end in a text.
        values = json.dumps(own).replace("<", "\\u003c")
        return _LOADER.format(code=_packed_code(), values=values)

    def save_embed(self, path: str | PathLike[str]) -> None:
        """Write `embed` to one file at exactly that path.

        Args:
            path: the file, such as "bank.js".

        Raises:
            OSError: the file can't be written.
        """
        write_whole(path, self.embed().encode())


class ExplorerPage(Explorer):
    """An explorer without a notebook's channel: it displays as its whole page."""

    def __init__(self, trace: "Trace", opening: Opening) -> None:
        """Open on a head."""
        super().__init__(trace, opening)
        self._selection = opening.selection

    @property
    def selection(self) -> Selection:
        """The head that the page opens on."""
        return self._selection

    @selection.setter
    def selection(self, wanted: Mapping[str, Any]) -> None:
        found = checked(self._trace, self._selection, wanted)
        if found != self._selection:
            self._selection = found
            for function in tuple(self._listeners):
                function(found)

    def _repr_html_(self) -> str:
        """Return the page in its own frame, because the notebook's styles and scripts would clash."""
        return (
            f'<iframe title="{html.escape(self.title)}" srcdoc="{html.escape(self.html())}" sandbox="allow-scripts" '
            'style="width:100%;height:900px;border:0;resize:vertical" loading="lazy"></iframe>'
        )


def check_trace(trace: object) -> None:
    """Refuse what isn't a trace, such as a model or a text."""
    from attention_viz.trace.trace import Trace

    if not isinstance(trace, Trace):
        raise TraceError(f"this shows a trace, not {type(trace).__name__}; record one with model.trace(text)")


def opening_of(
    trace: "Trace",
    *,
    stream: str | None = None,
    layer: int | None = None,
    head: int = 0,
    theme: Literal["auto", "light", "dark"] = "auto",
    layers: Collection[int] | None = None,
    progress: Progress | None = None,
) -> Opening:
    """Return what an explorer opens on, as `explore` takes it."""
    check_trace(trace)
    if theme not in _THEMES:
        raise ValueError(f"unknown theme {theme!r}; choose {', '.join(_THEMES)}")
    stream = trace.stream(stream or word_stream(trace))
    layer = trace.layer_numbers(stream)[0] if layer is None else layer
    before = {"stream": stream, "layer": layer, "head": head, "query": None, "key": None}
    chosen = checked(trace, before, before)
    call = trace.attention(chosen["layer"], stream)
    if isinstance(call, TokenMixer):
        check_head(stream, layer, head, pictures_of(call))
    for wanted in layers or ():
        _ = trace.attention(wanted, stream)
    return Opening(chosen, theme, layers, progress)


def _size(trace: "Trace", terms: Collection[tuple[str, int]] | None) -> tuple[float, float]:
    calls = [layer.attention for layers in trace.layers.values() for layer in layers]
    if terms is None:
        weights = sum(math.prod(call.shape) for call in calls) + sum(map(mixer_cells, trace.mixers.values()))
        return 2.0 * weights, weights / WEIGHTS_A_SECOND
    wanted = [trace.attention(layer, stream) for stream, layer in terms]
    carried = 4 * sum(call.query.numel() + call.key.numel() for call in wanted)
    return carried * 4 / 3, carried / _BYTES + len(calls) / _PICTURES


@functools.cache
def _packed_code() -> str:
    style, code = embed_source()
    made = json.dumps({"code": f"{code}\nexport {{embedExplorer}};\n", "style": style})
    return base64.b64encode(zlib.compress(made.encode(), 9)).decode("ascii")


def _preview(title: str, url: str | None) -> str:
    """Return what a chat or a blog reads of a link to the page: a title and a sentence; with its address, oEmbed."""
    name = xml_text(title)
    about = "An interactive view of the attention that a transformer computed."
    tags = [("og:type", "website"), ("og:title", name), ("og:description", about)]
    links = ""
    if url is not None:
        tags.append(("og:url", _web(url)))
        answer = html.escape(oembed_address(url))
        links = f'<link rel="canonical" href="{html.escape(url)}">\n'
        links += f'<link rel="alternate" type="application/json+oembed" href="{answer}" title="{html.escape(name)}">\n'
    lines = [f'<meta property="{one}" content="{html.escape(value)}">\n' for one, value in tags]
    return "".join(lines) + links


def oembed_address(url: str) -> str:
    """Return the address of the oEmbed answer beside a page."""
    parts = urlsplit(_web(url))
    return urlunsplit((*parts[:2], re.sub(r"\.html?$", ".json", parts.path, flags=re.IGNORECASE), "", ""))


def oembed(title: str, url: str) -> str:
    """Return a page's oEmbed answer: a frame without rights of its own."""
    name = xml_text(title)
    frame = (
        f'<iframe src="{html.escape(_web(url))}" title="{html.escape(name)}" sandbox="allow-scripts" width="{_WIDTH}" '
        f'height="{_HEIGHT}" style="border:0;max-width:100%"></iframe>'
    )
    answer = {"version": "1.0", "type": "rich", "title": name, "html": frame, "width": _WIDTH, "height": _HEIGHT}
    return json.dumps(answer, ensure_ascii=False)


def _web(url: str) -> str:
    parts = urlsplit(url)
    if (
        parts.scheme not in ("https", "http")
        or not parts.netloc
        or not re.search(r"\.html?$", parts.path, re.IGNORECASE)
    ):
        raise ValueError(f"a page's address begins with https:// and ends with .html; got {url!r}")
    return url


def _element_text(text: str) -> str:
    """Return our text for <script> or <style>; untrusted text never goes there."""
    if "</" in text or "<!--" in text:
        raise AssertionError("the component's source must not contain an end tag or the start of a comment")
    return text


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
