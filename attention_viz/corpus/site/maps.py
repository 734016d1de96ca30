"""A head's queries and keys of several texts, as a scriptless picture."""

from collections.abc import Sequence
from html import escape

import torch
from torch import Tensor

from attention_viz.analysis.plane import Plane, plane_of
from attention_viz.corpus.one_text import Heads
from attention_viz.trace.trace import Trace

__all__ = ["maps_of"]

# Half the side of the picture.
_HALF = 100


def maps_of(runs: Sequence[Trace], heads: Heads) -> dict[tuple[str, int, int], str]:
    """By head its picture, as HTML."""
    return {place: _map(runs, *place) for place in heads}


def _map(runs: Sequence[Trace], stream: str, layer: int, head: int) -> str:
    calls = [run.attention(layer, stream).head(head) for run in runs]
    words = [[one.query_tokens(stream) for one in runs], [one.key_tokens(stream) for one in runs]]
    counted = [[list(tokens.counted) for tokens in some] for some in words]
    sides = [
        torch.cat([side.detach().double().cpu()[places] for side, places in zip(some, at, strict=True)])
        for some, at in zip(([call.query for call in calls], [call.key for call in calls]), counted, strict=True)
    ]
    labels = [
        [tokens.written[place] for tokens, places in zip(some, at, strict=True) for place in places]
        for some, at in zip(words, counted, strict=True)
    ]
    everything = [torch.ones(len(side), dtype=torch.bool) for side in sides]
    return _picture(plane_of(sides[0], sides[1], everything[0], everything[1]), labels[0], labels[1], len(runs))


def _picture(plane: Plane, queries: Sequence[str], keys: Sequence[str], texts: int) -> str:
    most = float(torch.cat([plane.queries, plane.keys]).abs().max()) or 1.0
    points = "".join(_points(plane.queries / most, queries, "query") + _points(plane.keys / most, keys, "key"))
    phrase = (
        f"{len(queries)} queries and {len(keys)} keys of {texts} texts, in the two directions in which they differ "
        f"most, which hold {plane.share:.0%} of how they differ"
    )
    side = _HALF + 5
    box = f"{-side} {-side} {2 * side} {2 * side}"
    return (
        f'<figure class="map"><svg viewBox="{box}" role="img" aria-label="{phrase}">{points}</svg><figcaption>'
        f'{phrase}. Round: <b class="query">queries</b>; square: <b class="key">keys</b>.</figcaption>'
        "</figure>"
    )


def _points(places: Tensor, labels: Sequence[str], kind: str) -> list[str]:
    found = list[str]()
    for (x, y), label in zip((places * _HALF).tolist(), labels, strict=True):
        phrase = f"<title>{kind} {escape(label)}</title>"
        if kind == "query":
            found.append(f'<circle class="q" cx="{x:.1f}" cy="{y:.1f}" r="1.8">{phrase}</circle>')
        else:
            found.append(
                f'<rect class="k" x="{x - 1.6:.1f}" y="{y - 1.6:.1f}" width="3.2" height="3.2">{phrase}</rect>'
            )
    return found
