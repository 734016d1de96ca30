"""A look into a transformers model that is already in memory."""

from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any, cast

from torch import Tensor

from attention_viz.errors import UnsupportedModel, UnusableText
from attention_viz.inputs.isolated.tokenizer import IsolatedTokenizer
from attention_viz.inputs.media.beside import BesideReader, reads_both
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


def checked_tokenizer(given: Any) -> Any:
    """Return a tokenizer or processor of transformers, made from a bare tokenizer if one was given; None for None."""
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
            f"the tokenizer has to be the object, not its name; got {name!r}: "
            f"call transformers.AutoTokenizer.from_pretrained({name!r})"
        )
    what = f"the class {given.__name__}" if isinstance(given, type) else type(given).__name__
    raise UnusableText(f"the tokenizer has to be a tokenizer or a processor of transformers; got {what}")


# Each processor of transformers has one of these.
_PROCESSES = {"tokenizer", "image_processor", "feature_extractor", "image_mean", "sampling_rate", "model_input_names"}


def _from_bare(bare: Any) -> PreTrainedTokenizerBase:
    """Put a bare tokenizer into transformers' own class, which reads the same ids; special tokens stay special."""
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
