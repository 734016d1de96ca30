"""Check rows of ids from outside before a model reads them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor

from attention_viz.edits.edit import Edit
from attention_viz.errors import ShapeError, TextTooLong, UnsupportedModel, UnusableText
from attention_viz.inputs.text import Wording, read, target_limit, vocabulary
from attention_viz.protocol.model import Model
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Trace

if TYPE_CHECKING:
    from transformers.modeling_utils import PreTrainedModel
    from transformers.tokenization_utils_base import PreTrainedTokenizerBase


@dataclass(frozen=True, eq=False)
class Inputs:
    """The inputs that one model accepts; `limit` is in tokens, None if unknown."""

    name: str
    model: "PreTrainedModel"
    limit: int | None

    @property
    def target_limit(self) -> int | None:
        """The limit of a decoder's tokens."""
        return target_limit(self.model, self.limit)

    def row(self, ids: Tensor | Sequence[int], what: str = "ids", *, placed: Sequence[str] = ()) -> Tensor:
        """Return one row of the model's ids, (1, n); refuse anything else.

        Args:
            placed: the kinds of placeholders that are allowed, since their images or video are passed, too.
        """
        target = "target" if what == "decoder ids" else "text"
        if isinstance(ids, list | tuple):
            wrong = next((one for one in ids if type(one) is not int), None)
            if wrong is not None or not ids:
                found = "none" if wrong is None else f"one with {type(wrong).__name__} in it"
                raise ShapeError(f"trace_ids takes a list of {what}, 1 whole number or more; got {found}")
            self.check_ids(ids, target, placed=placed)  # before they become a tensor, which holds no number of any size
            return torch.tensor([ids])
        if not isinstance(ids, Tensor):
            raise ShapeError(
                f"trace_ids takes {what} as a tensor, (1, n), or a list of n whole numbers; got {type(ids).__name__}"
            )
        if ids.layout != torch.strided or ids.is_meta:
            found = "one on the meta device, without numbers" if ids.is_meta else f"layout {ids.layout}"
            raise ShapeError(f"trace_ids takes a dense tensor of {what}; got {found}")
        if ids.ndim != 2 or ids.shape[0] != 1 or ids.shape[1] == 0:
            raise ShapeError(f"trace_ids takes one row of {what}, (1, n) with n ≥ 1; got {tuple(ids.shape)}")
        if ids.dtype not in (torch.int32, torch.int64):
            raise ShapeError(f"{what} must be whole numbers, int64 or int32; got {ids.dtype}")
        self.check_ids(cast("list[int]", ids[0].tolist()), target, placed=placed)
        return ids

    def check_tokens(self, tokens: Tokens) -> None:
        """Refuse tokens as `check_ids` does; the error names an unknown token's text."""
        known = vocabulary(self.model)
        wrong = next((at for at, number in enumerate(tokens.numbers) if not 0 <= number < known), None)
        if wrong is not None:
            raise UnusableText(
                f"“{tokens.written[wrong]}” is token {tokens.numbers[wrong]}, but {self.name} knows the ids 0 to "
                f"{known - 1}. Use the tokenizer that the model was trained with, or add untrained rows with "
                "model.resize_token_embeddings(len(tokenizer))"
            )
        self.check_ids(tokens.numbers)

    def check_ids(self, ids: Sequence[int], what: str = "text", *, placed: Sequence[str] = ()) -> None:
        """Refuse ids that the model doesn't know, and more than it can read."""
        limit = self.target_limit if what == "target" else self.limit
        if limit is not None and len(ids) > limit:
            raise TextTooLong(self.name, len(ids), limit, what)
        known = vocabulary(self.model)
        wrong = [number for number in ids if not 0 <= number < known]
        if wrong:
            raise UnusableText(
                f"the {what} has a token {wrong[0]}; {self.name} knows the ids 0 to {known - 1}. Use the tokenizer "
                "that the model was trained with, or add ids with model.resize_token_embeddings"
            )
        for number, kind in placeholders(self.model).items():
            if number in ids and kind not in placed:
                raise UnusableText(
                    f"token {number} of the {what} is a placeholder for {kind}, which {self.name} didn't get; remove "
                    "the placeholder"
                )


def placeholders(model: "PreTrainedModel") -> dict[int, str]:
    """Return the ids of placeholders for images, videos and sounds, with their kinds."""
    kinds = {"image": "an image", "video": "a video", "audio": "audio", "speech": "audio"}
    found = {
        getattr(model.config, f"{name}_token_{ending}", None): kind
        for name, kind in kinds.items()
        for ending in ("id", "index")
    }
    return {number: kind for number, kind in found.items() if isinstance(number, int)}


def checked_mask(ids: Tensor, mask: Tensor | None) -> Tensor:
    """Return the mask of a row of ids as integers; None becomes all ones."""
    if mask is None:
        return torch.ones_like(ids)
    if not isinstance(mask, Tensor):  # pyright: ignore[reportUnnecessaryIsInstance] -- from outside
        raise ShapeError(f"attention_mask must be a tensor of the ids' shape; got {type(mask).__name__}")
    if mask.layout != torch.strided or mask.is_meta:
        found = f"{mask.layout} on {mask.device}"
        raise ShapeError(f"attention_mask must be a dense tensor with numbers; got {found}")
    if mask.shape != ids.shape:
        raise ShapeError(f"attention_mask must have the ids' shape {tuple(ids.shape)}; got {tuple(mask.shape)}")
    others = mask[(mask != 0) & (mask != 1)]
    if others.numel():
        raise ShapeError(f"attention_mask must be 1 for real positions and 0 for padding; got {others[0].item()}")
    if not bool(mask.any()):
        raise UnusableText("attention_mask says that every position is padding; set at least one to 1")
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
    """Trace a text padded to a length, with the padding visible to all positions.

    That is a batch without its mask; `Allow` with `masks.padding` is the mask.
    """
    count = model.fit(text, special_tokens=special_tokens, chat=chat).count
    if length < count:
        raise ShapeError(f"length must be at least the text's {count} tokens; got {length}")
    # An empty text is refused before padding would hide it.
    if count in (0, length):
        return model.trace(text, edits=edits, special_tokens=special_tokens, chat=chat)
    trace = model.trace_padded(text, length - count, edits=edits, special_tokens=special_tokens, chat=chat)
    origin = replace(trace.provenance, text=text, special_tokens=special_tokens, chat=chat)
    return trace.derived(provenance=origin)


def padded(
    name: str, tokenizer: "PreTrainedTokenizerBase | None", text: str, padding: int, wording: Wording
) -> tuple[Tensor, Tokens]:
    """Return a text's ids with padding after them, (1, n), and its tokens, the padding labelled."""
    own = read(name, tokenizer, text, wording=wording).tokens
    filling = getattr(tokenizer, "pad_token_id", None)
    if not isinstance(filling, int):
        raise UnsupportedModel(f"{name}'s tokenizer has no padding token, so it can't pad a text")
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
    """Return which queries of a stream aren't padding; None if unknown."""
    if stream not in ("encoder", "decoder", "cross"):
        return None  # its positions aren't the text's
    decodes = "decoder_input_ids" in inputs and stream != "encoder"
    mask = inputs.get("decoder_attention_mask" if decodes else "attention_mask")
    if not decodes and "input_ids" not in inputs:
        return None  # of samples or columns, of which several make a position
    return None if mask is None else mask[0] != 0
