"""A row's shares of what a slide is about: thirds of a word's time, regions of an image, or one of its patches."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from attention_viz.analysis.findings.finding import Finding
from attention_viz.analysis.findings.hearing import HEARD, THIRDS, word_thirds
from attention_viz.analysis.findings.regions import PatchGrid, connected
from attention_viz.analysis.findings.scene import StreamScene
from attention_viz.analysis.findings.spots import TOGETHER
from attention_viz.analysis.findings.word_regions import WORD_REGION
from attention_viz.analysis.places import patch_words
from attention_viz.analysis.slides.slide import SlidePicture
from attention_viz.trace.spelling import number_repeats
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Trace

_ELSEWHERE = "elsewhere"
# So many words beside an image, of at least this weight, have a bar of their own.
_WORDS, _LEAST = 4, 0.01


def shares_picture(trace: Trace, one: Finding) -> SlidePicture | None:
    """Return bars of a finding's thirds or regions, and the rest of the row; None for other kinds."""
    scene = StreamScene(trace, one.stream)
    if one.kind == HEARD:
        shares = _thirds(scene, one)
    elif one.kind == "regions":
        shares = _regions(scene, one)
    elif one.kind in ("region", WORD_REGION):
        shares = [(patch_words(scene.keys.tokens, one.key), one.strength)]
    else:
        return None
    values = [value for _, value in shares]
    labels = (*number_repeats([label for label, _ in shares]), _ELSEWHERE)
    numbers = tuple(round(value, 6) for value in (*values, max(0.0, 1 - sum(values))))
    return SlidePicture("bars", labels, (False,) * len(labels), numbers, None, values.index(max(values)))


def patch_shares(
    tokens: Tokens,
    values: Float[Tensor, " key"],
    key: int,
    *,
    before: Float[Tensor, " key"] | None = None,
    unit: str = "weight",
) -> SlidePicture | None:
    """Return bars of a row over patches: the key, the image's rest and the heaviest words; None without patches.

    Args:
        before: the same row before a change.
    """
    if not tokens.patches:
        return None
    said, patches = tokens.names, tokens.patches
    rows = [one.nan_to_num(0) for one in (values, values if before is None else before)]
    heaviest: list[float] = torch.maximum(*rows).tolist()
    where = patch_words(tokens, key)
    groups = [(f"the patch {where}" if where else said[key], [key])]
    groups.append(("other patches" if where else "patches", [at for at in patches if at != key]))
    words = sorted((at for at in range(len(tokens)) if at not in patches and at != key), key=lambda at: -heaviest[at])
    shown = [at for at in words[:_WORDS] if heaviest[at] >= _LEAST]
    groups += [(said[at], [at]) for at in shown]
    if rest := words[len(shown) :]:
        groups.append(("other words", rest))
    labels = tuple(label for label, _ in groups)
    now, was = (
        tuple(_sum(row, inside) for _, inside in groups) for row in (values, values if before is None else before)
    )
    dim = (False,) * len(labels)
    return SlidePicture("bars", labels, dim, now, None, 0, before=() if before is None else was, unit=unit)


def _sum(row: Float[Tensor, " key"], inside: Sequence[int]) -> float | None:
    """Return the sum of some numbers; None if all are blocked."""
    found = row[list(inside)]
    return None if len(found) and not bool(found.isfinite().any()) else round(float(found.nan_to_num(0).sum()), 6)


def _row(scene: StreamScene, one: Finding, rows: Sequence[int]) -> Float[Tensor, " key"]:
    weights = scene.trace.attention(one.layer, one.stream).rows(list(rows)).weights[one.head]
    return weights.detach().double().cpu().nan_to_num(0).mean(dim=0)


def _thirds(scene: StreamScene, one: Finding) -> list[tuple[str, float]]:
    rows, thirds = next(found for found in word_thirds(scene) if found[0][0] == one.query)
    row, inside = _row(scene, one, rows), torch.from_numpy(thirds)
    return [(f"{name} third", float(row[inside == third].sum())) for third, name in enumerate(THIRDS)]


def _regions(scene: StreamScene, one: Finding) -> list[tuple[str, float]]:
    grid = PatchGrid.of(scene)
    weights = grid.of_weights(_row(scene, one, [one.query]))
    found = list[tuple[str, float]]()
    for part in connected(weights >= TOGETHER * weights.max()):
        heaviest = max(part, key=lambda at: float(weights[at]))
        share = sum(float(weights[at]) for at in part)
        found.append((patch_words(scene.keys.tokens, int(grid.positions[heaviest])), share))
    return sorted(found, key=lambda region: -region[1])
