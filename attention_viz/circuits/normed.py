"""Handle queries and keys with their own norm, as in Qwen 3: matrix and gain."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attention_viz.circuits.turns import ModuleEvent, Turns
from attention_viz.recording.wiring import ColumnSource


@dataclass(frozen=True, eq=False)
class Norm:
    """The linear part of a norm; if `centred`, it subtracts the mean."""

    gain: Tensor
    centred: bool

    def before(self, matrix: Tensor) -> Tensor:
        """Fold the norm into the matrix after it, (width, out)."""
        scaled = self.gain[:, None] * matrix
        return scaled - scaled.mean(dim=0) if self.centred else scaled

    def after(self, matrix: Tensor) -> Tensor:
        """Fold the norm into the matrix before it, (in, width)."""
        return self.gain * (matrix - matrix.mean(dim=-1, keepdim=True) if self.centred else matrix)


def norm_of(module: nn.Module | None, matrix: Tensor) -> Norm | None:
    """Measure a module's linear part if it norms a (width, out) matrix's inputs; else return None."""
    if module is None:
        return None
    width, generator = matrix.shape[0], torch.Generator().manual_seed(0)
    signs = torch.randint(0, 2, (1, width), generator=generator) * 2.0 - 1
    tried = torch.randn(3, width, generator=generator) * torch.tensor([[1.0], [9.0], [30.0]]) + 0.5
    # Offloaded parameters lie nowhere until the module runs.
    like = next((one for one in module.parameters(recurse=False) if not one.is_meta), matrix)
    given = torch.cat([torch.zeros(1, width), 30 * signs, tried]).to(like)
    try:
        with torch.no_grad():
            made = module(given[None])
    except (RuntimeError, TypeError, ValueError, IndexError):
        return None
    if not isinstance(made, Tensor) or made.shape != (1, *given.shape):
        return None
    given, made = given.float(), made[0].float()
    made = made - made[0]
    tolerance = 1e-3 if like.dtype in (torch.float32, torch.float64) else 3e-2
    for centred in (False, True):
        about = given - given.mean(dim=-1, keepdim=True) if centred else given
        direction = about * about.square().mean(dim=-1, keepdim=True).add(1e-20).rsqrt()
        gain = made[1] / direction[1]
        expected = gain * direction[2:]
        if torch.allclose(made[2:], expected, rtol=tolerance, atol=tolerance * float(expected.abs().max())):
            return Norm(gain, centred)
    return None


@dataclass(frozen=True, eq=False)
class Normed:
    """A matrix, (in, out), with its norm's linear part folded in, and that norm's factors in the run, (head,)."""

    turn: tuple[int, ModuleEvent]
    weight: Float[Tensor, "in out"]
    lengths: Float[Tensor, " head"]


class _NormInput(NamedTuple):
    turn: tuple[int, ModuleEvent]
    entered: Tensor
    left: Tensor


def normed(turns: Turns, source: ColumnSource, number: int, count: int) -> Normed | None:
    """Return the matrix that alone made a norm's input."""
    turn = turns.of(source.module, number)
    if turn is None or not torch.equal(source.columns, torch.arange(len(source.columns), device=source.columns.device)):
        return None
    width = turn[1].entered.shape[-1]
    norm = norm_of(source.module, torch.empty(width, 1))
    given = None if norm is None else _given(turns, turn)
    if norm is None or given is None:
        return None
    module = given.turn[1].module
    out = given.left.shape[-1]
    entered = given.turn[1].entered
    matrix = ColumnSource(module, entered.new_empty(0, entered.shape[-1]), torch.arange(out)).projection()
    if isinstance(matrix, str) or matrix.bias is not None or out % width or out % count:
        return None
    # A norm goes over each head, or over all of them.
    linear = norm.after(matrix.weight.float().unflatten(1, (-1, width))).flatten(1)
    before = norm.after(given.entered[0].float().unflatten(0, (-1, width))).flatten().unflatten(0, (count, -1))
    after = given.left[0].float().unflatten(0, (count, -1))
    lengths = (before * after).sum(dim=-1) / before.square().sum(dim=-1).clamp_min(1e-30)
    return Normed(given.turn, linear * source.factor, lengths)


def _given(turns: Turns, turn: tuple[int, ModuleEvent]) -> _NormInput | None:
    """Return the turn that made a norm's input, and the norm's ends as (position, out)."""
    place, event = turn
    entered, left = event.entered, event.left
    ways = [(entered, left)]
    if entered.ndim == 4:  # a head's positions beside each other, or a position's heads
        ways.append((entered.transpose(1, 2), left.transpose(1, 2)))
    for at in range(place - 1, -1, -1):
        made = turns.events[at].left
        if made.ndim < 2 or made.numel() != entered.numel():
            continue
        for one, other in ways:
            flat = one.reshape(-1, made.shape[-1])
            if torch.equal(flat, made.reshape(-1, made.shape[-1])):
                return _NormInput((at, turns.events[at]), flat, other.reshape(flat.shape))
    return None
