"""Softmax: numbers become shares that sum to 1, sharper or evener."""

from attention_viz.edits.kinds.temperature import Temperature
from attention_viz.lesson.asking import Ask, CatalogueHead, row_asked
from attention_viz.lesson.lesson import Control, Lesson, Shown
from attention_viz.lesson.links import asking_position, pressed_words, strongest_link
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.words import in_words, signed
from attention_viz.steps.arithmetic import open_cell
from attention_viz.steps.head import open_head, row_statistics
from attention_viz.trace.trace import Trace
from attention_viz.views import shares

__all__ = ["LESSON"]

_TEMPERATURES = {
    "0.25": "0.25: much sharper",
    "0.5": "0.5: sharper",
    "1": "1: as it is",
    "2": "2: evener",
    "4": "4: much evener",
}


def _place(scene: Scene) -> tuple[int, int, int]:
    """Return layer, head and query."""
    trace = scene.trained()
    link = strongest_link(trace, asking_position(trace, scene.word))
    return link.layer, link.head, link.query


def _trace(scene: Scene) -> Trace:
    temperature, (layer, head, _) = float(_CONTROL.value(scene)), _place(scene)
    edits = () if temperature == 1 else (Temperature(temperature, layer, head),)
    return scene.trained(edits)


def _ask(scene: Scene) -> Ask:
    trace, temperature = _trace(scene), float(_CONTROL.value(scene))
    layer, head, query = _place(scene)
    labels = trace.query_tokens().written
    source = f"{scene.called}, layer {layer}, head {head}" + ("" if temperature == 1 else f", T = {temperature:g}")
    row = trace.weights(layer, head)[query]
    place = CatalogueHead.of(trace, layer, head, (query, int(row.argmax())))
    return row_asked(row, labels, query, source, pressed_words(trace), word=True, place=place)


def _show(scene: Scene) -> Shown:
    temperature, trace = float(_CONTROL.value(scene)), _trace(scene)
    layer, head, query = _place(scene)
    opened, labels = open_head(trace, layer, head), trace.query_tokens().written
    row = opened.weights[query]
    # The second largest: of the largest, e to the power of 0 is told, and nothing can be seen to happen.
    ranked = row.argsort(descending=True, stable=True).tolist()
    best, key = ranked[0], ranked[min(1, len(ranked) - 1)]
    cell = open_cell(opened, "weights", query, key)
    term = cell.terms[key]
    statistics = row_statistics(opened.weights)
    even = row_statistics(row.new_full((1, len(row)), 1 / len(row)))
    facts = {
        "word": in_words(labels[query]),
        "best": in_words(labels[best]),
        "most_weight": signed(float(row[best])),
        "other": in_words(labels[key]),
        "entry": signed(term.factors[0][1], 2),
        "less": signed(term.factors[1][1], 2),
        "exponential": signed(term.product),
        "sum": signed(cell.sum),
        "weight": signed(cell.total),
        "total": signed(float(row.sum())),
        "temperature": f"{temperature:g}",
        "entropy": signed(float(statistics.entropy[query]), 2),
        "most_entropy": signed(float(even.entropy[0]), 2),
    }
    says = (
        f"At a temperature of {facts['temperature']}, “{facts['word']}” takes {facts['most_weight']} from "
        f"“{facts['best']}”; its weights add up to {facts['total']}, their entropy is {facts['entropy']}."
    )
    return Shown(facts, shares(trace, layer, head, query, theme=scene.theme), says)


_CONTROL = Control("Temperature", lambda scene: _TEMPERATURES, lambda scene: "1")

LESSON = Lesson(
    "Softmax",
    6,
    _ask,
    _show,
    _CONTROL,
    "temperature",
    deeper=("steps",),
    covers=("softmax by row: each weight from 0 to 1, every row sums to 1, one opened as exp / sum", "temperature"),
)
