"""Many heads: each looks with a narrower query; their outputs are joined."""

from collections.abc import Sequence

from attention_viz.edits.words import listed
from attention_viz.lesson.asking import Ask, CatalogueHead, short
from attention_viz.lesson.lesson import Control, Lesson, Shown
from attention_viz.lesson.links import asking_position, strongest_link, trained_words
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.spots import asking_words, row_spots
from attention_viz.lesson.words import counted, in_words, signed
from attention_viz.scratch.model import Scratch
from attention_viz.views import side_by_side

__all__ = ["LESSON"]

_D_MODEL = 8
_OPTIONS = {str(heads): counted(heads, "head") for heads in (1, 2, 4, 8)}


def _ask(scene: Scene) -> Ask:
    """Use a real model, whose heads were trained to differ."""
    trace = scene.trained()
    link = strongest_link(trace, asking_position(trace, scene.word))
    labels = trace.query_tokens().written
    weights = trace.attention(link.layer).weights[:, link.query, link.key].tolist()
    pair = f"{short(labels[link.query])} → {short(labels[link.key])}"
    return Ask(
        f"In layer {link.layer}, which head links {pair} most?",
        f"Head {link.head} links {pair}: {signed(link.weight)}",
        f"{scene.called}, layer {link.layer}: one weight of each head",
        tuple(f"head {head}" for head in range(len(weights))),
        tuple(weights),
        place=CatalogueHead.of(trace, link.layer, link.head, (link.query, link.key)),
    )


def _show(scene: Scene) -> Shown:
    heads = int(_CONTROL.value(scene))
    scratch = Scratch(_D_MODEL, heads, scene.seed)
    trace = scratch.trace(scene.text)
    query = _own_place(scene)
    favourites = [int(weights[query].argmax()) for weights in trace.attention(0).weights]
    joined = trace.layer(0).joined
    assert joined is not None  # our own module keeps it
    facts = {
        "heads": counted(heads, "head"),
        "d_model": str(_D_MODEL),
        "width": counted(trace.attention(0).query.shape[-1], "number"),
        "parameters": str(sum(matrix.weight.numel() for matrix in scratch.projections().values())),
        "word": in_words(scene.words[query]),
        "favourites": _favourites_text(scene.words, favourites),
        "rows": counted(joined.shape[0], "row"),
        "columns": str(joined.shape[1]),
    }
    says = (
        f"{facts['heads']} of ours, from a seed, so by chance: “{facts['word']}” looks most at {facts['favourites']}."
    )
    figure = side_by_side(trace, 0, theme=scene.theme)
    return Shown(facts, figure, says, row_spots(figure, asking_words(scene)))


def _own_place(scene: Scene) -> int:
    words, asking = trained_words(scene)
    same = [at for at, word in enumerate(scene.words) if word.casefold() == words[asking].casefold()]
    return int(asking) if len(words) == len(scene.words) else (same or [scene.asking])[0]


def _favourites_text(words: Sequence[str], favourites: Sequence[int]) -> str:
    heads_by_key: dict[int, list[int]] = {}
    for head, key in enumerate(favourites):
        heads_by_key.setdefault(key, []).append(head)
    if len(favourites) == 1:
        return f"“{in_words(words[favourites[0]])}”"
    return listed(
        [
            f"“{in_words(words[key])}” (head{'s' if len(heads) > 1 else ''} {listed([*map(str, heads)])})"
            for key, heads in heads_by_key.items()
        ]
    )


_CONTROL = Control("Heads", lambda scene: _OPTIONS, lambda scene: "2")

LESSON = Lesson(
    "Many heads",
    6,
    _ask,
    _show,
    _CONTROL,
    "head",
    deeper=("", "heads"),
    covers=("multi-head: heads on narrower subspaces, joined by W_O", "reference: it → cat, it → bank"),
    words=trained_words,
)
