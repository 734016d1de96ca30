"""Images and audio: patches attend like words; heads give words their times."""

import itertools
from collections.abc import Sequence
from dataclasses import replace

from attention_viz.lesson.lesson import Ask, Control, Lesson, Shown
from attention_viz.lesson.openings.images import ImagePlaces
from attention_viz.lesson.openings.opening import Reply
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.seen import PICTURE_MODEL, PICTURES, SAMPLE, SOUND_MODEL, PictureRun, SoundRun
from attention_viz.lesson.translation import translate
from attention_viz.lesson.words import in_words, labelled, signed, texts, weight_texts
from attention_viz.trace.spelling import weight_text
from attention_viz.views import overlay, spoken
from attention_viz.views.style.theme import palette

# Places in a row and in a column, each of several patches.
_PLACES = 8
# Places with at least so many times an even look's weight are right, and nearly right.
_RIGHT, _NEARLY = 2, 1


def _looked(scene: Scene) -> PictureRun:
    return PictureRun(scene, _CONTROL_PICTURE.value(scene))


def _ask_picture(scene: Scene) -> Ask:
    looked = _looked(scene)
    layer, head = looked.place
    values = tuple(map(float, looked.boxes(_PLACES, _PLACES).ravel()))
    spots = [(row, column) for row in range(_PLACES) for column in range(_PLACES)]
    names = tuple(translate("row {row}, column {column}", row=row + 1, column=column + 1) for row, column in spots)
    much = _much(values)
    ask = Ask(
        translate(
            "Click a place that [CLS] looks at much, in an image of {shows}", shows=translate(PICTURES[looked.sample])
        ),
        translate(
            "{count} of {of} places get {share} of all that [CLS] takes",
            **{"count": len(much), "of": len(values), "share": weight_text(sum(values[at] for at in much))},
        ),
        translate(
            "{model}, layer {layer}, head {head}: weights of [CLS] over {count} places",
            **texts(model=PICTURE_MODEL, layer=layer, head=head, count=len(names)),
        ),
        names,
        values,
        shown=tuple(map(weight_text, values)),
        whole=1.0,
        premise=translate(
            "Each of the {count} places is {side} × {side} of the model's patches. If [CLS] looked evenly, each would "
            "get {even}. A place is right with at least {times} times as much.",
            **{"count": len(values), "even": signed(_even(values)), "times": _RIGHT},
            side=looked.weights.shape[0] // _PLACES,
        ),
    )
    shown = looked.shown(spots, _PLACES)
    if shown is None:
        return ask
    opening = ImagePlaces(shown, names, _PLACES, _replies(names, values))
    return replace(ask, seen=replace(shown, boxes=()), opening=opening)


def _even(values: Sequence[float]) -> float:
    """Return each place's weight if all had the same."""
    return sum(values) / len(values)


def _much(values: Sequence[float]) -> list[int]:
    """Return the places that are right: far above an even look's weight, and the largest in any case."""
    least = min(_RIGHT * _even(values), max(values))
    return [at for at, value in enumerate(values) if value >= least]


def _replies(names: tuple[str, ...], values: tuple[float, ...]) -> tuple[Reply, ...]:
    most, much = max(values), _much(values)
    facts = {"best": names[values.index(most)], "most": weight_text(most)}
    facts |= {"count": str(len(much)), "share": weight_text(sum(values[at] for at in much))}
    found = list[Reply]()
    for at, (name, value) in enumerate(zip(names, values, strict=True)):
        own = {"place": name, "weight": weight_text(value), "rank": str(1 + sum(one > value for one in values))}
        own |= {"of": str(len(values))}
        if value == most:
            words = translate("Right: {place} has most, {weight} of all that [CLS] looks at.", **facts, **own)
            found.append(Reply("right", words))
        elif at in much:
            words = translate(
                "Right: your place has {weight}, number {rank} of {of}. {best} has {most}.", **facts, **own
            )
            found.append(Reply("right", words))
        elif value >= _NEARLY * _even(values):
            words = translate(
                "Nearly: your place has {weight}, number {rank} of {of}. {best} has {most}.", **facts, **own
            )
            found.append(Reply("near", words))
        else:
            words = translate(
                "Not quite: your place has {weight}, number {rank} of {of}. The {count} right places have {share} "
                "together.",
                **facts,
                **own,
            )
            found.append(Reply("wrong", words))
    return tuple(found)


def _show_picture(scene: Scene) -> Shown:
    looked = _looked(scene)
    layer, head = looked.place
    down, across = looked.weights.shape
    picture = looked.trace.seen.picture
    assert picture is not None, "the sample is a picture"
    facts = {
        **texts(high=picture.shape[0], wide=picture.shape[1], side=picture.shape[0] // down, patches=down * across),
        **texts(positions=len(looked.tokens), layer=layer, head=head, count=int(looked.region.sum())),
        **weight_texts(part=looked.part, share=looked.share, itself=looked.itself),
        "shows": translate(PICTURES[looked.sample]),
        "times": f"{looked.share / looked.part:.1f}",
    }
    says = translate(
        "The image with the weights of [CLS] in layer {layer}, head {head}: {count} patches that touch have {share}.",
        **texts(layer=layer, head=head, count=facts["count"], share=facts["share"]),
    )
    return Shown(facts, overlay(looked.trace, layer, head, 0, theme=scene.theme), says)


_CONTROL_PICTURE = Control("Image", lambda scene: labelled(PICTURES), lambda scene: next(iter(PICTURES)))


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
        idea=(
            "A model that reads images cuts each into squares, its patches, and treats them like words. One more "
            "position, [CLS], is to describe the whole image: what tells most about it?"
        ),
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
