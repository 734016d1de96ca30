"""Layers without a softmax: one head's signed weights, and what arrives from each token."""

from typing import Any

import plotly.graph_objects as go

from attention_viz.analysis.blocks import Blocks, call_blocks
from attention_viz.analysis.signed import mixer_of
from attention_viz.errors import TraceError
from attention_viz.operation.token_mixer import TokenMixer
from attention_viz.trace.trace import Trace
from attention_viz.views.style.axes import arrange, label_axes, pair_axes
from attention_viz.views.style.blocks import block_note, hover_texts, spans
from attention_viz.views.style.captions import layer_name, model_name
from attention_viz.views.style.marks import LEAST, add_hatch, add_numbers
from attention_viz.views.style.signed import LATER, carried_texts, log_cells, mark_skip, precise, short
from attention_viz.views.style.theme import Palette, ThemeName, palette
from attention_viz.views.style.wording import escaped, token_names

__all__ = ["arrived", "signed_matrix"]


def signed_matrix(
    blocks: Blocks,
    mixer: TokenMixer,
    queries: list[str],
    keys: list[str],
    colours: Palette,
    *,
    names: bool,
    printed: bool,
) -> go.Figure:
    """Draw one head's signed weights without axes."""
    more: dict[str, Any] = {"xgap": int(printed), "ygap": int(printed)}
    texts = carried_texts(blocks, mixer, queries, keys) if names else None
    if not names:
        more |= {
            "customdata": blocks.values,
            "hovertemplate": "position %{x} to %{y}: %{customdata:.4g}<extra></extra>",
        }
    figure = go.Figure([log_cells(blocks, colours, texts, "signed weight", signed=True, **more)])
    add_hatch(figure, blocks.blocked, colours, size=blocks.size, name=LATER)
    if mixer.skip is not None:
        mark_skip(figure, blocks, colours)
    if printed:
        numbers = [[short(number) for number in row] for row in blocks.values.tolist()]
        add_numbers(figure, numbers, least=LEAST, blocked=blocks.blocked)
    return figure


def arrived(
    trace: Trace, layer: int, head: int | None = None, stream: str = "mixer", *, theme: ThemeName = "light"
) -> go.Figure:
    """Draw what arrives from each token in a layer without a softmax: ‖weight · value‖, queries down and keys across.

    Without a head, it is that of the whole layer, √Σ ‖weight · value‖² over its heads or channels. The scale is
    logarithmic, from the largest number down to a ten-thousandth of it. Above 250,000 cells, each block of neighbours
    is drawn as its largest number, and the title says so.

    Args:
        trace: the run.
        layer: its number, the model's own.
        head: the head or channel, from 0; None for all of them together.
        stream: "mixer", or "mixer 2" for a layer's second one.
        theme: "light" or "dark".

    Raises:
        TraceError: the layer or stream is missing, or the stream's layers have a softmax.
        ShapeError: the head is missing, or only the weights are known, as of merged words.
    """
    if stream not in trace.mixers:
        there = f"choose {', '.join(trace.mixers)}" if trace.mixers else "this trace has none"
        raise TraceError(f"this needs layers without a softmax; {stream!r} has none; {there}")
    colours, mixer = palette(theme), mixer_of(trace, stream, layer)
    if head is None:
        blocks = call_blocks(mixer, lambda some: some.layer_contributions.detach().float().cpu().numpy())
    else:
        blocks = call_blocks(mixer.head(head), lambda some: some.contributions.detach().float().cpu().numpy())
    queries, keys = (token_names(tokens) for tokens in (trace.query_tokens(stream), trace.key_tokens(stream)))
    most = "" if blocks.whole else "at most "
    texts = hover_texts(
        spans(blocks, 0, queries),
        spans(blocks, 1, keys),
        lambda query, key, i, j: f"{key} arrives at {query}: {most}{precise(float(blocks.values[i, j]))}",
    )
    figure = go.Figure([log_cells(blocks, colours, texts, "what arrived", signed=False)])
    add_hatch(figure, blocks.blocked, colours, size=blocks.size, name=LATER)
    which = f"all {mixer.shape[0]} {mixer.per}s" if head is None else f"{mixer.per} {head}"
    title = f"{layer_name(trace, layer, stream)}, {which}: what arrived"
    arrange(figure, escaped(f"{model_name(trace.provenance.model)} · {title}"), colours, note=block_note(blocks))
    label_axes(figure, colours, *pair_axes(queries, keys, colours, mixes=True))
    return figure
