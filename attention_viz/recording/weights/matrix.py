"""Finds the matrix that a module multiplies by: a parameter, quantized, offloaded, or with an adapter.

A plain matrix is read. Any other module is run on the unit vectors, which gives its exact matrix, adapter included.
"""

import contextlib
from collections.abc import Generator, Iterator

import torch
from torch import Tensor, nn

from attention_viz.errors import first_line
from attention_viz.operation.modules import Projection

# How many vectors are put through a module at a time.
_AT_ONCE = 512
# A unit vector's part would lose digits beside a bias, so it is made so much longer; a power of two loses none.
_LONG = 2.0**10
# A module whose output is off by no more than this share of it rounds what it is given, rather than do something else.
_ROUNDING = 0.1
_FULL = (torch.float32, torch.float64)


class Projections(dict[str, Projection]):
    """Learned matrices by name; `missing` says why others aren't known."""

    def __init__(self, found: dict[str, Projection | str]) -> None:
        """Separate matrices from reasons."""
        super().__init__({name: one for name, one in found.items() if isinstance(one, Projection)})
        self.missing = {name: one for name, one in found.items() if isinstance(one, str)}


def matrix_of(module: nn.Module, like: Tensor) -> Projection | str:
    """Return a module's matrix and bias, or a phrase that says why not."""
    weight, bias = _plain_weight(module), getattr(module, "bias", None)
    if weight is not None:
        for oriented in (weight.T, weight):
            if oriented.shape[0] == like.shape[-1] and _multiplies(module, oriented, bias):
                return Projection(oriented, None if bias is None else bias.detach())
    try:
        with torch.no_grad(), _at_rest(module):
            return _measured(module, like)
    except Exception as error:  # whatever a foreign module raises
        return f"{_kind(module)} can't be run by itself: it raised {type(error).__name__}: {first_line(error)}"


def table_of(module: nn.Module, rows: int) -> Tensor | str:
    """Return a lookup table's rows, (row, width), or a phrase that says why not."""
    weight = _plain_weight(module)
    if weight is not None:
        return weight
    device = next((one.device for one in module.parameters() if not one.is_meta), torch.device("cpu"))
    try:
        with torch.no_grad(), _at_rest(module):
            return torch.cat([module(some[None])[0] for some in torch.arange(rows, device=device).split(_AT_ONCE)])
    except Exception as error:  # whatever a foreign module raises
        return f"{_kind(module)} can't be run by itself: it raised {type(error).__name__}: {first_line(error)}"


def _plain_weight(module: nn.Module) -> Tensor | None:
    """Return a module's matrix if it is a floating-point parameter in memory."""
    weight: Tensor | None = vars(module).get("_parameters", {}).get("weight")
    if weight is None or type(weight) not in (Tensor, nn.Parameter) or weight.ndim != 2:
        return None
    return None if weight.is_meta or not weight.is_floating_point() else weight.detach()


def _kind(module: nn.Module) -> str:
    """Return a module's name from its repr, as quantized ones put it there."""
    return repr(module).partition("(")[0]


@contextlib.contextmanager
def _at_rest(module: nn.Module) -> Generator[None]:
    """Switch dropout off, as while recording."""
    training = [one for one in module.modules() if one.training]
    for one in training:
        one.training = False
    try:
        yield
    finally:
        for one in training:
            one.training = True


def _multiplies(module: nn.Module, weight: Tensor, bias: Tensor | None) -> bool:
    """Return whether a module computes x · weight + bias: Linear and Conv1D store it two ways."""
    x = _tried(weight.shape[0]).to(weight)
    try:
        with torch.no_grad():
            left, expected = module(x[None]), x @ weight + (0 if bias is None else bias)
    except (RuntimeError, TypeError, ValueError):
        return False
    return isinstance(left, Tensor) and left.shape == (1, *expected.shape) and _apart(left[0], expected) <= 1


def _measured(module: nn.Module, like: Tensor) -> Projection | str:
    name, width = _kind(module), like.shape[-1]
    tried = _tried(width).to(like)
    made = module(tried[None])
    if not isinstance(made, Tensor) or made.ndim != 3 or made.shape[:-1] != (1, len(tried)):
        return f"{name} doesn't make one vector of each input vector"
    bias = module(torch.zeros_like(tried[None, :1]))[0, 0]
    long = _LONG if bool(bias.any()) else 1.0
    weight = torch.cat([(module(some[None])[0] - bias) / long for some in _units(like, long)])
    expected = tried.to(weight) @ weight + bias
    if _apart(made[0], expected) <= 1:
        return Projection(weight, bias if bool(bias.any()) else None)
    off = float((made[0] - expected).abs().max() / expected.abs().max())
    if off <= _ROUNDING:
        return f"{name} rounds its input (by {off:.0e} of its output), as quantized activations do"
    return f"{name} does more than multiply by one matrix"


def _units(like: Tensor, long: float) -> Iterator[Tensor]:
    """Yield the unit vectors times `long`, some at a time."""
    for places in torch.arange(like.shape[-1]).split(_AT_ONCE):
        some = torch.zeros(len(places), like.shape[-1])
        some[torch.arange(len(places)), places] = long
        yield some.to(like)


def _tried(width: int) -> Tensor:
    return torch.randn(3, width, generator=torch.Generator().manual_seed(0))


def _apart(made: Tensor, expected: Tensor) -> float:
    """Return the difference as a multiple of the tolerance for rounding."""
    tolerance = 1e-4 if expected.dtype in _FULL else 3e-2
    made, expected = made.to(expected.device).double(), expected.double()
    allowed = tolerance * (expected.abs().max() + expected.abs())
    return float(((made - expected).abs() / allowed.clamp_min(1e-30)).max())
