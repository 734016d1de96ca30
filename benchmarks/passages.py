"""Ten passages of English prose written for this purpose: a story, a recipe, a notice and the like."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

__all__ = ["PASSAGES", "cut"]

PASSAGES: tuple[str, ...] = tuple(Path(__file__).with_name("passages.txt").read_text(encoding="utf-8").splitlines())


def cut(tokenizer: "PreTrainedTokenizerBase", text: str, tokens: int) -> str:
    """Return a text's beginning with exactly this number of tokens, special ones included."""
    encoding = tokenizer(text, return_offsets_mapping=True, return_special_tokens_mask=True, verbose=False)
    special = encoding["special_tokens_mask"]
    ends = [end for (_, end), mark in zip(encoding["offset_mapping"], special, strict=True) if not mark]
    wanted = tokens - sum(special)
    if not 0 < wanted <= len(ends):
        raise ValueError(f"{tokens} tokens were asked for; this text has {len(ends)} and {sum(special)} special ones")
    return text[: ends[wanted - 1]]
