"""Estimate a recorded run's memory and time from the sizes of model and text."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from torch import Tensor

from attention_viz.inputs.device import device_of
from attention_viz.inputs.module_tree import ModuleTree
from attention_viz.trace.memory import RestingFile

if TYPE_CHECKING:
    from transformers.modeling_utils import PreTrainedModel

# Texts of this many tokens or more go to a file: a model of 30 layers keeps 120 kB per token, and its output 200 kB, so
# that these take 0.2 GB, and thirty visitors with one each 6 GB.
LONG = 640

# Multiplications and additions per second, on two cores, in float32.
OPERATIONS_A_SECOND = 7.5e10


def longest(inputs: Mapping[str, Tensor]) -> int:
    """Return the longest text's length among a model's inputs; 0 without any."""
    texts = (tensor for name, tensor in inputs.items() if name.endswith("input_ids") and tensor.ndim == 2)
    return max((tensor.shape[1] for tensor in texts), default=0)


def file_for(inputs: Mapping[str, Tensor]) -> RestingFile | None:
    """Return a file for a long text's activations; None for a short text or on a full disk."""
    if longest(inputs) < LONG:
        return None
    try:
        return RestingFile()
    except OSError:
        return None


def cost_of(
    tree: ModuleTree,
    inputs: Mapping[str, Tensor],
    calls: int,
    kept: int | None = None,
    *,
    words_later: bool = False,
) -> tuple[float, float]:
    """Return a trace's bytes and its run's seconds; 0 if unknown, as on other devices than the CPU.

    Each parameter but the embeddings is multiplied once per token, and each pair of tokens costs twice a layer's width.
    `kept` is the number of kept calls, None for all.
    """
    model, tokens = cast("PreTrainedModel", tree.model), longest(inputs)
    if not tokens or device_of(model).type != "cpu":
        return 0.0, 0.0
    width, words = _sizes(model)
    numbers = tree.numbers
    chooses = model.get_output_embeddings() is not None
    tables = 2 if chooses and not getattr(model.config, "tie_word_embeddings", False) else 1
    made = chooses and not words_later
    # A table of words is multiplied where it chooses the next one, and looked up where it reads them.
    numbers = max(0, numbers - (tables - made) * words * width)
    work = 2.0 * tokens * numbers + 4.0 * tokens**2 * width * calls
    held = tokens * (3 * width * (calls if kept is None else kept) + (words if made else width))
    return float(held * model.dtype.itemsize), work / OPERATIONS_A_SECOND


def _sizes(model: "PreTrainedModel") -> tuple[int, int]:
    """Return a layer's width and the vocabulary's size; 0 if the configuration doesn't say."""
    try:
        config = model.config.get_text_config()
    except ValueError:  # several parts of it read text
        config = model.config
    found = (getattr(config, name, 0) for name in ("hidden_size", "vocab_size"))
    width, words = (one if isinstance(one, int) else 0 for one in found)
    return width, words
