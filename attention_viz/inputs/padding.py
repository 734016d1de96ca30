"""One row of a batch: a text filled up with padding to the length of the longest, and nothing blocked yet."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from attention_viz.edits.edit import Edit
from attention_viz.errors import ShapeError, UnsupportedModel
from attention_viz.inputs.text import Wording, read
from attention_viz.protocol.model import Model
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Trace

if TYPE_CHECKING:
    from transformers.tokenization_utils_base import PreTrainedTokenizerBase

__all__ = ["padded", "trace_filled", "unpadded"]


def trace_filled(
    model: Model,
    text: str,
    length: int,
    edits: Sequence[Edit] = (),
    *,
    special_tokens: bool = True,
    chat: bool = False,
) -> Trace:
    """Run a text with padding after it, up to a length, and let everyone look at the padding.

    That is what a batch does without its mask; `Allow` with `masks.padding` is the mask. The positions are labelled as
    padding in the trace.

    Args:
        edits: changes made inside the model, such as `Allow`.
    """
    count = model.fit(text, special_tokens=special_tokens, chat=chat).count
    if length < count:
        raise ShapeError(f"a length of {length} was asked for; this text has {count} tokens")
    # A text with nothing in it is refused before the padding would hide that.
    if count in (0, length):
        return model.trace(text, edits=edits, special_tokens=special_tokens, chat=chat)
    trace = model.trace_padded(text, length - count, edits=edits, special_tokens=special_tokens, chat=chat)
    origin = replace(trace.provenance, text=text, special_tokens=special_tokens, chat=chat)
    return trace.derived(provenance=origin)


def padded(
    name: str, tokenizer: "PreTrainedTokenizerBase | None", text: str, padding: int, wording: Wording
) -> tuple[Tensor, Tokens]:
    """A text's ids with so many of the padding token after them, (1, n), and its tokens, those labelled as padding."""
    own = read(name, tokenizer, text, wording=wording).tokens
    filling = getattr(tokenizer, "pad_token_id", None)
    if not isinstance(filling, int):
        raise UnsupportedModel(f"{name}'s tokenizer has no padding token, so its rows can't be filled up")
    ids = (*own.numbers, *[filling] * padding)
    longer = Tokens(
        (*own.labels, *[""] * padding),
        ids,
        words=(*own.words, *[None] * padding),
        special=(*own.special, *[True] * padding),
        spelling=(*own.spelling, *["text"] * padding),
    )
    return torch.tensor([ids]), longer.padded_after(len(own))


def unpadded(stream: str, inputs: Mapping[str, Tensor]) -> Tensor | None:
    """Which queries of a stream aren't padding, as far as the model is told so."""
    decodes = "decoder_input_ids" in inputs and stream != "encoder"
    mask = inputs.get("decoder_attention_mask" if decodes else "attention_mask")
    if not decodes and "input_ids" not in inputs:
        return None  # of samples or columns, of which several make a position
    return None if mask is None else mask[0] != 0
