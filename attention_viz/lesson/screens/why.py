"""Why attention: other words decide a word's meaning, and heads look there."""

from attention_viz.lesson.asking import Ask, CatalogueHead, row_asked, short
from attention_viz.lesson.lesson import Control, Lesson, Shown
from attention_viz.lesson.links import opening_position, positioned_words, pressed_positions, strongest_link
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.words import in_words
from attention_viz.trace.trace import Trace
from attention_viz.views import looks

__all__ = ["LESSON"]


def _default(scene: Scene) -> str:
    return str(opening_position(_trace(scene)))


def _trace(scene: Scene) -> Trace:
    return scene.trained()


def _ask(scene: Scene) -> Ask:
    trace, query = _trace(scene), int(_CONTROL.value(scene))
    link = strongest_link(trace, query)
    labels = trace.query_tokens().written
    # Each word has its own head: a press on another word changes it.
    chosen = f"the head chosen for {short(labels[query])}"
    source = f"{scene.called}, layer {link.layer}, head {link.head}: {chosen}"
    row = trace.weights(link.layer, link.head)[query]
    place = CatalogueHead.of(trace, link.layer, link.head, (link.query, link.key))
    return row_asked(row, labels, query, source, pressed_positions(trace), complete=True, place=place)


def _show(scene: Scene) -> Shown:
    trace, query = _trace(scene), int(_CONTROL.value(scene))
    labels, link = trace.query_tokens().written, strongest_link(trace, query)
    word, other = in_words(labels[query]), in_words(labels[link.key])
    facts = {
        "word": word,
        "other": other,
        "weight": f"{link.weight:.3f}",
        "percent": f"{link.weight:.0%}",
        "layer": str(link.layer),
        "head": str(link.head),
        "layers": str(trace.layer_count()),
        "heads": str(sum(trace.head_count(layer) for layer in trace.layer_numbers())),
        "model": scene.called,
    }
    says = f"In layer {link.layer}, head {link.head}, “{word}” looks mostly at “{other}”"
    return Shown(facts, looks(trace, link.layer, link.head, query, theme=scene.theme), f"{says}, {link.weight:.3f}.")


_CONTROL = Control("Word that looks", positioned_words, _default)

LESSON = Lesson(
    "Why attention",
    5,
    _ask,
    _show,
    _CONTROL,
    "strongest",
    deeper=("", "heads"),
    covers=("disambiguation: bank, river, flooded", "a heatmap's row read as shares"),
)
