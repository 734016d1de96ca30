"""Tasks about order: a mask to fix, shuffled words, steps between words."""

from collections.abc import Sequence

import torch
from torch import Tensor

from attention_viz.lesson.exercise import Cells, Exercise, NumberAnswer, OptionAnswer, Slip
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.tasks.drawing import WHOLE, Draw, named, of_two_words
from attention_viz.lesson.translation import translate
from attention_viz.operation import masks
from attention_viz.operation.numerics import EXACT
from attention_viz.scratch.model import Scratch
from attention_viz.trace.tokens import PADDING

_MOST_WORDS = 4
_RULES = {
    "causal": "causal: no token looks ahead",
    "padding": "a padding mask: no token looks at [PAD], not even [PAD]",
    "both": "causal with a padding mask: no token looks ahead or at [PAD], not even [PAD]",
}
_ASKED = {
    "recurrent": "A recurrent network reads one word after the other. How many steps does it take?",
    "more": "A recurrent network reads one word after the other. How many more steps does it take than one layer of "
    "attention?",
}


def mask(scene: Scene, seed: int) -> Exercise:
    """Ask to fix a mask's wrong cells."""
    draw = Draw("mask", seed, scene.text)
    words, note = of_two_words(scene)
    count = min(_MOST_WORDS, len(words))
    start, kind = draw.below(len(words) - count + 1), draw.pick(tuple(_RULES))
    padded = 0 if kind == "causal" else draw.whole(1, 2)
    names = (*named(words)[start : start + count], *named([PADDING] * padded))
    size = len(names)
    causal = masks.causal(size)
    real = masks.padding(torch.tensor([1] * count + [0] * padded), 0).expand(size, size)
    allowed = {"causal": causal, "padding": real, "both": masks.combine(causal, real)}[kind]
    right = _blocked(allowed)
    wrong = draw.order([(row, column) for row in range(size) for column in range(size)])[: draw.whole(2, 3)]
    cells = Cells(names, names, right ^ frozenset(wrong), right)
    return Exercise(
        "mask",
        note
        + translate(
            "This mask should be {rule}. Rows are queries, columns are keys, ✕ is blocked. Which {count} "
            "cells are wrong?",
            rule=translate(_RULES[kind]),
            count=len(wrong),
        ),
        (),
        cells,
        _mask_hints(kind, names, right, wrong[0]),
        translate(
            "The mask is {rule}. That blocks {count} of {size}·{size} = {product} cells.",
            rule=translate(_RULES[kind]),
            count=len(right),
            size=size,
            product=size * size,
        ),
        _mask_slips(kind, causal, real, right),
        translate("Press them."),
    )


def _blocked(allowed: Tensor) -> frozenset[tuple[int, int]]:
    return frozenset((int(row), int(column)) for row, column in (~allowed).nonzero())


def _mask_hints(
    kind: str, names: tuple[str, ...], right: frozenset[tuple[int, int]], cell: tuple[int, int]
) -> tuple[str, ...]:
    rule = {
        "causal": translate("Everything above the diagonal is blocked; the diagonal itself is free."),
        "padding": translate("The columns of [PAD] are blocked from top to bottom, and nothing else."),
        "both": translate("Everything above the diagonal is blocked, and the columns of [PAD] from top to bottom."),
    }[kind]
    state = translate("blocked") if cell in right else translate("free")
    return (
        rule,
        translate(
            "“{query}” → “{key}” is wrong to begin with: it has to be {state}.",
            query=names[cell[0]],
            key=names[cell[1]],
            state=state,
        ),
    )


def _mask_slips(kind: str, causal: Tensor, real: Tensor, right: frozenset[tuple[int, int]]) -> tuple[Slip, ...]:
    size = len(causal)
    everything = frozenset((row, column) for row in range(size) for column in range(size))
    slips = [
        Slip(
            frozenset((column, row) for row, column in right),
            translate("did you swap rows and columns? Rows are queries."),
        ),
        Slip(everything - right, translate("did you mark the allowed cells instead of the blocked ones?")),
    ]
    if kind == "both":
        slips += [
            Slip(_blocked(causal), translate("that is causal; the padding is still open.")),
            Slip(_blocked(real), translate("that blocks the padding; words can still look ahead.")),
        ]
    if kind != "padding":
        diagonal = frozenset((at, at) for at in range(size))
        free = translate("each word may look at itself: the diagonal is free.")
        if kind == "both":
            free = translate("each word may look at itself: the diagonal is free, except for [PAD].")
        slips.append(Slip(right | diagonal, free))
    return tuple(slips)


def permute(scene: Scene, seed: int) -> Exercise:
    """Ask for an old row's new place after a shuffle."""
    draw = Draw("permute", seed, scene.text)
    words, note = of_two_words(scene)
    count = min(_MOST_WORDS + 1, len(words))
    start = draw.below(len(words) - count + 1)
    words, names = words[start : start + count], named(words[start : start + count])
    order = draw.order(range(count))
    while order == sorted(order):
        order = draw.order(range(count))
    old, new = (_outputs(some) for some in (words, [words[at] for at in order]))
    # A word that moved; the shuffle moves at least one.
    row = draw.pick([at for at in range(count) if order[at] != at])
    fits = (new - old[row]).abs().amax(dim=-1) < EXACT
    right = frozenset(int(at) for at in fits.nonzero().flatten())
    place = order.index(row)
    return Exercise(
        "permute",
        note
        + translate(
            "Without positions, attention runs over these words in their order ({rows}), and once more "
            "shuffled ({shuffled}). Which row of the new output equals row {row} of the old?",
            rows=_rows(names),
            shuffled=_rows([names[at] for at in order]),
            row=row,
        ),
        (),
        OptionAnswer.written(lambda: tuple(translate("row {row}", row=at) for at in range(count)), right),
        (
            translate(
                "Without positions and without a mask, nothing knows where a word is: its output moves along with it."
            ),
            translate(
                "Row {row} of the old is the output of “{word}”. Where is that word now?", row=row, word=names[row]
            ),
        ),
        translate(
            "“{word}” went from row {row} to row {place}, and its output with it: {before} before, {after} after.",
            word=names[row],
            row=row,
            place=place,
            before=_as_text(old[row]),
            after=_as_text(new[place]),
        ),
        (
            Slip(row, translate("the words moved, and their outputs with them.")),
            Slip(order[row], translate("did you go the other way? That is where the word now in this row came from.")),
        ),
    )


def _outputs(words: Sequence[str]) -> Tensor:
    """Return (word, d_model), without positions."""
    return Scratch(d_model=4, heads=1, positions="none").trace(" ".join(words)).output


def _rows(names: Sequence[str]) -> str:
    return ", ".join(translate("row {row} “{word}”", row=at, word=name) for at, name in enumerate(names))


def _as_text(vector: Tensor) -> str:
    return f"({', '.join(f'{one:.2f}' for one in vector.tolist())})".replace("-", "−")


def path(scene: Scene, seed: int) -> Exercise:
    """Ask for the steps between two words, recurrent and parallel."""
    draw = Draw("path", seed, scene.text)
    words, note = of_two_words(scene)
    names, size = named(words), len(words)
    # At least two apart if there is room: one step is the same for both.
    later = draw.whole(min(2, size - 1), size - 1)
    earlier, asked = draw.below(max(1, later - 1)), draw.pick(tuple(_ASKED))
    # Per step, a position of the chain sees itself and the one before; with attention, all before.
    chain = masks.combine(masks.causal(size), masks.sliding_window(size, 2))
    recurrent, attention = _steps(chain, later, earlier), _steps(masks.causal(size), later, earlier)
    right = {"recurrent": recurrent, "more": recurrent - attention}[asked]
    return Exercise(
        "path",
        note
        + translate(
            "Information from “{word}” (word {earlier}) has to reach “{other}” (word {later}; words count "
            "from 0). {question}",
            word=names[earlier],
            earlier=earlier,
            other=names[later],
            later=later,
            question=translate(_ASKED[asked]),
        ),
        (),
        NumberAnswer(float(right), WHOLE),
        (
            translate(
                "A recurrent network goes from each word to the next; in attention each word looks at all at once."
            ),
            translate(
                "Word {later} comes {later} − {earlier} = {difference} after word {earlier}.",
                later=later,
                earlier=earlier,
                difference=later - earlier,
            ),
        ),
        {
            "recurrent": translate(
                "Recurrent: {later} − {earlier} = {recurrent}; attention: {attention}.",
                later=later,
                earlier=earlier,
                recurrent=recurrent,
                attention=attention,
            ),
            "more": translate(
                "Recurrent: {recurrent}; attention: {attention}. The difference: {recurrent} − {attention} = "
                "{difference}.",
                recurrent=recurrent,
                attention=attention,
                difference=recurrent - attention,
            ),
        }[asked],
        _path_slips(asked, earlier, later),
    )


def _path_slips(asked: str, earlier: int, later: int) -> tuple[Slip, ...]:
    far = later - earlier
    between = Slip(far - 1, translate("did you count the words in between? The step to the word itself counts, too."))
    ends = Slip(far + 1, translate("did you count the words, and not the steps between them?"))
    return {
        "recurrent": (between, ends, Slip(1, translate("that is attention; a recurrent network goes word by word."))),
        "more": (Slip(far, translate("that is the recurrent network alone; attention takes one step.")), ends),
    }[asked]


def _steps(allowed: Tensor, query: int, key: int) -> int:
    reached, taken = torch.arange(len(allowed)) == key, 0
    while not reached[query]:
        reached, taken = (allowed & reached).any(dim=-1), taken + 1
    return taken
