"""Measures the stretch of a sound that moves each placeholder of a text.

The tower runs with every position attending to itself alone, on noise of the same length. A comb of bands changes at a
time, so that each position sees one of them; the bits of the teeth's numbers show which one.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from attention_viz.inputs.media.remade_sound import RemadeSound
from attention_viz.recording.layout.measured import embedded, gray_bit
from attention_viz.trace.tokens import Region

if TYPE_CHECKING:
    from attention_viz.recording.runner import Runner

# A position reads a band if this moves it by that share of the band that moves it most: windows of a spectrum and
# convolutions spread each sample.
_SUPPORT = 0.4
# A position that moves less than this share of the largest move isn't moved by the sound.
_STILL = 1e-5
# Bands per placeholder, at most so many; between two that change at once there are `_COMB` − 1 others.
_PER_MARK, _MOST_BANDS, _COMB = 2, 6000, 12

Move = Callable[[Iterable[int]], Tensor]


def measured_times(runner: "Runner", remade: RemadeSound, marks: Sequence[int]) -> tuple[Region | None, ...]:
    """Return the stretch that each placeholder reads, `start` to `end` in seconds; None if no sound moves it.

    Raises:
        UnsupportedModel: the language model's input isn't accessible.
    """
    count = max(1, min(_MOST_BANDS, _PER_MARK * len(marks), remade.samples))
    band = np.arange(remade.samples) * count // remade.samples

    def read(numbers: Iterable[int]) -> Tensor:
        tensors = remade.changed(np.isin(band, list(numbers)))
        return embedded(runner, runner.inputs(tensors))[0][list(marks)]

    still = read(())

    def move(numbers: Iterable[int]) -> Tensor:
        return (read(numbers) - still).square().sum(dim=1).sqrt()

    whole = move(range(count))
    comb = count if count <= 2 * _COMB else _COMB
    each = torch.stack([move(range(tooth, count, comb)) for tooth in range(comb)], dim=1)
    strongest = each.argmax(dim=1) if comb == count else _strongest(move, each, count)
    return tuple(
        None
        if float(whole[at]) <= _STILL * float(whole.max())
        else _stretch(each[at].tolist(), int(strongest[at]), count, remade.seconds)
        for at in range(len(marks))
    )


def _strongest(move: Move, each: Tensor, count: int) -> Tensor:
    """Return the band that moves each placeholder most: its place in the comb, and the tooth's number.

    Teeth are counted from two starts, half a comb apart, so that one of them keeps the band away from both ends.
    """
    place, half = each.argmax(dim=1), _COMB // 2
    found = list[Tensor]()
    for shift in (0, half):
        teeth = (count - 1 + shift) // _COMB + 1
        number, above = torch.zeros_like(place), torch.zeros_like(place)
        for at in reversed(range((teeth - 1).bit_length())):
            on, off = (
                move(one for one in range(count) if gray_bit((one + shift) // _COMB, at) == which) for which in (1, 0)
            )
            above = above ^ (on > off).long()  # from Gray code
            number += above << at
        found.append(number * _COMB - shift + (place + shift) % _COMB)
    inside = (place >= half // 2) & (place < half // 2 + half)
    return torch.where(inside, found[0], found[1]).clamp(0, count - 1)


def _stretch(moves: Sequence[float], strongest: int, count: int, seconds: float) -> Region | None:
    """Return the bands around the strongest that move a placeholder; None if all do."""
    comb, least = len(moves), _SUPPORT * max(moves)
    first = last = strongest
    while first > 0 and last - first < comb and moves[(first - 1) % comb] > least:
        first -= 1
    while last < count - 1 and last - first < comb and moves[(last + 1) % comb] > least:
        last += 1
    if last - first + 1 >= comb > 1:
        return None
    return Region(0, 0, 0, 1, 1, start=first / count * seconds, end=(last + 1) / count * seconds)
