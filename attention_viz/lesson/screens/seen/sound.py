"""Sound: words get their times from where heads look."""

from attention_viz.lesson.asking import Ask, short
from attention_viz.lesson.lesson import Control, Lesson, Shown
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.seen.heard import MODEL, SAMPLE, SoundRun
from attention_viz.lesson.words import in_words, signed
from attention_viz.views import spoken
from attention_viz.views.style.theme import palette

__all__ = ["LESSON"]


def _options(scene: Scene) -> dict[str, str]:
    return {str(at): in_words(word) for at, word in enumerate(SoundRun(scene).words)}


def _longest(scene: Scene) -> str:
    words = SoundRun(scene).words
    return str(max(range(len(words)), key=lambda at: len(words[at])))


def _word(scene: Scene) -> int:
    return int(_CONTROL.value(scene))


def _ask(scene: Scene) -> Ask:
    heard, word = SoundRun(scene), _word(scene)
    layer, head = heard.place
    numbers = heard.during(word).tolist()
    options = (*map(in_words, heard.words), "the rest")
    values = (*numbers, max(0.0, 1 - sum(numbers)))
    best = max(range(len(values)), key=values.__getitem__)
    said = in_words(heard.words[word])
    most = f"the time of {short(options[best])}" if best < len(numbers) else "the rest"
    return Ask(
        f"A model writes down what it hears. Before it writes “{said}”, to which word’s time does it listen?",
        f"Before it writes “{said}” it listens to {most}: {signed(values[best])}",
        f"{MODEL}, cross-attention, layer {layer}, head {head}: the row that is about to write “{said}”",
        options,
        values,
    )


def _show(scene: Scene) -> Shown:
    heard, word = SoundRun(scene), _word(scene)
    layer, head = heard.place
    start, end = heard.times[word]
    frames = int((heard.begins < heard.seconds).sum())
    facts = {
        "seconds": f"{heard.seconds:.2f}",
        "frames": str(len(heard.begins)),
        "inside": str(frames),
        "rate": f"{1 / (heard.begins[1] - heard.begins[0]):.0f}",
        "words": str(len(heard.words)),
        "word": in_words(heard.words[word]),
        "layer": str(layer),
        "head": str(head),
        "start": f"{start:.2f}",
        "end": f"{end:.2f}",
        "share": signed(float(heard.during(word)[word])),
    }
    says = f"Words down, time across: “{facts['word']}” listens to {facts['start']} to {facts['end']} s."
    figure = spoken(heard.trace, layer, head, theme=scene.theme)
    box = {"x0": start, "x1": end, "y0": word - 0.5, "y1": word + 0.5}
    figure.add_shape(type="rect", line={"color": palette(scene.theme).query, "width": 2}, **box)
    return Shown(facts, figure, says)


_CONTROL = Control("Word", _options, _longest, words=True)

LESSON = Lesson(
    "Who said what when",
    5,
    _ask,
    _show,
    _CONTROL,
    "stretch",
    covers=("sound: frames as tokens, cross-attention from words to time, word times by time warping",),
    sample=lambda scene: SAMPLE,
)
