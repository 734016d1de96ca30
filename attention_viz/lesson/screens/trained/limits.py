"""Limits of weights: a head that looks right need not matter."""

from typing import NamedTuple

from attention_viz.edits.effects import moved_output
from attention_viz.edits.kinds.ablation import Ablate
from attention_viz.lesson.asking import Ask, CatalogueHead
from attention_viz.lesson.lesson import Control, Lesson, Shown
from attention_viz.lesson.links import asking_position, strongest_link, trained_words, word_positions
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.spots import written_spots
from attention_viz.lesson.words import in_words
from attention_viz.operation.shapes import shared_heads
from attention_viz.trace.trace import Trace
from attention_viz.views import weight_and_effect
from attention_viz.views.style.wording import escaped

__all__ = ["LESSON", "Light", "effects", "lightest"]

_SAME = "Here the two are one head. That is not the rule: choose another layer."
_OTHER = "The head that looks best is not the one that matters most."


def _trace(scene: Scene) -> Trace:
    return scene.trained()


def effects(scene: Scene, layer: int) -> list[float]:
    """Return the output's mean change over tokens when each head is ablated."""
    before = _trace(scene)
    runs = (scene.trained((Ablate(layer, head),)) for head in range(before.head_count(layer)))
    return [float(moved_output(before, after).mean()) for after in runs]


class Light(NamedTuple):
    """A row whose largest weight brings little.

    Length is of weight × value, before W_O; `most` is the row's largest, `place` ranks from 1.
    """

    head: int
    query: int
    key: int
    weight: float
    length: float
    most: float
    place: int


def lightest(trace: Trace, layer: int) -> Light:
    """Find a layer's row whose largest weight ranks lowest by length; of ties the largest weight."""
    call, queries = trace.attention(layer), list(word_positions(trace))
    weights = call.weights[:, queries].detach().float()
    lengths = weights * shared_heads(call.value, call.query).detach().float().norm(dim=-1)[:, None]
    weight, key = weights.max(dim=-1)
    length = lengths.gather(-1, key[..., None])
    places = 1 + (lengths > length).sum(dim=-1)
    found = [
        Light(
            head,
            query,
            int(key[head, at]),
            float(weight[head, at]),
            float(length[head, at, 0]),
            float(lengths[head, at].max()),
            int(places[head, at]),
        )
        for head in range(len(weights))
        for at, query in enumerate(queries)
    ]
    return max(found, key=lambda one: (one.place, one.weight))


def _phrase(trace: Trace, layer: int) -> str:
    light, labels = lightest(trace, layer), trace.query_tokens().written
    if light.place == 1:
        return "In this layer the largest weight of each word also brings it most."
    word, other = in_words(labels[light.query]), in_words(labels[light.key])
    return (
        f"In head {light.head}, “{word}” takes most from “{other}”: {light.weight:.3f}. But weight × value is only "
        f"{light.length:.3f} long there, place {light.place} of {len(labels)}; the longest is {light.most:.3f}."
    )


def _options(scene: Scene) -> dict[str, str]:
    return {str(layer): f"layer {layer}" for layer in _trace(scene).layer_numbers()}


def _ask(scene: Scene) -> Ask:
    layer = int(_CONTROL.value(scene))
    moved = effects(scene, layer)
    most = max(range(len(moved)), key=moved.__getitem__)
    return Ask(
        f"Each head of layer {layer} is silenced in turn. Which one moves the output most?",
        f"Silencing head {most} moves the output most: {moved[most]:.1%}",
        f"{scene.called}, layer {layer}: change of the output as a part of its length",
        tuple(f"head {head}" for head in range(len(moved))),
        tuple(moved),
        shown=tuple(f"{one:.1%}" for one in moved),
        place=CatalogueHead.of(_trace(scene), layer, most),
    )


def _show(scene: Scene) -> Shown:
    layer, trace = int(_CONTROL.value(scene)), _trace(scene)
    query = asking_position(trace, scene.word)
    other = strongest_link(trace, query).key
    weights = [float(trace.weights(layer, head)[query, other]) for head in range(trace.head_count(layer))]
    moved = effects(scene, layer)
    looking, moving = weights.index(max(weights)), moved.index(max(moved))
    labels = trace.query_tokens().written
    facts = {
        "word": in_words(labels[query]),
        "other": in_words(labels[other]),
        "layer": str(layer),
        "heads": str(len(weights)),
        "looking": str(looking),
        "weight": f"{weights[looking]:.3f}",
        "effect": f"{moved[looking]:.1%}",
        "place": str(1 + sum(one > moved[looking] for one in moved)),
        "moving": str(moving),
        "most": f"{moved[moving]:.1%}",
        "its_weight": f"{weights[moving]:.3f}",
        "light": _phrase(trace, layer),
        "rule": _SAME if moving == looking else _OTHER,
    }
    says = (
        f"In layer {layer}, head {looking} looks most at “{facts['other']}” ({facts['weight']}); silencing head "
        f"{moving} moves the output most ({facts['most']})."
    )
    places = word_positions(trace)
    # Every one of these places is a word's: a link is between two of them.
    pair = places.index(query), places.index(other)
    figure = weight_and_effect(weights, moved, layer, words=[labels[at] for at in places], pair=pair, theme=scene.theme)
    figure.update_layout(xaxis_title_text=escaped(f"weight from “{facts['word']}” to “{facts['other']}”"))
    return Shown(facts, figure, says, written_spots(figure, "words"))


_CONTROL = Control("Layer", _options, lambda scene: next(reversed(_options(scene))))

LESSON = Lesson(
    "What weights don't tell",
    7,
    _ask,
    _show,
    _CONTROL,
    "matters",
    deeper=("heads", "compare"),
    covers=(
        "what attention weights do and don't tell: ablation",
        "the largest weight of a row can add least to the output, if its value is short",
    ),
    words=trained_words,
)
