"""Queries down, keys across: one head, its change by an edit, a layer's heads, and each layer's predictions."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from attention_viz.analysis.blocks import MOST_CELLS, Blocks, blocked_of, blocks_of, call_blocks, weights_of
from attention_viz.analysis.signed import mixer_of
from attention_viz.errors import ShapeError, TraceError
from attention_viz.operation.attention import Attention
from attention_viz.operation.token_mixer import TokenMixer
from attention_viz.trace.spelling import weight_text
from attention_viz.trace.trace import Trace
from attention_viz.views.figures.mixing import signed_matrix
from attention_viz.views.style.axes import arrange, label_axes, labelled_axis, pair_axes
from attention_viz.views.style.blocks import block_coordinates, block_note, cells, hover_texts, spans
from attention_viz.views.style.captions import caption, layer_name, model_name
from attention_viz.views.style.marks import LEAST, add_hatch, add_numbers
from attention_viz.views.style.scale import colour_bar, full_change, full_colour, round_up, weight_bar
from attention_viz.views.style.signed import carried_texts, largest_of, log_cells, precise
from attention_viz.views.style.theme import MONOSPACE, Palette, ThemeName, palette
from attention_viz.views.style.wording import escaped, readable, shortened, spread, token_names, with_minus

if TYPE_CHECKING:
    import pandas

__all__ = ["difference", "heatmap", "logit_lens", "side_by_side"]

Call = Attention | TokenMixer

# Matrices up to this size have their numbers printed in the cells.
_PRINTED_UP_TO = 14
_CHANGES_UP_TO = 12
_ACROSS = 4
_NAMED = 16
_HEIGHT, _TOP = 230, 70
# Up to so many positions a word has room in its cell, of so many letters.
_WRITTEN_UP_TO, _LETTERS, _SIZE = 16, 8, 10
# A layer's row, and what stands around all of them, in pixels.
_ROW, _AROUND, _LEAST = 20, 130, 320
# What is less likely than this isn't written.
_FAINT = 0.0005


def heatmap(
    trace: Trace, layer: int, head: int, stream: str | None = None, *, names: bool = True, theme: ThemeName = "light"
) -> go.Figure:
    """Draw one head's weights, queries down and keys across, with 0 in the colour of the page.

    The deepest colour is 1, or in long texts the largest weight, or a weight that nearly all stay below: the colour bar
    says which. Above 250,000 cells, each block of neighbours is drawn as its largest weight, and the title says so.

    Without a softmax, weights are signed: two colours for plus and minus, size on a logarithmic scale
    from the largest down to a ten-thousandth of it. Hover to read its share of the row's size and the row's sums.

    Args:
        trace: the run.
        layer: its number, the model's own.
        head: the head, from 0; the channel, if each has its own matrix.
        stream: the stream, such as "mixer"; None for the only one.
        names: True to name a cell's two tokens on hover; False to give their positions, which makes the figure of a
            long text a tenth as large.
        theme: "light" or "dark".

    Raises:
        TraceError: the layer or stream is missing, or the head has weights that aren't finite numbers.
        ShapeError: the head is missing.
    """
    stream = trace.stream(stream)
    colours = palette(theme)
    call = trace.attention(layer, stream).head(head)
    blocks = call_blocks(call)
    queries = token_names(trace.query_tokens(stream))
    keys = token_names(trace.key_tokens(stream))
    printed = names and _printed(blocks, _PRINTED_UP_TO)
    if isinstance(call, TokenMixer):
        figure = signed_matrix(blocks, call, queries, keys, colours, names=names, printed=printed)
    else:
        figure = go.Figure([_cells(blocks, queries, keys, colours, names=names)])
        add_hatch(figure, blocks.blocked, colours, size=blocks.size)
        if printed:
            add_numbers(figure, _weight, blocked=blocks.blocked)
    arrange(figure, escaped(caption(trace, layer, head, stream)), colours, note=block_note(blocks))
    label_axes(figure, colours, *pair_axes(queries, keys, colours, mixes=stream in trace.mixers))
    return figure


def _cells(blocks: Blocks, queries: list[str], keys: list[str], colours: Palette, *, names: bool) -> go.Heatmap:
    full = full_colour(blocks.values, max(blocks.shape))
    gap = 1 if _printed(blocks, _PRINTED_UP_TO) else 0
    more: dict[str, Any] = {"xgap": gap, "ygap": gap}
    if not names:
        more = {"z": numpy.where(blocks.blocked, numpy.float32("nan"), blocks.values), "hoverongaps": False}
        if blocks.whole:
            more["hovertemplate"] = "position %{y} attends to position %{x}: %{z:.6f}<extra></extra>"
    texts = None if not names and blocks.whole else _hover_texts(blocks, *((queries, keys) if names else (None, None)))
    bar = weight_bar(full, float(blocks.values.max(initial=0.0)))
    return cells(blocks.values, (0, full), colours.weights, texts, colorbar=bar, **block_coordinates(blocks), **more)


def _printed(blocks: Blocks, most: int) -> bool:
    return blocks.whole and max(blocks.shape) <= most


def _hover_texts(blocks: Blocks, queries: list[str] | None, keys: list[str] | None) -> numpy.ndarray:
    attends = "attends" if blocks.size[0] == 1 else "attend"
    most = "" if blocks.whole else "at most "
    return hover_texts(
        spans(blocks, 0, queries),
        spans(blocks, 1, keys),
        lambda query, key, i, j: (
            f"{query} {attends} to {key}: "
            + ("blocked" if blocks.blocked[i, j] else f"{most}{blocks.values[i, j]:.6f}")
        ),
    )


def difference(
    before: Trace, after: Trace, layer: int, head: int, stream: str | None = None, *, theme: ThemeName = "light"
) -> go.Figure:
    """Draw the change of one head's weights, after minus before, with 0 in the colour of the page.

    Cells that are blocked afterwards are hatched. The scale is symmetric. Above 250,000 cells, each block of neighbours
    is drawn as its largest change, and the title says so. Without a softmax, it is the change of signed weights, on
    `heatmap`'s logarithmic scale.

    Raises:
        TraceError: the layer or stream is missing, or the two have different lengths.
        ShapeError: the head is missing.
    """
    stream, colours = before.stream(stream), palette(theme)
    old, new = (trace.attention(layer, stream).head(head) for trace in (before, after))
    if old.shape != new.shape:
        raise TraceError(f"a difference needs matrices of one shape; got {old.shape} before and {new.shape} after")
    change = _change(old, new)
    queries = token_names(before.query_tokens(stream))
    keys = token_names(before.key_tokens(stream))
    largest, printed = full_change(change.values), _printed(change, _CHANGES_UP_TO)
    look: dict[str, Any] = {"xgap": int(printed), "ygap": int(printed)}
    texts = _change_texts(change, old, new, queries, keys)
    if isinstance(new, TokenMixer):
        figure = go.Figure([log_cells(change, colours, texts, "change", signed=True, **look)])
    else:
        look |= {"colorbar": colour_bar("change"), **block_coordinates(change)}
        figure = go.Figure([cells(change.values, (-largest, largest), colours.differences, texts, **look)])
    add_hatch(figure, change.blocked, colours, key=False, size=change.size)
    if printed and not isinstance(new, TokenMixer):
        add_numbers(figure, lambda number: _signed(number, 2), least=LEAST)
    title = f"{escaped(caption(before, layer, head, stream))}: after − before"
    arrange(figure, title, colours, note=block_note(change, "the largest change"))
    label_axes(figure, colours, *pair_axes(queries, keys, colours, mixes=stream in before.mixers))
    return figure


def _change(old: Call, new: Call) -> Blocks:
    def rows(some: slice) -> tuple[numpy.ndarray, numpy.ndarray]:
        before, after = old.rows(some), new.rows(some)
        return weights_of(after) - weights_of(before), blocked_of(after)

    return blocks_of((new.shape[-2], new.shape[-1]), rows)


def _change_texts(change: Blocks, old: Call, new: Call, queries: Sequence[str], keys: Sequence[str]) -> numpy.ndarray:
    names = spans(change, 0, queries), spans(change, 1, keys)
    if not change.whole:
        return hover_texts(
            *names, lambda query, key, i, j: f"{query} to {key}: by {_signed(float(change.values[i, j]), 6)}"
        )
    before, after = weights_of(old), weights_of(new)
    if isinstance(new, TokenMixer):
        return hover_texts(
            *names,
            lambda query, key, i, j: (
                f"{key} to {query}: {precise(float(before[i, j]))} before, {precise(float(after[i, j]))} after"
            ),
        )
    return hover_texts(
        *names, lambda query, key, i, j: f"{query} attends to {key}: {before[i, j]:.6f} before, {after[i, j]:.6f} after"
    )


def _signed(number: float, digits: int) -> str:
    return with_minus(f"{number:+.{digits}f}")


def side_by_side(trace: Trace, layer: int, stream: str | None = None, *, theme: ThemeName = "light") -> go.Figure:
    """Draw the weights of every head of one layer as small matrices, queries down and keys across.

    Above 250,000 cells in all, each block of neighbours is drawn as its largest weight, and the title says so.

    Without a softmax, weights are signed, as in `heatmap`, on one scale for all heads.

    Raises:
        TraceError: the layer or stream is missing, a head has weights that aren't finite numbers, or each channel has
            its own matrix.
    """
    stream, colours = trace.stream(stream), palette(theme)
    call = trace.attention(layer, stream)
    mixes = isinstance(call, TokenMixer)
    if mixes and call.per == "channel":
        raise TraceError(
            f"layer {layer} ({call.kind}) has a matrix for each of its {call.shape[0]} channels; draw one with "
            "heatmap, or all of them together with arrived"
        )
    heads = [call_blocks(call.head(head), most=MOST_CELLS // call.shape[0]) for head in range(call.shape[0])]
    across = min(_ACROSS, len(heads))
    down = -(-len(heads) // across)
    titles = [f"head {head}" for head in range(len(heads))]
    figure = make_subplots(down, across, subplot_titles=titles, horizontal_spacing=0.04, vertical_spacing=0.3 / down)
    queries, keys = (token_names(tokens) for tokens in (trace.query_tokens(stream), trace.key_tokens(stream)))
    full = max(full_colour(one.values, max(one.shape)) for one in heads)
    largest = max(largest_of(one) for one in heads)
    bar = weight_bar(full, max(float(one.values.max(initial=0.0)) for one in heads))
    for head, one in enumerate(heads):
        most = "" if one.whole else "at most "
        texts = hover_texts(
            spans(one, 0, queries),
            spans(one, 1, keys),
            lambda query, key, i, j, one=one, most=most: f"{query} attends to {key}: {most}{one.values[i, j]:.6f}",
        )
        look: dict[str, Any] = {"hovertemplate": f"head {head}: %{{hovertext}}<extra></extra>", "showscale": head == 0}
        if isinstance(call, TokenMixer):
            texts = carried_texts(one, mixer_of(trace, stream, layer).head(head), queries, keys)
            drawn = log_cells(one, colours, texts, "signed weight", largest=largest, signed=True, **look)
        else:
            drawn = cells(one.values, (0, full), colours.weights, texts, colorbar=bar, **look, **block_coordinates(one))
        figure.add_trace(drawn, head // across + 1, head % across + 1)
    title = f"All heads of l{escaped(layer_name(trace, layer, stream)[1:])}"
    arrange(figure, title, colours, note=block_note(heads[0]))
    figure.update_layout(height=_TOP + _HEIGHT * down)
    figure.update_annotations(font={"size": 12, "color": colours.ink})
    _name(figure, queries, keys, across)
    return figure


def _name(figure: go.Figure, queries: list[str], keys: list[str], across: int) -> None:
    """Label outer edges only, since inner labels would separate the matrices."""
    font = {"family": MONOSPACE, "size": 10}
    for axes, labels in ((figure.select_xaxes(), keys), (figure.select_yaxes(), queries)):
        named = spread(len(labels), _NAMED)
        for axis in axes:
            axis.update(
                tickvals=named,
                ticktext=[shortened(labels[at], 10) for at in named],
                tickfont=font,
                showgrid=False,
                automargin=True,
            )
    figure.update_xaxes(tickangle=-90, zeroline=False)
    figure.update_yaxes(autorange="reversed", zeroline=False)
    for number, axis in enumerate(figure.select_yaxes()):
        axis.update(showticklabels=number % across == 0)


def logit_lens(trace: Trace, found: "pandas.DataFrame", *, theme: ThemeName = "light") -> go.Figure:
    """Draw each layer's likeliest token at every position, the last layer on top, coloured by its probability.

    If the table has one token, cells show its probability instead of a word, and colours reach up to the largest.

    Source: nostalgebraist 2020, "interpreting GPT: the logit lens".

    Args:
        trace: the run.
        found: from `av.logit_lens`, of the same trace; with several tokens per place, cells show the likeliest and
            hover the others.
        theme: "light" or "dark".

    Raises:
        ShapeError: the table is empty, or of another text.
    """
    colours = palette(theme)
    tokens = trace.query_tokens(trace.streams[0])
    positions, layers = (sorted(set(found[name].tolist())) for name in ("position", "layer"))
    if len(found) == 0 or positions != list(range(len(tokens))) or len(found) % (len(positions) * len(layers)):
        raise ShapeError(f"the table must fit the trace's {len(tokens)} tokens; got {len(positions)} positions")
    shape = len(layers), len(positions), -1
    ordered = found.sort_values(["layer", "position"], kind="stable")
    shares = ordered["probability"].to_numpy(float).reshape(shape)
    words = ordered["written"].to_numpy(object).reshape(shape)
    asked = words[0, 0, 0] if len(set(found["token"])) == 1 else None
    full = 1.0 if asked is None else round_up(float(shares.max()))
    texts, bar = _phrase(layers, token_names(tokens), words, shares), colour_bar("probability")
    figure = go.Figure([cells(shares[:, :, 0], (0, full), colours.weights, texts, xgap=1, ygap=1, colorbar=bar)])
    if len(positions) <= _WRITTEN_UP_TO and asked is not None:
        add_numbers(figure, _weight, least=_FAINT, size=_SIZE)
    elif len(positions) <= _WRITTEN_UP_TO:
        short = [readable([shortened(one, _LETTERS) for one in row]) for row in words[:, :, 0].tolist()]
        add_numbers(figure, short, size=_SIZE)
    whose = model_name(trace.provenance.model)
    what = "Logit lens: each layer's prediction" if asked is None else f"“{asked}” after each layer"
    arrange(figure, escaped(f"{what} · {whose}"), colours)
    figure.update_layout(height=max(_LEAST, _ROW * len(layers) + _AROUND))
    names = ["words" if layer < 0 else str(layer) for layer in layers]
    up = labelled_axis(names, "after layer", colours.ink, colours, vertical=True)
    across = (token_names(tokens), "position", colours.query)
    label_axes(figure, colours, across, {**up, "range": up["range"][::-1]})
    return figure


def _phrase(layers: list[int], names: list[str], words: Any, shares: Any) -> list[list[str]]:
    return [
        [
            f"{'before the first layer' if layer < 0 else f'after layer {layer}'}, at {name}: "
            + ", ".join(f"{word} {share:.3f}" for word, share in zip(readable(likely), many, strict=True))
            for name, likely, many in zip(names, row, rows, strict=True)
        ]
        for layer, row, rows in zip(layers, words.tolist(), shares.tolist(), strict=True)
    ]


def _weight(number: float) -> str:
    return escaped(weight_text(number))
