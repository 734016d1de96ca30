"""Which token a word stands for."""

import unicodedata
from typing import TYPE_CHECKING, cast

from torch import Tensor

from attention_viz.errors import ShapeError, UnusableText
from attention_viz.inputs.labelling import label_ids
from attention_viz.trace.spelling import without_accents

if TYPE_CHECKING:
    from transformers.tokenization_utils_base import PreTrainedTokenizerBase

__all__ = ["number_of", "token_of"]


def token_of(
    name: str, tokenizer: "PreTrainedTokenizerBase | None", logits: Tensor, asked: int | str, like: int | None = None
) -> int:
    """The id that is meant.

    Many words are two tokens, with a space before them and without. Of these the one is meant that begins as another
    does; without another, the one that the model finds likelier here.

    Args:
        tokenizer: knows the words; None where only ids can be named.
    """
    if not isinstance(asked, str):  # a table's whole numbers, too, which are numpy's
        if not 0 <= int(asked) < len(logits):
            raise ShapeError(f"token {asked} was asked for; {name} has tokens 0 to {len(logits) - 1}")
        return int(asked)
    if not asked:
        raise UnusableText("a token was asked for by an empty text; needed: its text or its id")
    if tokenizer is None:
        raise UnusableText(f"the token {asked!r} was asked for, and {name} has no tokenizer: name its id")
    spelled = _spelled(tokenizer, asked)
    found = [ids[0] for ids in spelled if len(ids) == 1 and ids[0] != tokenizer.unk_token_id]
    # Some tokenizers drop letters that they don't know, and what is left may be a token of something else.
    found = [one for one in found if _letters(str(tokenizer.decode([one]))) == _letters(asked)]
    if not found and (number := number_of(tokenizer, asked)) is not None:
        found = [number]
    found = [one for one in found if one < len(logits)]
    if like is not None and (same := [one for one in found if _spaced(tokenizer, one) == _spaced(tokenizer, like)]):
        found = same
    if found:
        return max(found, key=lambda one: float(logits[one]))
    known = [ids for ids in spelled if ids and tokenizer.unk_token_id not in ids]
    if not known:
        raise UnusableText(f"{name} has no token {asked!r}")
    pieces = label_ids(tokenizer, known[0]).written
    if len(pieces) == 1:
        raise UnusableText(f"{name} has no token {asked!r}: its tokenizer reads no more of it than {pieces[0]}")
    # What some tokenizers put before every word is a token without letters.
    offered = next((token for token in known[0] if str(tokenizer.decode([token])).strip()), known[0][0])
    raise UnusableText(
        f"{asked!r} is {len(pieces)} tokens to {name}: {' + '.join(pieces)}; ask for one of them, such as "
        f"{_named(tokenizer, offered)!r}"
    )


def number_of(tokenizer: "PreTrainedTokenizerBase", piece: str) -> int | None:
    """Return the id of a tokenizer's piece, without asking for all of them; None where it has no such piece."""
    try:
        number = cast("int | None", tokenizer.convert_tokens_to_ids(piece))
    except ValueError:  # one whose pieces are single characters has no word for others
        return None
    # Of a piece that they don't have, tokenizers name another.
    return None if number is None or tokenizer.convert_ids_to_tokens(number) != piece else number


def _letters(text: str) -> str:
    """A text as many tokenizers read it: without case, accents and spaces."""
    return "".join(without_accents(unicodedata.normalize("NFKC", text.casefold())).split())


def _spelled(tokenizer: "PreTrainedTokenizerBase", word: str) -> list[list[int]]:
    """The tokens of a word after a space, and without one."""
    return [tokenizer.encode(text, add_special_tokens=False) for text in dict.fromkeys((f" {word}", word))]


def _named(tokenizer: "PreTrainedTokenizerBase", token: int) -> str:
    """A token as whoever asks again can write it: its text, or the tokenizer's own label where that is no token."""
    text = str(tokenizer.decode([token])).strip()
    return text if text and [token] in _spelled(tokenizer, text) else str(tokenizer.convert_ids_to_tokens(token))


def _spaced(tokenizer: "PreTrainedTokenizerBase", token: int) -> bool:
    return str(tokenizer.decode([token])).startswith(" ")
