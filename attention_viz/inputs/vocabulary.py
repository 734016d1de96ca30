"""Choose tokens of a model's vocabulary: by text, by probability, at random."""

import unicodedata
from typing import TYPE_CHECKING, Any, SupportsInt, cast

import torch
from jaxtyping import Int64
from torch import Tensor

from attention_viz.errors import ShapeError, UnsupportedModel, UnusableText
from attention_viz.inputs.isolated.tokenizer import IsolatedTokenizer
from attention_viz.inputs.labelling import label_ids
from attention_viz.inputs.text import vocabulary
from attention_viz.inputs.tokenizing import with_tokenizer
from attention_viz.operation.shapes import is_whole
from attention_viz.trace.spelling import without_accents
from attention_viz.trace.trace import Trace

if TYPE_CHECKING:
    import pandas
    from transformers.modeling_utils import PreTrainedModel
    from transformers.tokenization_utils_base import PreTrainedTokenizerBase

# So many tokens are said twice where nobody asks for another number, and the model reads so many.
USUAL = 50


def token_of(
    name: str,
    tokenizer: "PreTrainedTokenizerBase | None",
    logits: Tensor,
    asked: "SupportsInt | str",
    like: int | None = None,
) -> int:
    """Return the id of a token named by id or text; without a tokenizer only by id.

    If a word is a token both with and without a space, choose the one that begins as `like` does, else the one with the
    larger logit.
    """
    if not isinstance(asked, str):  # a table's whole numbers, too, which are numpy's
        if not 0 <= int(asked) < len(logits):
            raise ShapeError(f"no token {asked}; {name} has tokens 0 to {len(logits) - 1}")
        return int(asked)
    if not asked:
        raise UnusableText("the token is empty; pass its text or its id")
    if tokenizer is None:
        raise UnusableText(f"can't find the token {asked!r} because {name} has no tokenizer; pass its id")
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
        raise UnusableText(f"{name} has no token {asked!r}; choose another")
    pieces = label_ids(tokenizer, known[0]).written
    if len(pieces) == 1:
        raise UnusableText(f"{name} has no token {asked!r}; its tokenizer keeps only {pieces[0]}")
    # What some tokenizers put before every word is a token without letters.
    offered = next((token for token in known[0] if str(tokenizer.decode([token])).strip()), known[0][0])
    raise UnusableText(
        f"{asked!r} is {len(pieces)} tokens for {name}, {' + '.join(pieces)}; choose one of them, such as "
        f"{_named(tokenizer, offered)!r}"
    )


def number_of(tokenizer: "PreTrainedTokenizerBase", piece: str) -> int | None:
    """Return a piece's id without loading the whole vocabulary; None for an unknown piece."""
    try:
        number = cast("int | None", tokenizer.convert_tokens_to_ids(piece))
    except ValueError:  # one whose pieces are single characters has no word for others
        return None
    # Of a piece that they don't have, tokenizers name another.
    return None if number is None or tokenizer.convert_ids_to_tokens(number) != piece else number


def _letters(text: str) -> str:
    """Return a text without case, accents and spaces, as many tokenizers read it."""
    return "".join(without_accents(unicodedata.normalize("NFKC", text.casefold())).split())


def _spelled(tokenizer: "PreTrainedTokenizerBase", word: str) -> list[list[int]]:
    """Return a word's tokens after a space, and without one."""
    return [tokenizer.encode(text, add_special_tokens=False) for text in dict.fromkeys((f" {word}", word))]


def _named(tokenizer: "PreTrainedTokenizerBase", token: int) -> str:
    """Return a token as users can type it: its text, or the tokenizer's label if that isn't a token."""
    text = str(tokenizer.decode([token])).strip()
    return text if text and [token] in _spelled(tokenizer, text) else str(tokenizer.convert_ids_to_tokens(token))


def _spaced(tokenizer: "PreTrainedTokenizerBase", token: int) -> bool:
    return str(tokenizer.decode([token])).startswith(" ")


def random_twice(
    name: str,
    model: "PreTrainedModel",
    tokenizer: "PreTrainedTokenizerBase | None",
    limit: int | None,
    tokens: int | None,
    seed: int,
) -> Int64[Tensor, "1 position"]:
    """Return different random tokens, then the same again, within the tokenizer's special tokens.

    `tokens` is how many repeat; None for `USUAL`, or fewer if the model knows or reads fewer.
    """
    before, after, reserved = _around(name, tokenizer)
    words = torch.tensor([one for one in range(vocabulary(model)) if one not in reserved], dtype=torch.int64)
    most = len(words) if limit is None else min(len(words), (limit - len(before) - len(after)) // 2)
    if most < 2:
        raise UnusableText(f"a repetition needs 2 different tokens, each twice; {name} can't read that many")
    wanted = min(USUAL, most) if tokens is None else tokens
    if not is_whole(wanted) or not 2 <= wanted <= most:
        raise ShapeError(f"can't repeat {wanted!r} random tokens; {name} takes 2 to {most:,}")
    if not is_whole(seed):
        raise ShapeError(f"seed must be a whole number; got {seed!r}")
    order = torch.randperm(len(words), generator=torch.Generator().manual_seed(int(seed)))
    once = words[order[:wanted]].tolist()
    return torch.tensor([[*before, *once, *once, *after]])


def _around(name: str, tokenizer: "PreTrainedTokenizerBase | None") -> tuple[list[int], list[int], set[int]]:
    """Return the ids before and after every text, and those that aren't words."""
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


def candidates(
    no_words: str, tokenizer: "PreTrainedTokenizerBase | None", trace: Trace, position: int, count: int
) -> "pandas.DataFrame":
    """Return the likeliest tokens at a position, likeliest first: columns token, id, probability, written.

    Probabilities are over the whole vocabulary. `no_words` says why the output has no tokens; empty if it has.
    """
    import pandas

    if count < 1:
        raise ShapeError(f"count must be 1 or more; got {count}")
    likely, ids = _likely(no_words, tokenizer, trace, position).topk(min(count, trace.output_shape[1]))
    numbers = [int(number) for number in ids]
    tokens, found = label_ids(tokenizer, numbers), likely.to(torch.float32).cpu().numpy()
    columns = {"token": tokens.labels, "id": numbers, "probability": found, "written": tokens.written}
    return pandas.DataFrame(columns)


def probability(
    no_words: str,
    tokenizer: "PreTrainedTokenizerBase | None",
    trace: Trace,
    token: int | str,
    position: int,
) -> float:
    """Return a token's probability at a position, from 0 to 1; errors as of `candidates`."""
    likely = _likely(no_words, tokenizer, trace, position)
    return float(likely[token_of(trace.provenance.model, tokenizer, trace.output_at(position).float(), token)])


def _likely(no_words: str, tokenizer: "PreTrainedTokenizerBase | None", trace: Trace, position: int) -> Tensor:
    """Return every token's probability at a position, in float64."""
    if no_words:
        raise UnsupportedModel(f"{trace.provenance.model} has no unembedding, so it predicts no tokens: {no_words}")
    positions = trace.output_shape[0]
    if not -positions <= position < positions:
        raise ShapeError(f"no position {position}; the text has positions {-positions} to {positions - 1}")
    tokens = trace.query_tokens(trace.streams[-1])
    if len(tokens) == positions and tokens.padding[position]:
        raise ShapeError(f"position {position} is padding; choose one of the text's own")
    if trace.attention_streams == ("encoder",):
        _check_masked(trace, tokenizer, position)
    return trace.output_at(position).double().softmax(dim=-1)


def _check_masked(trace: Trace, tokenizer: "PreTrainedTokenizerBase | None", position: int) -> None:
    """Refuse an encoder's unmasked position: it sees the token itself, so guessing isn't predicting."""
    mask = None if tokenizer is None else tokenizer.mask_token_id
    tokens = trace.query_tokens()
    if mask is None or tokens.numbers[position] != mask:
        sign = "a mask token" if tokenizer is None or mask is None else str(tokenizer.mask_token)
        raise UnusableText(
            f"{trace.provenance.model} predicts only at {sign}; at position {position} it sees the token "
            f"{tokens.written[position]!r} itself"
        )
