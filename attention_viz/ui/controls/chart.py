"""Matrices and bars of any numbers, drawn like the explorer's."""

from collections.abc import Callable

from attention_viz.explorer import chart_source
from attention_viz.explorer.chart_payload import Bars, Grid, LitPhoto, pack_bars, pack_grid, pack_lit
from attention_viz.ui import widgets

draw_chart = widgets.component("chart", *chart_source())


def show_grid(grid: Grid, key: str, on_click: Callable[[tuple[int, int]], None] | None = None) -> None:
    """Draw a matrix; a click sends the row and the column."""

    def take() -> None:
        cell = widgets.sent_pair(key, "press", ("row", "column"))
        if on_click is not None and cell is not None and cell[0] < len(grid.rows) and cell[1] < len(grid.columns):
            on_click(cell)

    draw_chart(key=key, data=pack_grid(grid, clicks=on_click is not None), height="content", on_press_change=take)


def show_bars(bars: Bars, key: str, on_click: Callable[[int], None] | None = None) -> None:
    """Draw bars; a click sends the bar's number, from 0."""

    def take() -> None:
        at = widgets.whole({"at": widgets.sent(key, "press")}, "at")
        if on_click is not None and at is not None and at < len(bars.labels):
            on_click(at)

    draw_chart(key=key, data=pack_bars(bars, clicks=on_click is not None), height="content", on_press_change=take)


def show_lit(photo: LitPhoto, key: str) -> None:
    """Draw a photo lit by weights."""
    draw_chart(key=key, data=pack_lit(photo), height="content")
