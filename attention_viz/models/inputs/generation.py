"""What a model says: the tokens an encoder–decoder is made to produce or chooses itself, and a model's candidates."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor

from attention_viz.errors import UnsupportedModel, UnusableText, first_line
from attention_viz.models.huggingface import GenerationConfig
from attention_viz.models.inputs.text import vocabulary

if TYPE_CHECKING:
    from transformers.modeling_utils import PreTrainedModel

    from attention_viz.models.recording.runner import Runner

__all__ = ["LONGEST", "answer_of", "chooses", "chosen_last", "decoder_inputs"]

# How many tokens an encoder–decoder may say where nobody told it what to say.
LONGEST = 128


def decoder_inputs(model: "PreTrainedModel", produced: Tensor) -> Tensor:
    """What a decoder reads so that its steps produce these ids, (1, n): the start, then all but the last.

    Raises:
        UnsupportedModel: the model doesn't say with what its decoder starts.
    """
    if hasattr(model, "prepare_decoder_input_ids_from_labels"):
        try:
            return cast("Any", model).prepare_decoder_input_ids_from_labels(labels=produced)
        except Exception as error:
            raise UnsupportedModel(
                f"{type(model).__name__} can't tell what its decoder reads first ({type(error).__name__}: "
                f"{first_line(error)}); give decoder_input_ids to trace_ids"
            ) from error
    start = getattr(model.config, "decoder_start_token_id", None)
    if start is None:
        raise UnsupportedModel(
            f"{type(model).__name__} has no decoder_start_token_id in its configuration, so what its decoder reads "
            "first isn't known; give decoder_input_ids to trace_ids"
        )
    return torch.cat([torch.full_like(produced[:, :1], start), produced[:, :-1]], dim=1)


def answer_of(runner: "Runner", inputs: Mapping[str, Tensor], limit: int | None) -> tuple[Tensor, Tensor]:
    """What an encoder–decoder says of its own accord: each time the likeliest token that it may choose.

    What it may choose, its generation settings say: many begin with a language's token, some never say certain tokens.

    Args:
        runner: runs the model.
        inputs: what it reads.
        limit: how many tokens it can read at once; None where nothing says.

    Returns:
        What its decoder reads, and what its steps produce, (1, n) each.

    Raises:
        UnusableText: it has no head to say anything with, can't be made to, or says nothing.
    """
    model = runner.model
    name = type(model).__name__
    if not model.can_generate():
        raise UnusableText(f"{name} has no head that could choose words; give a target, or decoder_input_ids")
    most = LONGEST if limit is None else min(LONGEST, limit)
    try:
        with runner.door, torch.no_grad(), runner.switch.ours():
            sequence = cast("Any", model).generate(**inputs, generation_config=_plainly(model, most))
    except Exception as error:
        reason = f"{type(error).__name__}: {first_line(error)}"
        raise UnusableText(f"{name} can't say anything of its own accord ({reason}); give a target") from error
    if sequence.shape[1] > most:  # many are made to end there, whatever they would have said
        sequence = sequence[:, :most]
    if sequence.shape[1] < 2:
        raise UnusableText(f"{name} says nothing to this text; give a target")
    return sequence[:, :-1], sequence[:, 1:]


def _plainly(model: "PreTrainedModel", most: int) -> GenerationConfig:
    """A model's generation settings as far as they say with which tokens it begins, ends, and what it never says."""
    theirs = cast("Any", model).generation_config
    settings = {name: getattr(theirs, name, None) for name in _SETTINGS}
    # Said the way they say it, as one of the two would be taken from them and come before the other.
    length = {"max_length": most + 1} if theirs.max_new_tokens is None else {"max_new_tokens": most}
    return GenerationConfig(**settings, **_NEUTRAL, **length)


# What is left unsaid, transformers takes from the model's own settings.
_NEUTRAL: dict[str, Any] = {
    "do_sample": False,
    "num_beams": 1,
    "num_return_sequences": 1,
    "return_dict_in_generate": False,
    "min_length": 0,
    "repetition_penalty": 1.0,
    "encoder_repetition_penalty": 1.0,
    "no_repeat_ngram_size": 0,
    "encoder_no_repeat_ngram_size": 0,
    "guidance_scale": 1.0,
}

_SETTINGS = (
    "bos_token_id",
    "eos_token_id",
    "pad_token_id",
    "decoder_start_token_id",
    "forced_bos_token_id",
    "bad_words_ids",
    "suppress_tokens",
    "begin_suppress_tokens",
)


def chooses(model: "PreTrainedModel") -> bool:
    """Whether a model's output is a number for each token it knows, from which the next or a masked one is chosen."""
    head = model.get_output_embeddings()
    weight = getattr(head, "weight", None)
    return isinstance(weight, Tensor) and weight.shape[0] >= vocabulary(model) > 0


def chosen_last(model: "PreTrainedModel", output: Tensor) -> int | None:
    """The token that a model's last step produces; None for a model that chooses none."""
    return int(output[-1].argmax()) if chooses(model) else None
