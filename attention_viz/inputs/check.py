"""Rows of ids from outside, checked before a model reads them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor

from attention_viz.edits.edit import Edit
from attention_viz.errors import ShapeError, TextTooLong, UnsupportedModel, UnusableText
from attention_viz.inputs.text import Wording, read, vocabulary
from attention_viz.protocol.model import Model
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Trace

if TYPE_CHECKING:
    from transformers.modeling_utils import PreTrainedModel
    from transformers.tokenization_utils_base import PreTrainedTokenizerBase


@dataclass(frozen=True, eq=False)
class Inputs:
    """What one model takes.

    Attributes:
        limit: how many tokens it can read at once; None where nothing says.
    """

    name: str
    model: "PreTrainedModel"
    limit: int | None

    def row(self, ids: Tensor | Sequence[int], what: str = "ids") -> Tensor:
        """One row of the model's ids, (1, n); what is none is refused."""
        target = "target" if what == "decoder ids" else "text"
        if isinstance(ids, list | tuple):
            wrong = next((one for one in ids if type(one) is not int), None)
            if wrong is not None or not ids:
                found = "none" if wrong is None else f"one with {type(wrong).__name__} in it"
                raise ShapeError(f"trace_ids takes a list of {what}, of one whole number or more; got {found}")
            self.check_ids(ids, target)  # before they become a tensor, which holds no number of any size
            return torch.tensor([ids])
        if not isinstance(ids, Tensor):
            raise ShapeError(
                f"trace_ids takes {what} as a tensor, (1, n), or a list of n whole numbers; got {type(ids).__name__}"
            )
        if ids.layout != torch.strided or ids.is_meta:
            where = "without numbers, on the meta device" if ids.is_meta else f"of {ids.layout}"
            raise ShapeError(f"trace_ids takes a dense tensor of {what}; got one {where}")
        if ids.ndim != 2 or ids.shape[0] != 1 or ids.shape[1] == 0:
            raise ShapeError(f"trace_ids takes one row of {what}, (1, n) with n ≥ 1; got {tuple(ids.shape)}")
        if ids.dtype not in (torch.int32, torch.int64):
            raise ShapeError(f"{what} are whole numbers, int64 or int32; got {ids.dtype}")
        self.check_ids(cast("list[int]", ids[0].tolist()), target)
        return ids

    def check_tokens(self, tokens: Tokens) -> None:
        """Refuse what a tokenizer made of a text, as `check_ids` does; a word that the model doesn't know is named."""
        known = vocabulary(self.model)
        wrong = next((at for at, number in enumerate(tokens.numbers) if not 0 <= number < known), None)
        if wrong is not None:
            raise UnusableText(
                f"“{tokens.written[wrong]}” is token {tokens.numbers[wrong]}, and {self.name} knows the ids 0 to "
                f"{known - 1}: its tokenizer has more pieces than its table has rows. Use the tokenizer that the model "
                "was trained with; or lengthen the table, by rows that aren't trained, with "
                "model.resize_token_embeddings(len(tokenizer))"
            )
        self.check_ids(tokens.numbers)

    def check_ids(self, ids: Sequence[int], what: str = "text") -> None:
        """Refuse ids that the model doesn't know, and more than it can read."""
        if self.limit is not None and len(ids) > self.limit:
            raise TextTooLong(self.name, len(ids), self.limit, what)
        known = vocabulary(self.model)
        wrong = [number for number in ids if not 0 <= number < known]
        if wrong:
            raise UnusableText(
                f"there is a token {wrong[0]}; {self.name} knows the ids 0 to {known - 1}: use the tokenizer that the "
                "model was trained with, or add ids of your own with model.resize_token_embeddings"
            )
        for number, kind in _placeholders(self.model).items():
            if number in ids:
                raise UnusableText(
                    f"token {number} of the {what} stands for {kind}, and none was given: without it {self.name} reads "
                    "the bare placeholder, which means nothing; needed: a text without it"
                )


def _placeholders(model: "PreTrainedModel") -> dict[int, str]:
    """The ids that stand for something that isn't text, and what that is."""
    kinds = {"image": "a picture", "video": "a video", "audio": "a sound", "speech": "a sound"}
    found = {
        getattr(model.config, f"{name}_token_{ending}", None): kind
        for name, kind in kinds.items()
        for ending in ("id", "index")
    }
    return {number: kind for number, kind in found.items() if isinstance(number, int)}


def checked_mask(ids: Tensor, mask: Tensor | None) -> Tensor:
    """The mask of a row of ids as whole numbers; all real where there is none."""
    if mask is None:
        return torch.ones_like(ids)
    if not isinstance(mask, Tensor):  # pyright: ignore[reportUnnecessaryIsInstance] -- from outside
        raise ShapeError(f"attention_mask has to be a tensor of the ids' shape; got {type(mask).__name__}")
    if mask.layout != torch.strided or mask.is_meta:
        found = f"one of {mask.layout} on {mask.device}"
        raise ShapeError(f"attention_mask has to be a dense tensor with numbers; got {found}")
    if mask.shape != ids.shape:
        raise ShapeError(f"attention_mask needs the ids' shape {tuple(ids.shape)}; got {tuple(mask.shape)}")
    if not bool(((mask == 0) | (mask == 1)).all()):
        raise ShapeError("attention_mask has 1 for real positions and 0 for padding; something else came")
    if not bool(mask.any()):
        raise UnusableText("attention_mask says that every position is padding, so there is nothing to read")
    return mask.long()


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
