"""Heads work together: one writes the key that another finds."""

from attention_viz.lesson.asking import Ask, CatalogueHead, short
from attention_viz.lesson.composed import STEPS, TOY_WORDS, Composed
from attention_viz.lesson.language import TOY
from attention_viz.lesson.lesson import Control, Lesson, Shown
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.words import in_words, signed
from attention_viz.views import composition

__all__ = ["LESSON"]

# The word that the lesson opens on, by its place.
_OPENING = 1
# A word that the key is found by makes at least this part of the score.
_MOST = 0.5


def _composed(scene: Scene) -> Composed:
    # Nothing came after the last word the first time.
    at = scene.word if scene.word is not None and scene.word < len(TOY_WORDS) - 1 else _OPENING
    return Composed(scene, at, int(_CONTROL.value(scene)))


def _ask(scene: Scene) -> Ask:
    pair = _composed(scene)
    names, numbers = pair.trace.key_tokens().written, pair.by_word
    layer, head = pair.reader
    best = max(numbers, key=numbers.__getitem__)
    found, score, last = short(names[pair.key]), pair.opened.total, len(TOY_WORDS) - 1
    by = f"{found} is found by {short(names[best])}: {signed(numbers[best], 2)} of a score of {signed(score, 2)}"
    return Ask(
        f"{short(names[pair.query])} comes again, and a head looks at {found}. By which word is it found?",
        by if numbers[best] > _MOST * score > 0 else f"{found} isn't found by a word: a score of {signed(score, 2)}",
        f"the toy {TOY} after {pair.step} steps, layer {layer}, head {head}: the score split by the words "
        f"that wrote the key; {signed(pair.opened.total - sum(numbers.values()), 2)} comes from no word",
        tuple(in_words(names[at]) for at in numbers),
        tuple(numbers.values()),
        shown=tuple(signed(number, 2) for number in numbers.values()),
        pressed=tuple(str(at - pair.start) if 0 <= at - pair.start < last else "" for at in numbers),
        word=True,
        place=CatalogueHead.of(pair.trace, layer, head),
    )


def _show(scene: Scene) -> Shown:
    pair = _composed(scene)
    names = [in_words(name) for name in pair.trace.key_tokens().written]
    (layer, head), (before_layer, before_head) = pair.reader, pair.writer
    before, weight = pair.looks
    written = pair.parts["head", before_layer, before_head]
    best = max(pair.by_word, key=pair.by_word.__getitem__)
    facts = {
        "text": in_words(pair.text, 80),
        "step": str(pair.step),
        "word": names[pair.query],
        "found": names[pair.key],
        "source": names[pair.key - 1],
        "layer": str(layer),
        "head": str(head),
        "before_layer": str(before_layer),
        "before_head": str(before_head),
        "before": signed(before),
        "weight": signed(weight),
        "score": signed(pair.opened.total, 2),
        "written": signed(written, 2),
        "best_word": names[best],
        "by_word": signed(pair.by_word[best], 2),
        "without": signed(pair.without_writer),
    }
    says = (
        f"After {pair.step} steps layer {before_layer}, head {before_head} takes {facts['before']} at "
        f"“{facts['found']}” from “{facts['source']}”; layer {layer}, head {head} takes {facts['weight']} from "
        f"“{facts['found']}”."
    )
    figure = composition(
        pair.trace,
        pair.writer,
        pair.reader,
        pair.query,
        pair.key,
        pair.over_training,
        marked=pair.step,
        theme=scene.theme,
    )
    return Shown(facts, figure, says)


_CONTROL = Control(
    "Training step",
    lambda scene: {str(step): str(step) for step in STEPS},
    lambda scene: str(STEPS[-1]),
    ordered=True,
)

LESSON = Lesson(
    "Heads work together",
    7,
    _ask,
    _show,
    _CONTROL,
    "part",
    deeper=("why", "compare"),
    covers=("composition: one head writes the key that another finds", "a score opened into what wrote it"),
)
