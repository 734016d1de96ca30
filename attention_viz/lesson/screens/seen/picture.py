"""Pictures: patches look at each other as words do."""

from attention_viz.lesson.asking import Ask
from attention_viz.lesson.lesson import Control, Lesson, Shown
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.seen.looked import MODEL, PICTURES, PictureRun
from attention_viz.lesson.words import signed
from attention_viz.views import overlay

__all__ = ["LESSON"]

_QUARTERS = ("upper left", "upper right", "lower left", "lower right")


def _looked(scene: Scene) -> PictureRun:
    return PictureRun(scene, _CONTROL.value(scene))


def _ask(scene: Scene) -> Ask:
    looked = _looked(scene)
    layer, head = looked.place
    values = (*looked.boxes(2, 2).ravel().tolist(), looked.itself)
    options = (*(f"the {quarter}" for quarter in _QUARTERS), "itself")
    most = max(range(len(values)), key=values.__getitem__)
    return Ask(
        f"A class token reads {PICTURES[looked.sample]}, cut into patches. Where does it look?",
        f"Most goes to {options[most]}: {signed(values[most])}",
        f"{MODEL}, layer {layer}, head {head}: the class token’s row, added up over quarters of the picture",
        options,
        values,
        shares=True,
        seen=looked.shown([(row, column) for row in range(2) for column in range(2)], 2),
    )


def _show(scene: Scene) -> Shown:
    looked = _looked(scene)
    layer, head = looked.place
    down, across = looked.weights.shape
    picture = looked.trace.seen.picture
    assert picture is not None, "the sample is a picture"
    facts = {
        "shows": PICTURES[looked.sample],
        "high": str(picture.shape[0]),
        "wide": str(picture.shape[1]),
        "side": str(picture.shape[0] // down),
        "patches": str(down * across),
        "positions": str(len(looked.tokens)),
        "layer": str(layer),
        "head": str(head),
        "count": str(int(looked.region.sum())),
        "part": signed(looked.part),
        "share": signed(looked.share),
        "times": f"{looked.share / looked.part:.1f}",
    }
    says = (
        f"The picture with the class token’s weights of layer {layer}, head {head} over it: {facts['count']} patches "
        f"that lie together have {facts['share']}."
    )
    return Shown(facts, overlay(looked.trace, layer, head, 0, theme=scene.theme), says)


_CONTROL = Control("Picture", lambda scene: PICTURES, lambda scene: next(iter(PICTURES)))

LESSON = Lesson(
    "A picture is words, too",
    5,
    _ask,
    _show,
    _CONTROL,
    "region",
    covers=("pictures: patches as tokens, the class token, what a head looks at",),
    sample=_CONTROL.value,
)
