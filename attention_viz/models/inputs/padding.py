"""One row of a batch: a text filled up with padding to the length of the longest, and nothing blocked yet."""

from collections.abc import Sequence
from dataclasses import replace

import torch

from attention_viz.edits.edit import Edit
from attention_viz.errors import ShapeError, UnsupportedModel
from attention_viz.models.inputs.text import Wording, read
from attention_viz.models.model import AttentionModel
from attention_viz.scratch.protocol import Model
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Trace

__all__ = ["PADDING", "trace_filled"]

PADDING = "[PAD]"

# A sign that our own module reads as one word, and that hardly anybody types.
_FILLING_SIGN = "▢"


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
        model: what reads it.
        text: the shorter sentence of a batch.
        length: of the longest, in tokens, special ones included.
        edits: changes made inside the model, such as `Allow`.
        special_tokens: as in `AttentionModel.trace`.
        chat: as in `AttentionModel.trace`.

    Raises:
        ShapeError: a length below the text's own.
        UnsupportedModel: the tokenizer has no token to pad with.
        UnusableText: nothing to read in the text.
        TextTooLong: more tokens than the model has positions.
    """
    wording = Wording(special_tokens, chat)
    filling = length - model.fit(text, special_tokens=special_tokens, chat=chat).count
    if filling < 0:
        raise ShapeError(f"a length of {length} was asked for; this text has {length - filling} tokens")
    if filling == 0:
        return model.trace(text, edits=edits, special_tokens=special_tokens, chat=chat)
    if isinstance(model, AttentionModel):
        trace = _pretrained(model, text, filling, edits, wording)
    else:
        trace = _words(model, text, filling, edits)
    origin = replace(trace.provenance, text=text, special_tokens=special_tokens, chat=chat)
    return trace.derived(provenance=origin)


def _words(model: Model, text: str, filling: int, edits: Sequence[Edit]) -> Trace:
    # A text with nothing in it is refused before the padding would hide that.
    if not model.fit(text).count:
        return model.trace(text)
    trace = model.trace(text + f" {_FILLING_SIGN}" * filling, edits=edits)
    tokens = trace.query_tokens()
    return _with_tokens(trace, _filled(tokens, len(tokens) - filling))


def _pretrained(model: AttentionModel, text: str, filling: int, edits: Sequence[Edit], wording: Wording) -> Trace:
    own = read(model.name, model.tokenizer, text, wording=wording).tokens
    padding = getattr(model.tokenizer, "pad_token_id", None)
    if not isinstance(padding, int):
        raise UnsupportedModel(f"{model.name}'s tokenizer has no padding token, so its rows can't be filled up")
    trace = model.trace_ids(torch.tensor([[*own.ids, *[padding] * filling]]), edits=edits)
    filled = _filled(trace.query_tokens(), len(own))
    words, special = (*own.words, *[None] * filling), (*own.special, *[True] * filling)
    return _with_tokens(trace, replace(filled, words=words, special=special))


def _filled(tokens: Tokens, real: int) -> Tokens:
    """The tokens with those after the first `real` marked as padding."""
    filling = len(tokens) - real
    return Tokens(
        (*tokens.labels[:real], *[PADDING] * filling),
        tokens.ids,
        words=(*tokens.words[:real], *[None] * filling),
        special=(*tokens.special[:real], *[True] * filling),
        padding=(*[False] * real, *[True] * filling),
    )


def _with_tokens(trace: Trace, tokens: Tokens) -> Trace:
    (stream,) = trace.streams
    # Gradients can't be asked for from here on: what the model says doesn't count padding, and the run doesn't know
    # which of its tokens are.
    return trace.derived(queries={stream: tokens}, keys={stream: tokens})
