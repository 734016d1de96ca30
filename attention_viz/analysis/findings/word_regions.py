"""Image regions that single words of the text beside it attend to."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attention_viz.analysis.findings.finding import Candidate
from attention_viz.analysis.findings.regions import PatchGrid, connected
from attention_viz.analysis.findings.scene import StreamScene
from attention_viz.trace.kind import Unit

WORD_REGION = "region of a word"
# A patch belongs to the region if it has this share of the row's largest weight on the image.
_TOGETHER = 0.5
# The least share of the row, how many times its share of the image that is, and the largest share of the image.
_LEAST, _TIMES, _LARGEST = 0.4, 3.0, 0.25
# What others may give at most, as a part of the word's own: the same row to another region of the same shape, and the
# other words to this region.
_CONTROL = 0.5


@dataclass(frozen=True, eq=False)
class WordRegion:
    """A region that a word attends to.

    Attributes:
        share: of the row's weights.
        times: its share of the weight on the image, divided by its share of the image.
        area: its share of the image.
        patches: the number of its patches.
        heaviest: the patch with the largest weight.
        elsewhere: the largest share of another region of the same shape.
        others: the mean share that other words give to it; 0 without others.
    """

    share: float
    times: float
    area: float
    patches: int
    heaviest: int
    elsewhere: float
    others: float

    @property
    def stands_out(self) -> bool:
        """Whether neither another region nor another word does the same."""
        outstanding = self.share >= _LEAST and self.times >= _TIMES and self.area <= _LARGEST
        return outstanding and max(self.elsewhere, self.others) <= _CONTROL * self.share


def word_regions_of(scene: StreamScene) -> list[Candidate]:
    """Return each head's best region of a word; empty without words beside an image."""
    rows = words_beside(scene)
    if not rows or not scene.alike or not scene.queries.tokens.patches:
        return []
    return [
        Candidate(
            *(WORD_REGION, found.share * (1 - found.area), found.share, scene.stream, layer, head, word, key),
            words=found.patches,
        )
        for layer in scene.trace.layer_numbers(scene.stream)
        for head, word, key, found in _of_layer(scene, layer, rows)
    ]


def words_beside(scene: StreamScene) -> list[int]:
    """Return the words after an image's first patch that aren't patches, special or padding."""
    first = next(iter(scene.queries.tokens.patches), None)
    if first is None:
        return []
    every = zip(scene.queries.pieces, scene.queries.kinds, scene.queries.units, strict=True)
    return [
        word
        for word, (pieces, kind, unit) in enumerate(every)
        if unit is Unit.WORD and pieces[0] > first and kind not in ("special", "padding", "sign")
    ]


def word_region(scene: StreamScene, layer: int, head: int, word: int) -> WordRegion | None:
    """Return the region around the patch that a word gives most to; None without weight on the image."""
    rows = words_beside(scene)
    grid, weights = PatchGrid.of(scene), _weights(scene, layer, rows)[head]
    return _region(grid, grid.of_weights(weights), rows.index(word))


def regions_by_head(
    scene: StreamScene, layer: int, rows: list[int]
) -> Iterator[tuple[int, list[tuple[int, WordRegion]]]]:
    """Yield each head's number of words with content, and those that attend to one region; `rows` are words."""
    grid = PatchGrid.of(scene)
    content = [at for at, word in enumerate(rows) if scene.queries.kinds[word] in ("content", "pronoun")]
    for maps in grid.of_weights(_weights(scene, layer, rows)):
        found = [(rows[at], _region(grid, maps, at)) for at in content]
        yield len(content), [(word, one) for word, one in found if one is not None and one.stands_out]


def _of_layer(scene: StreamScene, layer: int, rows: list[int]) -> list[tuple[int, int, int, WordRegion]]:
    best = list[tuple[int, int, int, WordRegion]]()
    for head, (_, found) in enumerate(regions_by_head(scene, layer, rows)):
        if found:
            word, one = max(found, key=lambda each: each[1].share * (1 - each[1].area))
            best.append((head, word, scene.queries.of_position[one.heaviest], one))
    return best


def _weights(scene: StreamScene, layer: int, rows: list[int]) -> Float[Tensor, "head row key"]:
    """Return the rows of the words' last tokens."""
    positions = [scene.queries.pieces[word][-1] for word in rows]
    return scene.trace.attention(layer, scene.stream).rows(positions).weights.detach().float().cpu().nan_to_num(0)


def _region(grid: PatchGrid, maps: Float[Tensor, "row down across"], at: int) -> WordRegion | None:
    own, patches = maps[at], grid.positions >= 0
    most, seen = float(own.max()), float(own.sum())
    if most <= 0:
        return None
    region = _around(own >= _TOGETHER * most, own)
    count = int(region.sum())
    share, area = float(own[region].sum()), count / int(patches.sum())
    heaviest = int(grid.positions.flatten()[own.argmax()])
    others = torch.cat([maps[:at], maps[at + 1 :]])[:, region].sum(dim=1)
    mean = float(others.mean()) if len(others) else 0.0
    return WordRegion(share, share / seen / area, area, count, heaviest, _elsewhere(own, region), mean)


def _around(inside: Bool[Tensor, "down across"], weights: Float[Tensor, "down across"]) -> Bool[Tensor, "down across"]:
    """Return the connected part with the largest weight."""
    start = divmod(int(weights.argmax()), weights.shape[1])
    part = next(one for one in connected(inside) if start in one)
    found = torch.zeros_like(inside)
    for row, column in part:
        found[row, column] = True
    return found


def _elsewhere(weights: Float[Tensor, "down across"], region: Bool[Tensor, "down across"]) -> float:
    """Return the largest weight in the same shape elsewhere, without overlap; the region's own if it fits nowhere."""
    rows, columns = (one.nonzero()[:, 0] for one in (region.any(dim=1), region.any(dim=0)))
    top, left = int(rows[0]), int(columns[0])
    shape = region[top : int(rows[-1]) + 1, left : int(columns[-1]) + 1]
    kernel = shape.to(weights)[None, None]
    sums = torch.nn.functional.conv2d(weights[None, None], kernel)[0, 0]
    overlap = torch.nn.functional.conv2d(region.to(weights)[None, None], kernel)[0, 0]
    free = sums[overlap == 0]
    return float(free.max()) if free.numel() else float(weights[region].sum())
