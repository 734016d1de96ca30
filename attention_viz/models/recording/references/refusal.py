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

_CHOOSE = 'model.set_attn_implementation("sdpa") or ("eager")'


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
    others = [name for name in twin.implementations(recorded.modules) if not builtin(name)]
    if others and (fidelity.output_error or 0.0) > fidelity.bound:
        unmasked = [name for name in others if name not in ALL_MASK_ATTENTION_FUNCTIONS]
        masks = f" No mask function is registered for {quoted(unmasked)}, so it gets no mask." if unmasked else ""
        return (
            f"runs attention {quoted(others)}, which gives something else than softmax attention over the same "
            f"queries, keys, values and masks: {off}.{masks} Choose another: {_CHOOSE}"
        )
    apart = _apart(twin, inputs)
    if apart is not None and apart > fidelity.bound:
        return (
            f"can't be compared exactly: its own attention implementations, sdpa and eager, give outputs {apart:.0e} "
            f"apart from each other, allowed {fidelity.bound:.0e}. Something in it rounds so coarsely that the order "
            "of a sum changes the result, such as activations in int8. Use the model before it was quantized, or one "
            f"whose weights alone are quantized. With our attention: {off}"
        )
    finer = "" if twin.model.dtype in (torch.float32, torch.float64) else ", or the model in float32, which rounds less"
    return (
        f"gives something else with our attention: {off}; it adds a term that is not known here, or its numbers are so "
        f"large that rounding shows ({fidelity.rule}); needed: that term in attention_viz.attend{finer}"
    )


def _apart(twin: Twin, inputs: Mapping[str, Tensor]) -> float | None:
    """How far the outputs of two attention implementations of the model's own are apart; None if it has only one."""
    found = Difference()
    try:
        found.add(twin.run(inputs, "sdpa"), twin.run(inputs, "eager"))
    except Exception:  # a family may know one of them only
        return None
    return found.relative
