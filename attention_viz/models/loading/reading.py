"""Prepare inputs for a folder's model that reads images, sounds, or text beside an image or audio."""

from collections.abc import Callable
from typing import cast

from attention_viz.errors import (
    AttentionVizError,
    ModelNotFound,
    UnsupportedModel,
    UnusablePicture,
    UnusableSound,
    UnusableText,
)
from attention_viz.inputs.isolated.asking import get_ready
from attention_viz.inputs.isolated.tokenizer import IsolatedTokenizer
from attention_viz.inputs.media.beside import BesideReader, reads_both, takes_both
from attention_viz.inputs.media.beside_sound import BesideSoundReader, hears_both, takes_sound
from attention_viz.inputs.media.processor_apart import IsolatedProcessor
from attention_viz.inputs.media.readers import Reader, kind_of, main_input, reader_of
from attention_viz.inputs.text import vocabulary
from attention_viz.inputs.tokenizing import is_breakdown
from attention_viz.models.model import AttentionModel
from attention_viz.sources.bounded.process import ProcessEnded, isolates
from attention_viz.sources.folders import PROCESSOR_FILES, TOKENIZER_FILES, CheckedFolder
from attention_viz.sources.huggingface import (
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from attention_viz.sources.processors import read_both, read_processor
from attention_viz.trace.trace import Provenance

# The folder was tried in a process of this image, which has imported all that processors need.
_IMAGE = "attention_viz.models.loading.dry_run"


def own_reader(
    folder: CheckedFolder, model: PreTrainedModel, check: Callable[[], None] = lambda: None, *, apart: bool = False
) -> Reader | None:
    """Return the reader of an image or sound model; None for a text model."""
    if main_input(model) == "input_ids":
        return None
    try:
        processor = _apart(folder, check, both=False) if apart else read_processor(folder.path)
    except AttentionVizError:
        raise
    except Exception as error:
        raise ModelNotFound(f"can't load the processor of {folder.name}: {folder.reason(error)}") from error
    return reader_of(folder.name, model, processor)


def of_both(
    folder: CheckedFolder,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase | None,
    provenance: Provenance,
    why: str = "",
    check: Callable[[], None] = lambda: None,
    *,
    apart: bool = False,
) -> AttentionModel:
    """Wrap a model for text beside an image or audio; fall back to text alone, and report the reason when one comes."""
    if not may_read_both(folder, model):
        return AttentionModel.of(model, tokenizer, provenance)
    if not why:
        try:
            return AttentionModel.of(model, tokenizer, provenance, reader_of_both(folder, model, check, apart=apart))
        except (UnsupportedModel, UnusablePicture, UnusableSound, UnusableText) as error:
            why = str(error)
    try:
        return AttentionModel.of(model, tokenizer, provenance, why_alone=why)
    except UnsupportedModel as error:
        raise UnsupportedModel(f"{error}. Reading text beside {_beside(model)} fails, too: {why}") from error


def may_read_both(folder: CheckedFolder, model: PreTrainedModel) -> bool:
    """Return whether a model takes text beside an image or audio, and its folder has a processor."""
    has_processor = any((folder.path / name).is_file() for name in PROCESSOR_FILES)
    return has_processor and (takes_both(model) or takes_sound(model))


def _beside(model: PreTrainedModel) -> str:
    return "an image" if takes_both(model) else "audio"


def reader_of_both(
    folder: CheckedFolder, model: PreTrainedModel, check: Callable[[], None] = lambda: None, *, apart: bool = False
) -> Reader:
    """Return the reader of texts and images, or of texts and audio, for a folder's model that reads both."""
    try:
        processor = _apart(folder, check, both=True) if apart else read_both(folder.path)
    except AttentionVizError:
        raise
    except Exception as error:  # whatever a processor's own code says, such as which package it lacks
        raise UnsupportedModel(
            f"can't load the processor of {folder.name} for texts and {'images' if takes_both(model) else 'audio'}: "
            f"{folder.reason(error)}"
        ) from error
    if reads_both(model, processor):
        return BesideReader(folder.name, model, processor)
    if hears_both(model, processor):
        return BesideSoundReader(folder.name, model, processor)
    raise UnsupportedModel(
        f"the processor of {folder.name}, {kind_of(processor)}, doesn't read both a text and {_beside(model)}"
    )


def _apart(folder: CheckedFolder, check: Callable[[], None], *, both: bool) -> IsolatedProcessor:
    try:
        return IsolatedProcessor.load(folder.path, folder.name, check, both=both, image=_IMAGE)
    except ProcessEnded as error:  # its message is a verb
        raise ProcessEnded(f"it {error}") from None


def prepare_texts(*, ships: bool) -> bool:
    """Return whether a tokenizer works in a process of its own, and start importing for it."""
    apart = not ships and isolates()
    if apart:
        get_ready()
    return apart


def read_tokenizer(folder: CheckedFolder, check: Callable[[], None], *, apart: bool) -> PreTrainedTokenizerBase | None:
    """Load a folder's tokenizer; None if it has none, so only ids can be read."""
    if not any((folder.path / name).is_file() for name in TOKENIZER_FILES):
        return None
    try:
        if apart:  # it has what is used of the other, and no more
            return cast("PreTrainedTokenizerBase", IsolatedTokenizer.load(folder.path, folder.name, check))
        return cast(
            "PreTrainedTokenizerBase",
            AutoTokenizer.from_pretrained(str(folder.path), local_files_only=True, trust_remote_code=False),
        )
    except AttentionVizError:
        raise
    except ProcessEnded as error:
        raise ModelNotFound(f"can't load the tokenizer of {folder.name}: it {error}") from None
    except BaseException as error:
        if not isinstance(error, Exception) and not is_breakdown(error):
            raise
        whole = (folder.path / "tokenizer.json").is_file()
        why = f"{'' if whole else 'tokenizer.json is missing, and without it, '}{folder.reason(error)}"
        raise ModelNotFound(f"can't load the tokenizer of {folder.name}: {why}") from error


def check_tokenizer(folder: CheckedFolder, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase | None) -> None:
    """Refuse another model's tokenizer, whose vocabulary exceeds the model's ids.

    Only added tokens may, as in many published models; texts with one are refused later.
    """
    if tokenizer is None:
        return
    known, own = vocabulary(model), int(tokenizer.vocab_size)
    if known and own > known:
        raise ModelNotFound(
            f"the tokenizer of {folder.name} is another model's; it has {own:,} tokens, but the model has only the ids "
            f"0 to {known - 1:,}"
        )
