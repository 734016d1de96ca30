"""The Compare page's component: both texts, a query's row in both heads, and the map of all heads."""

import functools
from dataclasses import dataclass
from typing import Any
from weakref import ref

from attention_viz.analysis.comparison.compare import Comparison
from attention_viz.analysis.comparison.texts import text_changes
from attention_viz.analysis.places import patches_beside_words
from attention_viz.errors import AttentionVizError
from attention_viz.explorer import compare_source
from attention_viz.explorer.compare_payload import ComparedSide, HeadDistances, head_rows, pack_compare, rows_sent
from attention_viz.serving.runs import candidates, reads_on
from attention_viz.trace.spelling import weight_text
from attention_viz.ui import visit, widgets
from attention_viz.ui.controls.thing import thing_label
from attention_viz.ui.pages.compare.choice import CompareChoice
from attention_viz.ui.pages.compare.claims import Phrase, RowClaims
from attention_viz.ui.pages.compare.heads import distances, rows_of_heads
from attention_viz.ui.pages.compare.page import take_head
from attention_viz.ui.pages.compare.sides import ShownSide, can_choose, pair_at, places_of_pair
from attention_viz.ui.pages.compare.words import rank_words, side_words
from attention_viz.ui.parts.explorer import show_channel
from attention_viz.ui.parts.selection import pair_of, take_pair

_KEY = "compare-rows"
_SAME = "Both sentences are the same: type another one, or change a word."
_compare = widgets.component("compare", *compare_source())


@dataclass
class _Sent:
    """The rows that the browser has: a long text's sentences take a while to make."""

    of: object = None
    packed: bytes = b""


def has_shown() -> bool:
    """Return whether this visit has seen two heads here, which stay until others are ready."""
    return bool(visit.memory(_Sent).packed)


def _heads_of(comparison: Comparison) -> tuple[object, ...]:
    return tuple((ref(one.trace), one.stream, one.layer, one.head) for one in (comparison.one, comparison.other))


def show_rows(choice: CompareChoice, comparison: Comparison, first: ShownSide, second: ShownSide) -> None:
    """Show the component, with its chosen head and query."""
    claims = RowClaims(choice, first.state, comparison)
    pair = places_of_pair(comparison, first)
    pictured = _shows_patches(comparison)
    query = _opening(claims, first, pictured=pictured) if pair is None else pair[0]
    rows = rows_sent(comparison, [query])
    sent = visit.memory(_Sent)
    of = _heads_of(comparison), choice, tuple(rows), _sides(choice, first, second)
    if sent.of != of:
        # Of an image the browser writes the sentences, as the explorer does.
        said = {} if pictured else {place: claims.row(place) for place in rows}
        sent.packed = pack_compare(
            comparison,
            rows,
            {place: (one.phrase, one.keys) for place, one in said.items()},
            _sides(choice, first, second),
            where=claims.second_side,
            predicts=_predicts(first) or _predicts(second),
            distances=_distances(choice, comparison),
        )
        sent.of = of
    take = functools.partial(_take, choice, comparison, first)
    _compare(key=_KEY, data=sent.packed, on_choice_change=take)
    shown = claims.row(query) if pair is None else claims.pair(*pair)
    phrase = [(_SAME, "")] if _is_same_text(choice, first, second) else shown.phrase
    show_channel(_KEY, **_message(choice, comparison, second, query, phrase, shown.keys))
    heads = rows_of_heads(choice, comparison, query)
    peek = {"about": "peek", "query": query, "bytes": "" if heads is None else head_rows(*heads)}
    show_channel(_KEY, "peek", layer=comparison.other.layer, head=comparison.other.head, **peek)


def _shows_patches(comparison: Comparison) -> bool:
    """Return whether the sides are images without words beside them."""
    keys = comparison.one.trace.key_tokens(comparison.one.stream)
    pictured = comparison.one.trace.seen.picture is not None and bool(keys.patches)
    return (
        pictured and keys == comparison.one.trace.query_tokens(comparison.one.stream) and not patches_beside_words(keys)
    )


def _opening(claims: RowClaims, first: ShownSide, *, pictured: bool) -> int:
    """Return the query to open on: of an image the one that shows the head, as on the other pages."""
    comparison = claims.comparison
    if not pictured:
        return claims.opening()
    query, _ = pair_of(first.shown, first.state)
    places = comparison.queries.one
    return places.index(query) if query in places else claims.opening()


def _is_same_text(choice: CompareChoice, first: ShownSide, second: ShownSide) -> bool:
    texts = [side.run.trace.provenance.text for side in (first, second)]
    return choice.what == "sentences" and texts[0] == texts[1] and not first.run.trace.seen.tensors


def _message(
    choice: CompareChoice, comparison: Comparison, second: ShownSide, query: int, phrase: Any, keys: Any
) -> dict[str, Any]:
    own_heads = choice.what in ("models", "heads")
    one, other = comparison.one, comparison.other
    layer, head = other.layer, other.head
    message = {"layer": layer, "head": head, "query": query, "seen": widgets.serial(_KEY)}
    message |= {"phrase": phrase, "keys": keys}
    apart = distances(choice, comparison)
    if isinstance(apart, AttentionVizError):
        return {**message, "aside": side_words(choice, second.state, second.stream, second=True, where=second.where)}
    beside = f"{one.layer}·{one.head}" if own_heads else ""
    aside, largest = rank_words(apart, (layer, head), other.trace.layer_numbers(other.stream), beside)
    return {**message, "aside": aside, "largest": largest}


def _sides(choice: CompareChoice, first: ShownSide, second: ShownSide) -> tuple[ComparedSide, ComparedSide]:
    texts = first.run.trace.provenance.text, second.run.trace.provenance.text
    if choice.what == "sentences" and None not in texts and not first.run.trace.seen.tensors:
        one, other = text_changes(texts[0] or "", texts[1] or "")
        return ComparedSide("", one), ComparedSide("", other)
    names = list[str]()
    for side in (first, second):
        name = side_words(choice, side.state, side.stream, second=side is second, where=side.where)
        pictured = choice.what == "sentences" and first.run.trace.seen.tensors
        names.append(thing_label(side.state) if pictured and not side.from_file else name)
    return ComparedSide(names[0]), ComparedSide(names[1])


def _distances(choice: CompareChoice, comparison: Comparison) -> HeadDistances | None:
    bits, other = distances(choice, comparison), comparison.other
    if isinstance(bits, AttentionVizError):
        return None
    numbers = other.trace.layer_numbers(other.stream)
    title = "Which heads differ?"
    if choice.what in ("models", "heads"):
        second = " (second model)" * (choice.what == "models")
        title = f"Distance from {comparison.one.layer}·{comparison.one.head}{second}"
    return HeadDistances(title, bits, numbers, [other.trace.label(at, other.stream) for at in numbers])


def _predicts(side: ShownSide) -> bool:
    facts = side.state.facts
    can = facts.predicts and not facts.is_encoder_decoder and not side.state.shown
    return can and not side.from_file and reads_on(side.run.trace, facts)


def show_next_words(comparison: Comparison, first: ShownSide, second: ShownSide) -> None:
    """Send both sides' next words, last: a model may have to be loaded for them."""
    if not (_predicts(first) or _predicts(second)):
        return
    words = [_next_word(side) for side in (first, second)]
    other = comparison.other
    show_channel(_KEY, "next", layer=other.layer, head=other.head, about="next", phrase=next_words(*words))


def next_words(one: tuple[str, float] | None, other: tuple[str, float] | None) -> Phrase:
    """Write both next words with their probabilities, the second only if it is another; or the one that there is."""
    known = {which: word for which, word in ((1, one), (2, other)) if word is not None}
    phrase: Phrase = []
    for word, probability in known.values():
        phrase += [(" → ", "")] * bool(phrase)
        if not phrase or one is None or word != one[0]:
            phrase += [(word, "next"), (" ", "")]
        phrase.append((weight_text(probability), "number"))
    where = "" if len(known) > 1 else "".join(f" in {which}" for which in known)
    return [(f"next word{where}: ", ""), *phrase] if phrase else []


def _next_word(side: ShownSide) -> tuple[str, float] | None:
    if not _predicts(side):
        return None
    try:
        found = candidates(side.state.request, side.run.trace, 1)
    except AttentionVizError:
        return None
    return next(((one.written[0].removeprefix("·"), float(one.probability[0])) for one in found.values()), None)


def _take(choice: CompareChoice, comparison: Comparison, first: ShownSide) -> None:
    if (head := widgets.sent_pair(_KEY, "choice")) is not None:
        take_head(choice, head)
        return
    pair = widgets.sent_pair(_KEY, "choice", ("query", "key"))
    if pair is None or pair[0] >= len(comparison.queries) or pair[1] >= len(comparison.keys):
        return
    if can_choose(comparison, first) and (chosen := pair_at(comparison, first, pair)) is not None:
        take_pair(*chosen)
