"""The weighted sum: an output is a mixture of the values, and stays among them."""

from attention_viz.analysis.convex_hull import beyond, corners
from attention_viz.lesson.asking import Ask, short
from attention_viz.lesson.lesson import Control, Lesson, Shown
from attention_viz.lesson.own_head import own_head
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.words import counted, in_words, offered, signed, telling
from attention_viz.views import hull

__all__ = ["LESSON"]

# Values of two numbers can be drawn on paper.
_D_V = 2
_NAMED = 3
# Nearer to an edge than this, single precision doesn't tell on which side.
_EDGE = 1e-5


def _point(numbers: list[float]) -> str:
    return f"({', '.join(signed(number, 2) for number in numbers)})"


def _where(outside: float) -> str:
    if outside < -_EDGE:
        return "inside"
    return "on the edge of" if outside <= _EDGE else "outside"


def _ask(scene: Scene) -> Ask:
    query = int(_CONTROL.value(scene))
    call = own_head(scene, d_v=_D_V).attention(0).head(0)
    values, output = (tensor.double().numpy() for tensor in (call.value, call.output[query]))
    places = ("inside", "on the edge of", "outside")
    where = places.index(_where(beyond(values, output)))
    word = short(scene.words[query])
    return Ask(
        f"Where does the output of {word} lie?",
        f"The output of {word} lies {places[where]} the values",
        "our own small head, weights from a seed",
        tuple(f"{place} the values" for place in places),
        tuple(float(at == where) for at in range(len(places))),
        shown=tuple("here" if at == where else "not here" for at in range(len(places))),
    )


def _show(scene: Scene) -> Shown:
    query, words = int(_CONTROL.value(scene)), scene.words
    trace = own_head(scene, d_v=_D_V)
    call, row = trace.attention(0).head(0), trace.weights(0, 0)[query]
    values, output = (tensor.double().numpy() for tensor in (call.value, call.output[query]))
    ranked = row.argsort(descending=True, stable=True).tolist()
    terms = [f"{signed(float(row[key]))} · {_point(values[key].tolist())}" for key in ranked[:_NAMED]]
    facts = {
        "word": in_words(words[query]),
        "best": in_words(words[ranked[0]]),
        "weight": signed(float(row[ranked[0]])),
        "sum": " + ".join(terms) + (" + …" if len(ranked) > _NAMED else ""),
        "output": _point(output.tolist()),
        "d_v": str(_D_V),
        "corners": counted(len(corners(values)), "corner"),
        "where": _where(beyond(values, output)),
        "total": signed(float(row.sum())),
    }
    says = (
        f"The output of “{facts['word']}”, {facts['output']}, lies {facts['where']} the hull of the values; "
        f"“{facts['best']}” pulls most, with {facts['weight']}."
    )
    return Shown(facts, hull(trace, 0, 0, query, theme=scene.theme), says)


_CONTROL = Control("Word that looks", lambda scene: offered(scene.words), lambda scene: telling(scene.words))

LESSON = Lesson(
    "The weighted sum",
    6,
    _ask,
    _show,
    _CONTROL,
    "output",
    deeper=("steps",),
    covers=("output: one row opened as weight × value, inside the convex hull of the values",),
)
