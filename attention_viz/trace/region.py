"""A rectangle of an image, or of some frames of a video."""

from dataclasses import astuple, dataclass
from math import isfinite

from attention_viz.errors import TraceError

__all__ = ["Region"]


@dataclass(frozen=True)
class Region:
    """The rectangle of an image that one position reads, in shares of its height and width, from 0 to 1.

    Attributes:
        picture: the image's number, from 0; in a video, the number of the first frame that it reads.
        top: its upper edge.
        left: its left edge.
        bottom: its lower edge.
        right: its right edge.
        thumbnail: whether the model reads it from a reduced copy of the whole image, beside tiles in full size.
        start: the time of the first frame that it reads, in seconds; None without a video.
        end: the time of the last frame that it reads, in seconds; None without a video.
    """

    picture: int
    top: float
    left: float
    bottom: float
    right: float
    thumbnail: bool = False
    start: float | None = None
    end: float | None = None

    def __post_init__(self) -> None:
        """Refuse a rectangle outside the image, or without an area."""
        inside = 0 <= self.top < self.bottom <= 1 and 0 <= self.left < self.right <= 1
        if self.picture < 0 or not inside:
            raise TraceError(f"a region needs an image's number and edges in order, from 0 to 1; got {astuple(self)}")

        times = [one for one in (self.start, self.end) if one is not None]
        if len(times) == 1 or not all(map(isfinite, times)) or times != sorted(times):
            raise TraceError(f"a region of a video needs two times, in order; got {self.start} and {self.end}")

    @property
    def area(self) -> float:
        """Its share of the image."""
        return (self.bottom - self.top) * (self.right - self.left)

    @property
    def cell(self) -> tuple[int, int]:
        """Its row and column among rectangles of its size, from 0."""
        return round(self.top / (self.bottom - self.top)), round(self.left / (self.right - self.left))

    @property
    def label(self) -> str:
        """Its row and column, its time, and whether it is of the reduced copy."""
        row, column = self.cell
        time = "" if self.start is None else f"{self.start:.2f} s:"
        return f"{time}{'thumbnail:' if self.thumbnail else ''}{row},{column}"
