"""Masks: why blocked scores become −∞, not a large negative number."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from attention_viz.edits.kinds.masks import Allow
from attention_viz.lesson.lesson import Ask, Control, Lesson, Shown
from attention_viz.lesson.links import HeadLink, asking_position, pressed_words, scene_link
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.words import counted, in_words, offered, quoted, signed, texts, weight_texts
from attention_viz.operation.attention import Attention, attend
from attention_viz.operation.blocking import block_row
from attention_viz.operation.masks import causal, combine, padding
from attention_viz.trace.trace import Trace
from attention_viz.views import heatmap
from attention_viz.views.style.wording import with_minus

_OPTIONS = {
    "none": "none: each word looks at every word",
    "causal": "causal: no word looks ahead",
    "padding": "padding: no word looks at padding",
    "both": "causal and padding: no word looks ahead or at padding",
}
# Padding, as if another sentence of the batch were longer by that many words.
_FILLING, _FILLER = 2, "the"
# The label of padding beside a bar.
_FILLED = "(padding)"
_LARGE, _SMALLER = -1e9, -1e4
# Words for a row with nothing left, by the outcome of the softmax.
_OUTCOMES = {"ignored": "the weights as they are without a mask", "uniform": "the same share for every cell"}


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
    trace = _trace(scene, mask)
    tokens = trace.query_tokens()
    allowed = _allowed(tokens.padding, mask)
    open_cells = [len(tokens)] * len(tokens) if allowed is None else allowed.sum(dim=-1).tolist()
    labels = [_FILLED if filled else label for label, filled in zip(tokens.names, tokens.padding, strict=True)]
    most, fewest = max(open_cells), min(open_cells)
    least = f", {_who(labels, open_cells, fewest)} at {fewest}" if fewest < most else ""
    return Ask(
        f"Mask “{_OPTIONS[mask]}”: which word may look at the most words?",
        f"Mask “{mask}”: {_who(labels, open_cells, most)} may look at {most}{least}",
        "counted in the mask: the open cells of each row",
        tuple(offered(labels).values()),
        tuple(map(float, open_cells)),
        shown=tuple(map(str, open_cells)),
        pressed=pressed_words(trace),
        word=True,
    )


def _who(labels: Sequence[str], counts: Sequence[int], wanted: int) -> str:
    found = [label for label, count in zip(labels, counts, strict=True) if count == wanted]
    if len(found) == 1:
        return f"“{in_words(found[0])}”"
    return "each token" if len(found) == len(labels) else f"{len(found)} tokens"


def _show(scene: Scene) -> Shown:
    mask, link = _CONTROL.value(scene), _link(scene)
    one, before = _run(scene, mask), _run(scene, mask, on=False)
    trace = _trace(scene, mask)
    labels = trace.query_tokens().names
    cells, filling = one.weights.numel(), sum(trace.query_tokens().padding)
    blocked = 0 if one.allowed is None else int((~one.allowed).sum())
    facts = {
        **texts(layer=link.layer, head=link.head, cells=cells, model=scene.called),
        **quoted(labels, word=link.query, other=link.key),
        "mask": _OPTIONS[mask].partition(":")[0],
        "blocked": counted(blocked, "cell"),
        **weight_texts(before=before.weights[link.query, link.key], after=one.weights[link.query, link.key]),
        **weight_texts(sum=one.weights[link.query].sum()),
        "large": with_minus(f"{_LARGE:,.0f}"),
        "smaller": with_minus(f"{_SMALLER:,.0f}"),
        "filling": f", with {counted(filling, 'padding token')} at the end," if filling else "",
        **_nothing_left(before),
    }
    hatched = f"{facts['blocked']} of {cells} {'is' if blocked == 1 else 'are'} blocked and drawn hatched"
    says = (
        f"With the mask “{facts['mask']}”, {hatched if blocked else 'nothing is blocked'}; “{facts['word']}” takes "
        f"{facts['after']} from “{facts['other']}”, {facts['before']} without it."
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
    (smaller,) = block_row(one.scaled[0], nothing, values=[_SMALLER], precisions=[torch.float32])
    ours = attend(one.query, one.key, one.value, nothing.expand(one.shape)).weights[0]
    half = block_row(one.scaled[0], nothing, values=[_LARGE], precisions=[torch.float16])[0]
    return {
        "plain": plain.outcome,
        "remains": _OUTCOMES.get(smaller.outcome, smaller.outcome),
        **weight_texts(uniform=large.weights[0], ours=ours.max()),
        "half": signed(half.rounded, 0).replace("inf", "∞"),
    }


_CONTROL = Control("Mask", lambda scene: _OPTIONS, lambda scene: "causal")

LESSONS = {"masks": Lesson("Masks", 8, _ask, _show, _CONTROL, "mask", deeper=("masks",), trained_word=True)}
