"""Scores that no head wrote, split by word and place, and rerun with other words."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from attention_viz.circuits.asked import Score
from attention_viz.errors import AttentionVizError
from attention_viz.serving.cache import SharedCache
from attention_viz.serving.run import Request, Run
from attention_viz.serving.runs import ask
from attention_viz.serving.uploads import beside
from attention_viz.serving.why import WrittenNumber, pretrained, written

if TYPE_CHECKING:
    from attention_viz.circuits.layers.first_layer import SplitScores
    from attention_viz.protocol.model import Model

_MIXING = ("head", "mixer")


@dataclass(frozen=True)
class Exchanged:
    """Words at a key's place, each with its score and weight there; a sentence for a word that can't be put there."""

    words: tuple[tuple[str, float, float], ...]
    refused: str = ""


@dataclass(frozen=True)
class PreparedPair:
    """A finding's pair, its score, and what other heads wrote of it at the key, net."""

    stream: str
    layer: int
    head: int
    query: int
    key: int
    wrote: float
    score: float


def is_first(found: WrittenNumber) -> bool:
    """Return whether no head wrote a score's query or key."""
    kinds: list[str] = found.table["kind"].tolist()
    return isinstance(found.of, Score) and not set(kinds).intersection(_MIXING)


def split(run: Run, request: Request, of: Score) -> "SplitScores | str":
    """Return a score's query with all its keys; the reason if it has no split."""
    from attention_viz.circuits.layers.first_layer import split_scores

    def find() -> "SplitScores | str":
        try:
            return ask(request, lambda model: split_scores(pretrained(model), run.trace, of))
        except AttentionVizError as error:
            return str(error)

    return beside(request.shown, _split).get((request, of), find)


def exchange(run: Run, request: Request, of: Score, typed: Sequence[str] = ()) -> Exchanged:
    """Return a score with other words at its key, strongest first: chosen ones, and `typed`."""
    return beside(request.shown, _exchanged).get(
        (request, of, tuple(typed)), lambda: ask(request, lambda model: _exchange(model, run, of, typed))
    )


def _exchange(model: "Model", run: Run, of: Score, typed: Sequence[str]) -> Exchanged:
    from attention_viz.circuits.layers.first_layer import exchanged
    from attention_viz.circuits.layers.similar_words import named_words, similar_words, write_words

    known, trace, refused = pretrained(model), run.trace, ""
    stream = trace.attention_stream(of.stream)
    tokens: list[int] = []
    for word in typed:
        try:
            tokens.append(named_words(known, trace, stream, of.key, word))
        except AttentionVizError as error:
            # Earlier refusals are old news.
            refused = str(error) if word == typed[0] else refused
    tokens = list(dict.fromkeys([*tokens, *similar_words(known, trace, stream, of.key)]))
    found = exchanged(known, trace, of, tokens)
    words = [(word, *two) for word, two in zip(write_words(known, trace, tokens), found, strict=True)]
    return Exchanged(tuple(sorted(words, key=lambda one: -one[1])), refused)


def prepared(run: Run, request: Request) -> list[PreparedPair]:
    """Return the findings that other heads helped to write, the largest share of all parts' sizes first."""
    found: list[tuple[float, PreparedPair]] = []
    for one in run.findings:
        if one.stream not in run.trace.attention_streams:
            continue
        named = one.stream if len(run.trace.attention_streams) > 1 else None
        try:
            number = written(run, request, Score(one.layer, one.head, one.query, one.key, named))
        except AttentionVizError:
            continue
        wrote, share = _prepared(number)
        if share > 0:
            pair = PreparedPair(one.stream, one.layer, one.head, one.query, one.key, wrote, number.total)
            found.append((share, pair))
    return [pair for _, pair in sorted(found, key=lambda one: -one[0])]


def _prepared(number: WrittenNumber) -> tuple[float, float]:
    """Return the heads' net part of a score's key side, and its share of all kinds' sizes."""
    columns: list[list[Any]] = [number.table[name].tolist() for name in ("side", "kind", "contribution")]
    kinds: dict[str, float] = {}
    for side, kind, contribution in zip(*columns, strict=True):
        if side == "key":
            kinds[kind] = kinds.get(kind, 0.0) + contribution
    heads = sum(kinds.get(kind, 0.0) for kind in _MIXING)
    return heads, heads / sum(map(abs, kinds.values())) if heads else 0.0


_split: "SharedCache[tuple[Request, Score], SplitScores | str]" = SharedCache(
    20_000_000, lambda one: 2 * len(one) if isinstance(one, str) else 2_000 + 200 * len(one.keys)
)
_exchanged: "SharedCache[tuple[Request, Score, tuple[str, ...]], Exchanged]" = SharedCache(2_000_000, lambda _: 2_000)
