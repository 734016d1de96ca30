"""Why a model gives something else with our attention than by itself, as a refusal says it."""

from collections.abc import Mapping

import torch
from torch import Tensor

from attention_viz.models.huggingface import ALL_MASK_ATTENTION_FUNCTIONS
from attention_viz.models.recording.differences import Difference
from attention_viz.models.recording.references.own_output import builtin, quoted
from attention_viz.models.recording.runner import Pass
from attention_viz.models.recording.twin import Twin
from attention_viz.trace.provenance import Fidelity

__all__ = ["why_not_same"]


def why_not_same(fidelity: Fidelity, recorded: Pass, twin: Twin, inputs: Mapping[str, Tensor]) -> str:
    """Name the cause: another attention function, implementations that differ from each other, or an unknown term.

    Args:
        fidelity: what the comparison found.
        recorded: the pass with ours.
        twin: of the model.
        inputs: what was run.
    """
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
            f"runs attention {quoted(others or names)}, which gives something else than softmax attention over the "
            f"same queries, keys, values and masks: {off}.{masks} Choose another: model.set_attn_implementation{choose}"
        )
    if apart > fidelity.bound:
        return (
            "can't be compared exactly: its own attention implementations, "
            f"{'sdpa' if twin.is_eager else ' and '.join(names)} and eager, give outputs {apart:.0e} apart from each "
            f"other, allowed {fidelity.bound:.0e}. If something in it rounds so coarsely that the order of a sum "
            "changes the result, such as activations in int8, use the model before it was quantized, or one whose "
            f"weights alone are quantized. With our attention: {off}"
        )
    finer = "" if twin.model.dtype in (torch.float32, torch.float64) else ", or the model in float32, which rounds less"
    return (
        f"gives something else with our attention: {off}; it adds a term that is not known here, or its numbers are so "
        f"large that rounding shows ({fidelity.rule}); needed: that term in attention_viz.attend{finer}"
    )


def _apart(twin: Twin, recorded: Pass, inputs: Mapping[str, Tensor]) -> tuple[float, float]:
    """How far eager attention's output is from that of another implementation that the model knows, and from ours.

    Both are 0 if the model knows eager attention alone, or can't run it.
    """
    other = None if not twin.is_eager else "sdpa" if getattr(twin.model, "_supports_sdpa", False) else "eager"
    apart, from_eager = Difference(), Difference()
    try:
        eager = twin.run(inputs, "eager")
        apart.add(twin.run(inputs, other), eager)
        from_eager.add(recorded.output[:], eager)
    except Exception:  # a family may lack one of them
        return 0.0, 0.0
    return apart.relative, from_eager.relative
