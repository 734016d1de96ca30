"""Writes: a head adds to the logits of words."""

from attention_viz.lesson.asking import Ask, CatalogueHead, short
from attention_viz.lesson.composed import TOY_WORDS
from attention_viz.lesson.language import TOY
from attention_viz.lesson.lesson import Control, Lesson, Shown
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.words import in_words, signed
from attention_viz.lesson.written import WrittenBy
from attention_viz.views import looks

__all__ = ["LESSON"]

# The word that the lesson opens on, by its place.
_OPENING = 1
# A head that adds less to the word that it writes most for writes none by itself.
_LEAST = 0.5


def _written(scene: Scene) -> WrittenBy:
    at = scene.word if scene.word is not None and scene.word < len(TOY_WORDS) - 1 else _OPENING
    layer, head = map(int, _CONTROL.value(scene).split("·"))
    return WrittenBy(scene, at, (layer, head))


def _ask(scene: Scene) -> Ask:
    found = _written(scene)
    layer, head = found.place
    names, last = found.trace.key_tokens().written, len(TOY_WORDS) - 1
    seen = short(names[int(found.row.argmax())])
    best = max(found.added, key=found.added.__getitem__)
    number = signed(found.added[best], 2)
    return Ask(
        f"At {short(names[found.query])}, layer {layer}, head {head} looks at {seen}. Which word does it write for?",
        f"It writes for {short(best)}: {number} on its logit"
        if found.added[best] > _LEAST
        else f"It hardly writes for any word by itself: at most {number}, for {short(best)}",
        f"the toy {TOY}, layer {layer}, head {head}: what is added to each word's logit",
        tuple(in_words(word) for word in found.added),
        tuple(found.added.values()),
        shown=tuple(signed(one, 2) for one in found.added.values()),
        pressed=tuple(str(at) if at < last else "" for at in range(len(TOY_WORDS))),
        word=True,
        place=CatalogueHead.of(found.trace, layer, head),
    )


def _show(scene: Scene) -> Shown:
    found = _written(scene)
    layer, head = found.place
    names = [in_words(name) for name in found.trace.key_tokens().written]
    seen, weight = names[int(found.row.argmax())], float(found.row.max())
    best = max(found.added, key=found.added.__getitem__)
    worst = min(found.added, key=found.added.__getitem__)
    facts = {
        "text": in_words(found.pair.text, 80),
        "word": names[found.query],
        "layer": str(layer),
        "head": str(head),
        "seen": seen,
        "weight": signed(weight),
        "best": best,
        "added": signed(found.added[best], 2),
        "worst": worst,
        "taken": signed(found.added[worst], 2),
        "likely": signed(found.likely[best]),
        "without": signed(found.likely_without[best]),
    }
    says = (
        f"At “{facts['word']}” layer {layer}, head {head} takes {facts['weight']} from “{seen}” and adds "
        f"{facts['added']} to the logit of “{best}”."
    )
    return Shown(facts, looks(found.trace, layer, head, found.query, theme=scene.theme), says)


def _heads(scene: Scene) -> dict[str, str]:
    trace = WrittenBy(scene, _OPENING).trace
    places = [(layer, head) for layer in trace.layer_numbers() for head in range(trace.head_count(layer))]
    return {f"{layer}·{head}": f"{layer}·{head}" for layer, head in places}


def _reader(scene: Scene) -> str:
    layer, head = WrittenBy(scene, _OPENING).place
    return f"{layer}·{head}"


_CONTROL = Control("Layer · head", _heads, _reader)

LESSON = Lesson(
    "What a head writes",
    6,
    _ask,
    _show,
    _CONTROL,
    "added",
    deeper=("why", "heads"),
    covers=("what a head's output adds to each word's logit",),
)
