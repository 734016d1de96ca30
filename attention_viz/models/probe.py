"""The small run that decides whether a model may be shown at all. Its name decides nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor, nn

from attention_viz.errors import UnsupportedModel
from attention_viz.masks import causal
from attention_viz.models.comparison import compare
from attention_viz.models.recorder import Call

if TYPE_CHECKING:
    from transformers import PreTrainedModel

__all__ = ["Anatomy", "probe"]

_TOKENS = 11


@dataclass(frozen=True, eq=False)
class Anatomy:
    """What the probe learnt of a model: its one stream, and each layer's module and label in the order they run."""

    stream: str
    modules: tuple[nn.Module, ...]
    labels: tuple[str, ...]


class Run(Protocol):
    """One pass over inputs, with our attention (recorded) or without; the output and the recorded calls."""

    def __call__(self, inputs: dict[str, Tensor], *, ours: bool = True) -> tuple[Tensor, Sequence[Call]]:
        """Run it."""
        ...


def probe(model: "PreTrainedModel", run: Run) -> Anatomy:
    """Run a few tokens with our attention and without, compare every head and the output, and describe the model.

    Raises:
        UnsupportedModel: our function was never called, not everywhere, or gave something else.
    """
    family = f"{model.config.model_type} ({type(model).__name__})"
    if getattr(model.config, "is_encoder_decoder", False):
        raise UnsupportedModel(f"{family} is an encoder–decoder; only encoders and causal decoders can be shown so far")
    inputs = {"input_ids": _tokens(model), "attention_mask": torch.ones(1, _TOKENS, dtype=torch.long)}
    inputs = {name: tensor.to(model.device) for name, tensor in inputs.items()}
    output, calls = _or_refuse(family, run, inputs, True)
    if not calls:
        raise UnsupportedModel(
            f"{family} never called our attention: it computes attention in code of its own instead of through "
            "transformers' attention interface, so what it computes can't be recorded"
        )
    fidelity = compare(calls, output, lambda: _or_refuse(family, run, inputs, False)[0])
    if not fidelity.ok:
        raise UnsupportedModel(
            f"{family} gives something else with our attention: output off by {fidelity.output_error:.1e}, weights by "
            f"{fidelity.weight_error:.1e} relative, allowed {fidelity.bound:.0e}; it adds a term that is not known here"
        )
    return Anatomy(_stream(family, calls), tuple(call.module for call in calls), _labels(model, calls))


def _tokens(model: "PreTrainedModel") -> Tensor:
    """Different ids from the middle of the vocabulary, away from the special ones at its ends."""
    vocabulary = int(getattr(model.config.get_text_config(), "vocab_size", 0) or 0)
    if vocabulary < 1:
        raise UnsupportedModel(f"{type(model).__name__} has no vocabulary: only models that read text can be shown")
    ids = (vocabulary // 3 + 7 * torch.arange(_TOKENS)) % vocabulary
    return ids[None]


def _or_refuse(family: str, run: Run, inputs: dict[str, Tensor], ours: bool) -> tuple[Tensor, Sequence[Call]]:
    """Run, and turn whatever breaks inside a foreign model into a refusal with its name."""
    try:
        return run(inputs, ours=ours)
    except UnsupportedModel as error:
        raise UnsupportedModel(f"{family}: {error}") from None
    except Exception as error:
        raise UnsupportedModel(f"{family} can't be run on text alone: {type(error).__name__}: {error}") from error


def _stream(family: str, calls: Sequence[Call]) -> str:
    """A model that never looks ahead is a decoder, one that does is an encoder."""
    ahead = ~causal(_TOKENS)
    closed: list[bool] = []
    for call in calls:
        if call.attention.shape[1:] != (_TOKENS, _TOKENS):
            raise UnsupportedModel(
                f"{family} attends over {call.attention.shape[1:]} (query, key) for a text of {_TOKENS} tokens; "
                "only attention of a text to itself can be shown so far"
            )
        allowed = call.attention.allowed
        closed.append(allowed is not None and not bool((allowed & ahead.to(allowed.device)).any()))
    if all(closed):
        return "decoder"
    if any(closed):
        raise UnsupportedModel(
            f"{family} looks ahead in some layers and not in others; such a mixture can't be shown so far"
        )
    return "encoder"


def _labels(model: "PreTrainedModel", calls: Sequence[Call]) -> tuple[str, ...]:
    """The model's own number for each layer where its module names have one, else the order of the calls."""
    names = {id(module): name for name, module in model.named_modules()}
    numbers = [next((part for part in names[id(call.module)].split(".") if part.isdigit()), "") for call in calls]
    distinct = len(set(numbers)) == len(numbers) and all(numbers)
    return tuple(numbers) if distinct else tuple(str(position) for position in range(len(calls)))
