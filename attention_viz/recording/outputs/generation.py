"""Generates an encoder–decoder's tokens, and decides whether an output's rows predict tokens."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor

from attention_viz.errors import UnsupportedModel, UnusableText, first_line
from attention_viz.inputs.device import device_of
from attention_viz.inputs.text import words_known
from attention_viz.inputs.vocabulary import number_of
from attention_viz.recording.outputs.returned import NO_LOGITS
from attention_viz.sources.huggingface import GenerationConfig, GenerationMixin

if TYPE_CHECKING:
    from transformers.modeling_utils import PreTrainedModel
    from transformers.tokenization_utils_base import PreTrainedTokenizerBase

    from attention_viz.recording.runner import Runner

# What stands in a vocabulary for "nobody speaks", and from which probability on a model is believed that: the threshold
# of Radford et al. 2022, "Robust Speech Recognition via Large-Scale Weak Supervision", section 4.5.
_NOBODY = ("<|nospeech|>", "<|nocaptions|>")
_BELIEVED = 0.6

# What a model's output is called where it is a number for each token, or for each class.
_LOGITS = ("logits", "prediction_logits")

# How many tokens an encoder–decoder may say where nobody told it what to say.
LONGEST = 128
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


def decoder_inputs(model: "PreTrainedModel", produced: Tensor) -> Tensor:
    """Return the decoder's input for producing these ids, (1, n): the start, then all but the last."""
    if hasattr(model, "prepare_decoder_input_ids_from_labels"):
        try:
            return cast("Any", model).prepare_decoder_input_ids_from_labels(labels=produced)
        except Exception as error:
            raise UnsupportedModel(
                f"can't find the first decoder token of {type(model).__name__} ({type(error).__name__}: "
                f"{first_line(error)}); give decoder_input_ids to trace_ids"
            ) from error
    start = getattr(model.config, "decoder_start_token_id", None)
    if start is None:
        raise UnsupportedModel(
            f"{type(model).__name__} has no decoder_start_token_id in its configuration; give decoder_input_ids to "
            "trace_ids"
        )
    return torch.cat([torch.full_like(produced[:, :1], start), produced[:, :-1]], dim=1)


def answer_of(runner: "Runner", inputs: Mapping[str, Tensor], limit: int | None) -> tuple[Tensor, Tensor]:
    """Generate greedily within the model's generation settings, which may set a language or suppress tokens.

    Returns:
        The decoder's input and its produced tokens, (1, n) each.
    """
    return _generated(runner, limit, lambda model, settings: model.generate(**inputs, generation_config=settings))


def spoken_answer_of(runner: "Runner", inputs: Mapping[str, Tensor], limit: int | None) -> tuple[Tensor, Tensor]:
    """Generate from audio, with the start from the model's settings, such as "no timestamps".

    Transformers' own way may cut long audio into windows and join their text; here it is one window.
    """

    def generate(model: Any, settings: GenerationConfig) -> Tensor:
        start = _starts(model, inputs)
        return cast("Any", GenerationMixin).generate(
            model, **inputs, decoder_input_ids=start, generation_config=settings
        )

    return _generated(runner, limit, generate)


def _starts(model: Any, inputs: Mapping[str, Tensor]) -> Tensor:
    """Return the start of an audio model's decoder, (1, n)."""
    settings, device = model.generation_config, device_of(model)
    ids = [_first(model)]
    if getattr(settings, "is_multilingual", False):
        language = model.detect_language(**inputs)
        ids += [int(language), settings.task_to_id["transcribe"]]
    untimed = getattr(settings, "no_timestamps_token_id", None)
    return torch.tensor([[*ids, *([] if untimed is None else [untimed])]], device=device)


def _first(model: Any) -> int:
    configs = (model.generation_config, model.config)
    names = ("decoder_start_token_id", "bos_token_id")
    found = next((one for name in names for at in configs if (one := getattr(at, name, None)) is not None), None)
    if not isinstance(found, int):
        raise UnusableText(f"{type(model).__name__} has no start token for its decoder; give a target")
    return found


def _generated(
    runner: "Runner", limit: int | None, generate: Callable[[Any, GenerationConfig], Tensor]
) -> tuple[Tensor, Tensor]:
    model = runner.model
    name = type(model).__name__
    if not model.can_generate():
        raise UnusableText(f"{name} has no unembedding to generate with; give a target, or decoder_input_ids")
    most = LONGEST if limit is None else min(LONGEST, limit)
    try:
        with runner.door, torch.no_grad(), runner.switch.ours():
            sequence = generate(cast("Any", model), _plainly(model, most))
    except Exception as error:
        reason = f"{type(error).__name__}: {first_line(error)}"
        raise UnusableText(f"{name} can't generate an output ({reason}); give a target") from error
    if sequence.shape[1] > most:  # many are made to end there, whatever they would have said
        sequence = sequence[:, :most]
    if sequence.shape[1] < 2:
        raise UnusableText(f"{name} generates nothing for this input; give a target")
    return sequence[:, :-1], sequence[:, 1:]


def _plainly(model: "PreTrainedModel", most: int) -> GenerationConfig:
    """Keep only a model's settings for its first, last and suppressed tokens."""
    theirs = cast("Any", model).generation_config
    settings = {name: getattr(theirs, name, None) for name in _SETTINGS}
    # Said the way they say it, as one of the two would be taken from them and come before the other.
    length = {"max_length": most + 1} if theirs.max_new_tokens is None else {"max_new_tokens": most}
    return GenerationConfig(**settings, **_NEUTRAL, **length)


def why_no_words(model: "PreTrainedModel", named: str, shape: Sequence[int], positions: int) -> str:
    """Return why an output isn't one number per token at each position; "" if it is.

    Args:
        positions: the number of tokens read; 0 if none.
    """
    rows, width = shape
    known = words_known(model)
    is_logits, is_hidden = named in _LOGITS, named in NO_LOGITS
    # A model may have as many classes as tokens, or return a bare tuple: then its own word counts.
    clear = is_logits and width != getattr(model.config, "num_labels", None)
    if rows == positions and width >= known > 0 and not is_hidden and (clear or _says_words(model)):
        return ""
    read = f"the {positions} tokens that it read" if positions else "its input"
    return f"its output, {named}, has {rows} × {width} numbers for {read}, but its vocabulary has {known} tokens"


def _says_words(model: "PreTrainedModel") -> bool:
    try:
        return model.get_output_embeddings() is not None or model.can_generate()
    except (AttributeError, NotImplementedError):
        return False


def nobody_speaks(tokenizer: "PreTrainedTokenizerBase | None", first: Tensor) -> float | None:
    """Return the probability of no speech, from the first row of logits; None if low or unknown."""
    known = (None if tokenizer is None else number_of(tokenizer, name) for name in _NOBODY)
    number = next((one for one in known if one is not None), None)
    if number is None or number >= len(first):
        return None
    found = float(first.double().softmax(dim=-1)[number])
    return found if found > _BELIEVED else None
