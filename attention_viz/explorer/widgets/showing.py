"""The components of the app for notebooks."""

import importlib
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Literal

from attention_viz.analysis.metrics import METRICS
from attention_viz.circuits.asked import Logit, Score
from attention_viz.errors import ShapeError
from attention_viz.explorer.page import Explorer, ExplorerPage, Opening, check_trace, opening_of
from attention_viz.explorer.widgets.selection import HeadWidget, MaskWidget, checked
from attention_viz.trace.ahead import Progress

if TYPE_CHECKING:
    from torch import Tensor

    from attention_viz.models.model import AttentionModel
    from attention_viz.trace.trace import Trace

__all__ = ["atlas", "explore", "mask", "steps", "why"]


def explore(
    trace: "Trace",
    *,
    stream: str | None = None,
    layer: int | None = None,
    head: int = 0,
    theme: Literal["auto", "light", "dark"] = "auto",
    layers: Collection[int] | None = None,
    progress: Progress | None = None,
) -> Explorer:
    """Show a trace: arcs over its tokens, the grid of all heads, and one head as a matrix.

    In a notebook with the extra `notebook`, it is a widget. Python reads and sets the head on the screen.

    A long text, with more than some sixty million weights, includes the numbers of some layers only: their heads'
    queries and keys, and one normaliser per row. The browser computes every weight from these, exact to 1e-5. The other
    heads have a thumbnail. Work of more than ten seconds reports its size, expected time and progress on standard
    error.

    Args:
        trace: the trace, with all its streams, layers and heads.
        stream: the stream to open on; by default the first, or the words' beside an image. "mixer" has the layers
            without a softmax.
        layer: the layer to open on; by default the first kept one.
        head: the head to open on.
        theme: "light", "dark", or "auto" for the notebook's theme or the reader's system setting.
        layers: for a long text, the layers of that stream to include numbers of; by default the one it opens on.
            For 8,000 tokens, a layer of nine heads with d_k 64 takes some 25 MB.
        progress: called with the finished share, from 0 to 1, after each layer, instead of lines on standard error; its
            exceptions stop the work.

    Raises:
        TraceError: the stream or layer doesn't exist, or the layer isn't kept.
        ShapeError: the head doesn't exist.
        ValueError: the theme doesn't exist.
    """
    opening = opening_of(trace, stream=stream, layer=layer, head=head, theme=theme, layers=layers, progress=progress)
    if not has_widgets():
        return ExplorerPage(trace, opening)
    from attention_viz.explorer.widgets.explorer import ExplorerWidget

    return ExplorerWidget(trace, opening)


def atlas(
    traces: "Trace | Sequence[Trace]",
    stream: str | None = None,
    *,
    view: Literal["roles", "patterns", "colours"] = "roles",
    metric: str = "entropy",
    theme: Literal["auto", "light", "dark"] = "auto",
) -> HeadWidget:
    """Show all heads of a model as a widget: their roles, patterns, or one metric. Needs the extra `notebook`.

    Args:
        traces: one trace or several of the same model. Metrics and roles are means over them; patterns are the first's.
        stream: its name; by default the first.
        view: the content of each cell.
        metric: of `METRICS`, for the view "colours".
        theme: "light", "dark", or "auto" for the notebook's theme.

    Returns:
        The widget. `selection` and `on_select` work as in `Explorer`.

    Raises:
        TraceError: it isn't a trace, the stream doesn't exist, or has no softmax.
        ShapeError: `traces` is empty.
        ImportError: anywidget is missing.
        ValueError: the view, metric or theme doesn't exist.
    """
    _need_widgets("atlas")
    from attention_viz.explorer.widgets.atlas import VIEWS, AtlasWidget

    several = [traces] if not isinstance(traces, Sequence) else list(traces)
    if not several:
        raise ShapeError("the atlas needs at least one trace; got none")
    for one in several:
        check_trace(one)
    if view not in VIEWS:
        raise ValueError(f"unknown view {view!r}; choose {', '.join(VIEWS)}")
    if metric not in METRICS:
        raise ValueError(f"unknown metric {metric!r}; choose {', '.join(METRICS)}")
    return AtlasWidget(several, several[0].stream(stream or several[0].streams[0]), view, metric, theme)


def steps(
    trace: "Trace",
    layer: int | None = None,
    head: int = 0,
    query: int | None = None,
    key: int | None = None,
    *,
    stream: str | None = None,
    theme: Literal["auto", "light", "dark"] = "auto",
) -> HeadWidget:
    """Show one head step by step as a widget: from two vectors to a score, a weight and the output.

    Needs the extra `notebook`.

    Args:
        trace: the run.
        layer: its number, the model's own; by default the first.
        head: from 0.
        query: the position of the attending token; by default the last one's.
        key: the position of the attended token; by default the heaviest.
        stream: its name; by default the first.
        theme: "light", "dark", or "auto" for the notebook's theme.

    Returns:
        The widget. `selection` and `on_select` work as in `Explorer`.

    Raises:
        TraceError: the stream or layer doesn't exist, or only half a pair is given.
        ShapeError: the head or a position doesn't exist.
        ValueError: the theme doesn't exist.
        ImportError: anywidget is missing.
    """
    _need_widgets("steps")
    from attention_viz.explorer.widgets.steps import StepsWidget

    opening = opening_of(trace, stream=stream, layer=layer, head=head, theme=theme)
    pair = checked(trace, opening.selection, {"query": query, "key": key})
    return StepsWidget(trace, Opening(pair, theme))


def mask(
    model: "AttentionModel",
    trace: "Trace",
    layer: int | None = None,
    head: int = 0,
    *,
    allowed: "Tensor | None" = None,
    stream: str | None = None,
    theme: Literal["auto", "light", "dark"] = "auto",
) -> MaskWidget:
    """Show a head's weights before and after a mask that the reader paints, as a widget.

    Each change of the mask runs the model with it. Needs the extra `notebook`.

    Args:
        model: the model of the trace.
        trace: an unedited run of plain text.
        layer: its number, the model's own; by default the first.
        head: from 0.
        allowed: the mask to open with, (query, key), True if a query may attend to a key; by default none. It acts in
            all layers and heads of the stream, and can only block.
        stream: its name; by default the first.
        theme: "light", "dark", or "auto" for the notebook's theme.

    Returns:
        The widget. `allowed` is the mask on the screen, `trace` the run with it.

    Raises:
        TraceError: the stream or layer doesn't exist, the trace is another model's, from a file, edited or not of plain
            text, or the stream takes no mask.
        ShapeError: the head doesn't exist, or `allowed` isn't a boolean matrix of this text.
        ValueError: the theme doesn't exist.
        ImportError: anywidget is missing.
    """
    _need_widgets("mask")
    from attention_viz.explorer.widgets.mask import PaintedMaskWidget

    opening = opening_of(trace, stream=stream, layer=layer, head=head, theme=theme)
    return PaintedMaskWidget(model, trace, allowed, opening)


def why(
    model: "AttentionModel",
    trace: "Trace",
    of: Score | Logit,
    *,
    side: Literal["key", "query"] = "key",
    theme: Literal["auto", "light", "dark"] = "auto",
) -> HeadWidget:
    """Show what contributed to a score or a logit as a widget: heads, MLPs and words, as `decompose` returns them.

    Needs the extra `notebook`.

    Args:
        model: the model of the trace.
        trace: from this model.
        of: the number. A `Logit` without `against` is compared with the likeliest other word.
        side: of a `Score`, whether its key or its query is explained.
        theme: "light", "dark", or "auto" for the notebook's theme.

    Returns:
        The widget, opened on the head that contributed most. `selection` and `on_select` work as in `Explorer`.

    Raises:
        TraceError: the trace is another model's or comes from a file.
        ShapeError: a layer, head, position or token doesn't exist.
        UnusableText: the token's text isn't exactly one token.
        UnsupportedModel: the model can't be decomposed.
        ValueError: `of` is another number, or the side or theme doesn't exist.
        ImportError: anywidget is missing.
    """
    _need_widgets("why")
    from attention_viz.explorer.widgets.why import WhyWidget

    if not isinstance(of, Score | Logit):  # pyright: ignore[reportUnnecessaryIsInstance] -- a notebook's types aren't checked
        raise ValueError(f"av.why shows an av.Score or an av.Logit; got {of!r}")
    if side not in ("key", "query"):
        raise ValueError(f"unknown side {side!r}; choose key or query")
    return WhyWidget(model, trace, of, side, theme)


def has_widgets() -> bool:
    """Return whether anywidget, the extra `notebook`, can be imported."""
    try:
        importlib.import_module("anywidget")
    except ImportError:
        return False
    return True


def _need_widgets(name: str) -> None:
    if not has_widgets():
        raise ImportError(
            f"av.{name} is a notebook widget and needs anywidget; run pip install 'attention-viz[notebook]'"
        )
