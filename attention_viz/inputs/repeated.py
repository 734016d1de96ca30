"""Random tokens that are said twice: what follows a token the second time can only be known from the first."""

from typing import TYPE_CHECKING, Any, cast

import torch
from jaxtyping import Int64
from torch import Tensor

from attention_viz.errors import ShapeError, UnusableText
from attention_viz.inputs.isolated.tokenizer import IsolatedTokenizer
from attention_viz.inputs.text import vocabulary
from attention_viz.inputs.tokenizing import with_tokenizer
from attention_viz.operation.shapes import is_whole

if TYPE_CHECKING:
    from transformers.modeling_utils import PreTrainedModel
    from transformers.tokenization_utils_base import PreTrainedTokenizerBase

__all__ = ["USUAL", "random_twice"]

# So many tokens are said twice where nobody asks for another number, and the model reads so many.
USUAL = 50


def random_twice(
    name: str,
    model: "PreTrainedModel",
    tokenizer: "PreTrainedTokenizerBase | None",
    limit: int | None,
    tokens: int | None,
    seed: int,
) -> Int64[Tensor, "1 position"]:
    """A row of ids: different random tokens, then the same again, among what the tokenizer puts around every text.

    Args:
        tokenizer: knows which ids are words or pieces of them; without one all ids are taken.
        limit: how many tokens the model reads; None where nothing says.
        tokens: how many are said twice; `USUAL` by default, fewer where the model knows or reads fewer.
    """
    before, after, reserved = _around(name, tokenizer)
    words = torch.tensor([one for one in range(vocabulary(model)) if one not in reserved], dtype=torch.int64)
    most = len(words) if limit is None else min(len(words), (limit - len(before) - len(after)) // 2)
    if most < 2:
        raise UnusableText(f"{name} can't read 2 different tokens twice, which a repetition takes")
    wanted = min(USUAL, most) if tokens is None else tokens
    if not is_whole(wanted) or not 2 <= wanted <= most:
        raise ShapeError(f"{wanted!r} random tokens were to be said twice; {name} takes 2 to {most:,}")
    if not is_whole(seed):
        raise ShapeError(f"seed {seed!r} was asked for; it has to be a whole number")
    order = torch.randperm(len(words), generator=torch.Generator().manual_seed(int(seed)))
    once = words[order[:wanted]].tolist()
    return torch.tensor([[*before, *once, *once, *after]])


def _around(name: str, tokenizer: "PreTrainedTokenizerBase | None") -> tuple[list[int], list[int], set[int]]:
    """The ids before and after every text, and those that stand for no word."""
    if tokenizer is None:
        return [], [], set()
    knows = cast("Any", tokenizer)  # transformers' own annotations lack these
    added = tokenizer.added if isinstance(tokenizer, IsolatedTokenizer) else knows.get_added_vocab().values()
    reserved: set[int] = {*tokenizer.all_special_ids, *added}
    ids: list[int] = with_tokenizer(name, tokenizer, "a", lambda: knows.encode("a"))
    # A word that the tokenizer doesn't know is one all the same.
    own = [place for place, number in enumerate(ids) if number not in reserved or number == tokenizer.unk_token_id]
    first, last = (own[0], own[-1]) if own else (len(ids), len(ids))
    numbers = knows.ids() if isinstance(tokenizer, IsolatedTokenizer) else knows.get_vocab().values()
    known = {number for number in numbers if number not in reserved}
    reserved |= set(range(max(known, default=0) + 1)) - known
    return ids[:first], ids[last + 1 :], reserved
