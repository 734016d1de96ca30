"""Images: patches attend like words."""

from dataclasses import replace

import numpy as np

from attention_viz.lesson.lesson import Ask, Control, Lesson, Shown
from attention_viz.lesson.openings.images import ImagePlaces
from attention_viz.lesson.openings.opening import Reply
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.seen import PICTURE_MODEL, PICTURES, PictureRun
from attention_viz.lesson.translation import translate
from attention_viz.lesson.words import labelled, texts, weight_texts
from attention_viz.trace.spelling import weight_text
from attention_viz.views import overlay

# Places in a row and in a column, each of several patches.
_PLACES = 8
# Places with at least this part of the largest weight are nearly right.
_NEARLY = 0.5


def _looked(scene: Scene) -> PictureRun:
    return PictureRun(scene, _CONTROL.value(scene))


def _ask(scene: Scene) -> Ask:
    looked = _looked(scene)
    layer, head = looked.place
    values = tuple(map(float, looked.boxes(_PLACES, _PLACES).ravel()))
    spots = [(row, column) for row in range(_PLACES) for column in range(_PLACES)]
    names = tuple(translate("row {row}, column {column}", row=row + 1, column=column + 1) for row, column in spots)
    most = int(np.argmax(values))
    ask = Ask(
        translate(
            "Click where you think [CLS] looks most, in an image of {shows}", shows=translate(PICTURES[looked.sample])
        ),
        translate("[CLS] looks most at {place}: {weight}", place=names[most], weight=weight_text(values[most])),
        translate(
            "{model}, layer {layer}, head {head}: weights of [CLS], added up over {count} places",
            **texts(model=PICTURE_MODEL, layer=layer, head=head, count=len(names)),
        ),
        names,
        values,
        shown=tuple(map(weight_text, values)),
        whole=1.0,
    )
    shown = looked.shown(spots, _PLACES)
    if shown is None:
        return ask
    opening = ImagePlaces(shown, names, _PLACES, _replies(looked, names, values))
    return replace(ask, seen=replace(shown, boxes=()), opening=opening)


def _replies(looked: PictureRun, names: tuple[str, ...], values: tuple[float, ...]) -> tuple[Reply, ...]:
    most = max(values)
    facts = {"best": names[values.index(most)], "most": weight_text(most), "share": weight_text(looked.share)}
    facts |= {"count": str(int(looked.region.sum()))}
    found = list[Reply]()
    for name, value in zip(names, values, strict=True):
        own = {"place": name, "weight": weight_text(value), "rank": str(1 + sum(one > value for one in values))}
        own |= {"of": str(len(values))}
        if value == most:
            words = translate("Right: {place} has most, {weight} of all that [CLS] looks at.", **facts, **own)
            found.append(Reply("right", words))
        elif value >= _NEARLY * most:
            words = translate(
                "Nearly: your place has {weight}, number {rank} of {of}. {best} has {most}.", **facts, **own
            )
            found.append(Reply("near", words))
        else:
            words = translate(
                "Not quite: your place has {weight}, number {rank} of {of}. {count} patches that touch have {share} "
                "together.",
                **facts,
                **own,
            )
            found.append(Reply("wrong", words))
    return tuple(found)


def _show(scene: Scene) -> Shown:
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


_CONTROL = Control("Image", lambda scene: labelled(PICTURES), lambda scene: next(iter(PICTURES)))

LESSONS = {
    "picture": Lesson(
        "A picture is words, too",
        5,
        _ask,
        _show,
        _CONTROL,
        "region",
        sample=_CONTROL.value,
        idea=(
            "A model that reads images cuts each into squares, its patches, and treats them like words. One more "
            "position, [CLS], stands for the whole image."
        ),
    ),
}
