"""What people hand over as a tokenizer: one of transformers, a processor, or a bare one of the library tokenizers."""

from os import PathLike
from typing import Any

from attention_viz.errors import UnusableText
from attention_viz.inputs.isolated.tokenizer import IsolatedTokenizer
from attention_viz.models.unwrapping import homes
from attention_viz.sources.huggingface import PreTrainedTokenizerBase, transformers

__all__ = ["checked_tokenizer"]


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
