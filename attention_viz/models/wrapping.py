"""A look into a transformers model that is already in memory."""

from typing import TYPE_CHECKING

from attention_viz.errors import UnsupportedModel
from attention_viz.models.model import AttentionModel
from attention_viz.trace.trace import Provenance

if TYPE_CHECKING:
    from transformers.modeling_utils import PreTrainedModel
    from transformers.tokenization_utils_base import PreTrainedTokenizerBase

__all__ = ["wrap"]

_OTHER_WAYS = (
    "Of any torch module, av.record() records the attention that it asks torch for; and av.Trace.from_qkv and "
    "av.Trace.from_weights draw what other code computed"
)


def wrap(hf_model: "PreTrainedModel", tokenizer: "PreTrainedTokenizerBase | None" = None) -> "AttentionModel":
    """Look into a transformers model that is already in memory.

    Works on the object it is given, without a copy, and leaves its configuration as it found it. A small run decides
    at once whether the model can be recorded exactly. Others may run the model at the same time and get what they
    always get; only training has to wait, since the model is in evaluation mode while it is recorded.

    Args:
        hf_model: any transformers model of text: an encoder, a causal decoder or an encoder–decoder.
        tokenizer: what turns text into its tokens; without one, use `trace_ids`.

    Raises:
        UnsupportedModel: the model's attention can't be recorded exactly; the message names what can be done instead.
    """
    config = getattr(hf_model, "config", None)
    if config is None:
        raise UnsupportedModel(
            f"wrap takes a transformers model; got {type(hf_model).__name__}, without configuration. {_OTHER_WAYS}"
        )
    name = str(getattr(config, "name_or_path", "") or type(hf_model).__name__)
    try:
        return AttentionModel.of(hf_model, tokenizer, Provenance(model=name))
    except UnsupportedModel as error:
        raise UnsupportedModel(f"{error}. {_OTHER_WAYS}") from error
