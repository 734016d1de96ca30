"""The small run that decides whether a model may be shown at all. Its name decides nothing."""

import contextlib
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from attention_viz.errors import UnsupportedModel
from attention_viz.masks import causal
from attention_viz.models.comparison import compare
from attention_viz.models.reading import vocabulary
from attention_viz.models.recorder import Call
from attention_viz.models.running import Runner
from attention_viz.models.wiring import Wiring, find_wirings

if TYPE_CHECKING:
    from transformers import PreTrainedModel

__all__ = ["Anatomy", "first_line", "probe"]

_TOKENS = 11


@dataclass(frozen=True, eq=False)
class Anatomy:
    """What the probe learnt of a model.

    Attributes:
        stream: its one stream.
        modules: each layer's attention module in the order they run.
        labels: each layer's label.
        wirings: what stands around each layer's call.
    """

    stream: str
    modules: tuple[nn.Module, ...]
    labels: tuple[str, ...]
    wirings: tuple[Wiring, ...]


def probe(runner: Runner, limit: int | None) -> Anatomy:
    """Run a few tokens with our attention and without, compare every head and the output, and describe the model.

    Args:
        runner: runs the model.
        limit: how many tokens it can read at once.

    Raises:
        UnsupportedModel: our function was never called, not everywhere, or gave something else.
    """
    model = runner.model
    family = f"{model.config.model_type} ({type(model).__name__})"
    if getattr(model.config, "is_encoder_decoder", False):
        raise UnsupportedModel(f"{family} is an encoder–decoder; only encoders and causal decoders can be shown so far")
    ids = _ids(family, model, min(_TOKENS, limit or _TOKENS))
    with _naming(family):
        inputs = runner.inputs({"input_ids": ids, "attention_mask": torch.ones_like(ids)})
        recorded = runner.record(inputs)
    if not recorded.calls:
        raise UnsupportedModel(
            f"{family} never called our attention: it computes attention in code of its own instead of through "
            "transformers' attention interface, so what it computes can't be recorded"
        )
    with _naming(family):
        fidelity = compare(recorded, runner, inputs)
    if not fidelity.ok:
        raise UnsupportedModel(
            f"{family} gives something else with our attention: output off by {fidelity.output_error:.1e}, weights by "
            f"{fidelity.weight_error:.1e} relative, allowed {fidelity.bound:.0e}; it adds a term that is not known here"
        )
    calls = recorded.calls
    return Anatomy(
        _stream(family, calls, ids.shape[1]),
        tuple(call.module for call in calls),
        _labels(model, calls),
        find_wirings(model, lambda: runner.record(inputs).calls),
    )


def _ids(family: str, model: "PreTrainedModel", count: int) -> Tensor:
    """Ids from all over the vocabulary, different from each other where there are enough."""
    size = vocabulary(model)
    if size < 1:
        raise UnsupportedModel(f"{family} has no vocabulary: only models that read text can be shown")
    step = max(size // count, 1)
    return ((step // 2 + step * torch.arange(count)) % size)[None]


@contextlib.contextmanager
def _naming(family: str) -> Generator[None]:
    """Turn whatever breaks inside a foreign model into a refusal with its name."""
    try:
        yield
    except UnsupportedModel as error:
        raise UnsupportedModel(f"{family}: {error}") from None
    except Exception as error:
        raise UnsupportedModel(
            f"{family} can't be run on text alone: {type(error).__name__}: {first_line(error)}"
        ) from error


def first_line(error: Exception) -> str:
    """What a foreign error says, without the advice for somebody else that often follows."""
    return (str(error).strip().splitlines() or ["no reason given"])[0]


def _stream(family: str, calls: Sequence[Call], count: int) -> str:
    """A model that never looks ahead is a decoder, one that does is an encoder."""
    ahead = ~causal(count)
    closed: list[bool] = []
    for call in calls:
        if call.attention.shape[1:] != (count, count):
            raise UnsupportedModel(
                f"{family} attends over {call.attention.shape[1:]} (query, key) for a text of {count} tokens; "
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
    paths = [names.get(id(call.module), "").split(".") for call in calls]
    numbers = [next((part for part in path if part.isdigit()), "") for path in paths]
    distinct = len(set(numbers)) == len(numbers) and all(numbers)
    return tuple(numbers) if distinct else tuple(str(position) for position in range(len(calls)))
