"""Makes the inputs of a probe's small run."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from attention_viz.errors import UnsupportedModel
from attention_viz.inputs.device import device_of
from attention_viz.inputs.text import vocabulary
from attention_viz.recording.outputs.breaking import family_of

if TYPE_CHECKING:
    from transformers.modeling_utils import PreTrainedModel

    from attention_viz.recording.runner import Runner

# Of an encoder–decoder's two texts: by their lengths its kinds of attention are told apart.
_TOKENS, _TARGET = 11, 7


def probe_inputs(
    runner: "Runner", limit: int | None, example: Mapping[str, Tensor] | None, least: int = 0
) -> dict[str, Tensor]:
    """Return the probe's inputs: the example, or a few tokens, at least `least`."""
    return _read(runner, limit, least) if example is None else _shown(runner, example)


def _read(runner: "Runner", limit: int | None, least: int) -> dict[str, Tensor]:
    ids = probe_ids(runner.model, limit, least)
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    if runner.answers:
        target = ids[:, -min(_TARGET, ids.shape[1] - 1) :]
        inputs |= {"decoder_input_ids": target, "decoder_attention_mask": torch.ones_like(target)}
    return runner.inputs(inputs)


def _shown(runner: "Runner", example: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the example, with a few ids for a decoder."""
    inputs = runner.inputs(example)
    if runner.answers and "decoder_input_ids" not in inputs:
        inputs["decoder_input_ids"] = probe_ids(runner.model, _TARGET).to(device_of(runner.model))
    return inputs


def probe_ids(model: "PreTrainedModel", limit: int | None, least: int = 0) -> Tensor:
    """Return a row of ids from all over the vocabulary, distinct if possible."""
    wanted = max(_TOKENS, least)
    size, count = vocabulary(model), min(wanted, limit or wanted)
    if size < 1:
        raise UnsupportedModel(f"{family_of(model)} has no vocabulary; use a model that reads text")
    step = max(size // count, 1)
    return ((step // 2 + step * torch.arange(count)) % size)[None]
