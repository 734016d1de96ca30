"""A head's picture for an agent, bounded in size."""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attention_viz.cli.answers.answer import Answer
from attention_viz.errors import AttentionVizError

if TYPE_CHECKING:
    from attention_viz.trace.trace import Trace

# Pixels of an SVG's width; a PNG has three dots to each.
_WIDEST = 640
_MOST_BYTES = 2_000_000
_SIZE = re.compile(r'<svg[^>]* width="([\d.]+)" height="([\d.]+)"')


@dataclass(frozen=True, eq=False)
class HeadPicture:
    """A picture's answer and its file; an SVG is text."""

    answer: Answer
    content: bytes
    form: str


def draw_head(trace: "Trace", layer: int, head: int, stream: str | None, form: str, longest: int) -> HeadPicture:
    """Draw a head's weights; refuse an SVG of more than `longest` characters, or a PNG that is too large."""
    from attention_viz.views.export.browsers import needed
    from attention_viz.views.export.save import printed

    if form == "png":
        needed("format=png, unlike svg,")
    drawn, notes = _drawn(trace, layer, head, stream), list[str]()
    if form == "svg" and len(drawn) > longest:
        drawn = _drawn(trace, layer, head, stream, numbers=False)
        notes.append(f"The cells have no numbers; with them, the SVG has more than {longest:,} characters.")
    if form == "svg" and len(drawn) > longest:
        raise AttentionVizError(
            f"the SVG has {len(drawn):,} characters; ask with characters={len(drawn)}, or for format=png"
        )
    content = drawn.encode() if form == "svg" else printed(drawn, ("png",))["png"]
    if len(content) > _MOST_BYTES:
        raise AttentionVizError(f"the picture has {len(content):,} bytes; at most {_MOST_BYTES:,} are allowed")
    width, height = _size(drawn) if form == "svg" else _pixels(content)
    facts = {
        "layer": layer,
        "head": head,
        "stream": trace.stream(stream),
        "format": form,
        "width": round(width),
        "height": round(height),
        "bytes": len(content),
    }
    return HeadPicture(Answer("picture", trace.provenance.model, facts, notes=notes), content, form)


def _drawn(trace: "Trace", layer: int, head: int, stream: str | None, *, numbers: bool = True) -> str:
    from attention_viz.views import heatmap_svg

    drawn = heatmap_svg(trace, layer, head, stream, numbers=numbers)
    if _size(drawn)[0] <= _WIDEST:
        return drawn
    return heatmap_svg(trace, layer, head, stream, width=_WIDEST, numbers=numbers)


def _pixels(png: bytes) -> tuple[int, int]:
    """Return a PNG's width and height, which its header has."""
    return int.from_bytes(png[16:20]), int.from_bytes(png[20:24])


def _size(drawn: str) -> tuple[float, float]:
    found = _SIZE.match(drawn)
    assert found is not None
    return float(found[1]), float(found[2])
