"""The matrices of a head's steps, drawn like the explorer's."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import streamlit as st
import torch
from torch import Tensor

from attention_viz.explorer.chart_payload import Grid
from attention_viz.steps.head import OpenHead
from attention_viz.steps.mixing import MixerHead
from attention_viz.ui.controls.chart import show_grid
from attention_viz.ui.pages.steps.numbers import label_of

# Of a larger matrix, so many rows and columns around the chosen cell are sent.
_MOST_CELLS, _WINDOW = 250_000, 400
_TITLES = {"query": "Queries", "key": "Keys", "token": "Tokens", "one": ""}


@dataclass(frozen=True, eq=False)
class Numbers:
    """A matrix with its axes, names as in `Step.axes`.

    Attributes:
        weights: whether the numbers are weights of a softmax, 0 to 1.
        blocked: its blocked cells.
        turned: whether rows and columns change places on the page.
    """

    title: str
    values: Tensor
    axes: tuple[str, str]
    weights: bool = False
    blocked: Tensor | None = None
    turned: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows and columns, before any turning."""
        rows, columns = self.values.shape
        return rows, columns


def show_numbers(
    opened: OpenHead | MixerHead,
    numbers: Numbers,
    key: str,
    cell: tuple[int, int] | None = None,
    on_click: Callable[[tuple[int, int]], None] | None = None,
) -> None:
    """Draw a matrix; a click sends the cell with tokens as rows."""
    shown = [_near(at, count, numbers.shape) for at, count in zip(cell or (0, 0), numbers.shape, strict=True)]
    if [len(one) for one in shown] != list(numbers.shape):
        rows, columns = (f"{one.start} to {one.stop - 1}" for one in shown)
        st.caption(f"Rows {rows} and columns {columns} of {numbers.shape[0]:,} × {numbers.shape[1]:,}.")

    def take(pressed: tuple[int, int]) -> None:
        row, column = pressed[::-1] if numbers.turned else pressed
        if on_click is not None:
            on_click((shown[0].start + row, shown[1].start + column))

    show_grid(_grid(opened, numbers, shown, cell), key, None if on_click is None else take)


def _grid(opened: OpenHead | MixerHead, numbers: Numbers, shown: Sequence[range], cell: tuple[int, int] | None) -> Grid:
    rows, columns = (slice(one.start, one.stop) for one in shown)
    values = numbers.values[rows, columns].detach().float().cpu()
    blocked = values.isneginf() if numbers.blocked is None else numbers.blocked[rows, columns].cpu()
    values = values.masked_fill(~values.isfinite(), torch.nan)
    labels = [axis_labels(opened, axis, one) for axis, one in zip(numbers.axes, shown, strict=True)]
    titles = [_TITLES.get(axis, "Dimensions") for axis in numbers.axes]
    chosen = None if cell is None else (cell[0] - shown[0].start, cell[1] - shown[1].start)
    if numbers.turned:
        values, blocked, labels, titles = values.T, blocked.T, labels[::-1], titles[::-1]
        chosen = None if chosen is None else (chosen[1], chosen[0])
    return Grid(
        values,
        labels[0],
        labels[1],
        row_title=titles[0],
        column_title=titles[1],
        colours=numbers.axes == ("query", "key") and not numbers.turned,
        scale="weight" if numbers.weights else "mixed" if _is_mixed(opened, numbers) else "signed",
        blocked=blocked if bool(blocked.any()) else None,
        chosen=chosen,
        words=f"{numbers.title}: {len(labels[0])} rows, {len(labels[1])} columns.",
    )


def _is_mixed(opened: OpenHead | MixerHead, numbers: Numbers) -> bool:
    """Return whether the numbers link tokens without a softmax, as the explorer's matrix of such a head."""
    return isinstance(opened, MixerHead) and numbers.axes == ("query", "key")


def axis_labels(opened: OpenHead | MixerHead, axis: str, places: range) -> list[str]:
    """Return the labels of an axis."""
    return [label_of(opened, axis, at) for at in places]


def _near(place: int, count: int, shape: tuple[int, int]) -> range:
    if shape[0] * shape[1] <= _MOST_CELLS:
        return range(count)
    start = max(0, min(place - _WINDOW // 2, count - _WINDOW))
    return range(start, min(count, start + _WINDOW))
