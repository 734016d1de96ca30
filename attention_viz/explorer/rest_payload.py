"""The rest of a layer after its attention, and how the run ends, for the pipeline's last column.

Arrays are float32, one row per shown query. `lengths` has each vector's Euclidean length; `most` a sum's dimension with
the largest addition, and its three numbers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from attention_viz.circuits.layers.ending import Ending
from attention_viz.circuits.layers.layer_flow import LayerFlow
from attention_viz.explorer.packet import Packet
from attention_viz.explorer.pipeline_payload import packed, pooled

_WORDS = {"attention": "heads joined", "other attention": "other attention", "mixer": "mixer’s output"}


@dataclass(frozen=True)
class _Strip:
    label: str
    kind: str
    rows: Float[Tensor, "row d_model"]


def pack_rest(
    of: str, flow: LayerFlow, end: Ending, queries: Sequence[int], layers: Sequence[int], layer: int
) -> bytes:
    """Pack the rest of a layer at some queries; `of` is the pipeline's own `rest`, `layers` are the stream's."""
    strips = list(_strips(flow, list(queries)))
    arrays: dict[str, Tensor | None] = {f"strip {at}": pooled(strip.rows) for at, strip in enumerate(strips)}
    arrays["lengths"] = torch.stack([strip.rows.double().norm(dim=-1) for strip in strips], dim=-1)
    arrays["most"] = torch.cat([_most(before, added, after) for before, added, after in _sums(strips)], dim=-1)
    if end.vectors is not None:
        arrays["end"] = pooled(end.vectors)
    header: dict[str, Any] = {
        "of": of,
        "queries": list(queries),
        "order": flow.order,
        "width": flow.left.shape[-1],
        "strips": [[strip.label, strip.kind] for strip in strips],
        "after": [one for one in layers if one > layer],
        "end": {"kind": end.kind, "made": end.made, "words": [end.words.get(at, []) for at in queries]},
    }
    return packed(header, arrays)


def pack_note(of: str, note: str) -> bytes:
    """Pack why the rest isn't there."""
    return Packet().pack({"of": of, "note": note})


def _strips(flow: LayerFlow, rows: list[int]) -> list[_Strip]:
    """Return the input, then each addition, its sum, and any sum after a norm."""
    found = [_Strip("layer’s input", "entered", flow.entered[rows])]
    for part in flow.parts:
        last = part is flow.parts[-1]
        found.append(_Strip(_WORDS.get(part.kind, part.kind), part.kind, part.added[rows]))
        found.append(_Strip("sum", "sum", part.total[rows]))
        if part.left is not part.total:
            found.append(_Strip("after the norm", "normed", part.left[rows]))
        if last:
            found[-1] = _Strip("layer’s output", found[-1].kind, found[-1].rows)
    return [_Strip(one.label, one.kind, one.rows.detach().float().cpu()) for one in found]


def _sums(strips: Sequence[_Strip]) -> list[tuple[Tensor, Tensor, Tensor]]:
    return [(strips[at - 2].rows, strips[at - 1].rows, one.rows) for at, one in enumerate(strips) if one.kind == "sum"]


def _most(before: Tensor, added: Tensor, after: Tensor) -> Float[Tensor, "row 4"]:
    at = added.abs().argmax(dim=-1, keepdim=True)
    return torch.cat([at.float(), *(rows.gather(-1, at) for rows in (before, added, after))], dim=-1)
