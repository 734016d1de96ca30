"""Name a text's placeholders by the rectangles of the images that they read."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from cachetools import LRUCache

from attention_viz.errors import UnsupportedModel
from attention_viz.inputs.media.remade import Remade
from attention_viz.inputs.media.remade_sound import RemadeSound
from attention_viz.recording.layout.measured import Regions, measured
from attention_viz.recording.layout.measured_times import measured_times
from attention_viz.trace.tokens import Region, Tokens

if TYPE_CHECKING:
    from attention_viz.recording.runner import Runner

# Shapes of images whose places are kept, per model.
_MOST_KEPT = 64


@dataclass(frozen=True)
class Placeholders:
    """A text's placeholders and their rectangles.

    Attributes:
        marks: their positions in the text.
        regions: the rectangle of each; None if it has no place.
        why: the reason if nothing could be measured, else empty.
        tower: the rectangle of each position of the image's own stream, if that has tiles; else empty.
        images: the number of images beside the text; 0 if unknown.
        heard: whether they read audio, so that each has a stretch of time.
    """

    marks: tuple[int, ...] = ()
    regions: Regions = ()
    why: str = ""
    tower: Regions = ()
    images: int = 0
    heard: bool = False

    @property
    def what(self) -> str:
        """The kind of input that they read."""
        if self.heard:
            return "audio"
        return "video" if any(one is not None and one.start is not None for one in self.regions) else "image"

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know, in sentences."""
        if self.why:
            return (f"The placeholders have no places: {self.why}.",)
        lost = self.regions.count(None)
        if not lost:
            return ()
        if self.heard:
            return (
                f"{lost} of {len(self.marks)} placeholders have no time in the audio: no sound moves them, or all do.",
            )
        return (
            f"{lost} of {len(self.marks)} placeholders have no place in the {self.what}: no pixel moves them, as ends "
            "of lines, or all pixels do.",
        )

    def placed(self, words: Tokens) -> Tokens:
        """Return the text's tokens, with each placeholder named by its place; without ids, since patches have none."""
        of = dict(zip(self.marks, self.regions, strict=True))
        placed = [one for one in self.regions if one is not None]
        names, grid = _timed(placed) if self.heard else _named(placed)
        regions = tuple(of.get(at) for at in range(len(words)))
        labels = tuple(names[one] if one else label for one, label in zip(regions, words.labels, strict=True))
        return replace(
            words,
            labels=labels,
            ids=None if of else words.ids,
            words=tuple(None if at in of else word for at, word in enumerate(words.words)),
            special=tuple(of[at] is None if at in of else special for at, special in enumerate(words.special)),
            spelling=tuple("text" if at in of else how for at, how in enumerate(words.spelling)),
            place=tuple(grid.get(one) if one else None for one in regions),
            regions=regions,
        )


@dataclass(frozen=True, eq=False)
class MeasuredPlaceholders:
    """Measures a model's placeholders, once per shape of its images."""

    _known: "LRUCache[object, tuple[Regions, Regions] | str]" = field(default_factory=lambda: LRUCache(_MOST_KEPT))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, runner: "Runner", remade: Remade | RemadeSound | None, marks: Sequence[int]) -> Placeholders:
        """Return the rectangle or stretch of each placeholder."""
        if remade is None:
            why = "the size that the model reads can't be found; if you passed tensors, pass the thing itself"
            return Placeholders(tuple(marks), (None,) * len(marks), why)
        key = (*remade.key, len(marks))
        with self._lock:
            found = self._known.get(key)
        if found is None:
            try:
                if isinstance(remade, RemadeSound):
                    found = measured_times(runner, remade, marks), ()
                else:
                    found = measured(runner, remade, marks)
            except UnsupportedModel as error:
                found = str(error)
            with self._lock:
                self._known[key] = found
        if isinstance(found, str):
            return Placeholders(tuple(marks), (None,) * len(marks), found)
        regions, tower = found
        if isinstance(remade, RemadeSound):
            return Placeholders(tuple(marks), regions, heard=True)
        return Placeholders(tuple(marks), regions, "", tower, len(remade.sizes))


def _timed(regions: Sequence[Region]) -> tuple[Mapping[Region, str], Mapping[Region, tuple[float, ...]]]:
    """Return each stretch's label and place in time."""
    starts = {one: round(one.start or 0.0, 6) for one in regions}
    return {one: f"{start:.2f} s" for one, start in starts.items()}, {one: (start,) for one, start in starts.items()}


def _named(regions: Sequence[Region]) -> tuple[Mapping[Region, str], Mapping[Region, tuple[float, ...]]]:
    """Return each rectangle's label, and its row and column if one image's rectangles are a grid."""
    names, grid = dict[Region, str](), dict[Region, tuple[float, ...]]()
    pictures = {one.picture for one in regions}
    for picture in pictures:
        for thumbnail in (False, True):
            own = [one for one in regions if one.picture == picture and one.thumbnail == thumbnail]
            rows = sorted({(one.top, one.bottom) for one in own}, key=sum)
            columns = sorted({(one.left, one.right) for one in own}, key=sum)
            time = own[0].start if own else None
            before = f"{time:.2f} s:" if time is not None else f"{picture + 1}:" if len(pictures) > 1 else ""
            before += "thumbnail:" if thumbnail else ""
            cells = {one: (rows.index((one.top, one.bottom)), columns.index((one.left, one.right))) for one in own}
            names |= {one: f"{before}{row},{column}" for one, (row, column) in cells.items()}
            if (
                time is None
                and len(pictures) == 1
                and not thumbnail
                and len(cells) == len(own)
                and _even(rows)
                and _even(columns)
            ):
                grid = {one: (float(row), float(column)) for one, (row, column) in cells.items()}
    return names, grid


def _even(edges: Sequence[tuple[float, float]]) -> bool:
    """Return whether intervals divide the side evenly: each centre is in its own part."""
    return all(at < (low + high) / 2 * len(edges) < at + 1 for at, (low, high) in enumerate(edges))
