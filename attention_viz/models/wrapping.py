"""Wrap a transformers model that is already in memory."""

from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any, cast

from torch import Tensor

from attention_viz.errors import UnsupportedModel, UnusableText
from attention_viz.inputs.isolated.tokenizer import IsolatedTokenizer
from attention_viz.inputs.media.beside import BesideReader, reads_both
from attention_viz.inputs.media.beside_sound import BesideSoundReader, hears_both
from attention_viz.inputs.media.readers import Reader, example_reader, main_input, reader_of
from attention_viz.models.model import AttentionModel
from attention_viz.models.unwrapping import OTHER_WAYS, homes, unwrapped
from attention_viz.recording.as_written import refuse_autocast
from attention_viz.sources.huggingface import PreTrainedTokenizerBase, transformers
from attention_viz.sources.huggingface import PreTrainedTokenizerBase as Tokenizer
from attention_viz.trace.trace import Provenance

if TYPE_CHECKING:
    from transformers.feature_extraction_utils import FeatureExtractionMixin
    from transformers.image_processing_utils import BaseImageProcessor
    from transformers.modeling_utils import PreTrainedModel
    from transformers.processing_utils import ProcessorMixin
    from transformers.tokenization_utils_base import PreTrainedTokenizerBase

__all__ = ["checked_tokenizer", "wrap"]
# Each processor of transformers has one of these.
_PROCESSES = {"tokenizer", "image_processor", "feature_extractor", "image_mean", "sampling_rate", "model_input_names"}


def checked_tokenizer(given: Any) -> Any:
    """Return a tokenizer or processor of transformers, made from a bare one if needed; None for None."""
    if given is None or isinstance(given, PreTrainedTokenizerBase | IsolatedTokenizer):
        return given
    home = homes(given)
    if "tokenizers" in home and hasattr(given, "get_added_tokens_decoder"):
        return _from_bare(given)
    if "transformers" in home and _PROCESSES & {*dir(given)}:
        return given
    if isinstance(given, str | PathLike):
        name = str(given)[:100]
        raise UnusableText(
            f"the tokenizer must be an object, not its name, {name!r}; "
            f"call transformers.AutoTokenizer.from_pretrained({name!r})"
        )
    what = f"the class {given.__name__}" if isinstance(given, type) else type(given).__name__
    raise UnusableText(f"the tokenizer must be a tokenizer or a processor of transformers; got {what}")


def _from_bare(bare: Any) -> PreTrainedTokenizerBase:
    """Wrap a bare tokenizer in transformers' class with the same ids; special tokens stay special."""
    special = [token.content for token in bare.get_added_tokens_decoder().values() if token.special]
    unknown = getattr(bare.model, "unk_token", None)
    named = {"unk_token": unknown} if isinstance(unknown, str) and bare.token_to_id(unknown) is not None else {}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=bare, extra_special_tokens=special, **named)


def wrap(
    hf_model: "PreTrainedModel",
    tokenizer: "PreTrainedTokenizerBase | ProcessorMixin | BaseImageProcessor | FeatureExtractionMixin | None" = None,
    *,
    inputs: Mapping[str, Tensor] | None = None,
) -> "AttentionModel":
    """Wrap a Transformers model that is already in memory, so that you can trace it.

    `wrap` doesn't copy the model and restores its configuration. A small run checks whether the model can be recorded
    exactly. Other threads may run the model at the same time with unchanged results; only training has to wait, because
    recording uses evaluation mode. A compiled model runs uncompiled.

    Args:
        hf_model: any Transformers model: an encoder, causal decoder or encoder–decoder for text, or a model for images
            or audio. Or an object that holds one: a SentenceTransformer, a CrossEncoder, a pipeline, a DataParallel, a
            compiled model, or an nnsight model. `trace.provenance.notes` lists removed wrappers.
        tokenizer: the text tokenizer; without one, use `trace_ids`. For images or audio, the model's processor: `trace`
            then takes an `av.Picture` or an `av.Sound`, or a text and `picture=` if the model reads both.
        inputs: for any other model, example tensors by name for its forward, one row each; `trace` then takes such
            tensors. Positions are named if their meaning can be proved; else they have numbers.

    Raises:
        UnsupportedModel: the attention can't be recorded exactly, torch.autocast is on, or the object isn't a supported
            model; the message says what to do instead.
        UnusableText: `tokenizer` isn't a tokenizer or processor.
        ShapeError: a tensor of `inputs` has no numbers, or NaN or infinity.
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
    """Return the model's tokenizer, and its reader for inputs other than text."""
    is_words = given is None or isinstance(given, Tokenizer | IsolatedTokenizer)
    words = cast("PreTrainedTokenizerBase | None", given if is_words else getattr(given, "tokenizer", None))
    if inputs is not None:
        return words, example_reader(name, model, inputs)
    if not is_words and reads_both(model, given):
        return words, BesideReader(name, model, given)
    if not is_words and hears_both(model, given):
        return words, BesideSoundReader(name, model, given)
    if not is_words and main_input(model) != "input_ids":
        return words, reader_of(name, model, given)
    if given is not None and words is None:
        raise UnusableText(
            f"{name} reads text, but {type(given).__name__} has no tokenizer; pass the model's tokenizer"
        )
    return words, None
