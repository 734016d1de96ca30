"""An image for the atlas, and the weights of one position per head over it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from attention_viz.analysis.places import patch_grid, patches_beside_words
from attention_viz.analysis.words import token_named
from attention_viz.explorer.packet import Packet

if TYPE_CHECKING:
    import pandas

    from attention_viz.trace.trace import Trace

# Roles of heads that attend to a neighbour, or to the patch itself: these are seen from the middle of an image.
_BESIDE = ("previous", "next", "above", "itself")
_LEVELS = 255


def pack_photo(
    trace: "Trace", stream: str, roles: "pandas.DataFrame", rows: Sequence[tuple[str, int]], packet: Packet
) -> dict[str, Any]:
    """Pack the image with a row of patches per head, bytes of the row's largest weight; {} without patches.

    A head's row is that of the class token, or of the last word beside the image; for a role among neighbours, or
    without either, of the middle patch.
    """
    picture, tokens = trace.seen.picture, trace.query_tokens(stream)
    if picture is None or not tokens.patches or tokens != trace.key_tokens(stream):
        return {}
    grid = patch_grid(tokens)
    middle = int(grid[grid.shape[0] // 2, grid.shape[1] // 2])
    word: str | None = None
    if patches_beside_words(tokens):
        summary = tokens.counted[-1]
        word = token_named(tokens, summary)
    else:
        summary = next((at for at, special in enumerate(tokens.special) if special), middle)
    queries, levels, tops = list[int](), list[bytes](), list[float]()
    for name, layer in rows:
        for head in range(trace.head_count(layer, name)):
            beside = (layer, head) in roles.index and roles.loc[(layer, head), "role"] in _BESIDE
            query = middle if beside else summary
            row = trace.attention(layer, name).head(head).rows([query]).weights[0].detach().float().cpu().nan_to_num(0)
            lit = torch.where(grid >= 0, row[grid.clamp_min(0)], 0)
            tops.append(float(lit.max()))
            levels.append((lit / lit.max().clamp_min(1e-12) * _LEVELS).round().to(torch.uint8).numpy().tobytes())
            queries.append(query)
    high, wide, _ = picture.shape
    patch_of = {int(at): number for number, at in enumerate(grid.flatten().tolist()) if at >= 0}
    return {
        "photo": {
            **{"rows": high, "columns": wide, "at": packet.add(picture.contiguous().numpy().tobytes())},
            **{"down": grid.shape[0], "across": grid.shape[1], "lights": packet.add(b"".join(levels))},
            **{"from": [patch_of.get(query, -1) for query in queries], "tops": tops, "word": word},
        }
    }
