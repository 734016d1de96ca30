"""What an edit changed: two runs of the same text, before and after, as numbers."""

from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor

from attention_viz.errors import TraceError
from attention_viz.trace.trace import Trace

if TYPE_CHECKING:
    import pandas

__all__ = ["likelier", "moved_output", "moved_rows", "moved_weight", "output_table", "weight_table"]


def moved_weight(before: Trace, after: Trace, stream: str | None = None) -> Float[Tensor, "layer head"]:
    """The share of each head's weight that went elsewhere: from 0, nothing, to 1, all of it.

    Σ_j max(before_ij − after_ij, 0), averaged over the queries that aren't padding. Where both rows sum to 1 this is
    their total variation distance; a row that lost everything it could look at counts as 1. Heads that a layer doesn't
    have are NaN. The rows are the layers that the traces keep, `layer_numbers` of them.
    """
    stream = _same(before, after, stream)
    real = ~torch.tensor(before.query_tokens(stream).padding)
    layers = before.layer_numbers(stream)
    heads = max(before.head_count(layer, stream) for layer in layers)
    moved = torch.full((len(layers), heads), torch.nan)
    for row, layer in zip(moved, layers, strict=True):
        lost = (before.attention(layer, stream).weights - after.attention(layer, stream).weights).clamp_min(0)
        share = lost.float().cpu().sum(dim=-1)[:, real].mean(dim=-1)
        row[: len(share)] = share
    return moved


def moved_output(before: Trace, after: Trace) -> Float[Tensor, " position"]:
    """How far each position's output went: ‖after − before‖ / ‖before‖, with Euclidean lengths."""
    return moved_rows(before.output, after.output)


def moved_rows(before: Float[Tensor, "..."], after: Float[Tensor, "..."]) -> Float[Tensor, " position"]:
    """How far each row of an output, (position, width), went, as `moved_output` measures it."""
    if before.shape != after.shape:
        got = f"{tuple(before.shape)} and {tuple(after.shape)}"
        raise TraceError(f"outputs can be compared where they have one shape; got {got}")
    old, new = before.double().cpu(), after.double().cpu()
    return ((new - old).norm(dim=-1) / old.norm(dim=-1).clamp_min(torch.finfo(old.dtype).tiny)).float()


def output_table(before: Trace, after: Trace) -> "pandas.DataFrame":
    """What `moved_output` gives, a row a position: position, token, moved, written."""
    import pandas

    moved = moved_output(before, after).tolist()
    tokens = before.query_tokens(before.streams[-1])
    return pandas.DataFrame(
        {"position": range(len(moved)), "token": tokens.labels, "moved": moved, "written": tokens.written}
    )


def weight_table(before: Trace, after: Trace, stream: str | None = None) -> "pandas.DataFrame":
    """What `moved_weight` gives, a row a head: layer, head, moved."""
    import pandas

    rows = [
        (layer, head, float(share))
        for layer, row in zip(before.layer_numbers(stream), moved_weight(before, after, stream), strict=True)
        for head, share in enumerate(row[: before.head_count(layer, stream)])
    ]
    return pandas.DataFrame(rows, columns=["layer", "head", "moved"])


def likelier(before: Trace, after: Trace, position: int, count: int = 5) -> list[tuple[int, float, float]]:
    """How likely tokens were and are: the likeliest before, likeliest first, and those that are among them only after.

    Returns:
        Of each token its id, its probability before, and its probability after.
    """
    _ = moved_rows(before.output, after.output)
    old, new = (trace.output[position].detach().double().cpu().softmax(dim=-1) for trace in (before, after))
    likeliest = [one.topk(min(count, len(one))).indices.tolist() for one in (old, new)]
    return [(number, float(old[number]), float(new[number])) for number in dict.fromkeys(likeliest[0] + likeliest[1])]


def _same(before: Trace, after: Trace, stream: str | None) -> str:
    stream = before.stream(stream)
    if after.stream(stream) not in before.streams or before.query_tokens(stream).ids != after.query_tokens(stream).ids:
        raise TraceError("two runs can be compared where they are of the same tokens; got different ones")
    if before.layer_numbers(stream) != after.layer_numbers(stream):
        raise TraceError(
            "two runs can be compared where they keep the same layers; got "
            f"{before.kept[stream]} and {after.kept[stream]}"
        )
    shapes = [[layer.attention.shape for layer in trace.layers[stream]] for trace in (before, after)]
    if shapes[0] != shapes[1]:
        raise TraceError(f"two runs can be compared where their layers have the same shapes; got {shapes}")
    return stream
