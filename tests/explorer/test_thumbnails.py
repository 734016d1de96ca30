"""Small pictures of a long text's heads: each cell is the largest weight under it, of the rows that were sampled."""

import numpy
import pytest
import torch

from attention_viz.explorer.planes import codes_of
from attention_viz.explorer.thumbnails import BLOCKED, CODES, FAINTEST, SIDE, Thumbnails
from attention_viz.operation import masks
from attention_viz.operation.attention import Attention, attend

COUNT, HEADS = 700, 6
SPECIAL = ((0, 699), (0, 5))


def call_of(groups: int, allowed: torch.Tensor | None, **terms: torch.Tensor) -> Attention:
    generator = torch.Generator().manual_seed(3)
    query = 3 * torch.randn(HEADS, COUNT, 8, generator=generator)
    key = torch.randn(groups, COUNT, 8, generator=generator)
    return attend(query, key, torch.zeros(groups, COUNT, 0), allowed, **terms)


def pooled(weights: numpy.ndarray, side: tuple[int, ...]) -> numpy.ndarray:
    """The largest of each cell of a picture of so many rows and columns."""
    for axis, parts in enumerate(side, start=1):
        length = -(-weights.shape[axis] // parts)
        weights = numpy.maximum.reduceat(weights, range(0, weights.shape[axis], length), axis=axis)
    return weights


@pytest.mark.parametrize("groups", [1, 2, HEADS])
@pytest.mark.parametrize("mask", ["none", "causal", "one for all", "padded", "window", "of a head", "bias", "sinks"])
def test_a_cell_is_the_largest_weight_under_it_however_heads_share_their_keys(groups: int, mask: str) -> None:
    causal = masks.causal(COUNT)
    padded = torch.ones(COUNT, COUNT, dtype=torch.bool)
    padded[:, 650:] = False
    allowed = {
        "causal": causal,
        "padded": padded,
        "one for all": causal[None],
        "window": masks.combine(causal, masks.sliding_window(COUNT, 90)),
        "of a head": torch.stack([causal] * 3 + [padded] * 3),
    }
    terms = {"bias": {"bias": torch.linspace(-3, 3, COUNT)[None]}, "sinks": {"sinks": torch.linspace(-1, 1, HEADS)}}
    call = call_of(groups, allowed.get(mask), **terms.get(mask, {}))
    pictures = Thumbnails((COUNT, COUNT), HEADS, SPECIAL)
    whole, shown = pictures.of(call)
    some = call.rows(pictures.rows)
    weights, blocked = some.weights.numpy(), numpy.zeros(some.shape, bool)
    if some.allowed is not None:
        blocked |= ~numpy.broadcast_to(some.allowed.numpy(), some.shape)
    hidden = numpy.zeros(some.shape[1:], bool)
    hidden[[row in SPECIAL[0] for row in pictures.rows]] = True
    hidden[:, list(SPECIAL[1])] = True
    for found, left_out in ((whole, blocked), (shown, blocked | hidden)):
        assert found is not None and found.shape[1:] == pictures.side[::-1] and max(found.shape[1:]) <= SIDE
        expected = codes_of(pooled(numpy.where(left_out, 0, weights), pictures.side), CODES, FAINTEST)
        shut = pooled(~left_out, pictures.side) == 0
        drawn = found.swapaxes(1, 2)
        if some.allowed is not None:
            assert ((drawn == BLOCKED) == shut).all()
        # What lies where two steps meet may fall on either side.
        numpy.testing.assert_allclose(drawn[~shut].astype(int), expected[~shut].astype(int), atol=1)
