"""The requested number, read from a model's output."""

from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor

from attention_viz.circuits.asked import Direction, Logit, Probability

__all__ = ["numbers_of"]


def numbers_of(
    output: Float[Tensor, "row position width"],
    of: Logit | Probability | Direction,
    padding: Sequence[bool],
    *,
    limited: bool = False,
) -> Float[Tensor, " row"]:
    """Return rows' numbers, float64; `padding` needs a row per position."""
    if of.position is None:
        real = [at for at in range(output.shape[1]) if len(padding) != output.shape[1] or not padding[at]]
        row = output[:, real].mean(dim=1)
    else:
        row = output[:, 0 if limited and output.shape[1] == 1 else of.position]
    row = row.double()
    if isinstance(of, Direction):
        return row @ of.vector.to(row)
    assert isinstance(of.token, int)
    if isinstance(of, Probability):
        return row.softmax(dim=-1)[:, of.token]
    return row[:, of.token] - row[:, of.against] if isinstance(of.against, int) else row[:, of.token]
