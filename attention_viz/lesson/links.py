"""The strongest link from a word to a distant one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool
from torch import Tensor

from attention_viz.analysis.metrics import METRICS
from attention_viz.analysis.rows import QueryRows
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.translation import translate
from attention_viz.lesson.words import carries_meaning, is_pronoun, offered
from attention_viz.trace.once import once_for_each
from attention_viz.trace.trace import Trace

# A head with more than this on a fixed place looks there whatever the words are.
_FIXED = 0.5
_FIXED_PLACES = ("previous", "next", "self", "first")
_NEAR = 2
_AMONG = ("the words that aren’t next to it", "the other words", "the words")


@dataclass(frozen=True)
class HeadLink:
    """A head's link from one token to another; positions start at 0.

    Attributes:
        among: the words that the key was chosen from, within "of …"; "" if it has the query's largest weight of all.
    """

    layer: int
    head: int
    query: int
    key: int
    weight: float
    among: str = _AMONG[0]


def word_positions(trace: Trace) -> tuple[int, ...]:
    """Return positions of words, not special or signs; all tokens if there are none."""
    tokens = trace.query_tokens()
    words = tuple(at for at in tokens.counted if tokens.texts[at].isalpha())
    return words or tuple(tokens.counted) or tuple(range(len(tokens)))


def positioned_words(scene: Scene) -> dict[str, str]:
    """Return a trained model's words by position, for a control."""
    trace = scene.trained()
    places, labels = word_positions(trace), trace.query_tokens().written
    return {str(at): name for at, name in zip(places, offered([labels[at] for at in places]).values(), strict=True)}


def pressed_positions(trace: Trace) -> tuple[str, ...]:
    """Return each token's option in `positioned_words`; "" if none."""
    places = word_positions(trace)
    return tuple(str(at) if at in places else "" for at in range(len(trace.query_tokens())))


def telling_positions(trace: Trace, places: Sequence[int]) -> Sequence[int]:
    """Keep positions of words with a meaning of their own; all if none has."""
    texts = trace.query_tokens().texts
    return [at for at in places if carries_meaning(texts[at])] or places


def opening_position(trace: Trace, chosen: int | None = None) -> int:
    """Return the chosen word's position, else a pronoun's that refers back, else the first meaningful word's."""
    places, texts = word_positions(trace), trace.query_tokens().texts
    if chosen in places:
        return chosen
    pronouns = [at for at in places[2:] if is_pronoun(texts[at])]
    return (pronouns or telling_positions(trace, places))[0]


def asking_position(scene: Scene) -> int:
    """Return the pressed word's position in the trained model's text, or else the opening one."""
    trace, word = scene.trained(), scene.word
    places = word_positions(trace)
    return places[word] if word is not None and word < len(places) else opening_position(trace, scene.query)


def opening_word(scene: Scene) -> str:
    """Return the opening position as an option of `positioned_words`."""
    return str(opening_position(scene.trained(), scene.query))


def scene_link(scene: Scene, query: int) -> HeadLink:
    """Return a token's strongest link to a distant word in the lesson's head, which another pressed word keeps."""
    trace = scene.trained()
    if scene.head is not None:
        return strongest_link(trace, query, scene.head)
    opening = strongest_link(trace, opening_position(trace, scene.query))
    return strongest_link(trace, query, (opening.layer, opening.head))


def pressed_words(trace: Trace, positions: Sequence[int] | None = None) -> tuple[str, ...]:
    """Return each position's word place, for `Ask.pressed`; empty if no word."""
    places = word_positions(trace)
    shown = range(len(trace.query_tokens())) if positions is None else positions
    return tuple(str(places.index(at)) if at in places else "" for at in shown)


def trained_words(scene: Scene) -> tuple[Mapping[str, str], str]:
    """Return a trained model's words by place, and the query's place."""
    trace = scene.trained()
    places, labels = word_positions(trace), trace.query_tokens().written
    asking = asking_position(scene)
    return offered([labels[at] for at in places]), str(places.index(asking))


def strongest_link(trace: Trace, query: int, head: tuple[int, int] | None = None) -> HeadLink:
    """Return a token's strongest link to a distant word, in one head or preferably in heads without fixed offsets."""
    places = word_positions(trace)
    pools = [key for key in places if abs(key - query) >= _NEAR], [key for key in places if key != query], [query]
    far, among = next((pool, name) for pool, name in zip(pools, _AMONG, strict=True) if pool)
    free = _free_heads(trace)
    if head is not None and head[0] in trace.layer_numbers() and head[1] < trace.head_count(head[0]):
        free = [torch.zeros_like(one) for one in free]
        free[trace.layer_numbers().index(head[0])][head[1]] = True
    if not any(bool(one.any()) for one in free):
        free = [torch.ones_like(one) for one in free]
    best, found = -1.0, (0, 0, query)
    for layer, heads in zip(trace.layer_numbers(), free, strict=True):
        row = trace.attention(layer).rows([query]).weights.detach().float().cpu()[:, 0, far]
        row = row.masked_fill(~heads[:, None], -1)
        if float(row.max()) > best:
            best = float(row.max())
            number, at = divmod(int(row.argmax()), len(far))
            found = (layer, number, far[at])
    layer, number, key = found
    row = trace.weights(layer, number)[query]
    return HeadLink(layer, number, query, key, float(row[key]), "" if int(row.argmax()) == key else translate(among))


@once_for_each
def _free_heads(trace: Trace) -> list[Bool[Tensor, " head"]]:
    rows = QueryRows.of(trace.query_tokens(), trace.key_tokens(), alike=True)
    found = list[Tensor]()
    for layer in trace.layer_numbers():
        weights = trace.attention(layer).weights.detach().float().cpu()
        means = [METRICS[name].function(weights, rows)[:, rows.counted].double().nanmean(-1) for name in _FIXED_PLACES]
        found.append(~(torch.stack(means) > _FIXED).any(dim=0))
    return found
