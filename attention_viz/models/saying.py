"""What a model says: the tokens an encoder–decoder is made to produce or chooses itself, and a model's candidates."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor

from attention_viz.errors import UnsupportedModel, UnusableText
from attention_viz.models.reading import vocabulary

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from attention_viz.models.running import Runner

__all__ = ["LONGEST", "chooses", "chosen_last", "decoder_inputs", "say"]

# How many tokens an encoder–decoder may say where nobody told it what to say.
LONGEST = 128


def decoder_inputs(model: "PreTrainedModel", produced: Tensor) -> Tensor:
    """What a decoder reads so that its steps produce these ids, (1, n): the start, then all but the last.

    Raises:
        UnsupportedModel: the model doesn't say with what its decoder starts.
    """
    if hasattr(model, "prepare_decoder_input_ids_from_labels"):
        return cast("Any", model).prepare_decoder_input_ids_from_labels(labels=produced)
    start = getattr(model.config, "decoder_start_token_id", None)
    if start is None:
        raise UnsupportedModel(
            f"{type(model).__name__} has no decoder_start_token_id in its configuration, so what its decoder reads "
            "first isn't known; give decoder_input_ids to trace_ids"
        )
    return torch.cat([torch.full_like(produced[:, :1], start), produced[:, :-1]], dim=1)


def say(runner: "Runner", inputs: Mapping[str, Tensor], limit: int | None) -> tuple[Tensor, Tensor]:
    """What an encoder–decoder says of its own accord: each time the likeliest token that it may choose.

    What it may choose, its generation settings say: many have to begin with a language's token, some may not repeat.

    Returns:
        What its decoder reads, and what its steps produce, (1, n) each.

    Raises:
        UnusableText: it has no head to say anything with, or says nothing.
    """
    model = runner.model
    if not model.can_generate():
        raise UnusableText(
            f"{type(model).__name__} has no head that could choose words; give a target, or decoder_input_ids"
        )
    most = LONGEST if limit is None else min(LONGEST, limit - 1)
    with torch.no_grad(), runner.switch.ours():
        said = cast("Any", model).generate(**inputs, do_sample=False, num_beams=1, max_new_tokens=most, max_length=None)
    if said.shape[1] < 2:
        raise UnusableText(f"{type(model).__name__} says nothing to this text; give a target")
    return said[:, :-1], said[:, 1:]


def chooses(model: "PreTrainedModel") -> bool:
    """Whether a model's output is a number for each token it knows, from which the next or a masked one is chosen."""
    head = model.get_output_embeddings()
    weight = getattr(head, "weight", None)
    return isinstance(weight, Tensor) and weight.shape[0] >= vocabulary(model) > 0


def chosen_last(model: "PreTrainedModel", output: Tensor) -> int | None:
    """The token that a model's last step produces; None for a model that chooses none."""
    return int(output[-1].argmax()) if chooses(model) else None
