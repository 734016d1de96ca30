"""Attention between two texts."""

from itertools import pairwise

from attention_viz.errors import AttentionVizError
from attention_viz.lesson.lesson import Ask, Control, Lesson, Shown, line_spots, short
from attention_viz.lesson.openings.links import WordLines
from attention_viz.lesson.openings.opening import Reply
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.translation import translate
from attention_viz.lesson.words import in_words, offered, texts
from attention_viz.sources import CATALOGUE
from attention_viz.trace.spelling import weight_text
from attention_viz.trace.trace import Trace
from attention_viz.views import alignment
from attention_viz.views.style.wording import one_line, readable

_LONGEST_SENTENCE = 120
_MODEL, _STREAM = "translation", "cross"
# The heights in the figure, above the generated words, that answer a press.
_SAID = (0.03, 0.1)
# At least this part of the lines is right in a guess that is nearly so.
_NEARLY = 0.7


def _trace(scene: Scene) -> Trace:
    try:
        own = scene.run(_MODEL, scene.text)
        if not any(label in ("<unk>", "[UNK]") for label in own.key_tokens(_STREAM).labels):
            return own
    except AttentionVizError:  # such as more words than it reads
        pass
    return scene.run(_MODEL, CATALOGUE[_MODEL].examples[0])


def _written(trace: Trace) -> list[int]:
    """Return the positions of generated words; all tokens if none is a word."""
    tokens = trace.query_tokens(_STREAM)
    return [at for at in range(len(tokens)) if not tokens.special[at]] or list(range(len(tokens)))


def _head(trace: Trace) -> int:
    """Return the head that looks most clearly from word to word: its largest weights on words, on average."""
    read = [at for at, special in enumerate(trace.key_tokens(_STREAM).special) if not special]
    weights = trace.attention(0, _STREAM).weights
    largest = weights[:, _written(trace)][:, :, read or slice(None)].amax(dim=-1)
    return int(largest.mean(dim=-1).argmax())


def _options(scene: Scene) -> dict[str, str]:
    trace = _trace(scene)
    names = offered(trace.query_tokens(_STREAM).names)
    return {str(at): names[str(at)] for at in _written(trace)}


def _ask(scene: Scene) -> Ask:
    trace, head = _trace(scene), _head(_trace(scene))
    weights = trace.attention(0, _STREAM).weights[head]
    written = _options(scene)
    read = tuple(offered(trace.key_tokens(_STREAM).names).values())
    rows = [weights[int(at)] for at in written]
    strongest = tuple(int(row.argmax()) for row in rows)
    values = tuple(float(row.max()) for row in rows)
    names = tuple(written.values())
    return Ask(
        translate("Draw a line from each word of the translation to the source word that it looks at most"),
        _finding(names, read, strongest),
        translate("the toy “{model}”, head {head}: from its translation to the source", model=_MODEL, head=head),
        names,
        values,
        shown=tuple(
            f"→ {in_words(read[to])}, {weight_text(value)}" for to, value in zip(strongest, values, strict=True)
        ),
        pressed=tuple(written),
        whole=1.0,
        opening=WordLines(names, read, strongest, values, _replies(names, read, strongest, values)),
        premise=translate(
            "In French, most adjectives come after their noun, and “him”, “her” and “it” before the verb. The sign "
            "</s> ends a text."
        ),
    )


def _crossing(strongest: tuple[int, ...]) -> int | None:
    """Return the first word whose line crosses the next one's."""
    return next((at for at, (one, after) in enumerate(pairwise(strongest)) if one > after), None)


def _finding(names: tuple[str, ...], read: tuple[str, ...], strongest: tuple[int, ...]) -> str:
    at = _crossing(strongest)
    if at is None:
        return translate("The translation keeps the order of the source, so no lines cross")
    return translate(
        "The lines cross where the order changes: {one} looks at {first}, then {other} at {second}",
        **texts(one=short(names[at]), other=short(names[at + 1])),
        **texts(first=short(read[strongest[at]]), second=short(read[strongest[at + 1]])),
    )


def _replies(
    names: tuple[str, ...], read: tuple[str, ...], strongest: tuple[int, ...], values: tuple[float, ...]
) -> tuple[Reply, ...]:
    count = len(names)
    found = [Reply("right", translate("Right: all {count} lines are the model’s.", count=count))]
    for right in range(count):
        for at in range(count):
            facts = texts(right=right, count=count, word=short(names[at]), other=short(read[strongest[at]]))
            facts |= {"weight": weight_text(values[at])}
            found.append(
                Reply(
                    "near",
                    translate("Nearly: {right} of {count} lines. {word} looks most at {other}: {weight}.", **facts),
                )
                if right >= _NEARLY * count
                else Reply(
                    "wrong",
                    translate("Not quite: {right} of {count} lines. {word} looks most at {other}: {weight}.", **facts),
                )
            )
    return tuple(found)


def _show(scene: Scene) -> Shown:
    trace, query = _trace(scene), int(_CONTROL.value(scene))
    head = _head(trace)
    row = trace.attention(0, _STREAM).weights[head, query]
    key = int(row.argmax())
    target, read = trace.query_tokens(_STREAM).names, trace.key_tokens(_STREAM).names
    facts = {
        **texts(cells=len(target) * len(read), head=head, said=len(target), read=len(read)),
        "word": in_words(target[query]),
        "source": in_words(read[key]),
        "own": translate("This is the chosen sentence.")
        if trace.provenance.text == scene.text
        else translate("It knows too few words of the chosen sentence, so this is one of its examples."),
        "sentence": one_line(trace.provenance.text or "", _LONGEST_SENTENCE),
        "weight": weight_text(float(row[key])),
    }
    says = translate(
        "{word} looks most at {source}: {weight}.",
        **texts(word=short(target[query]), source=short(read[key]), weight=facts["weight"]),
    )
    # Both lines are as wide as the picture.
    places = [(at + 0.5) / len(target) for at in range(len(target))]
    spots = line_spots(places, readable(target), _CONTROL.options(scene).keys(), _SAID)
    return Shown(facts, alignment(trace, 0, head, _STREAM, query=query, theme=scene.theme), says, spots)


_CONTROL = Control("Generated word", _options, lambda scene: next(iter(_options(scene))), words=True)

LESSONS = {
    "cross": Lesson(
        "Cross-attention",
        6,
        _ask,
        _show,
        _CONTROL,
        "shape",
        deeper=("cross",),
        idea=(
            "A translator reads one text, the source, and writes another. Each step that writes a word has a query; "
            "the words of the source have the keys."
        ),
    ),
}
