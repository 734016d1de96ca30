"""Around attention: one word's vector through all layers, to the next word."""

from attention_viz.circuits.layers.model_flow import TEMPERATURES, ModelFlow, model_flow
from attention_viz.circuits.next_word import names_of
from attention_viz.lesson.language import Twice
from attention_viz.lesson.lesson import Ask, Control, Lesson, Shown, short
from attention_viz.lesson.links import word_positions
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.translation import grouped, translate
from attention_viz.lesson.words import in_words, offered, signed, weight_texts
from attention_viz.trace.once import once_for_each
from attention_viz.trace.trace import Trace
from attention_viz.views import residual_stream

_ATTENTION = r"x' = x + \text{attention}(\text{norm}(x))"
_MLP = r"x'' = x' + \text{MLP}(\text{norm}(x'))"


def _trace(scene: Scene) -> Trace:
    twice = Twice(scene)
    # The toy continues only what it has read before.
    return scene.run(twice.model, twice.typed if twice.real else twice.text)


@once_for_each
def _flows(_trace: Trace) -> dict[int, ModelFlow]:
    return {}


def _flow(scene: Scene) -> ModelFlow:
    """Return the pressed word's flow; a trace keeps its last one."""
    trace, position = _trace(scene), _position(scene)
    known = _flows(trace)
    found = known.get(position)
    if found is None:
        found = model_flow(trace, position)
        known.clear()
        known[position] = found
    return found


def _positions(trace: Trace) -> list[int]:
    """Return the words' positions, and the last token's, which the model continues."""
    return sorted({*word_positions(trace), len(trace.query_tokens()) - 1})


def _position(scene: Scene) -> int:
    return _positions(_trace(scene))[int(_words(scene)[1])]


def _name(scene: Scene) -> str:
    return _trace(scene).query_tokens().names[_position(scene)]


def _words(scene: Scene) -> tuple[dict[str, str], str]:
    trace = _trace(scene)
    positions, labels = _positions(trace), trace.query_tokens().names
    options = offered([labels[at] for at in positions])
    pressed = scene.word is not None and scene.word < len(positions)
    return options, str(scene.word if pressed else len(positions) - 1)


def _options(scene: Scene) -> dict[str, str]:
    return {str(stop): str(stop) for stop in range(len(_flow(scene).layers) + 1)}


_CONTROL = Control("Layers", _options, lambda scene: next(reversed(_options(scene))), ordered=True)


def _ask(scene: Scene) -> Ask:
    """Ask for the first vector's part of the last one, whose length excludes the wrong answers."""
    found, model = _flow(scene), Twice(scene).model
    word, layers = short(_name(scene)), len(found.layers)
    outputs = [one for pair in zip(found.attention, found.mlp, strict=True) for one in pair]
    averaged = found.streams[0]
    for one in outputs:
        averaged = (averaged + one) / 2
    end = float(found.streams[layers].norm())
    lengths = [float(outputs[-1].norm()), float(averaged.norm()), end]
    return Ask(
        translate("What is left of the first vector of {word} at the end?", word=word),
        translate("All of it: each output is added to the vector"),
        translate("{model}: the last vector’s length if it were replaced, averaged, or added to", model=model),
        (
            translate("nothing: it is replaced"),
            translate("little: it is averaged"),
            translate("all: outputs are added"),
        ),
        tuple(min(one, end) / max(one, end) for one in lengths),
        shown=tuple(translate("{length} long", length=signed(one, 2)) for one in lengths),
        whole=1.0,
        premise=translate(
            "{word} enters {model} as a vector {start} long. Then {layers} layers compute two outputs each for it; the "
            "longest is {longest} long. The last vector is {end} long.",
            word=word,
            model=model,
            layers=layers,
            start=_length(found, 0),
            longest=signed(max(float(one.norm()) for one in outputs), 2),
            end=_length(found, layers),
        ),
    )


def _show(scene: Scene) -> Shown:
    found, twice, stop = _flow(scene), Twice(scene), int(_CONTROL.value(scene))
    layers = len(found.layers)
    _, usual, hot = (found.chances(layers, temperature)[0] for temperature in TEMPERATURES)
    facts = {
        **weight_texts(likely=usual, even=hot),
        "model": twice.model,
        "note": twice.note,
        "word": in_words(_name(scene)),
        "layers": translate("{count} layers", count=layers),
        "start": _length(found, 0),
        "end": _length(found, layers),
        "vocabulary": grouped(found.vocabulary),
        "best": _next(found, layers),
        "hot": f"{TEMPERATURES[-1]:g}",
        "stopped": _stopped(found, stop),
        "formula.attention": _ATTENTION,
        "formula.mlp": _MLP,
    }
    says = translate(
        "After {stop} of {layers} layers, the vector of “{word}” is {length} long, and “{next}” is likeliest to come "
        "next: {chance}.",
        stop=stop,
        layers=layers,
        word=facts["word"],
        length=_length(found, stop),
        next=_next(found, stop),
        chance=weight_texts(chance=found.chances(stop)[0])["chance"],
    )
    return Shown(facts, residual_stream(found, stop, theme=scene.theme), says)


def _stopped(found: ModelFlow, stop: int) -> str:
    """Return a sentence on the token that would come next at a stop; empty at the last one."""
    chance = weight_texts(chance=found.chances(stop)[0])["chance"]
    values = {"stop": stop, "word": _next(found, stop), "chance": chance}
    if stop == len(found.layers):
        return ""
    return translate("If only {stop} layers ran, “{word}” would be likeliest: {chance}.", **values)


def _next(found: ModelFlow, stop: int) -> str:
    """Return the likeliest token at a stop, as sentences have it."""
    return in_words(names_of([found.likeliest[stop][0]])[0])


def _length(found: ModelFlow, stop: int) -> str:
    return signed(float(found.streams[stop].norm()), 2)


LESSONS = {
    "around": Lesson(
        "Around attention",
        8,
        _ask,
        _show,
        _CONTROL,
        "residual",
        deeper=("steps", "why"),
        words=_words,
        idea="A layer computes two outputs for each word. Attention’s output comes from the words that it looks at. "
        "The MLP works on each word alone: it compares the word’s vector with many learned patterns, and outputs a "
        "learned vector for each match.",
    )
}
