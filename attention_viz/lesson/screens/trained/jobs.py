"""Jobs found in every language model, each in its strongest head."""

from attention_viz.edits.words import listed
from attention_viz.lesson.asking import Ask, CatalogueHead, short
from attention_viz.lesson.language import Twice
from attention_viz.lesson.lesson import Control, Lesson, Shown
from attention_viz.lesson.scene import MOST_PRESSED, Scene
from attention_viz.lesson.words import in_words, signed
from attention_viz.views import heatmap

__all__ = ["LESSON"]

# What can be chosen, each with the metric by which its head is found, and what the head does.
_JOBS = {
    "previous": ("The word before", "previous", "looks at the token before it"),
    "first": ("Resting", "first", "looks at the first token of the text, whatever that is"),
    "induction": ("Going on with a pattern", "induction", "looks at what came after it the last time"),
    "copying": ("Copying", "induction", "looks at what came after it the last time, and hands that on"),
}
# How many heads are silenced together, as others do the same job beside the best.
_SILENCED = 3
# Bars to guess on: the largest weights of a row that may be long.
_BARS = 10


def _ask(scene: Scene) -> Ask:
    job, metric, _ = _JOBS[_CONTROL.value(scene)]
    twice = Twice(scene)
    layer, head, _ = twice.heads(metric)[0]
    query, _, _ = twice.asked(metric, layer, head)
    row, labels = twice.trace.weights(layer, head)[query], twice.trace.query_tokens().written
    # Of a causal row, only what it may look at: a blocked token has no weight to compare.
    keys = sorted(row[: query + 1].argsort(descending=True, stable=True)[:_BARS].tolist())
    values = [float(row[key]) for key in keys]
    best = keys[values.index(max(values))]
    return Ask(
        f"“{job}”: where does {short(labels[query])}, token {query}, look?",
        f"{short(labels[query])} looks at {short(labels[best])}, token {best}: {signed(float(row[best]))}",
        f"{twice.model}, layer {layer}, head {head}: {_which_weights(len(keys), query + 1)}",
        tuple(f"{key} {in_words(labels[key])}" for key in keys),
        tuple(values),
        query=keys.index(query) if query in keys else None,
        pressed=tuple(str(key) if key < MOST_PRESSED else "" for key in keys),
        word=True,
        place=CatalogueHead.of(twice.trace, layer, head),
    )


def _which_weights(shown: int, open_keys: int) -> str:
    return f"all weights of its row ({shown} tokens)" if shown == open_keys else f"its {shown} largest weights"


def _show(scene: Scene) -> Shown:
    chosen = _CONTROL.value(scene)
    job, metric, does = _JOBS[chosen]
    twice = Twice(scene)
    layer, head, share = twice.heads(metric)[0]
    query, key, weight = twice.asked(metric, layer, head)
    facts = {
        "note": twice.note,
        "model": twice.model,
        "text": twice.quoted,
        "count": str(sum(twice.trace.head_count(one) for one in twice.trace.layer_numbers())),
        "job": job,
        "does": does,
        "layer": str(layer),
        "head": str(head),
        "share": signed(share),
        "word": twice.name(query),
        "other": twice.name(key),
        "weight": signed(weight),
        "finding": _finding(chosen, twice, layer, head),
        "often": twice.often(metric, layer, head),
    }
    says = (
        f"{job}: in layer {layer}, head {head} of {twice.model}, “{facts['word']}” takes {facts['weight']} from "
        f"“{facts['other']}”. {facts['finding'] if chosen == 'copying' else ''}"
    )
    return Shown(facts, heatmap(twice.trace, layer, head, theme=scene.theme), says)


def _finding(chosen: str, twice: Twice, layer: int, head: int) -> str:
    if chosen == "previous":
        return "So a token's vector comes to tell what stood before it, which heads further up can ask for."
    if chosen == "first":
        there, others = twice.value_lengths(layer, head)
        small = "Little is fetched there" if there < others else "What is fetched there is no smaller than elsewhere"
        return f"{small}: the value of that token is {signed(there)} long, the others' {signed(others)} on average."
    if chosen == "induction":
        return "It finds the place by what stood before each token, which a head further down has handed on."
    before = twice.carried_on()
    if before is None:
        return "This text is too short to be gone on with."
    silenced = [(one, other) for one, other, _ in twice.heads("induction", _SILENCED)]
    after = twice.carried_on(silenced) or 0.0
    names = listed([f"layer {one} head {other}" for one, other in silenced])
    return (
        f"With {names} silenced, what really comes next the second time gets a probability of {signed(after)} on "
        f"average, instead of {signed(before)}."
    )


_CONTROL = Control("Job", lambda scene: {name: job[0] for name, job in _JOBS.items()}, lambda scene: "previous")

LESSON = Lesson(
    "What heads do",
    7,
    _ask,
    _show,
    _CONTROL,
    "job",
    deeper=("", "heads"),
    covers=(
        "heads of a language model by what they do: the word before, resting on the first token, induction, copying",
        "small values behind the token on which heads rest",
    ),
)
