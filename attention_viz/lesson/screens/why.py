"""Why meaning depends on other words, and attention that has nothing to learn."""

import torch
from torch.nn import functional

from attention_viz.lesson.figures.panels import Panel, panels
from attention_viz.lesson.lesson import Ask, CatalogueHead, Control, Lesson, Shown, row_asked, row_spots, short
from attention_viz.lesson.links import (
    asking_position,
    opening_position,
    opening_word,
    positioned_words,
    pressed_positions,
    pressed_words,
    scene_link,
    trained_words,
    word_positions,
)
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.translation import translate
from attention_viz.lesson.words import in_words, offered, quoted, signs, texts, weight_texts
from attention_viz.operation.attention import Attention, attend
from attention_viz.trace.spelling import weight_text
from attention_viz.views import looks
from attention_viz.views.style.wording import share_text


def _ask_why(scene: Scene) -> Ask:
    trace, query = scene.trained(), int(_CONTROL_WHY.value(scene))
    link = scene_link(scene, query)
    labels = trace.query_tokens().names
    place = {"model": scene.called, "layer": link.layer, "head": link.head}
    if scene.head == (link.layer, link.head):
        source = translate("{model}, layer {layer}, head {head}: as on the app’s other pages", **place)
    else:
        word = short(labels[opening_position(trace, scene.query)])
        source = translate("{model}, layer {layer}, head {head}: the head chosen for {word}", word=word, **place)
    row = trace.weights(link.layer, link.head)[query]
    shown = CatalogueHead.of(trace, link.layer, link.head, (link.query, link.key))
    return row_asked(row, labels, query, source, pressed_positions(trace), complete=True, place=shown)


def _show_why(scene: Scene) -> Shown:
    trace, query = scene.trained(), int(_CONTROL_WHY.value(scene))
    labels, link = trace.query_tokens().names, scene_link(scene, query)
    opening = in_words(labels[opening_position(trace, scene.query)])
    facts = {
        **texts(layer=link.layer, head=link.head, layers=trace.layer_count(), model=scene.called),
        **texts(heads=sum(trace.head_count(layer) for layer in trace.layer_numbers())),
        **quoted(labels, word=query, other=link.key),
        "among": translate("of {words} ", words=link.among) if link.among else "",
        "which": translate("that the app’s other pages show, too")
        if scene.head == (link.layer, link.head)
        else translate("that lets “{word}” look most at a word far from it", word=opening),
        "weight": weight_text(link.weight),
        "percent": share_text(link.weight),
    }
    says = translate(
        "In layer {layer}, head {head}, {among}“{word}” looks most at “{other}”: {weight}.",
        **{name: facts[name] for name in ("layer", "head", "among", "word", "other", "weight")},
    )
    return Shown(facts, looks(trace, link.layer, link.head, query, theme=scene.theme), says)


_CONTROL_WHY = Control("Query word", positioned_words, opening_word)


_LENGTHS = {"learned": "as the model has them", "unit": "divided by their lengths"}
_FORMULAS = {
    "rows": r"w_{ij} = \operatorname{softmax}_j(x_i \cdot x_j), \quad y_i = \sum_j w_{ij}\, x_j",
    "columns": r"w_{ij} = \operatorname{softmax}_j(x_i^{\top} x_j), \quad y_i = \sum_j w_{ij}\, x_j",
}


def _compared(scene: Scene) -> Attention:
    """Return attention of the vectors that enter the model, without matrices and scale."""
    x = scene.trained().layer(0).embeddings
    assert x is not None  # these models keep them
    if _CONTROL_PLAIN.value(scene) == "unit":
        x = functional.normalize(x, dim=-1)
    return attend(x[None], x[None], x[None], scale=1.0)


def _alike(scene: Scene) -> tuple[int, float]:
    """Return the other word whose vector has the largest cosine with the query's; the query itself if it is alone."""
    trace, query = scene.trained(), asking_position(scene)
    x = trace.layer(0).embeddings
    assert x is not None  # these models keep them
    others = [at for at in word_positions(trace) if at != query] or [query]
    cosines = functional.cosine_similarity(x[query][None], x[others], dim=-1)
    return others[int(cosines.argmax())], float(cosines.max())


def _ask_plain(scene: Scene) -> Ask:
    trace, query = scene.trained(), asking_position(scene)
    labels = tuple(offered(trace.query_tokens().names).values())
    call, (like, cosine) = _compared(scene), _alike(scene)
    row, products = call.weights[0, query], call.scores[0, query]
    word, best = short(labels[query]), int(row.argmax())
    most = {"word": word, "other": short(labels[best]), "weight": weight_text(float(row[best]))}
    return Ask(
        translate("By similarity alone, which word does {word} take most from?", word=word),
        translate("{word} takes {weight} from itself", word=word, weight=most["weight"])
        if best == query
        else translate("{word} takes {weight} from {other}", **most),
        translate("{model}, input vectors; in brackets the dot product", model=scene.called),
        labels,
        tuple(row.double().tolist()),
        shares=True,
        shown=tuple(
            f"{weight_text(float(weight))} ({product:.1f})".replace("-", "−")
            for weight, product in zip(row, products, strict=True)
        ),
        pressed=pressed_words(trace),
        word=True,
        query=query,
        premise=translate(
            "Among the other words, {other} has the vector most like that of {word}: a cosine of {cosine}.",
            **{"word": word, "other": short(labels[like]), "cosine": f"{cosine:.2f}".replace("-", "−")},
        )
        if like != query
        else "",
    )


def _show_plain(scene: Scene) -> Shown:
    trace, query, call = scene.trained(), asking_position(scene), _compared(scene)
    labels, words = trace.query_tokens().names, list(word_positions(trace))
    row, scores, x = call.weights[0, query], call.scores[0], call.value[0]
    best = max((key for key in range(len(row)) if key != query), key=lambda key: float(scores[query, key]))
    own = call.weights[0].diagonal()
    facts = {
        **texts(model=scene.called, wide=x.shape[-1], count=len(row), among=len(words)),
        **texts(lengths=translate(_LENGTHS[_CONTROL_PLAIN.value(scene)])),
        **texts(itself=int((call.weights[0, words].argmax(dim=-1) == torch.tensor(words)).sum())),
        **quoted(labels, word=query, other=best),
        **weight_texts(own=row[query], weight=row[best], total=row.sum(), learned=own[words].mean()),
        **signs(2, product=scores[query, best], square=scores[query, query]),
        **signs(2, alike=functional.cosine_similarity(x[query], call.output[0, query], dim=-1)),
        "formula.plain": _FORMULAS.get(scene.notation, _FORMULAS["rows"]),
    }
    says = translate(
        "The product of “{word}” with itself is {square}, with “{other}” only {product}: the shares are {own} and "
        "{weight}.",
        **{name: facts[name] for name in ("word", "square", "other", "product", "own", "weight")},
    )
    names = list(offered(labels).values())
    products = Panel(translate("dot products"), names, names, scores.tolist(), line=query, digits=1)
    shares = Panel(translate("shares"), names, names, call.weights[0].tolist(), line=query)
    figure = panels([[products], [shares]], scene.theme)
    return Shown(facts, figure, says, row_spots(figure, pressed_words(trace)))


def _options_plain(_: Scene) -> dict[str, str]:
    return {name: translate(label) for name, label in _LENGTHS.items()}


_CONTROL_PLAIN = Control("Vectors", _options_plain, lambda scene: "learned")

LESSONS = {
    "why": Lesson(
        "Why attention",
        5,
        _ask_why,
        _show_why,
        _CONTROL_WHY,
        "strongest",
        deeper=("", "heads"),
        idea=(
            "A model reads a text word by word, between two marks of its own, [CLS] and [SEP]. It works in layers, and "
            "each layer has several heads. In every head, each word takes a share from each word, and its shares add "
            "up to 1."
        ),
    ),
    "plain": Lesson(
        "Attention without parameters",
        6,
        _ask_plain,
        _show_plain,
        _CONTROL_PLAIN,
        "plain",
        deeper=("steps",),
        words=trained_words,
        idea=(
            "A head has learned where to look. Leave that out, and only the vectors are left: each word takes by "
            "similarity. Its dot products with all words, itself included, become its shares: the larger the product, "
            "the larger the share."
        ),
    ),
}
