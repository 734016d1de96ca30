"""Models that attend sparsely to long texts only, as BigBird does.

Transformers turns such a model to full attention at its first short text, for good. A copy over the same numbers stays
sparse.
"""

from typing import TYPE_CHECKING, Any

from attention_viz.errors import UnsupportedModel
from attention_viz.recording.copied import copied
from attention_viz.recording.hooks import HOOKS

if TYPE_CHECKING:
    from transformers.modeling_utils import PreTrainedModel

_SPARSE, _TURN = "block_sparse", "set_attention_type"


def full_limit(model: "PreTrainedModel") -> int | None:
    """Return how many tokens a block-sparse model reads in full, by transformers' own rule; None for other models."""
    config = model.config
    if getattr(config, "attention_type", None) != _SPARSE or not any(hasattr(one, _TURN) for one in model.modules()):
        return None
    return (5 + 2 * config.num_random_blocks) * config.block_size


def whole_blocks(model: "PreTrainedModel", limit: int | None) -> int | None:
    """Return how many tokens a block-sparse model reads, which fills up the last block."""
    return None if limit is None else limit // model.config.block_size * model.config.block_size


def kept_sparse(model: "PreTrainedModel") -> "PreTrainedModel":
    """Return a copy of a block-sparse model over its numbers, which refuses to attend in full."""
    tensors = (*model.parameters(), *model.buffers())
    with HOOKS:
        found = copied(model, {id(one): one for one in tensors})
    for module in found.modules():
        turn: Any = getattr(module, _TURN, None)
        if turn is not None:
            turn(_SPARSE)
    for module in found.modules():
        if hasattr(module, _TURN):
            setattr(module, _TURN, _stay)
    return found


def _stay(value: str, layer_idx: int | None = None) -> None:
    """Take the place of the method that turns a model."""
    if value != _SPARSE:
        raise UnsupportedModel("it attends in full to a text this short")
