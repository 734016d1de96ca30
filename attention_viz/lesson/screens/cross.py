"""Cross-attention: queries from the output, keys and values from the input."""

from attention_viz.errors import AttentionVizError
from attention_viz.lesson.asking import Ask, short
from attention_viz.lesson.lesson import Control, Lesson, Shown
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.spots import line_spots
from attention_viz.lesson.words import counted, in_words, offered, signed
from attention_viz.sources import CATALOGUE
from attention_viz.trace.trace import Trace
from attention_viz.views import alignment
from attention_viz.views.style.wording import one_line, readable

__all__ = ["LESSON"]

_LONGEST_SENTENCE = 120
_MODEL, _STREAM = "translation", "cross"
# How high, in the picture, it answers a press above the words that are said.
_SAID = (0.03, 0.1)
_OWN = "It is your own sentence."
_OTHER = "It knows too few words for your own sentence, so this is an example of its own."
_EQUAL = "The two lengths need not agree; here they happen to."
_UNEQUAL = "The two lengths differ, so this is no square."


def _trace(scene: Scene) -> Trace:
    try:
        own = scene.run(_MODEL, scene.text)
        if not any(label in ("<unk>", "[UNK]") for label in own.key_tokens(_STREAM).labels):
            return own
    except AttentionVizError:  # such as more words than it reads
        pass
    return scene.run(_MODEL, CATALOGUE[_MODEL].examples[0])


def _options(scene: Scene) -> dict[str, str]:
    trace = _trace(scene)
    tokens = trace.query_tokens(_STREAM)
    names = offered(tokens.written)
    return {at: name for at, name in names.items() if not tokens.special[int(at)]} or names


def _ask(scene: Scene) -> Ask:
    trace, query = _trace(scene), int(_CONTROL.value(scene))
    rows = trace.attention(0, _STREAM).weights[:, query]
    head = int(rows.argmax()) // rows.shape[-1]
    said, read = trace.query_tokens(_STREAM).written, trace.key_tokens(_STREAM).written
    values = rows[head].double().tolist()
    best = max(range(len(values)), key=values.__getitem__)
    word = short(said[query])
    return Ask(
        f"To say {word}, which word that was read does it take most from?",
        f"{word} takes {signed(values[best])} from {short(read[best])}",
        f"the toy “{_MODEL}”, head {head}: from what it says to what it read",
        tuple(offered(read).values()),
        tuple(values),
        shares=True,
        pressed=_pressed(scene, trace),
    )


def _pressed(scene: Scene, trace: Trace) -> tuple[str, ...]:
    weights = trace.attention(0, _STREAM).weights.amax(dim=0)
    return tuple(max(_options(scene), key=lambda at: float(weights[int(at), key])) for key in range(weights.shape[-1]))


def _show(scene: Scene) -> Shown:
    trace, query = _trace(scene), int(_CONTROL.value(scene))
    rows = trace.attention(0, _STREAM).weights[:, query]
    head, key = divmod(int(rows.argmax()), rows.shape[-1])
    target, read = trace.query_tokens(_STREAM).written, trace.key_tokens(_STREAM).written
    facts = {
        "own": _OWN if trace.provenance.text == scene.text else _OTHER,
        "sentence": one_line(trace.provenance.text or "", _LONGEST_SENTENCE),
        "said": counted(len(target), "token"),
        "read": counted(len(read), "token"),
        "cells": str(len(target) * len(read)),
        "lengths": _EQUAL if len(target) == len(read) else _UNEQUAL,
        "head": str(head),
        "word": in_words(target[query]),
        "source": in_words(read[key]),
        "weight": f"{float(rows[head, key]):.3f}",
    }
    says = f"“{facts['word']}” looks mostly at “{facts['source']}”, {facts['weight']}."
    # Both lines are as wide as the picture.
    places = [(at + 0.5) / len(target) for at in range(len(target))]
    spots = line_spots(places, readable(target), _CONTROL.options(scene).keys(), _SAID)
    return Shown(facts, alignment(trace, 0, head, _STREAM, query=query, theme=scene.theme), says, spots)


_CONTROL = Control("Word that is said", _options, lambda scene: next(iter(_options(scene))), words=True)

LESSON = Lesson(
    "Cross-attention",
    6,
    _ask,
    _show,
    _CONTROL,
    "shape",
    deeper=("cross",),
    covers=("cross-attention: target × source",),
)
