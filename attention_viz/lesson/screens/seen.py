"""Images and audio: patches attend like words; heads give words their times."""

import itertools

from attention_viz.lesson.lesson import Ask, Control, Lesson, Shown
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.seen import PICTURE_MODEL, PICTURES, SAMPLE, SOUND_MODEL, PictureRun, SoundRun
from attention_viz.lesson.translation import translate
from attention_viz.lesson.words import in_words, texts, weight_texts
from attention_viz.trace.spelling import weight_text
from attention_viz.views import overlay, spoken
from attention_viz.views.style.theme import palette

_QUARTERS = ("upper left", "upper right", "lower left", "lower right")


def _looked(scene: Scene) -> PictureRun:
    return PictureRun(scene, _CONTROL_PICTURE.value(scene))


def _ask_picture(scene: Scene) -> Ask:
    looked = _looked(scene)
    layer, head = looked.place
    values = (*looked.boxes(2, 2).ravel().tolist(), looked.itself)
    options = (*(f"the {quarter}" for quarter in _QUARTERS), "itself")
    most = max(range(len(values)), key=values.__getitem__)
    return Ask(
        f"In an image of {PICTURES[looked.sample]}, one token stands for the whole image. Where does it look?",
        f"Most goes to {options[most]}: {weight_text(values[most])}",
        f"{PICTURE_MODEL}, layer {layer}, head {head}: that class token’s weights, added up over quarters of the image",
        options,
        values,
        shares=True,
        seen=looked.shown([(row, column) for row in range(2) for column in range(2)], 2),
    )


def _show_picture(scene: Scene) -> Shown:
    looked = _looked(scene)
    layer, head = looked.place
    down, across = looked.weights.shape
    picture = looked.trace.seen.picture
    assert picture is not None, "the sample is a picture"
    facts = {
        **texts(high=picture.shape[0], wide=picture.shape[1], side=picture.shape[0] // down, patches=down * across),
        **texts(positions=len(looked.tokens), layer=layer, head=head, count=int(looked.region.sum())),
        **weight_texts(part=looked.part, share=looked.share),
        "shows": PICTURES[looked.sample],
        "times": f"{looked.share / looked.part:.1f}",
    }
    says = (
        f"The image with the class token’s weights in layer {layer}, head {head}: {facts['count']} connected patches "
        f"have {facts['share']}."
    )
    return Shown(facts, overlay(looked.trace, layer, head, 0, theme=scene.theme), says)


_CONTROL_PICTURE = Control("Image", lambda scene: PICTURES, lambda scene: next(iter(PICTURES)))


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
    "picture": Lesson(
        "A picture is words, too",
        5,
        _ask_picture,
        _show_picture,
        _CONTROL_PICTURE,
        "region",
        sample=_CONTROL_PICTURE.value,
    ),
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
