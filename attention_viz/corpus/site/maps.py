"""A head's queries and keys of several texts, as a scriptless figure."""

from collections.abc import Sequence

import torch
from markupsafe import Markup

from attention_viz.analysis.plane import Plane, plane_of
from attention_viz.corpus.one_text import Heads
from attention_viz.corpus.site.frame import rendered
from attention_viz.trace.trace import Trace

# Half the side of the picture.
_HALF = 100


def maps_of(runs: Sequence[Trace], heads: Heads) -> dict[tuple[str, int, int], Markup]:
    """Return each head's figure."""
    return {place: _map(runs, *place) for place in heads}


def _map(runs: Sequence[Trace], stream: str, layer: int, head: int) -> Markup:
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


def _picture(plane: Plane, queries: Sequence[str], keys: Sequence[str], texts: int) -> Markup:
    most = float(torch.cat([plane.queries, plane.keys]).abs().max()) or 1.0
    points = [
        list(zip((side / most * _HALF).tolist(), labels, strict=True))
        for side, labels in ((plane.queries, queries), (plane.keys, keys))
    ]
    caption = (
        f"{len(queries)} queries and {len(keys)} keys of {texts} texts, along their two principal directions "
        f"({plane.share:.0%} of their variance)"
    )
    return rendered("map", queries=points[0], keys=points[1], caption=caption, side=_HALF + 5)
