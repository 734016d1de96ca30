"""Tells rounding from faults by a more exact run: float64 for float32, float32 for half precision."""

import contextlib
from collections.abc import Generator, Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from attention_viz.errors import UnsupportedModel
from attention_viz.operation.attention import Attention
from attention_viz.operation.kernel import BOUNDS
from attention_viz.recording.call_chunks import CallPart
from attention_viz.recording.copied import copied
from attention_viz.recording.differences import Difference, Real, cut, kept_rows
from attention_viz.recording.outputs.breaking import TooLargeError, family_of
from attention_viz.recording.references.eager_weights import WeightsRun, run_for_weights
from attention_viz.recording.references.own_output import OwnOutput, builtin, quoted
from attention_viz.recording.runner import Pass, Runner
from attention_viz.recording.twin import Twin
from attention_viz.sources.huggingface import ALL_MASK_ATTENTION_FUNCTIONS
from attention_viz.trace.provenance import Fidelity

# Bytes of weights that are kept meanwhile, and of an output, at most.
_AFFORDABLE = 2**30
_WIDE = {torch.float32, torch.float64}
# Torch tests numbers of at least so many bytes for NaN.
_READABLE = 2

# Why a copy of a model gives something else than the model.
COPIES_DIFFER = (
    "can't be compared with a copy of itself: a hook or function of yours refers to the original modules; refer to "
    "them by name or by `layer_idx`"
)
_APART = "can't be compared exactly"


class FromExact(NamedTuple):
    """Largest differences from a more exact run, relative to its largest number; None if not measured."""

    output: float
    weights: float | None
    own_output: float
    own_weights: float | None


def from_exact(own: OwnOutput, weights: WeightsRun, dtype: torch.dtype, real: Real) -> FromExact | None:
    """Measure the errors against a more exact copy; None if memory or precision doesn't allow it."""
    ours, twin = own.recorded.output, own.twin
    if len(ours) * ours.shape[-1] * dtype.itemsize > _AFFORDABLE or _size(twin, dtype) > _room(twin):
        return None
    try:
        exact = _in_precision(twin, dtype)
        output = exact.run(_widened(own.inputs, dtype))
        found = _of_weights(weights, twin, exact, dtype, real)
    except (RuntimeError, TypeError, ValueError):  # a family's own code may insist on its precision
        return None
    far = own.from_exact(output)
    return FromExact(far[0], found[0], far[1], found[1])


def _of_weights(
    weights: WeightsRun, twin: Twin, exact: Twin, dtype: torch.dtype, real: Real
) -> tuple[float | None, float | None]:
    """Return the errors of our weights and their reference against a more exact run."""
    if not weights.recorded.calls or weights.bytes > _AFFORDABLE:
        return None, None
    theirs = dict(weights.kept)
    apart = 0.0

    def keep(part: CallPart, weights: Tensor) -> None:
        theirs[part] = weights.clone()

    def hold(part: CallPart, weights: Tensor) -> None:
        nonlocal apart
        known = real.of_call(part.number) if part.is_whole else None
        rows = kept_rows(known, weights.shape[-2], weights.device)
        found = Difference()
        found.add(cut(theirs.pop(part).to(dtype), rows), cut(weights, rows))
        apart = max(apart, found.relative)

    if not theirs:
        _ = run_for_weights(weights.recorded, twin, weights.inputs, real, keep)
    _, ours = run_for_weights(weights.recorded, exact, _widened(weights.inputs, dtype), real, hold)
    return ours, apart


def _in_precision(twin: Twin, dtype: torch.dtype) -> Twin:
    """Return a twin with its own, widened numbers."""
    memo: dict[int, Any] = {}
    model = copied(twin.model, memo)
    model = model.double() if dtype == torch.float64 else model.float()
    modules = zip(model.modules(), twin.original.values(), strict=True)
    own = {id(memo[number]): name for number, name in twin.own.items() if number in memo}
    return replace(twin, model=model, original=dict(modules), own=own)


def _widened(inputs: Mapping[str, Tensor], dtype: torch.dtype) -> dict[str, Tensor]:
    return {name: one.to(dtype) if one.is_floating_point() else one for name, one in inputs.items()}


def _size(twin: Twin, dtype: torch.dtype) -> int:
    """Return the model's bytes in a precision."""
    return sum(one.numel() for one in twin.model.parameters()) * dtype.itemsize


def _room(twin: Twin) -> float:
    """Return half of the free memory, if known; on other devices torch itself refuses."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            (found,) = (line.split()[1] for line in lines if line.startswith("MemAvailable:"))
    except (OSError, ValueError):
        return float("inf")
    return int(found) * 1024 / 2 if twin.model.device.type == "cpu" else float("inf")


def copies_differ(twin: Twin, inputs: Mapping[str, Tensor], own: Tensor | None) -> bool:
    """Return whether a twin's output differs from the model's own; False if that is None."""
    if own is None:
        return False
    try:
        found = Difference()
        found.add(twin.run(inputs), own)
    except Exception:  # a family's own attention may not run here
        return False
    return found.relative > BOUNDS.get(own.dtype, 0.0)


def why_nan(model: nn.Module) -> str:
    """Tell weights with NaN from a run that makes it, as a refusal's words."""
    why, read_all = _why_not_finite(model)
    return why or _why_made(model, read_all=read_all)


def _why_made(model: nn.Module, *, read_all: bool) -> str:
    kinds = {one.dtype for one in model.parameters() if one.is_floating_point()}
    known = "though its weights are all finite" if read_all else "though the weights that can be read here are finite"
    if narrow := kinds - _WIDE:
        small = " and ".join(sorted(str(kind).removeprefix("torch.") for kind in narrow))
        wider = "float32 or bfloat16" if torch.float16 in kinds else "float32"
        return f"gives NaN {known}, because it overflows in {small}; convert the model to {wider}"
    return f"gives NaN {known}; look for too large an input, a division by 0, or a hook"


def _why_not_finite(model: nn.Module) -> tuple[str, bool]:
    """Name the first weights with NaN or infinity, as a refusal's words, "" without; and say if all could be read."""
    found, read_all = list[tuple[str, int, int]](), True
    # Buffers may hold −inf, as masks do.
    weights = [(name, one, True) for name, one in model.named_parameters()]
    weights += [(name, one, False) for name, one in model.named_buffers()]
    for name, one, is_finite in weights:
        if not one.is_floating_point():
            continue
        if one.is_meta or one.dtype.itemsize < _READABLE:  # offloaded, or of a precision without tests for NaN
            read_all = False
            continue
        if count := int((~one.isfinite() if is_finite else one.isnan()).sum()):
            found.append((name, count, one.numel()))
    if not found:
        return "", read_all
    name, count, size = found[0]
    more = f", and {len(found) - 1:,} more tensors" if found[1:] else ""
    words = (
        f"gives NaN, since its weights aren't finite ({count:,} of {size:,} numbers in {name}{more}); load weights "
        "that are all finite"
    )
    return words, read_all


def refuse_nan(runner: Runner, recorded: Pass, real: Real | None = None, *, only_last: bool = False) -> None:
    """Refuse a run with NaN in a real row of its output, or in a call's terms, which kernels may hide in zeros.

    Args:
        only_last: whether to read each tensor's last row alone.
    """
    output, real = recorded.output, real or Real()
    if isinstance(output, Tensor):
        rows = [output[-1:] if only_last else output]
    else:  # words' chances aren't made yet, so what they are made of is read
        rows = [one[..., -1:, :] for one in output.held]
    if real.output is not None and [*map(len, rows)] == [len(real.output)]:
        rows = [rows[0][torch.tensor(real.output, device=rows[0].device)]]
    calls = recorded.calls if real.everywhere else ()
    refuse_nan_in(runner, rows)
    refuse_nan_in(
        runner, (one[..., -1:, :] if only_last else one for call in calls for one in terms_of(call.attention))
    )


def refuse_nan_in(runner: Runner, tensors: Iterable[Tensor]) -> None:
    """Refuse a run with NaN in any of these tensors."""
    # The largest number is NaN if any is, and takes no memory.
    if any(one.numel() and bool(one.amax().isnan()) for one in tensors):
        raise UnsupportedModel(f"{family_of(runner.model)} {why_nan(runner.model)}")


def terms_of(attention: Attention) -> tuple[Tensor, Tensor, Tensor]:
    """Return queries, keys and values."""
    return attention.query, attention.key, attention.value


@contextlib.contextmanager
def naming_nan(runner: Runner, inputs: Mapping[str, Tensor]) -> Generator[None]:
    """Say in a refusal that the model itself outputs NaN, which no other reason explains."""
    try:
        yield
    except TooLargeError:
        raise
    except UnsupportedModel as error:
        own, mask = runner.run_own(inputs), inputs.get("attention_mask")
        if own is not None and mask is not None and own.shape[:2] == mask.shape:
            own = own[mask.bool()]
        if own is None or not bool(own.isnan().any()):
            raise
        why, read_all = _why_not_finite(runner.model)
        if why:
            raise UnsupportedModel(f"{family_of(runner.model)} {why}") from error
        raise UnsupportedModel(f"{error}; by itself, it {_why_made(runner.model, read_all=read_all)}") from error


class ApartError(UnsupportedModel):
    """Raised if a model's eager attention gives other numbers than its own, as with other masks."""


def not_same(
    family: str,
    fidelity: Fidelity,
    recorded: Pass,
    twin: Twin,
    inputs: Mapping[str, Tensor],
    own: Tensor | None = None,
) -> UnsupportedModel:
    """Return the refusal of a model whose numbers differ; see `why_not_same`."""
    why = why_not_same(fidelity, recorded, twin, inputs, own)
    return (ApartError if why.startswith(_APART) else UnsupportedModel)(f"{family} {why}")


def why_not_same(
    fidelity: Fidelity, recorded: Pass, twin: Twin, inputs: Mapping[str, Tensor], own: Tensor | None = None
) -> str:
    """Name the cause: another attention function, differing implementations, or an unknown term."""
    errors = (("output", fidelity.output_error), ("weights", fidelity.weight_error))
    off = " and ".join(f"{what} off by {error:.1e}" for what, error in errors if error is not None)
    off = f"{off} relative, allowed {fidelity.bound:.0e}"
    names = twin.implementations(recorded.modules)
    others = [name for name in names if not builtin(name)]
    apart, from_eager = _apart(twin, recorded, inputs)
    wrong = fidelity.output_error is not None and fidelity.output_error > fidelity.bound
    if wrong and (others or (not twin.is_eager and from_eager <= fidelity.bound)):
        unmasked = [name for name in others if name not in ALL_MASK_ATTENTION_FUNCTIONS]
        masks = f" No mask function is registered for {quoted(unmasked)}, so it gets no mask." if unmasked else ""
        choose = " or ".join(f'("{name}")' for name in ("sdpa", "eager") if name not in names)
        return (
            f"runs attention {quoted(others or names)}, which differs from softmax attention over the same queries, "
            f"keys, values and masks: {off}.{masks} Choose another: model.set_attn_implementation{choose}"
        )
    if copies_differ(twin, inputs, own):
        return f"{COPIES_DIFFER}. With our attention: {off}"
    if apart > fidelity.bound:
        return (
            f"{_APART}: with {'sdpa' if twin.is_eager else ' and '.join(names)} and eager attention, "
            f"its outputs differ by {apart:.0e}, allowed {fidelity.bound:.0e}. If its activations are rounded, such as "
            f"to int8, quantize only its weights. With our attention: {off}"
        )
    finer = (
        ""
        if twin.model.dtype in (torch.float32, torch.float64)
        else ", or convert the model to float32, which rounds less"
    )
    if not wrong:
        return (
            "can't be verified: with our attention its output is the same, but its weights differ from those of "
            f"transformers' eager attention: {off}, perhaps by rounding ({fidelity.rule})"
            f"{finer.replace(', or', ';')}"
        )
    return (
        f"gives another result with our attention: {off}. It adds a term that attention_viz.attend doesn't know, or "
        f"its large numbers make rounding visible ({fidelity.rule}){finer.replace(', or', ';')}"
    )


def _apart(twin: Twin, recorded: Pass, inputs: Mapping[str, Tensor]) -> tuple[float, float]:
    """Return eager attention's distance from another implementation and from ours; 0 if it can't run."""
    other = None if not twin.is_eager else "sdpa" if getattr(twin.model, "_supports_sdpa", False) else "eager"
    apart, from_eager = Difference(), Difference()
    try:
        eager = twin.run(inputs, "eager")
        apart.add(twin.run(inputs, other), eager)
        from_eager.add(recorded.output[:], eager)
    except Exception:  # a family may lack one of them
        return 0.0, 0.0
    return apart.relative, from_eager.relative
