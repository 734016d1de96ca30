"""Around attention: one word's vector through all layers; and the next word, from the last vector."""

import math
from dataclasses import dataclass

from attention_viz.circuits.layers.model_flow import TEMPERATURES, ModelFlow, model_flow
from attention_viz.circuits.next_word import names_of
from attention_viz.lesson.figures.next_tokens import next_tokens
from attention_viz.lesson.language import Twice
from attention_viz.lesson.lesson import Ask, Control, Lesson, Shown, short
from attention_viz.lesson.links import word_positions
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.translation import grouped, translate
from attention_viz.lesson.words import in_words, offered, signed, texts, weight_texts
from attention_viz.trace.once import once_for_each
from attention_viz.trace.trace import Trace
from attention_viz.views import residual_stream

_ATTENTION = r"x' = x + \text{attention}(\text{norm}(x))"
_MLP = r"x'' = x' + \text{MLP}(\text{norm}(x'))"
_SOFTMAX = r"p_i = \frac{e^{z_i / T}}{\sum_j e^{z_j / T}}"
# The question compares two tokens whose logits differ by about that: e to this power is easy to estimate.
_APART = 2.0
# From here on, two digits of "times as likely" are whole numbers; a logit's two decimals give no third one.
_MANY = 10


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


_CONTROL_AROUND = Control("Layers", _options, lambda scene: next(reversed(_options(scene))), ordered=True)


def _ask_around(scene: Scene) -> Ask:
    """Ask for the first vector's part of the last one, whose length excludes the wrong answers."""
    found, model = _flow(scene), Twice(scene).model
    word, layers = short(_name(scene)), len(found.layers)
    outputs = [one for pair in zip(found.attention, found.mlp, strict=True) for one in pair]
    averaged = found.streams[0]
    for one in outputs:
        averaged = (averaged + one) / 2
    end = float(found.streams[layers].norm())
    lengths = [float(outputs[-1].norm()), float(averaged.norm()), end]
    replaced, mean, last = (signed(one, 2) for one in lengths)
    return Ask(
        translate("What is left of the first vector of {word} at the end?", word=word),
        translate("All of it: each output is added to the vector"),
        translate("{model}: the last vector’s length if it were replaced, averaged, or added to", model=model),
        (
            translate("nothing: replaced"),
            translate("little: averaged"),
            translate("all: added to"),
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
        reasons=(
            translate(
                "If each output replaced the vector, the last one would be {length} long, not {end}.",
                length=replaced,
                end=last,
            ),
            translate(
                "If each output were averaged with the vector, the last one would be {length} long, not {end}.",
                length=mean,
                end=last,
            ),
            "",
        ),
    )


def _show_around(scene: Scene) -> Shown:
    found, twice, stop = _flow(scene), Twice(scene), int(_CONTROL_AROUND.value(scene))
    layers = len(found.layers)
    facts = {
        "model": twice.model,
        "note": twice.note,
        "word": in_words(_name(scene)),
        "layers": translate("{count} layers", count=layers),
        "start": _length(found, 0),
        "end": _length(found, layers),
        "stopped": _stopped(found, stop),
        "formula.attention": _ATTENTION,
        "formula.mlp": _MLP,
    }
    says = translate(
        "After {stop} of {layers} layers, the vector of “{word}” is {length} long.",
        stop=stop,
        layers=layers,
        word=facts["word"],
        length=_length(found, stop),
    )
    return Shown(facts, residual_stream(found, stop, predictions=False, theme=scene.theme), says)


def _stopped(found: ModelFlow, stop: int) -> str:
    """Return a sentence on the last layer that runs."""
    if not stop:
        return translate("If no layer ran, the vector would stay {length} long.", length=_length(found, 0))
    added = {"attention": found.attention[stop - 1], "mlp": found.mlp[stop - 1]}
    return translate(
        "Layer {layer} adds {attention} by attention and {mlp} by its MLP, and the sum is {length} long.",
        layer=found.layers[stop - 1],
        length=_length(found, stop),
        **{name: signed(float(one.norm()), 2) for name, one in added.items()},
    )


def _length(found: ModelFlow, stop: int) -> str:
    return signed(float(found.streams[stop].norm()), 2)


_CONTROL_NEXT = Control(
    "Temperature",
    lambda scene: {f"{one:g}": f"{one:g}" for one in TEMPERATURES},
    lambda scene: "1",
    ordered=True,
)


@dataclass(frozen=True)
class _Rivals:
    """The likeliest next token and another one: their names, for a sentence, and their logits."""

    first: str
    second: str
    high: float
    low: float

    @property
    def gap(self) -> float:
        return self.high - self.low


def _rivals(found: ModelFlow) -> _Rivals:
    """Return the likeliest token and the likely one whose logit is nearest to `_APART` below."""
    logits: list[float] = found.logits[-1].double().tolist()
    other = min(range(1, len(logits)), key=lambda at: abs(logits[0] - logits[at] - _APART))
    first, second = (in_words(one) for one in names_of([found.likeliest[-1][at] for at in (0, other)]))
    return _Rivals(first, second, logits[0], logits[other])


def _ask_next(scene: Scene) -> Ask:
    """Ask for the ratio of two probabilities, whose logits are known."""
    found = _rivals(_flow(scene))
    words = {"first": short(found.first), "second": short(found.second)}
    difference = signed(found.gap, 2)
    right = _times(math.exp(found.gap))
    reasons = {
        _times(found.gap): translate(
            "That is the difference of the logits; the softmax raises e to this power.",
        ),
        _times(math.e * found.gap): translate("That is e times the difference, not e to the power of it."),
    }
    if found.low > 0:
        reasons[_times(found.high / found.low)] = translate(
            "That divides the logits themselves; the softmax divides powers of e."
        )
    reasons[right] = ""
    options = sorted(reasons, key=_read)
    return Ask(
        translate("How many times as likely as {second} is {first} to come next?", **words),
        translate("{times} times: e to the power of {difference}", times=right, difference=difference),
        translate("{model}: its logits after {word}", model=Twice(scene).model, word=short(_name(scene))),
        tuple(translate("about {times} times", times=one) for one in options),
        tuple(float(one == right) for one in options),
        shown=tuple(f"e^{difference}" if one == right else "" for one in options),
        premise=translate(
            "After {word}, {first} has the logit {high}, and {second} has {low}.",
            **words,
            word=short(_name(scene)),
            high=signed(found.high, 2),
            low=signed(found.low, 2),
        ),
        reasons=tuple(reasons[one] for one in options),
    )


def _times(number: float) -> str:
    return grouped(float(f"{number:.2g}"), ",.0f") if number >= _MANY else f"{number:.1f}"


def _read(times: str) -> float:
    return float("".join(one for one in times if one.isdigit() or one == "."))


def _show_next(scene: Scene) -> Shown:
    found, twice, chosen = _flow(scene), Twice(scene), _CONTROL_NEXT.value(scene)
    rivals, usual, now = _rivals(found), found.chances(-1), found.chances(-1, float(chosen))
    best, count = rivals.first, len(now)
    facts = {
        **texts(model=twice.model, note=twice.note, best=best, other=rivals.second, temperature=chosen),
        **texts(word=in_words(_name(scene)), vocabulary=grouped(found.vocabulary), count=count),
        **{"high": signed(rivals.high, 2), "low": signed(rivals.low, 2), "difference": signed(rivals.gap, 2)},
        **weight_texts(likely=usual[0], chance=now[0], together=sum(now), rest=max(0.0, 1 - sum(now))),
        "times": _times(math.exp(rivals.gap)),
        "ratio": _times(math.exp(rivals.gap / float(chosen))),
        "formula.next": _SOFTMAX,
    }
    says = translate(
        "At T = {temperature}, “{best}” comes next with a probability of {chance}; the {count} likeliest tokens have "
        "{together} together.",
        **{name: facts[name] for name in ("temperature", "best", "chance", "count", "together")},
    )
    return Shown(facts, next_tokens(found, float(chosen), scene.theme), says)


LESSONS = {
    "around": Lesson(
        "Around attention",
        7,
        _ask_around,
        _show_around,
        _CONTROL_AROUND,
        "residual",
        deeper=("steps", "why"),
        words=_words,
        idea="A layer computes two outputs for each word. Attention’s comes from the words that it looks at. That of "
        "the MLP (multilayer perceptron) comes from the word alone: it compares the word’s vector with many learned "
        "patterns, and outputs a learned vector for each match.",
    ),
    "next": Lesson(
        "The next word",
        7,
        _ask_next,
        _show_next,
        _CONTROL_NEXT,
        "logits",
        deeper=("", "why"),
        words=_words,
        idea="From a word’s last vector, a model computes a number for each token that could come next, its logit. A "
        "softmax makes probabilities of all logits: it raises e (about 2.72) to the power of each, and divides by the "
        "sum of all.",
    ),
}
