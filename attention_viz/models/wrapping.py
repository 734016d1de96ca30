"""A look into a transformers model that is already in memory."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from torch import Tensor

from attention_viz.errors import UnsupportedModel, UnusableText
from attention_viz.inputs.isolated.tokenizer import IsolatedTokenizer
from attention_viz.inputs.media.beside import BesideReader, reads_both
from attention_viz.inputs.media.choosing import example_reader, main_input, reader_of
from attention_viz.inputs.media.readers import Reader
from attention_viz.models.model import AttentionModel
from attention_viz.models.tokenizers_held import checked_tokenizer
from attention_viz.models.unwrapping import OTHER_WAYS, unwrapped
from attention_viz.recording.as_written import refuse_autocast
from attention_viz.sources.huggingface import PreTrainedTokenizerBase as Tokenizer
from attention_viz.trace.trace import Provenance

if TYPE_CHECKING:
    from transformers.feature_extraction_utils import FeatureExtractionMixin
    from transformers.image_processing_utils import BaseImageProcessor
    from transformers.modeling_utils import PreTrainedModel
    from transformers.processing_utils import ProcessorMixin
    from transformers.tokenization_utils_base import PreTrainedTokenizerBase

__all__ = ["wrap"]


def wrap(
    hf_model: "PreTrainedModel",
    tokenizer: "PreTrainedTokenizerBase | ProcessorMixin | BaseImageProcessor | FeatureExtractionMixin | None" = None,
    *,
    inputs: Mapping[str, Tensor] | None = None,
) -> "AttentionModel":
    """Look into a transformers model that is already in memory.

    Works on the object it is given, without a copy, and leaves its configuration as it found it. A small run decides
    at once whether the model can be recorded exactly. Others may run the model at the same time and get what they
    always get; only training has to wait, since the model is in evaluation mode while it is recorded. A compiled model
    runs as it is written.

    Args:
        hf_model: any transformers model: an encoder, a causal decoder or an encoder–decoder of text, or one of pictures
            or sounds; or an object that holds one: a SentenceTransformer, a CrossEncoder, a pipeline, a DataParallel, a
            compiled model, or a model of nnsight. `trace.provenance.notes` says what was taken off.
        tokenizer: what turns text into its tokens; without one, use `trace_ids`. Of a model of pictures or sounds its
            processor: `trace` then takes an `av.Picture` or an `av.Sound`; or, of a model that reads a text beside a
            picture, a text and `picture=`.
        inputs: of a model that reads anything else, an example of the tensors that its forward takes, by name, of one
            row each; `trace` then takes such. What a position stands for is told where it can be proved; else positions
            have numbers.

    Raises:
        UnsupportedModel: the model's attention can't be recorded exactly, torch.autocast is on, or the object is
            something else; the message names what can be done instead.
        UnusableText: the tokenizer is something else.
    """
    held = unwrapped(hf_model, tokenizer)
    model, notes = held.model, held.notes
    refuse_autocast(f"the {type(model).__name__}", model)
    name = str(getattr(model.config, "name_or_path", "") or type(model).__name__)
    given = checked_tokenizer(held.tokenizer)
    try:
        words, reader = _means(name, model, given, inputs)
        return AttentionModel.of(model, words, Provenance(model=name, notes=notes), reader)
    except UnsupportedModel as error:
        raise UnsupportedModel(f"{error}. {OTHER_WAYS}") from error


def _means(
    name: str, model: "PreTrainedModel", given: Any, inputs: Mapping[str, Tensor] | None
) -> "tuple[PreTrainedTokenizerBase | None, Reader | None]":
    """What a model reads with: a tokenizer, and of what is no text a reader."""
    is_words = given is None or isinstance(given, Tokenizer | IsolatedTokenizer)
    words = cast("PreTrainedTokenizerBase | None", given if is_words else getattr(given, "tokenizer", None))
    if inputs is not None:
        return words, example_reader(name, model, inputs)
    if not is_words and reads_both(model, given):
        return words, BesideReader(name, model, given)
    if not is_words and main_input(model) != "input_ids":
        return words, reader_of(name, model, given)
    if given is not None and words is None:
        raise UnusableText(f"{name} reads text, and {type(given).__name__} has no tokenizer; needed: its tokenizer")
    return words, None
