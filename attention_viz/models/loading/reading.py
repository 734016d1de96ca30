"""What prepares the input of a folder's model that reads something else than text, or a text beside a picture."""

from collections.abc import Callable

from attention_viz.errors import AttentionVizError, ModelNotFound, UnsupportedModel, UnusablePicture, UnusableText
from attention_viz.inputs.media.beside import BesideReader, reads_both, takes_both
from attention_viz.inputs.media.choosing import kind_of, main_input, reader_of
from attention_viz.inputs.media.processor_apart import IsolatedProcessor
from attention_viz.inputs.media.readers import Reader
from attention_viz.models.model import AttentionModel
from attention_viz.sources.bounded.process import ProcessEnded
from attention_viz.sources.folders import PROCESSOR_FILES, CheckedFolder
from attention_viz.sources.huggingface import PreTrainedModel, PreTrainedTokenizerBase, read_both, read_processor
from attention_viz.trace.trace import Provenance

__all__ = ["of_both", "own_reader", "reader_of_both"]

# The folder was tried in a process of this image, which has imported all that processors need.
_IMAGE = "attention_viz.models.loading.dry_run"


def own_reader(
    folder: CheckedFolder, model: PreTrainedModel, check: Callable[[], None] = lambda: None, *, apart: bool = False
) -> Reader | None:
    """What prepares pictures or sounds, of a model that reads such; None of one that reads text.

    Args:
        check: called again and again meanwhile; what it raises ends that.
    """
    if main_input(model) == "input_ids":
        return None
    try:
        processor = _apart(folder, check, both=False) if apart else read_processor(folder.path)
    except AttentionVizError:
        raise
    except Exception as error:
        raise ModelNotFound(f"what prepares {folder.name}'s input can't be loaded: {folder.reason(error)}") from error
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
    """Wrap a folder's model that reads a text beside a picture; if it can't do that, it reads text alone.

    It then says of a picture what the reason was.

    Args:
        check: called again and again meanwhile; what it raises ends that.
    """
    if not takes_both(model) or not any((folder.path / name).is_file() for name in PROCESSOR_FILES):
        return AttentionModel.of(model, tokenizer, provenance)
    if not why:
        try:
            return AttentionModel.of(model, tokenizer, provenance, reader_of_both(folder, model, check, apart=apart))
        except (UnsupportedModel, UnusablePicture, UnusableText) as error:
            why = str(error)
    try:
        return AttentionModel.of(model, tokenizer, provenance, why_alone=why)
    except UnsupportedModel as error:
        raise UnsupportedModel(f"{error}. Nor is it read beside a picture: {why}") from error


def reader_of_both(
    folder: CheckedFolder, model: PreTrainedModel, check: Callable[[], None] = lambda: None, *, apart: bool = False
) -> Reader:
    """Return what prepares texts and pictures for a folder's model that reads both.

    Args:
        check: called again and again meanwhile; what it raises ends that.
    """
    try:
        processor = _apart(folder, check, both=True) if apart else read_both(folder.path)
    except AttentionVizError:
        raise
    except Exception as error:  # whatever a processor's own code says, such as which package it lacks
        raise UnsupportedModel(
            f"what prepares texts and pictures for {folder.name} can't be loaded: {folder.reason(error)}"
        ) from error
    if not reads_both(model, processor):
        raise UnsupportedModel(f"what {folder.name} has for it, {kind_of(processor)}, doesn't make both")
    return BesideReader(folder.name, model, processor)


def _apart(folder: CheckedFolder, check: Callable[[], None], *, both: bool) -> IsolatedProcessor:
    try:
        return IsolatedProcessor.load(folder.path, folder.name, check, both=both, image=_IMAGE)
    except ProcessEnded as error:  # its message is a verb
        raise ProcessEnded(f"it {error}") from None
