"""Effects of an edit: two runs before and after."""

from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor

from attention_viz.errors import TraceError
from attention_viz.trace.kept import layers_in_words
from attention_viz.trace.trace import Trace

if TYPE_CHECKING:
    import pandas


def moved_weight(before: Trace, after: Trace, stream: str | None = None) -> Float[Tensor, "layer head"]:
    """Return each head's moved weight, 0 to 1, by kept layer (`layer_numbers`).

    Σ_j max(before_ij − after_ij, 0), mean over queries without padding: total variation distance if rows sum to 1.
    Rows that lost all keys count as 1; missing heads are NaN. Without a softmax, the share of size that moved: |A| over
    the row's Σ|A|, with each key once if its value is carried and once if it is taken away.
    """
    stream = _same(before, after, stream)
    real = ~torch.tensor(before.query_tokens(stream).padding)
    layers = before.layer_numbers(stream)
    heads = max(before.head_count(layer, stream) for layer in layers)
    moved = torch.full((len(layers), heads), torch.nan)
    for row, layer in zip(moved, layers, strict=True):
        lost = (_shares(before, layer, stream) - _shares(after, layer, stream)).clamp_min(0)
        share = lost.float().cpu().sum(dim=-1)[:, real].mean(dim=-1)
        row[: len(share)] = share
    return moved


def _shares(trace: Trace, layer: int, stream: str) -> Float[Tensor, "head query key_or_two"]:
    """Return weights, or signed shares of size without a softmax."""
    weights = trace.attention(layer, stream).weights.detach()
    if stream not in trace.mixers:
        return weights
    parts = torch.cat([weights.clamp_min(0), (-weights).clamp_min(0)], dim=-1)
    whole = parts.sum(dim=-1, keepdim=True)
    return parts / torch.where(whole > 0, whole, 1)


def moved_output(before: Trace, after: Trace) -> Float[Tensor, " position"]:
    """Return each position's ‖after − before‖ / ‖before‖, Euclidean."""
    return moved_rows(before.output, after.output)


def moved_rows(before: Float[Tensor, "..."], after: Float[Tensor, "..."]) -> Float[Tensor, " position"]:
    """Measure output rows, (position, width), as `moved_output`."""
    if before.shape != after.shape:
        got = f"{tuple(before.shape)} and {tuple(after.shape)}"
        raise TraceError(f"comparing outputs needs equal shapes; got {got}")
    old, new = before.double().cpu(), after.double().cpu()
    return ((new - old).norm(dim=-1) / old.norm(dim=-1).clamp_min(torch.finfo(old.dtype).tiny)).float()


def output_table(before: Trace, after: Trace) -> "pandas.DataFrame":
    """Tabulate `moved_output`: position, token, moved, written."""
    import pandas

    moved = moved_output(before, after).tolist()
    tokens = before.query_tokens(before.streams[-1])
    return pandas.DataFrame(
        {"position": range(len(moved)), "token": tokens.labels, "moved": moved, "written": tokens.written}
    )


def weight_table(before: Trace, after: Trace, stream: str | None = None) -> "pandas.DataFrame":
    """Tabulate `moved_weight`: layer, head, moved."""
    import pandas

    rows = [
        (layer, head, float(share))
        for layer, row in zip(before.layer_numbers(stream), moved_weight(before, after, stream), strict=True)
        for head, share in enumerate(row[: before.head_count(layer, stream)])
    ]
    return pandas.DataFrame(rows, columns=["layer", "head", "moved"])


def likelier(before: Trace, after: Trace, position: int, count: int = 5) -> list[tuple[int, float, float]]:
    """Return the likeliest tokens before, then newcomers after: id, probability before, and after."""
    _ = moved_rows(before.output, after.output)
    old, new = (trace.output[position].detach().double().cpu().softmax(dim=-1) for trace in (before, after))
    likeliest = [one.topk(min(count, len(one))).indices.tolist() for one in (old, new)]
    return [(number, float(old[number]), float(new[number])) for number in dict.fromkeys(likeliest[0] + likeliest[1])]


def _same(before: Trace, after: Trace, stream: str | None) -> str:
    stream = before.stream(stream)
    if after.stream(stream) not in before.streams or before.query_tokens(stream).ids != after.query_tokens(stream).ids:
        raise TraceError("comparing two runs needs the same tokens; got different ones")
    numbers = [trace.layer_numbers(stream) for trace in (before, after)]
    if numbers[0] != numbers[1]:
        kept = [trace.kept.get(stream) or layers_in_words(trace.layer_numbers(stream)) for trace in (before, after)]
        raise TraceError(f"comparing two runs needs the same layers; got {kept[0]} and {kept[1]}")
    shapes = [[trace.attention(layer, stream).shape for layer in numbers[0]] for trace in (before, after)]
    if shapes[0] != shapes[1]:
        raise TraceError(f"comparing two runs needs layers of the same shapes; got {shapes}")
    return stream
