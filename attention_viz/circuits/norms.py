"""The linear part of a norm, measured on numbers put through it."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

__all__ = ["Norm", "norm_of"]


@dataclass(frozen=True, eq=False)
class Norm:
    """The linear part of a norm; if `centred`, it takes the mean away."""

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
    """Measure a module's linear part, if it norms a (width, out) matrix's inputs.

    A norm makes each vector its direction times a gain.
    """
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
