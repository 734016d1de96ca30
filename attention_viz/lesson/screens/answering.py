"""A question about an image: where each of its words looks, and the answer with a place blocked."""

from dataclasses import replace

from attention_viz.inputs.media.shapes import COLUMNS, DRAWN
from attention_viz.lesson.answering import HEAD, PLACES, SHAPES_MODEL, PictureAnswer, PictureQuestion, questions
from attention_viz.lesson.figures.panels import Panel, panels
from attention_viz.lesson.lesson import Ask, Control, Lesson, Shown
from attention_viz.lesson.openings.images import ImagePlaces
from attention_viz.lesson.openings.opening import Reply
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.translation import translate
from attention_viz.lesson.words import signs, texts
from attention_viz.trace.spelling import weight_text

_SAMPLE, _ASKED, _WORDING = "shapes-four", "circle", "what colour is the {} ?"
# A place without a shape, and larger than the circle's.
_GROUND = "top centre"
_ARTICLE, _OPEN = "the", "none"
# Each option is a place, or the beginning token and the words.
_OPTIONS = (*PLACES, "text")


def _question() -> PictureQuestion:
    return next(one for one in questions(_SAMPLE, _WORDING) if one.shape.shape == _ASKED)


def _asked(scene: Scene) -> PictureAnswer:
    chosen = _CONTROL.value(scene)
    return PictureAnswer(scene, _question(), None if chosen == _OPEN else int(chosen))


def _position(scene: Scene, run: PictureAnswer) -> int:
    """Return the pressed word's position, else that of the last, which the answer follows."""
    words = list(run.words)
    return words[scene.word] if scene.word is not None and scene.word < len(words) else words[-1]


def _words(scene: Scene) -> tuple[dict[str, str], str]:
    run = PictureAnswer(scene, _question())
    words = list(run.words)
    return {str(words.index(at)): word for at, word in run.words.items()}, str(words.index(_position(scene, run)))


def _ask(scene: Scene) -> Ask:
    run, (layer, head) = _asked(scene), HEAD
    position = _position(scene, run)
    options = tuple(map(translate, _OPTIONS))
    word, values = run.words[position], run.on_places(position)
    most = max(range(len(values)), key=values.__getitem__)
    seen = run.shown(position)
    ask = Ask(
        translate(
            "“{text}” The answer comes after “{word}”. Where does “{word}” look?", text=run.question.text, word=word
        )
        if position == max(run.words)
        else translate("“{text}” Where does “{word}” look?", text=run.question.text, word=word),
        _finding(scene, run)
        if run.blocked is not None
        else translate(
            "“{word}” looks most at the {place}: {weight}",
            word=word,
            place=options[most],
            weight=weight_text(values[most]),
        ),
        translate(
            "the toy “{model}”, layer {layer}, head {head}: the weights of “{word}”, added up over nine places",
            model=SHAPES_MODEL,
            layer=layer,
            head=head,
            word=word,
        ),
        options,
        values,
        shown=tuple(map(weight_text, values)),
        pressed=(*(_OPEN if place == run.blocked else str(place) for place in range(len(PLACES))), ""),
        whole=1.0,
        seen=seen,
    )
    if seen is None:
        return ask
    replies = tuple(Reply("right" if at in ask.right else "wrong", ask.said(at)) for at in range(len(_OPTIONS)))
    return replace(ask, opening=ImagePlaces(seen, options, len(COLUMNS), replies, blocking=True))


def _finding(scene: Scene, run: PictureAnswer) -> str:
    assert run.blocked is not None, "there is nothing to compare"
    before, place = PictureAnswer(scene, run.question).answer, translate(PLACES[run.blocked])
    if run.answer == before:
        return translate("Without the {place}: still “{answer}”", place=place, answer=before)
    return translate(
        "Without the {place}: “{answer}” instead of “{before}”", place=place, answer=run.answer, before=before
    )


def _show(scene: Scene) -> Shown:
    run, whole = _asked(scene), PictureAnswer(scene, _question())
    shape, position = whole.question.shape, _position(scene, whole)
    thing, ground = (PictureAnswer(scene, whole.question, PLACES.index(place)) for place in (shape.place, _GROUND))
    own, last = (whole.on_places(at)[PLACES.index(shape.place)] for at in (whole.naming, max(whole.words)))
    every = [PictureAnswer(scene, one) for sample in DRAWN for one in questions(sample, _WORDING)]
    facts = {
        **texts(layer=HEAD[0], head=HEAD[1], patches=len(whole.tokens.patches), count=len(every), samples=len(DRAWN)),
        **texts(thing=shape.shape, place=translate(shape.place), word=whole.words[position]),
        **texts(without=thing.answer, other=translate(_GROUND), still=ground.answer),
        **texts(own=weight_text(own), last=weight_text(last), model=SHAPES_MODEL, **_hits(every)),
        **signs(1, chance=sum(1 / len(one.question.others) for one in every)),
        "blocked": translate("nothing") if run.blocked is None else translate(PLACES[run.blocked]),
    }
    says = translate(
        "Blocked: {blocked}. The model answers “{answer}”, with a probability of {likely}. Click a place to block it.",
        blocked=facts["blocked"],
        answer=run.answer,
        likely=weight_text(run.likely[run.answer]),
    )
    rows = {translate("whole image"): whole}
    if run.blocked is not None:
        rows[translate("place blocked")] = run
    likely = Panel(
        translate("Probability of each answer"),
        tuple(rows),
        tuple(whole.likely),
        [tuple(one.likely.values()) for one in rows.values()],
    )
    return Shown(facts, panels([[likely]], scene.theme), says)


def _hits(every: list[PictureAnswer]) -> dict[str, int]:
    """Count the questions whose article, name and last word have their strongest patch on the shape."""
    return {
        "article_hits": sum(run.hits(next(at for at, word in run.words.items() if word == _ARTICLE)) for run in every),
        "name_hits": sum(run.hits(run.naming) for run in every),
        "last_hits": sum(run.hits(max(run.words)) for run in every),
    }


_CONTROL = Control(
    "Blocked place",
    lambda scene: {
        _OPEN: translate("nothing"),
        **{str(at): translate(place) for at, place in enumerate(PLACES)},
    },
    lambda scene: _OPEN,
)

LESSONS = {
    "where": Lesson(
        "Where in the picture, word by word",
        6,
        _ask,
        _show,
        _CONTROL,
        "asked",
        words=_words,
        sample=lambda scene: _SAMPLE,
        idea=(
            "This model reads an image, cut into patches, and then a question. Patches and words are one row of "
            "tokens: each word can look at all patches and at the words up to itself."
        ),
    ),
}
