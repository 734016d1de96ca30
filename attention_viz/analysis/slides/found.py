"""Slides of a run's findings, the chosen link first."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from attention_viz.analysis.findings.finding import FINDING_KINDS, Finding
from attention_viz.analysis.findings.hearing import HEARD
from attention_viz.analysis.findings.word_regions import WORD_REGION
from attention_viz.analysis.readings import READINGS
from attention_viz.analysis.signed import mixer_of
from attention_viz.analysis.slides.shares import patch_shares, shares_picture
from attention_viz.analysis.slides.slide import (
    Part,
    Slide,
    begun,
    named,
    only_allowed,
    picture_of,
    row_of,
    source_of,
    with_picture,
)
from attention_viz.analysis.words import words_of
from attention_viz.trace.derived import tokens_of_words
from attention_viz.trace.kind import Unit
from attention_viz.trace.slots import are_alike, has_target
from attention_viz.trace.spelling import weight_text
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Trace


def found_slides(
    trace: Trace, findings: Sequence[Finding], chosen: tuple[str, int, int, int, int] | None = None
) -> tuple[Slide, ...]:
    """Show findings, best first, after the chosen link if it is none of them."""
    slides = {_place(one): _of_finding(trace, one) for one in findings}
    if chosen is not None:
        slides = {chosen: slides.pop(chosen, None) or link_slide(trace, *chosen), **slides}
    asked: set[tuple[Part, ...]] = set()
    found: list[Slide] = []
    for (_, layer, head, _, _), one in slides.items():
        # The same question once more is about another head.
        found.append(replace(one, ask=_of_head(one.ask, layer, head)) if one.ask in asked else one)
        asked.add(one.ask)
    return tuple(found)


def link_slide(trace: Trace, stream: str, layer: int, head: int, query: int, key: int) -> Slide:
    """Show one link, of any weight."""
    queries, keys = trace.query_tokens(stream), trace.key_tokens(stream)
    row = row_of(trace, stream, layer, head, query)
    weight = float(row[key])
    if stream in trace.mixers:
        return _mixed_slide(trace, stream, layer, head, query, key, weight)
    looking, seen = named(queries, query, "query"), named(keys, key, "key")
    own = queries == keys
    number = (weight_text(weight), "number")
    alone = own and len(keys.counted) <= 1
    if stream == "cross" and has_target(trace.attention_streams):
        # A row has the name of the word that comes next.
        ask: tuple[Part, ...] = (
            ("Before ", ""),
            *looking,
            (", how much does the model attend to ", ""),
            *seen,
            ("?", ""),
        )
        return _slide(
            trace,
            stream,
            layer,
            head,
            query,
            key,
            ask,
            (("Before ", ""), *looking, (" it attends to ", ""), *seen, (": ", ""), number),
        )
    if alone:
        ask = (("Where can ", ""), *looking, (" look, alone?", ""))
    else:
        ask = (("How much does ", ""), *looking, (" look at ", ""), *(seen if query != key else (("itself", "key"),)))
        ask = (*ask, ("?", ""))
    if own and query == key:
        tell = begun((*looking, (" looks at ", ""), ("itself", "key"), (": ", ""), number))
    else:
        tell = begun((*looking, (" looks at ", ""), *seen, (": ", ""), number))
    return _slide(trace, stream, layer, head, query, key, ask, tell)


def _mixed_slide(trace: Trace, stream: str, layer: int, head: int, query: int, key: int, share: float) -> Slide:
    """Show one link of a layer without a softmax."""
    reading, carried = named(trace.query_tokens(stream), query, "query"), named(trace.key_tokens(stream), key, "key")
    mixer = mixer_of(trace, stream, layer)
    channels = mixer.per == "channel"
    taken = not channels and float(mixer.tile(head, [query], [key])) < 0
    number = (weight_text(share), "number")
    of = " of all that arrives" if channels else " of the row's size"
    ask = (("How much of ", ""), *carried, (" is carried to ", ""), *reading, ("?", ""))
    how = " is taken away from " if taken else " is carried to "
    tell = begun((*carried, (how, ""), *reading, (": ", ""), number, (of, "")))
    return _slide(trace, stream, layer, head, query, key, ask, tell)


def _of_finding(trace: Trace, one: Finding) -> Slide:
    place = one.stream, one.layer, one.head, one.query, one.key
    of_a_head = FINDING_KINDS[one.kind].of_a_head
    tell = one.parts
    if of_a_head and one.kind not in ("region", "regions"):
        # The sentence is about all rows, and the picture has one of them.
        looking = named(trace.query_tokens(one.stream), one.query, "query")
        tell = (*tell, (f"shown: the row of {''.join(text for text, _ in looking)}", "small"))
    slide = _slide(trace, *place, _asked(trace, one), tell, between_words=not of_a_head, word=one.word)
    bars = shares_picture(trace, one)
    return slide if bars is None else replace(slide, picture=bars)


def _of_words(
    trace: Trace, stream: str, layer: int, head: int, query: int, key: int
) -> tuple[Tokens, Float[Tensor, " word"], int, int]:
    """Mean over query pieces of sums over key pieces."""
    looking, seen = (words_of(tokens(stream)) for tokens in (trace.query_tokens, trace.key_tokens))
    word = looking.of_position[query]
    pieces = torch.stack([_row(trace, stream, layer, head, at) for at in looking.pieces[word]])
    none = pieces.new_zeros(len(seen.pieces))
    row = none.index_add(0, seen.index, pieces.nan_to_num().mean(dim=0))
    closed = none.index_add(0, seen.index, pieces.isfinite().any(dim=0).double()) == 0
    row = row.masked_fill(closed, float("nan"))
    return tokens_of_words(seen.tokens, seen.pieces), row, word, seen.of_position[key]


def _row(trace: Trace, stream: str, layer: int, head: int, query: int) -> Float[Tensor, " key"]:
    """NaN if blocked."""
    return only_allowed(row_of(trace, stream, layer, head, query), trace, stream, layer, head, query)


def _asked(trace: Trace, one: Finding) -> tuple[Part, ...]:
    unit, seen = (tokens(one.stream).unit for tokens in (trace.query_tokens, trace.key_tokens))
    if one.kind == "region":
        return ((f"Which part of the image do several heads of layer {one.layer} look at?", ""),)
    if one.kind == "regions":
        return (("Which parts of the image does ", ""), *_looking(one.parts)[1], (" look at?", ""))
    if one.kind == WORD_REGION:
        return (("Which part of the image does ", ""), *_looking(one.parts)[1], (" attend to?", ""))
    if one.kind == HEARD:
        return (("Before ", ""), *_looking(one.parts)[1], (", which third of the word’s time does it attend to?", ""))
    if FINDING_KINDS[one.kind].of_a_head:
        return ((f"What does head {one.head} of layer {one.layer} do with every {unit}?", ""),)
    if one.kind == "next word":
        return (("Before the next word is predicted, where does ", ""), ("the last one", "query"), (" look?", ""))
    if one.kind == "carried":
        return (("Which word's value is carried to ", ""), _part(one, "query"), ("?", ""))
    if one.kind == "erased":
        return ((f"What does head {one.head} of layer {one.layer} erase as ", ""), _part(one, "query"), (" comes?", ""))
    before, looking = _looking(one.parts)
    if one.kind == "alignment":
        if seen is Unit.FRAME:
            return ((f"Which {seen} is heard while ", ""), *before, *looking, (" is transcribed?", ""))
        return (("Before ", ""), *looking, (f", which {seen} does the model attend to?", ""))
    return ((f"Which {seen} does ", ""), *before, *looking, (" look at?", ""))


def _part(one: Finding, wanted: str) -> Part:
    return next((text, role) for text, role in one.parts if role == wanted)


def _of_head(ask: tuple[Part, ...], layer: int, head: int) -> tuple[Part, ...]:
    (text, role), *others = ask
    return ((f"And head {head} of layer {layer}: {text[:1].lower()}{text[1:]}", role), *others)


def _looking(parts: Sequence[Part]) -> tuple[tuple[Part, ...], tuple[Part, ...]]:
    place = next(at for at, (_, role) in enumerate(parts) if role == "query")
    before = "".join(text for text, _ in parts[:place])
    # By a reading the sentence begins with its name.
    before = before.rpartition(", ")[2]
    text, role = parts[place]
    # Inside a question what no quotes stand around begins small.
    looking = (text if "“" in text else f"{text[:1].lower()}{text[1:]}", role)
    return (((f"{before[:1].lower()}{before[1:]}", ""),) if before else ()), (looking,)


def _slide(
    trace: Trace,
    stream: str,
    layer: int,
    head: int,
    query: int,
    key: int,
    ask: Sequence[Part],
    tell: Sequence[Part],
    *,
    between_words: bool = False,
    word: str = "",
) -> Slide:
    queries, keys = trace.query_tokens(stream), trace.key_tokens(stream)
    own = are_alike(stream, queries, keys) and queries == keys
    row = _row(trace, stream, layer, head, query)
    # Beside a picture there is no room for a line, and patches of one row of it say little.
    form = "line" if own and keys.unit is not Unit.PATCH else "bars"
    tokens, values, looking, seen = keys, row, query, key
    if between_words and (_in_pieces(queries, query) or _in_pieces(keys, key)):
        tokens, values, looking, seen = _of_words(trace, stream, layer, head, query, key)
    # A sentence about a word that is written is shown with its first occurrence.
    said = words_of(tokens)
    also = [pieces[0] for pieces, text in zip(said.pieces, said.texts, strict=True) if word and text == word][:1]
    unit = "share of size" if stream in trace.mixers else "weight"
    picture = patch_shares(tokens, values, seen) or picture_of(
        form, tokens, values, looking if own else None, seen, unit=unit, also=also
    )
    slide = Slide(tuple(ask), tuple(tell), picture, source_of(trace, _where(trace, layer, head), picture))
    return with_picture(slide, trace, stream, row, query, key)


def _in_pieces(tokens: Tokens, position: int) -> bool:
    words = words_of(tokens)
    return len(words.pieces[words.of_position[position]]) > 1


def _where(trace: Trace, layer: int, head: int) -> str:
    reading = READINGS.get(trace.provenance.reading)
    if reading is None or reading.function is None:
        return f"layer {layer}, head {head}"
    return f"layer {layer}, {f'head {head}' if reading.per_head else 'all heads together'}, by {reading.label.lower()}"


def _place(one: Finding) -> tuple[str, int, int, int, int]:
    return one.stream, one.layer, one.head, one.query, one.key
