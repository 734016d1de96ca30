"""What stands in the cells of a heatmap, and in which ink."""

from typing import Any

from attention_viz.views.style.marks import NUMBERS

__all__ = ["drawn", "inks", "printed"]


def drawn(figure: Any) -> list[Any]:
    """What a figure is made of, but for cells that only hold numbers."""
    return [one for one in figure.data if one.name != NUMBERS]


def printed(figure: Any) -> list[list[str]]:
    """The number in each cell of a figure of one matrix, "" where none is written."""
    return [[text for text, _ in row] for row in _cells(figure)]


def inks(figure: Any) -> list[list[str]]:
    """The ink of the number in each cell, "" where none is written."""
    return [[ink for _, ink in row] for row in _cells(figure)]


def _cells(figure: Any) -> list[list[tuple[str, str]]]:
    cells = figure.data[0]
    found = [[("", "")] * len(row) for row in cells.z]
    for part in (cells, *(one for one in figure.data if one.name == NUMBERS)):
        assert part.text is None or part.texttemplate == "%{text}"
        for row, texts in zip(found, part.text if part.text is not None else (), strict=part.text is not None):
            for at, text in enumerate(texts):
                if text.strip():
                    assert row[at] == ("", "")
                    row[at] = text, part.textfont.color
    return found
