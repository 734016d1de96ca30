"""Audio: heads give words their times."""

from attention_viz.lesson.lesson import Ask, Control, Lesson, Shown, short
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.seen import SAMPLE, SOUND_MODEL, SoundRun
from attention_viz.lesson.words import in_words, texts
from attention_viz.trace.spelling import weight_text
from attention_viz.views import spoken
from attention_viz.views.style.theme import palette


def _options(scene: Scene) -> dict[str, str]:
    return {str(at): in_words(word) for at, word in enumerate(SoundRun(scene).words)}


def _longest(scene: Scene) -> str:
    words = SoundRun(scene).words
    return str(max(range(len(words)), key=lambda at: len(words[at])))


def _word(scene: Scene) -> int:
    return int(_CONTROL_SOUND.value(scene))


def _ask_sound(scene: Scene) -> Ask:
    heard, word = SoundRun(scene), _word(scene)
    layer, head = heard.place
    numbers = heard.during(word).tolist()
    options = (*map(in_words, heard.words), "the rest")
    values = (*numbers, max(0.0, 1 - sum(numbers)))
    best = max(range(len(values)), key=values.__getitem__)
    said = in_words(heard.words[word])
    most = f"the time of {short(options[best])}" if best < len(numbers) else "the rest"
    return Ask(
        f"A model transcribes speech. Before it writes “{said}”, which word’s time does it look at?",
        f"Before it writes “{said}”, it looks at {most}: {weight_text(values[best])}",
        f"{SOUND_MODEL}, cross-attention, layer {layer}, head {head}: the row before “{said}” is written",
        options,
        values,
    )


def _show_sound(scene: Scene) -> Shown:
    heard, word = SoundRun(scene), _word(scene)
    layer, head = heard.place
    start, end = heard.times[word]
    frames = int((heard.begins < heard.seconds).sum())
    facts = {
        **texts(frames=len(heard.begins), inside=frames, words=len(heard.words), layer=layer, head=head),
        "word": in_words(heard.words[word]),
        "share": weight_text(float(heard.during(word)[word])),
        "seconds": f"{heard.seconds:.2f}",
        "rate": f"{1 / (heard.begins[1] - heard.begins[0]):.0f}",
        "start": f"{start:.2f}",
        "end": f"{end:.2f}",
    }
    says = f"One row per word, time from left to right: “{facts['word']}” gets {facts['start']} to {facts['end']} s."
    figure = spoken(heard.trace, layer, head, theme=scene.theme)
    box = {"x0": start, "x1": end, "y0": word - 0.5, "y1": word + 0.5}
    figure.add_shape(type="rect", line={"color": palette(scene.theme).query, "width": 2}, **box)
    return Shown(facts, figure, says)


_CONTROL_SOUND = Control("Word", _options, _longest, words=True)

LESSONS = {
    "sound": Lesson(
        "Who said what when", 5, _ask_sound, _show_sound, _CONTROL_SOUND, "stretch", sample=lambda scene: SAMPLE
    ),
}
