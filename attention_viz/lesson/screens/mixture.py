"""The weighted sum: outputs stay among the values."""

from attention_viz.analysis.convex_hull import beyond, corners
from attention_viz.lesson.asking import Ask, CatalogueHead, short
from attention_viz.lesson.lesson import Control, Lesson, Shown
from attention_viz.lesson.links import HeadLink, opening_position, positioned_words, pressed_positions, strongest_link
from attention_viz.lesson.plane import in_a_plane
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.words import counted, in_words, offered, signed
from attention_viz.views import hull

__all__ = ["LESSON"]

_NAMED = 3
# Nearer to an edge than this, single precision doesn't tell on which side.
_EDGE = 1e-5


def _point(numbers: list[float]) -> str:
    return f"({', '.join(signed(number, 2) for number in numbers)})"


def _where(outside: float) -> str:
    if outside < -_EDGE:
        return "inside"
    return "on the edge of" if outside <= _EDGE else "outside"


def _link(scene: Scene) -> HeadLink:
    return strongest_link(scene.trained(), int(_CONTROL.value(scene)))


def _ask(scene: Scene) -> Ask:
    """Ask for the largest part along the output; parts sum to 1."""
    trace, link = scene.trained(), _link(scene)
    call, labels = trace.attention(link.layer).head(link.head), trace.query_tokens().written
    output = call.output[link.query].double()
    parts = (call.weights[link.query].double() * (call.value.double() @ output) / output.square().sum()).tolist()
    best = max(range(len(parts)), key=parts.__getitem__)
    word = short(labels[link.query])
    return Ask(
        f"Whose value makes most of the output of {word}?",
        f"{short(labels[best])} makes {signed(parts[best], 2)} of the output of {word}",
        f"{scene.called}, layer {link.layer}, head {link.head}: weight × value along the output; all together 1",
        tuple(offered(labels).values()),
        tuple(parts),
        shown=tuple(signed(one, 2) for one in parts),
        pressed=pressed_positions(trace),
        query=link.query,
        place=CatalogueHead.of(trace, link.layer, link.head, (link.query, best)),
    )


def _show(scene: Scene) -> Shown:
    trace, link = scene.trained(), _link(scene)
    labels, query = trace.query_tokens().written, link.query
    flat, share = in_a_plane(trace, link.layer, link.head)
    call, row = flat.attention(0).head(0), trace.weights(link.layer, link.head)[query]
    values, output = (tensor.double().cpu().numpy() for tensor in (call.value, call.output[query]))
    ranked = row.argsort(descending=True, stable=True).tolist()
    terms = [f"{signed(float(row[key]))} · {_point(values[key].tolist())}" for key in ranked[:_NAMED]]
    facts = {
        "model": scene.called,
        "layer": str(link.layer),
        "head": str(link.head),
        "word": in_words(labels[query]),
        "best": in_words(labels[ranked[0]]),
        "weight": signed(float(row[ranked[0]])),
        "sum": " + ".join(terms) + (" + …" if len(ranked) > _NAMED else ""),
        "output": _point(output.tolist()),
        "d_v": str(trace.attention(link.layer).value.shape[-1]),
        "share": f"{share:.0%}",
        "corners": counted(len(corners(values)), "corner"),
        "where": _where(beyond(values, output)),
        "total": signed(float(row.sum())),
    }
    says = (
        f"The output of “{facts['word']}”, {facts['output']}, lies {facts['where']} the hull of the values; "
        f"“{facts['best']}” pulls most, with {facts['weight']}."
    )
    return Shown(facts, hull(flat, 0, 0, query, theme=scene.theme), says)


_CONTROL = Control("Word that looks", positioned_words, lambda scene: str(opening_position(scene.trained())))

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
