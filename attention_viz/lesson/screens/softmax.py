"""Softmax: numbers become shares that sum to 1; large scores saturate it."""

from attention_viz.edits.kinds.temperature import Temperature
from attention_viz.lesson.lesson import Ask, CatalogueHead, Control, Lesson, Shown, row_asked
from attention_viz.lesson.links import asking_position, pressed_words, scene_link
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.words import quoted, signs, weight_texts
from attention_viz.steps.arithmetic import open_cell
from attention_viz.steps.head import open_head, row_statistics
from attention_viz.trace.trace import Trace
from attention_viz.views import shares

_TEMPERATURES = {
    "0.25": "0.25: much sharper",
    "0.5": "0.5: sharper",
    "1": "1: as it is",
    "2": "2: more even",
    "4": "4: much more even",
}


def _place(scene: Scene) -> tuple[int, int, int]:
    """Return layer, head and query."""
    link = scene_link(scene, asking_position(scene))
    return link.layer, link.head, link.query


def _trace(scene: Scene) -> Trace:
    temperature, (layer, head, _) = float(_CONTROL_SOFTMAX.value(scene)), _place(scene)
    edits = () if temperature == 1 else (Temperature(temperature, layer, head),)
    return scene.trained(edits)


def _ask_softmax(scene: Scene) -> Ask:
    trace, temperature = _trace(scene), float(_CONTROL_SOFTMAX.value(scene))
    layer, head, query = _place(scene)
    labels = trace.query_tokens().names
    source = f"{scene.called}, layer {layer}, head {head}" + ("" if temperature == 1 else f", T = {temperature:g}")
    row = trace.weights(layer, head)[query]
    place = CatalogueHead.of(trace, layer, head, (query, int(row.argmax())))
    return row_asked(row, labels, query, source, pressed_words(trace), word=True, place=place)


def _show_softmax(scene: Scene) -> Shown:
    temperature, trace = float(_CONTROL_SOFTMAX.value(scene)), _trace(scene)
    layer, head, query = _place(scene)
    opened, labels = open_head(trace, layer, head), trace.query_tokens().names
    row = opened.weights[query]
    # The second largest: for the largest, e to the power of 0 shows nothing.
    ranked = row.argsort(descending=True, stable=True).tolist()
    best, key = ranked[0], ranked[min(1, len(ranked) - 1)]
    cell = open_cell(opened, "weights", query, key)
    term = cell.terms[key]
    statistics = row_statistics(opened.weights)
    even = row_statistics(row.new_full((1, len(row)), 1 / len(row)))
    facts = {
        **quoted(labels, word=query, best=best, other=key),
        **weight_texts(most_weight=row[best], weight=cell.total, total=row.sum()),
        **signs(exponential=term.product, sum=cell.sum),
        **signs(2, entry=term.factors[0][1], less=term.factors[1][1], entropy=statistics.entropy[query]),
        **signs(2, most_entropy=even.entropy[0]),
        "temperature": f"{temperature:g}",
    }
    says = (
        f"At a temperature of {facts['temperature']}, “{facts['word']}” takes {facts['most_weight']} from "
        f"“{facts['best']}”; its weights add up to {facts['total']}, their entropy is {facts['entropy']}."
    )
    return Shown(facts, shares(trace, layer, head, query, theme=scene.theme), says)


_CONTROL_SOFTMAX = Control("Temperature", lambda scene: _TEMPERATURES, lambda scene: "1")


LESSONS = {
    "softmax": Lesson(
        "Softmax",
        6,
        _ask_softmax,
        _show_softmax,
        _CONTROL_SOFTMAX,
        "temperature",
        deeper=("steps",),
        trained_word=True,
    ),
}
