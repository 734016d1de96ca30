"""Word vectors: a map of a trained model's own, and how alike each pair is."""

import torch
from torch import Tensor

from attention_viz.lesson.figures.panels import Panel, panels
from attention_viz.lesson.lesson import Ask, Control, Lesson, Shown, row_spots, short
from attention_viz.lesson.links import asking_position, pressed_words, word_positions
from attention_viz.lesson.openings.opening import Reply
from attention_viz.lesson.openings.planes import WordMap
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.translation import translate
from attention_viz.lesson.words import counted, in_words, labelled, offered, signed, signs, texts
from attention_viz.trace.trace import Trace
from attention_viz.views.style.wording import share_text

_MEASURES = {"cosine": "cosine: directions alone", "dot": "dot product: directions and lengths"}
# How many numbers of a vector the text names.
_MOST_NUMBERS = 3
# The room around the words on the map, in shares of its side.
_MARGIN = 0.12


def _vectors(trace: Trace) -> Tensor:
    x = trace.layer(0).embeddings
    assert x is not None  # this model keeps them
    return x.detach().double().cpu()


def plane(x: Tensor, word: int) -> tuple[Tensor, float, float]:
    """Project unit vectors to their two main directions.

    Returns the points, and the share of the spread that the plane keeps: of all words, of one.
    """
    x = torch.nn.functional.normalize(x, dim=-1)
    centred = x - x.mean(dim=0)
    _, sizes, directions = torch.linalg.svd(centred, full_matrices=False)
    known = directions[:2]
    # A direction's sign is arbitrary: its largest number points up.
    known = known * known.gather(1, known.abs().argmax(dim=1, keepdim=True)).sign()
    points = torch.zeros(len(x), 2, dtype=torch.float64)
    points[:, : len(known)] = centred @ known.mT
    spread, own = sizes.square(), centred[word].square().sum()
    kept = float(spread[:2].sum() / spread.sum()) if float(spread.sum()) else 1.0
    return points, kept, float(points[word].square().sum() / own) if float(own) else 1.0


def _on_the_map(points: Tensor) -> tuple[tuple[float, float], ...]:
    """Fit points to a square from 0 to 1, down from the top, at one scale for both directions."""
    low, high = points.amin(dim=0), points.amax(dim=0)
    side = float((high - low).max()) or 1.0
    fitted = 0.5 + (points - (low + high) / 2) * (1 - 2 * _MARGIN) / side
    return tuple((x, 1 - y) for x, y in fitted.tolist())


def _ask(scene: Scene) -> Ask:
    trace, query = scene.trained(), asking_position(scene)
    x, names = _vectors(trace), trace.query_tokens().names
    others = [at for at in word_positions(trace) if at != query]
    word = short(names[query])
    if not others:
        return _alone(scene, word)
    alike = torch.nn.functional.cosine_similarity(x[query][None], x[others], dim=-1).tolist()
    labels = tuple(offered([names[at] for at in others]).values())
    points, kept, own = plane(x[[*others, query]], len(others))
    *others_at, word_at = _on_the_map(points)
    best = max(range(len(alike)), key=alike.__getitem__)
    return Ask(
        translate("Where on this map of the words does {word} belong?", word=word),
        translate(
            "By cosine, {word} is most like {other}: {cosine}",
            word=word,
            other=short(labels[best]),
            cosine=signed(alike[best], 2),
        ),
        translate(
            "{model}, input vectors; map and bars by cosine; the map keeps {kept} of all differences, {own} of those "
            "of {word}",
            model=scene.called,
            kept=share_text(kept),
            own=share_text(own),
            word=word,
        ),
        labels,
        tuple(alike),
        shown=tuple(signed(one, 2) for one in alike),
        pressed=pressed_words(trace, others),
        word=True,
        whole=1.0,
        opening=WordMap(in_words(names[query]), labels, tuple(others_at), word_at, _replies(word, labels, alike)),
    )


def _alone(scene: Scene, word: str) -> Ask:
    """Ask of a sentence of one word, which has no map."""
    return Ask(
        translate("Which other word is {word} most like?", word=word),
        translate("{word} is the only word: there is nothing to compare it to", word=word),
        translate("{model}: vectors that enter its first layer.", model=scene.called),
        (translate("none: it is the only word"),),
        (0.0,),
        shown=("",),
    )


def _replies(word: str, labels: tuple[str, ...], alike: list[float]) -> tuple[Reply, ...]:
    """Reply by the word that is nearest to the guess."""
    best = max(range(len(alike)), key=alike.__getitem__)
    found = list[Reply]()
    for label, cosine in zip(labels, alike, strict=True):
        facts = {"word": word, "other": short(label), "cosine": signed(cosine, 2), "best": short(labels[best])}
        facts |= {"most": signed(alike[best], 2)}
        rank = 1 + sum(one > cosine for one in alike)
        if rank == 1:
            words = translate("Right: you put {word} nearest to {other}, which is most like it: {cosine}.", **facts)
            found.append(Reply("right", words))
        elif rank == 2:
            words = translate("Nearly: {other} is second, with {cosine}. {best} is most like it: {most}.", **facts)
            found.append(Reply("near", words))
        else:
            words = translate(
                "Not quite: you put it nearest to {other}, which is number {rank} of {count}, with {cosine}. {best} is "
                "most like it: {most}.",
                **facts,
                rank=rank,
                count=len(alike),
            )
            found.append(Reply("wrong", words))
    return tuple(found)


def _show(scene: Scene) -> Shown:
    trace, query, measure = scene.trained(), asking_position(scene), _CONTROL.value(scene)
    places = list(word_positions(trace))
    x, names = _vectors(trace)[places], trace.query_tokens().names
    labels = tuple(offered([names[at] for at in places]).values())
    at = places.index(query)
    products, lengths = x @ x.mT, x.norm(dim=-1)
    cosines = products / lengths.outer(lengths)
    best = max((one for one in range(len(x)) if one != at), key=lambda one: float(cosines[at, one]), default=at)
    shown = cosines if measure == "cosine" else products
    _, kept, _ = plane(x, at)
    facts = {
        **texts(model=scene.called, d_model=x.shape[-1]),
        "word": in_words(labels[at]),
        "other": in_words(labels[best]),
        "numbers": ", ".join(signed(number, 2) for number in x[at].tolist()[:_MOST_NUMBERS]),
        "tokens": counted(len(trace.query_tokens()), "token"),
        **signs(2, product=products[at, best], length=lengths[at], other_length=lengths[best]),
        **signs(2, cosine=cosines[at, best]),
        "kept": share_text(kept),
        "closest": _closest(labels, shown, measure),
    }
    title = translate("Cosine of each pair") if measure == "cosine" else translate("Dot product of each pair")
    digits = 2 if measure == "cosine" else 1
    figure = panels([[Panel(title, labels, labels, shown.tolist(), line=at, digits=digits)]], scene.theme)
    return Shown(facts, figure, facts["closest"], row_spots(figure, [str(one) for one in range(len(places))]))


def _closest(labels: tuple[str, ...], shown: Tensor, measure: str) -> str:
    """Name the most alike pair of different words."""
    count = len(labels)
    pairs = [(float(shown[i, j]), i, j) for i in range(count) for j in range(i + 1, count)]
    if not pairs:
        return translate("There is only one word, with nothing to compare it to.")
    most, one, other = max(pairs)
    facts = {"one": short(labels[one]), "other": short(labels[other]), "number": signed(most, 2)}
    if measure == "cosine":
        return translate("By cosine, {one} and {other} are most alike: {number}.", **facts)
    return translate("By dot product, {one} and {other} are most alike: {number}.", **facts)


_CONTROL = Control("Compared by", lambda scene: labelled(_MEASURES), lambda scene: "cosine")

LESSONS = {
    "vectors": Lesson(
        "Words as vectors",
        5,
        _ask,
        _show,
        _CONTROL,
        "nearest",
        deeper=("steps",),
        trained_word=True,
        idea=(
            "A model turns each word into a vector, a list of numbers, so that words with similar uses point in "
            "similar directions. Their cosine says how similar: 1 is the same direction, 0 has nothing in common."
        ),
    ),
}
