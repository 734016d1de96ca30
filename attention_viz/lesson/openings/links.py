"""Openings about pairs of words: paint a mask, and draw lines between two texts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from attention_viz.lesson.openings.opening import Reply
from attention_viz.lesson.translation import translate

__all__ = ["PaintedMask", "WordLines"]


@dataclass(frozen=True)
class PaintedMask:
    """A mask to paint; a guess is one number per row: the sum of 2 to the power of each blocked column.

    Attributes:
        names: of the rows (queries) and columns (keys).
        blocked: the right guess.
        replies: the mask, each row as the only wrong one, each as the first of several, and swapped rows and columns.
    """

    kind: ClassVar[str] = "mask"
    bars: ClassVar[bool] = False
    names: tuple[str, ...]
    blocked: tuple[int, ...]
    replies: tuple[Reply, ...]

    @property
    def how(self) -> str:
        """The instruction."""
        return translate("Press or drag over the cells to block them. Arrow keys move, the space bar blocks.")

    @property
    def numbers(self) -> tuple[int, int]:
        """One number per row, of one bit per column."""
        return len(self.names), (1 << len(self.names)) - 1

    def outcome(self, numbers: tuple[int, ...]) -> int:
        """Return the place of a reply: right, or by the first wrong row."""
        count = len(self.names)
        wrong = [row for row in range(count) if numbers[row] != self.blocked[row]]
        if not wrong:
            return 0
        if list(numbers) == _swapped(self.blocked):
            return 2 * count + 1
        return 1 + wrong[0] + (count if len(wrong) > 1 else 0)

    def before(self) -> Mapping[str, object]:
        """Return the names."""
        return {
            "names": list(self.names),
            "label": translate("Mask: rows look, columns are looked at"),
            "open": translate("open"),
            "shut": translate("blocked"),
            "query": translate("looks ↓"),
            "key": translate("looked at →"),
        }

    def after(self) -> Mapping[str, object]:
        """Return the right rows."""
        return {"blocked": list(self.blocked)}


def _swapped(rows: tuple[int, ...]) -> list[int]:
    count = len(rows)
    return [sum((rows[row] >> column & 1) << row for row in range(count)) for column in range(count)]


@dataclass(frozen=True)
class WordLines:
    """Lines to draw from each word of one text to one of another; a guess is a place per word, or their count for none.

    Attributes:
        written: the words that look.
        read: the words that they look at.
        strongest: by word, the place of its largest weight.
        weights: those weights.
        replies: all right; else by the number of right lines, and for each by the first wrong word.
    """

    kind: ClassVar[str] = "lines"
    bars: ClassVar[bool] = False
    written: tuple[str, ...]
    read: tuple[str, ...]
    strongest: tuple[int, ...]
    weights: tuple[float, ...]
    replies: tuple[Reply, ...]

    @property
    def how(self) -> str:
        """The instruction."""
        return translate("Press a word on the left, then its word on the right. Keys: Tab, arrows and Enter.")

    @property
    def numbers(self) -> tuple[int, int]:
        """One number per word: a place, or the count of places."""
        return len(self.written), len(self.read)

    def outcome(self, numbers: tuple[int, ...]) -> int:
        """Return the place of a reply."""
        wrong = [at for at, (one, right) in enumerate(zip(numbers, self.strongest, strict=True)) if one != right]
        count = len(self.written)
        return 1 + (count - len(wrong)) * count + wrong[0] if wrong else 0

    def before(self) -> Mapping[str, object]:
        """Return both texts."""
        return {
            "written": list(self.written),
            "read": list(self.read),
            "label": translate("Lines between two texts"),
            "above": translate("translation"),
            "below": translate("source"),
            "linked": translate("linked to"),
            "open": translate("no line yet"),
        }

    def after(self) -> Mapping[str, object]:
        """Return the strongest links."""
        return {"strongest": list(self.strongest), "weights": list(self.weights)}
