"""Trained heads: roles in every language model, and limits of weights."""

from typing import NamedTuple

from attention_viz.edits.effects import moved_output
from attention_viz.edits.kinds.ablation import Ablate
from attention_viz.lesson.language import Twice
from attention_viz.lesson.lesson import Ask, CatalogueHead, Control, Lesson, Shown, short, written_spots
from attention_viz.lesson.links import asking_position, strongest_link, trained_words, word_positions
from attention_viz.lesson.scene import MOST_PRESSED, Scene
from attention_viz.lesson.translation import translate
from attention_viz.lesson.words import in_words, quoted, signed, texts, weight_texts
from attention_viz.operation.shapes import shared_heads
from attention_viz.trace.spelling import weight_text
from attention_viz.trace.trace import Trace
from attention_viz.views import heatmap, weight_and_effect
from attention_viz.views.style.wording import escaped, share_text

# Each job's label, the metric that finds its head, and what the head does.
_JOBS = {
    "previous": ("Previous token", "previous", "looks at the token before it"),
    "first": ("Attention sink", "first", "looks at the first token of the text, whatever that is"),
    "induction": ("Induction", "induction", "looks at the token that followed it last time"),
    "copying": ("Copying", "induction", "looks at the token that followed it last time, and copies that"),
}
# That many heads are ablated together, since others do the same job beside the best.
_SILENCED = 3
# Words to choose from, with their weights and values.
_CHOICES = 4
# Bars to guess on: the largest weights of a row that may be long.
_BARS = 10
# So many looks of the head show its pattern before the question.
_EXAMPLES = 2


def _ask_about_job(scene: Scene) -> Ask:
    """Show two looks of a head, and ask for a third."""
    _, metric, _ = _JOBS[_JOB_CONTROL.value(scene)]
    twice = Twice(scene)
    layer, head, _ = twice.heads(metric)[0]
    query, _, _ = twice.asked(metric, layer, head)
    row, labels = twice.trace.weights(layer, head)[query], twice.trace.query_tokens().names
    # Only the allowed keys of a causal row: a blocked token has no weight to compare.
    keys = sorted(row[: query + 1].argsort(descending=True, stable=True)[:_BARS].tolist())
    values = [float(row[key]) for key in keys]
    best = keys[values.index(max(values))]
    return Ask(
        translate("Where does {word}, token {place}, look?", word=short(labels[query]), place=query),
        translate(
            "{word} looks at {other}, token {place}: {weight}",
            **{"word": short(labels[query]), "other": short(labels[best]), "place": best},
            weight=weight_text(float(row[best])),
        ),
        _source(twice, layer, head, len(keys), query + 1),
        tuple(f"{key} {in_words(labels[key])}" for key in keys),
        tuple(values),
        shown=tuple(map(weight_text, values)),
        query=keys.index(query) if query in keys else None,
        pressed=tuple(str(key) if key < MOST_PRESSED else "" for key in keys),
        word=True,
        place=CatalogueHead.of(twice.trace, layer, head),
        premise=_pattern(twice, metric, (layer, head), query),
    )


def _source(twice: Twice, layer: int, head: int, shown: int, open_keys: int) -> str:
    place = {"model": twice.model, "layer": layer, "head": head, "count": shown}
    if shown == open_keys:
        return translate("{model}, layer {layer}, head {head}: all weights of its row ({count} tokens)", **place)
    return translate("{model}, layer {layer}, head {head}: its {count} largest weights", **place)


def _pattern(twice: Twice, metric: str, place: tuple[int, int], query: int) -> str:
    """Describe the head's strongest looks of its job, of other tokens than the query; "" if there are too few."""
    weights, labels = twice.trace.weights(*place), twice.trace.query_tokens().names
    looks = [
        (float(weights[at, key]), at, key)
        for at, key in enumerate(twice.keys(metric))
        if 0 <= key != at != query and int(weights[at].argmax()) == key
    ]
    found = sorted(sorted(looks, reverse=True)[:_EXAMPLES], key=lambda look: look[1])
    if len(found) < _EXAMPLES:
        return ""
    (_, first, seen), (_, second, other) = found
    words = {"first": first, "seen": seen, "second": second, "other": other}
    return translate(
        "In this head, {word_first}, token {first}, looks at {word_seen}, token {seen}. And {word_second}, token "
        "{second}, looks at {word_other}, token {other}.",
        **words,
        **{f"word_{name}": short(labels[at]) for name, at in words.items()},
    )


def _show_job(scene: Scene) -> Shown:
    chosen = _JOB_CONTROL.value(scene)
    job, metric, does = _JOBS[chosen]
    twice = Twice(scene)
    layer, head, share = twice.heads(metric)[0]
    query, key, weight = twice.asked(metric, layer, head)
    facts = {
        **texts(
            count=sum(twice.trace.head_count(one) for one in twice.trace.layer_numbers()),
            layer=layer,
            does=translate(does),
        ),
        **texts(head=head, job=translate(job), text=twice.quoted, model=twice.model, note=twice.note),
        **weight_texts(share=share, weight=weight),
        "word": twice.name(query),
        "other": twice.name(key),
        "finding": _finding(chosen, twice, layer, head),
        "often": twice.often(metric, layer, head),
    }
    says = translate(
        "{job}: in layer {layer}, head {head} of {model}, “{word}” takes {weight} from “{other}”.",
        **{name: facts[name] for name in ("job", "layer", "head", "model", "word", "weight", "other")},
    )
    if chosen == "copying":
        says = f"{says} {facts['finding']}"
    return Shown(facts, heatmap(twice.trace, layer, head, theme=scene.theme), says)


def _finding(chosen: str, twice: Twice, layer: int, head: int) -> str:
    if chosen == "previous":
        return translate(
            "So each token's vector comes to hold the token before it. Heads in later layers can search for that."
        )
    if chosen == "first":
        there, others = twice.value_lengths(layer, head)
        lengths = {"length": signed(there), "others": signed(others)}
        if there < others:
            return translate(
                "Little is fetched there: the value of that token is {length} long, the others' {others} on average.",
                **lengths,
            )
        return translate(
            "The value there isn't smaller than others: it is {length} long, the others' {others} on average.",
            **lengths,
        )
    if chosen == "induction":
        return translate("It finds the place by the token before, which an earlier head has added to each vector.")
    return _copied(twice)


def _copied(twice: Twice) -> str:
    before = twice.carried_on()
    if before is None:
        return translate("This text is too short to continue.")
    silenced = [(one, other) for one, other, _ in twice.heads("induction", _SILENCED)]
    after = twice.carried_on(silenced) or 0.0
    return translate(
        "With {heads} switched off, the true next token of the repetition gets a probability of {after} on average, "
        "instead of {before}.",
        heads=", ".join(translate("layer {layer} head {head}", layer=one, head=other) for one, other in silenced),
        **{"after": signed(after), "before": signed(before)},
    )


_JOB_CONTROL = Control(
    "Job", lambda scene: {one: translate(job[0]) for one, job in _JOBS.items()}, lambda _: "previous"
)


_SAME = "Here the two are the same head. That isn't the rule: choose another layer."
_OTHER = "So the largest weight isn't the largest effect."


def _trace(scene: Scene) -> Trace:
    return scene.trained()


def effects(scene: Scene, layer: int) -> list[float]:
    """Return the output's mean change over tokens when each head is ablated."""
    before = _trace(scene)
    runs = (scene.trained((Ablate(layer, head),)) for head in range(before.head_count(layer)))
    return [float(moved_output(before, after).mean()) for after in runs]


class Light(NamedTuple):
    """A row whose largest weight brings little; length is of weight × value, `place` ranks from 1."""

    head: int
    query: int
    key: int
    weight: float
    length: float
    most: float
    place: int


def lightest(trace: Trace, layer: int, query: int | None = None) -> Light:
    """Find a layer's row, or a word's, whose largest weight ranks lowest by length; of ties the largest weight."""
    call, queries = trace.attention(layer), list(word_positions(trace)) if query is None else [query]
    weights = call.weights[:, queries].detach().float()
    lengths = weights * shared_heads(call.value, call.query).detach().float().norm(dim=-1)[:, None]
    weight, key = weights.max(dim=-1)
    length = lengths.gather(-1, key[..., None])
    places = 1 + (lengths > length).sum(dim=-1)
    found = [
        Light(
            head,
            query,
            int(key[head, at]),
            float(weight[head, at]),
            float(length[head, at, 0]),
            float(lengths[head, at].max()),
            int(places[head, at]),
        )
        for head in range(len(weights))
        for at, query in enumerate(queries)
    ]
    return max(found, key=lambda one: (one.place, one.weight))


def _light(scene: Scene, layer: int) -> Light:
    """Return the layer's lightest row, or that of the pressed word."""
    return lightest(_trace(scene), layer, None if scene.word is None else asking_position(scene))


def _phrase(scene: Scene, layer: int) -> str:
    light, labels = _light(scene, layer), _trace(scene).query_tokens().names
    word, other = in_words(labels[light.query]), in_words(labels[light.key])
    if light.place == 1:
        return (
            translate("In each head, the largest weight of “{word}” also contributes most.", word=word)
            if scene.word is not None
            else translate("In this layer, each word's largest weight also contributes most.")
        )
    return translate(
        "In head {head}, “{word}” looks most at “{other}”: {weight}. But weight × value is only {length} long there, "
        "place {place} of {count}; the longest is {most}.",
        head=light.head,
        word=word,
        other=other,
        weight=weight_text(light.weight),
        length=signed(light.length),
        place=light.place,
        count=len(labels),
        most=signed(light.most),
    )


def _options(scene: Scene) -> dict[str, str]:
    return {str(layer): translate("layer {layer}", layer=layer) for layer in _trace(scene).layer_numbers()}


def _ask_about_effect(scene: Scene) -> Ask:
    layer, trace = int(_LAYER_CONTROL.value(scene)), _trace(scene)
    light, labels = _light(scene, layer), trace.query_tokens().names
    row, lengths = _weights_and_lengths(trace, layer, light)
    # The largest weight, the longest product, and the next largest weights, in the text's order.
    ranked = sorted(range(len(row)), key=lambda key: -row[key])
    most = max(range(len(row)), key=lambda key: row[key] * lengths[key])
    keys = sorted([*dict.fromkeys([light.key, most, *ranked])][:_CHOICES])
    products = [row[key] * lengths[key] for key in keys]
    word, best = in_words(labels[light.query]), in_words(labels[most])
    return Ask(
        translate("Head {head} adds up values for “{word}”. Which word adds most?", head=light.head, word=word),
        translate(
            "“{best}” adds most: weight {weight} × length {length} = {product}",
            best=best,
            weight=signed(row[most]),
            length=signed(lengths[most]),
            product=signed(row[most] * lengths[most]),
        ),
        translate(
            "{model}, layer {layer}, head {head}: length of weight × value",
            model=scene.called,
            layer=layer,
            head=light.head,
        ),
        tuple(f"{signed(row[key])} × {signed(lengths[key])}: {in_words(labels[key])}" for key in keys),
        tuple(products),
        place=CatalogueHead.of(trace, layer, light.head, (light.query, light.key)),
        premise=translate("Each option is a word’s weight × the length of its value."),
        reasons=tuple(
            ""
            if key == most
            else translate("It has the largest weight, but a short value: their product is {product}.", product=product)
            if key == ranked[0]
            else translate("Its weight × length is {product}.", product=product)
            for key, product in zip(keys, map(signed, products), strict=True)
        ),
    )


def _weights_and_lengths(trace: Trace, layer: int, light: Light) -> tuple[list[float], list[float]]:
    """Return a row's weights, and the lengths of the values that they weigh."""
    one = trace.attention(layer).head(light.head)
    return one.weights[light.query].double().tolist(), one.value.double().norm(dim=-1).tolist()


def _show_effect(scene: Scene) -> Shown:
    layer, trace = int(_LAYER_CONTROL.value(scene)), _trace(scene)
    query = asking_position(scene)
    other = strongest_link(trace, query).key
    weights = [float(trace.weights(layer, head)[query, other]) for head in range(trace.head_count(layer))]
    moved = effects(scene, layer)
    looking, moving = weights.index(max(weights)), moved.index(max(moved))
    labels = trace.query_tokens().names
    facts = {
        **quoted(labels, word=query, other=other),
        **texts(layer=layer, heads=len(weights), looking=looking),
        **texts(place=1 + sum(one > moved[looking] for one in moved), moving=moving),
        "weight": weight_text(weights[looking]),
        "effect": share_text(moved[looking]),
        "most": share_text(moved[moving]),
        "its_weight": weight_text(weights[moving]),
        "light": _phrase(scene, layer),
        "rule": translate(_SAME if moving == looking else _OTHER),
    }
    says = translate(
        "In layer {layer}, head {looking} looks most at “{other}” ({weight}); ablating head {moving} moves the output "
        "most ({most}).",
        **{name: facts[name] for name in ("layer", "looking", "other", "weight", "moving", "most")},
    )
    places = word_positions(trace)
    # A link is between two of these places.
    pair = places.index(query), places.index(other)
    figure = weight_and_effect(weights, moved, layer, words=[labels[at] for at in places], pair=pair, theme=scene.theme)
    title = translate("weight from “{word}” to “{other}”", word=facts["word"], other=facts["other"])
    figure.update_layout(xaxis_title_text=escaped(title))
    return Shown(facts, figure, says, written_spots(figure, "words"))


_LAYER_CONTROL = Control("Layer", _options, lambda scene: next(reversed(_options(scene))))

LESSONS = {
    "jobs": Lesson(
        "What heads do",
        7,
        _ask_about_job,
        _show_job,
        _JOB_CONTROL,
        "job",
        deeper=("", "heads"),
        idea=(
            "This model writes from left to right, so a token sees only itself and the tokens before it. Here it reads "
            "a text twice. A few of its heads have a simple rule; find it from two examples."
        ),
    ),
    "limits": Lesson(
        "What weights don't tell",
        7,
        _ask_about_effect,
        _show_effect,
        _LAYER_CONTROL,
        "matters",
        deeper=("heads", "compare"),
        words=trained_words,
        idea=("A head adds up values, each times its weight. Values are vectors, and some are longer than others."),
    ),
}
