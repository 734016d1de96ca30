"""Details of a change as text: nothing, a number, cells, a drawing.

Page controls follow from each detail.
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
        """Return the change unless it has text."""
        return change if detail is None else None

    def write(self, change: Change) -> str | None:
        """Nothing."""
        return None


@dataclass(frozen=True)
class NumberDetail:
    """A number with at most four digits after the point.

    Attributes:
        label: its name on pages.
        lowest: the smallest allowed.
    """

    label: str
    lowest: float
    highest: float
    start: float
    step: float

    def read(self, change: Change, detail: str | None) -> Change | None:
        """Return the change with its number; None if invalid or out of range."""
        number = float(detail) if detail is not None and _NUMBER.fullmatch(detail) else None
        return replace(change, detail=number) if number is not None and self.lowest <= number <= self.highest else None

    def write(self, change: Change) -> str | None:
        """The number, such as "0.5"."""
        return f"{change.number:.4f}".rstrip("0").rstrip(".")


@dataclass(frozen=True)
class OneCell:
    """A query and a key.

    Attributes:
        query: its name on pages.
    """

    query: str
    key: str

    def read(self, change: Change, detail: str | None) -> Change | None:
        """Return the change with its one cell, else None."""
        cells = _read_cells(detail)
        return replace(change, detail=cells) if len(cells) == 1 else None

    def write(self, change: Change) -> str | None:
        """The cell, such as "4>5"."""
        return _write_cells(change.cells)


@dataclass(frozen=True)
class Drawing:
    """A change that needs cells drawn by hand."""

    def read(self, change: Change, detail: str | None) -> Change | None:
        """Return the change with its cells; None if any is unreadable."""
        cells = _read_cells(detail)
        return replace(change, detail=cells) if cells else None

    def write(self, change: Change) -> str | None:
        """The cells, such as "2>4,3>4"."""
        return _write_cells(change.cells)


Asks = Nothing | NumberDetail | OneCell | Drawing

# In the order in which pages offer changes: those that ask for less come first.
ASKS = (Nothing, NumberDetail, OneCell, Drawing)


def _read_cells(detail: str | None) -> tuple[Cell, ...]:
    """Sorted, unique; none if any is unreadable."""
    found = [_CELL.fullmatch(one.strip()) for one in (detail or "").split(",")]
    cells = {(int(one[1]), int(one[2])) for one in found if one is not None}
    return () if None in found else tuple(sorted(cells))


def _write_cells(cells: tuple[Cell, ...]) -> str:
    return ",".join(f"{query}>{key}" for query, key in cells)
