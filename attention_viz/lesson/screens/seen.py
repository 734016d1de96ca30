"""Audio: heads give words their times."""

import itertools

from attention_viz.lesson.lesson import Ask, Control, Lesson, Shown
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.seen import SAMPLE, SOUND_MODEL, SoundRun
from attention_viz.lesson.translation import translate
from attention_viz.lesson.words import in_words, texts
from attention_viz.trace.spelling import weight_text
from attention_viz.views import spoken
from attention_viz.views.style.theme import palette

# Parts of the recording, equally long, to guess on.
_PARTS = 6


def _options(scene: Scene) -> dict[str, str]:
    return {str(at): in_words(word) for at, word in enumerate(SoundRun(scene).words)}


def _longest(scene: Scene) -> str:
    """Return the last of the longest words, by its letters."""
    words = SoundRun(scene).words
    return str(max(range(len(words)), key=lambda at: (sum(map(str.isalpha, words[at])), at)))


def _word(scene: Scene) -> int:
    return int(_CONTROL_SOUND.value(scene))


def _ask_sound(scene: Scene) -> Ask:
    heard, word = SoundRun(scene), _word(scene)
    layer, head = heard.place
    edges = [heard.seconds * at / _PARTS for at in range(_PARTS + 1)]
    parts = heard.within(word, edges)
    values = (*parts, max(0.0, 1 - sum(parts)))
    options = (
        *(
            translate("{start} to {end} s", start=f"{start:.1f}", end=f"{end:.1f}")
            for start, end in itertools.pairwise(edges)
        ),
        translate("after the recording"),
    )
    best, said = max(range(len(values)), key=values.__getitem__), in_words(heard.words[word])
    return Ask(
        translate(
            "If the voice speaks evenly, which part does the model look at before it writes “{word}”?", word=said
        ),
        translate(
            "Before it writes “{word}”, it looks most at {part}: {weight}",
            word=said,
            part=options[best],
            weight=weight_text(values[best]),
        ),
        translate(
            "{model}, cross-attention, layer {layer}, head {head}: weights of the row before “{word}” is written",
            model=SOUND_MODEL,
            layer=layer,
            head=head,
            word=said,
        ),
        options,
        values,
        shown=tuple(map(weight_text, values)),
        premise=translate(
            "“{sentence}” takes {seconds} s to say. “{word}” is word {place} of {count}.",
            sentence=" ".join(map(in_words, heard.words)),
            seconds=f"{heard.seconds:.2f}",
            word=said,
            place=word + 1,
            count=len(heard.words),
        ),
    )


def _show_sound(scene: Scene) -> Shown:
    heard, word = SoundRun(scene), _word(scene)
    layer, head = heard.place
    start, end = heard.times[word]
    facts = {
        **texts(frames=len(heard.begins), inside=int((heard.begins < heard.seconds).sum())),
        **texts(words=len(heard.words), layer=layer, head=head),
        "word": in_words(heard.words[word]),
        "share": weight_text(float(heard.during(word)[word])),
        "rest": weight_text(float(heard.rows[word][heard.begins >= heard.seconds].sum())),
        "seconds": f"{heard.seconds:.2f}",
        "rate": f"{1 / (heard.begins[1] - heard.begins[0]):.0f}",
        "start": f"{start:.2f}",
        "end": f"{end:.2f}",
    }
    says = translate(
        "One row per word, time from left to right: “{word}” gets {start} to {end} s.",
        **{name: facts[name] for name in ("word", "start", "end")},
    )
    figure = spoken(heard.trace, layer, head, theme=scene.theme)
    box = {"x0": start, "x1": end, "y0": word - 0.5, "y1": word + 0.5}
    figure.add_shape(type="rect", line={"color": palette(scene.theme).query, "width": 2}, **box)
    return Shown(facts, figure, says)


_CONTROL_SOUND = Control("Word", _options, _longest, words=True)

LESSONS = {
    "sound": Lesson(
        "Who said what when",
        5,
        _ask_sound,
        _show_sound,
        _CONTROL_SOUND,
        "stretch",
        sample=lambda scene: SAMPLE,
        idea=(
            "A model transcribes speech: it hears a recording as a row of short frames and writes word by word. Before "
            "each word, cross-attention lets the text written so far look at the frames."
        ),
    ),
}
