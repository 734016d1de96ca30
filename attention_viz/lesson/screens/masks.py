"""Masks: why blocked scores become −∞, and not 0."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from attention_viz.edits.kinds.masks import Allow
from attention_viz.lesson.lesson import Ask, Control, Lesson, Shown, short
from attention_viz.lesson.links import HeadLink, asking_position, scene_link, trained_words
from attention_viz.lesson.openings.links import PaintedMask
from attention_viz.lesson.openings.opening import Reply
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.translation import grouped, translate
from attention_viz.lesson.words import labelled, offered, quoted, texts, weight_texts
from attention_viz.operation.attention import Attention, attend
from attention_viz.operation.blocking import block_row
from attention_viz.operation.masks import causal, combine, padding
from attention_viz.trace.trace import Trace
from attention_viz.views import heatmap
from attention_viz.views.style.wording import with_minus

_OPTIONS = {
    "none": "none: each word may look at every word",
    "causal": "causal: no word looks ahead",
    "padding": "padding: no word looks at padding",
    "both": "causal and padding: no word looks ahead or at padding",
}
# Padding, as if another sentence of the batch were longer by that many words.
_FILLING, _FILLER = 2, "the"
_LARGE = -1e9
# The most rows to paint.
_PAINTED = 12


def _beside(scene: Scene, mask: str) -> str | None:
    return " ".join([scene.read, *[_FILLER] * _FILLING]) if mask in ("padding", "both") else None


def _link(scene: Scene) -> HeadLink:
    return scene_link(scene, asking_position(scene))


def _run(scene: Scene, mask: str, *, on: bool = True) -> Attention:
    trace, link = _masked(scene, mask) if on else _trace(scene, mask), _link(scene)
    return trace.attention(link.layer).head(link.head)


def _masked(scene: Scene, mask: str) -> Trace:
    link, allowed = _link(scene), _allowed(_trace(scene, mask).query_tokens().padding, mask)
    edits = [] if allowed is None else [Allow(allowed, link.layer, link.head)]
    return scene.trained(edits, beside=_beside(scene, mask))


def _trace(scene: Scene, mask: str) -> Trace:
    return scene.trained(beside=_beside(scene, mask))


def _allowed(padding_at: Sequence[bool], mask: str) -> Tensor | None:
    length = len(padding_at)
    ids = torch.tensor([0 if filled else 1 for filled in padding_at])
    parts = {"causal": [causal(length)], "padding": [padding(ids, 0)], "both": [causal(length), padding(ids, 0)]}
    return combine(*parts[mask]).expand(length, length) if mask in parts else None


def _ask(scene: Scene) -> Ask:
    mask = _CONTROL.value(scene)
    tokens = _trace(scene, mask).query_tokens()
    allowed = _allowed(tokens.padding, mask)
    shut = torch.zeros(len(tokens), len(tokens), dtype=torch.bool) if allowed is None else ~allowed
    labels = ["[PAD]" if one else name for name, one in zip(tokens.names, tokens.padding, strict=True)]
    options = tuple(offered(labels).values())
    open_cells = (~shut).sum(dim=-1).tolist()
    # A long text is cut where the mask shows: padding is at its end.
    end = len(options) if mask in ("padding", "both") else min(_PAINTED, len(options))
    part = slice(max(0, end - _PAINTED), end)
    facts = {"mask": _name(mask), "blocked": int(shut.sum()), "cells": shut.numel()}
    return Ask(
        translate("Paint the mask “{mask}”: which cells does it block?", **facts),
        translate("The mask “{mask}” blocks {blocked} of {cells} cells", **facts),
        translate("a row for each word that looks, a column for each that is looked at"),
        options,
        tuple(map(float, open_cells)),
        shown=tuple(map(str, open_cells)),
        opening=_painted(mask, options[part], shut[part, part]),
    )


def _name(mask: str) -> str:
    return translate(_OPTIONS[mask]).partition(":")[0]


def _painted(mask: str, names: tuple[str, ...], shut: Tensor) -> PaintedMask:
    rows = tuple(sum(1 << column for column, one in enumerate(row) if one) for row in shut.tolist())
    rules = [_rule(mask, names, row) for row in range(len(names))]
    near = [
        Reply("near", translate("Nearly: only the row of {word} is wrong. {rule}", word=short(name), rule=rule))
        for name, rule in zip(names, rules, strict=True)
    ]
    wrong = [
        Reply("wrong", translate("Not quite: look at the row of {word} first. {rule}", word=short(name), rule=rule))
        for name, rule in zip(names, rules, strict=True)
    ]
    swapped = translate("Not quite: you swapped rows and columns. The word of a row looks at those of the columns.")
    right = Reply("right", translate("Right: every cell is as the mask has it."))
    return PaintedMask(names, rows, (right, *near, *wrong, Reply("wrong", swapped)))


def _rule(mask: str, names: tuple[str, ...], row: int) -> str:
    word = short(names[row])
    if mask == "none":
        return translate("Nothing is blocked.")
    if mask == "padding":
        return translate("It may look at every word, but not at padding.")
    if row == len(names) - 1 and mask == "causal":
        return translate("{word} comes last, so it may look at every word.", word=word)
    if mask == "causal":
        return translate("{word} may look at itself and at earlier words, not at later ones.", word=word)
    return translate("{word} may look at itself and at earlier words, not at later ones or at padding.", word=word)


def _show(scene: Scene) -> Shown:
    mask, link = _CONTROL.value(scene), _link(scene)
    one, before = _run(scene, mask), _run(scene, mask, on=False)
    trace = _trace(scene, mask)
    labels = trace.query_tokens().names
    cells = one.weights.numel()
    blocked = 0 if one.allowed is None else int((~one.allowed).sum())
    row = one.scaled[link.query].double()
    shut = torch.zeros_like(row, dtype=torch.bool) if one.allowed is None else ~one.allowed[link.query]
    facts = {
        **texts(layer=link.layer, head=link.head, cells=cells, model=scene.called, blocked=blocked),
        **quoted(labels, word=link.query, other=link.key),
        "mask": _name(mask),
        **weight_texts(before=before.weights[link.query, link.key], after=one.weights[link.query, link.key]),
        **weight_texts(sum=one.weights[link.query].sum()),
        # With a score of 0 in place of −∞, and with weights set to 0 after the softmax.
        **weight_texts(leak=row.masked_fill(shut, 0).softmax(dim=-1)[shut].sum()),
        **weight_texts(left=before.weights[link.query][~shut].sum()),
        "large": with_minus(grouped(_LARGE, ",.0f")),
        **_nothing_left(before),
    }
    says = translate(
        "With the mask “{mask}”, {blocked} of {cells} cells are blocked and drawn hatched; {word} takes {after} from "
        "{other}, {before} without it.",
        **texts(mask=facts["mask"], blocked=blocked, cells=cells, after=facts["after"], before=facts["before"]),
        **texts(word=short(labels[link.query]), other=short(labels[link.key])),
    )
    figure = heatmap(_masked(scene, mask), link.layer, link.head, theme=scene.theme)
    return Shown(facts, figure, says)


def _nothing_left(one: Attention) -> dict[str, str]:
    """Fill a row with −∞, a large negative number, or by our function."""
    nothing = one.query.new_zeros(len(one.weights), dtype=torch.bool)
    plain, large = (
        block_row(one.scaled[0], nothing, values=[value], precisions=[torch.float32])[0]
        for value in (-math.inf, _LARGE)
    )
    ours = attend(one.query, one.key, one.value, nothing.expand(one.shape)).weights[0]
    return {"plain": translate(plain.outcome), **weight_texts(uniform=large.weights[0], ours=ours.max())}


_CONTROL = Control("Mask", lambda scene: labelled(_OPTIONS), lambda scene: "causal")

LESSONS = {
    "masks": Lesson(
        "Masks",
        8,
        _ask,
        _show,
        _CONTROL,
        "mask",
        deeper=("masks",),
        words=trained_words,
        idea=(
            "A mask says which words each word may look at. A model that writes word after word must not see later "
            "ones: such a mask is called causal."
        ),
    )
}
