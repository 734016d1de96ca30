"""The number that is asked for, read from what a model returned."""

from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor

from attention_viz.models.circuits.asked import Direction, Logit, Probability

__all__ = ["numbers_of"]


def numbers_of(
    output: Float[Tensor, "row position width"],
    of: Logit | Probability | Direction,
    padding: Sequence[bool],
    *,
    limited: bool = False,
) -> Float[Tensor, " row"]:
    """The number of each row of a batch, in float64.

    Args:
        padding: which positions of the text are padding; told apart only where the output has a row for each.
    """
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
