"""Choose words to put in another word's place."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor

from attention_viz.circuits.opened import run_behind
from attention_viz.inputs.labelling import label_ids
from attention_viz.inputs.vocabulary import token_of
from attention_viz.recording.gradients import ModelRun
from attention_viz.trace.spelling import CONTINUES
from attention_viz.trace.trace import Trace

if TYPE_CHECKING:
    from attention_viz.models.model import AttentionModel

# Words of any text, for contrast.
_COMMON = ("city", "music", "seven")
# So many of the nearest embeddings are read for words.
_NEAREST = 80


def similar_words(
    model: "AttentionModel", trace: Trace, stream: str, key: int, near: int = 4, text: int = 3
) -> list[int]:
    """Return tokens for a key's position: those with the nearest embeddings, some of the text, some for contrast."""
    run, tokens = run_behind(model, trace), trace.key_tokens(stream)
    tokenizer = run.tokenizer
    if tokenizer is None:
        return []
    own, table = tokens.numbers[key], _table(run).detach().float()
    with torch.no_grad():
        alike = torch.nn.functional.cosine_similarity(table, table[own][None], dim=-1)
    nearest = alike.topk(min(_NEAREST, len(alike))).indices.tolist()
    spaced = str(tokenizer.decode([own])).startswith(" ")
    known = {_letters(tokenizer, own)}
    # A special token's neighbours are noise.
    found = _words(tokenizer, nearest, spaced, near, known) if _letters(tokenizer, own).isalpha() else []
    others = sorted({one for one in tokens.numbers if one != own}, key=lambda one: -float(alike[one]))
    found += _words(tokenizer, others, spaced, text, known)
    common = [number for word in _COMMON for number in _tokens(tokenizer, word, len(table), own)]
    return found + _words(tokenizer, common, spaced, len(common), known)


def named_words(model: "AttentionModel", trace: Trace, stream: str, key: int, word: str) -> int:
    """Return a typed word's token, spaced as the key's own; see `token_of` for errors."""
    run = run_behind(model, trace)
    count = len(_table(run))
    return token_of(run.name, run.tokenizer, torch.zeros(count), word, like=trace.key_tokens(stream).numbers[key])


def _table(run: ModelRun) -> Tensor:
    return cast("Any", run.runner.model).get_input_embeddings().weight


def _tokens(tokenizer: Any, word: str, count: int, like: int) -> Iterator[int]:
    from attention_viz.errors import UnusableText

    try:
        yield token_of("", tokenizer, torch.zeros(count), word, like=like)
    except UnusableText:
        return


def _words(tokenizer: Any, tokens: Iterable[int], spaced: bool, count: int, known: set[str]) -> list[int]:
    """Return the first whole words, each in one spelling only."""
    found: list[int] = []
    for token in tokens:
        label: str = label_ids(tokenizer, [token]).written[0]
        letters = _letters(tokenizer, token)
        whole = len(letters) > 2 and letters.isalpha() and not label.startswith(CONTINUES)
        if whole and letters not in known and str(tokenizer.decode([token])).startswith(" ") == spaced:
            known.add(letters)
            found.append(token)
        if len(found) == count:
            break
    return found


def _letters(tokenizer: Any, token: int) -> str:
    return str(tokenizer.decode([token])).strip().casefold()


def write_words(model: "AttentionModel", trace: Trace, tokens: Sequence[int]) -> list[str]:
    """Return tokens as text."""
    return [str(one) for one in label_ids(run_behind(model, trace).tokenizer, list(tokens)).written]
