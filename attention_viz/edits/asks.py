"""What has to be chosen for a change beside its place: nothing, a number, a cell, or a drawing; each as text.

Each reads and writes its own detail; controls on pages are made of what each says of itself.
"""

import re
from dataclasses import dataclass, replace

from attention_viz.edits.change import Cell, Change

__all__ = ["ASKS", "Asks", "Drawing", "Nothing", "NumberDetail", "OneCell"]

_NUMBER = re.compile(r"-?[0-9]{1,3}(\.[0-9]{1,4})?")
_CELL = re.compile(r"([0-9]{1,4})>([0-9]{1,4})")


@dataclass(frozen=True)
class Nothing:
    """A change that is known by its name."""

    def read(self, change: Change, detail: str | None) -> Change | None:
        """The change, unless something was written where nothing is asked for."""
        return change if detail is None else None

    def write(self, change: Change) -> str | None:
        """Nothing."""
        return None


@dataclass(frozen=True)
class NumberDetail:
    """A change that needs a number, written with at most four digits after the point.

    Attributes:
        label: what the number is called on pages.
        lowest: the smallest that can be chosen.
    """

    label: str
    lowest: float
    highest: float
    start: float
    step: float

    def read(self, change: Change, detail: str | None) -> Change | None:
        """The change with its number; None for what is none, or beyond what can be chosen."""
        number = float(detail) if detail is not None and _NUMBER.fullmatch(detail) else None
        return replace(change, detail=number) if number is not None and self.lowest <= number <= self.highest else None

    def write(self, change: Change) -> str | None:
        """The number, such as "0.5"."""
        return f"{change.number:.4f}".rstrip("0").rstrip(".")


@dataclass(frozen=True)
class OneCell:
    """A change that needs a query and a key.

    Attributes:
        query: what the query is called on pages.
    """

    query: str
    key: str

    def read(self, change: Change, detail: str | None) -> Change | None:
        """The change with its cell; None for none, or several."""
        cells = _read_cells(detail)
        return replace(change, detail=cells) if len(cells) == 1 else None

    def write(self, change: Change) -> str | None:
        """The cell, such as "4>5"."""
        return _write_cells(change.cells)


@dataclass(frozen=True)
class Drawing:
    """A change that needs cells drawn by hand."""

    def read(self, change: Change, detail: str | None) -> Change | None:
        """The change with its cells; None where one of them can't be read."""
        cells = _read_cells(detail)
        return replace(change, detail=cells) if cells else None

    def write(self, change: Change) -> str | None:
        """The cells, such as "2>4,3>4"."""
        return _write_cells(change.cells)


Asks = Nothing | NumberDetail | OneCell | Drawing

# In the order in which pages offer changes: those that ask for less come first.
ASKS = (Nothing, NumberDetail, OneCell, Drawing)


def _read_cells(detail: str | None) -> tuple[Cell, ...]:
    """Cells in their order, each once; none where one of them can't be read."""
    found = [_CELL.fullmatch(one.strip()) for one in (detail or "").split(",")]
    cells = {(int(one[1]), int(one[2])) for one in found if one is not None}
    return () if None in found else tuple(sorted(cells))


def _write_cells(cells: tuple[Cell, ...]) -> str:
    return ",".join(f"{query}>{key}" for query, key in cells)
