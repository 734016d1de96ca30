"""A folder's tokenizer: one that ships works in this process, a stranger's in one of its own."""

from collections.abc import Callable
from typing import cast

from attention_viz.errors import AttentionVizError, ModelNotFound
from attention_viz.inputs.isolated.asking import get_ready
from attention_viz.inputs.isolated.tokenizer import IsolatedTokenizer
from attention_viz.inputs.text import vocabulary
from attention_viz.inputs.tokenizing import is_breakdown
from attention_viz.sources.bounded.process import ProcessEnded, isolates
from attention_viz.sources.folders import TOKENIZER_FILES, CheckedFolder
from attention_viz.sources.huggingface import AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

__all__ = ["check_tokenizer", "prepare_texts", "read_tokenizer"]


def prepare_texts(*, ships: bool) -> bool:
    """Return whether a tokenizer works in a process of its own, and begin to import what that needs."""
    apart = not ships and isolates()
    if apart:
        get_ready()
    return apart


def read_tokenizer(folder: CheckedFolder, check: Callable[[], None], *, apart: bool) -> PreTrainedTokenizerBase | None:
    """Load a folder's tokenizer; None if it has none, and then only ids can be read.

    Args:
        check: called again and again meanwhile; what it raises ends that.
    """
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
        raise ModelNotFound(f"the tokenizer of {folder.name} can't be loaded: it {error}") from None
    except BaseException as error:
        if not isinstance(error, Exception) and not is_breakdown(error):
            raise
        whole = (folder.path / "tokenizer.json").is_file()
        why = f"{'' if whole else 'there is no tokenizer.json, and without it: '}{folder.reason(error)}"
        raise ModelNotFound(f"the tokenizer of {folder.name} can't be loaded: {why}") from error


def check_tokenizer(folder: CheckedFolder, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase | None) -> None:
    """Refuse a tokenizer that is another model's.

    Tokens that were added to it may lie beyond the model's ids, as in many published models: a text that has one of
    those is refused when it comes. A vocabulary that lies beyond is another model's, and its words would be, too.
    """
    if tokenizer is None:
        return
    known, own = vocabulary(model), int(tokenizer.vocab_size)
    if known and own > known:
        raise ModelNotFound(
            f"the tokenizer of {folder.name} is another model's: it has {own:,} words and word pieces, and the model "
            f"knows the ids 0 to {known - 1:,}"
        )
