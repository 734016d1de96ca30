"""Tasks that count: shapes, weights, and memory of blockwise attention."""

import math

import torch
from torch import Tensor

from attention_viz.lesson.exercise import Exercise, NumberAnswer, OptionAnswer, Slip
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.tasks.drawing import WHOLE, Draw
from attention_viz.operation.attention import Attention, attend

_BLOCKS = (16, 32, 64)
_HEADS = (2, 4, 8, 12)


def _call(queries: int, keys: int, heads: int = 1) -> Attention:
    """Attend with one-number vectors: only the shape matters."""
    return attend(_blank(heads, queries), _blank(heads, keys), _blank(heads, keys))


def _blank(heads: int, count: int) -> Tensor:
    return torch.zeros(heads, count, 1)


def shape(scene: Scene, seed: int) -> Exercise:
    """Ask for the shape or number of cross-attention's weights."""
    draw = Draw("shape", seed, scene.text)
    source = len(scene.words)
    target = draw.pick([one for one in range(2, 10) if one != source])
    weights, length = _call(target, source).weights, _counted(source)
    start = (
        f"The source, which is read, is your text of {length}; the target, which is said, has {target} words. Marks "
        "at their ends don't count here."
    )
    hints = (
        "The target asks: its words are the queries. The source is looked at: its words are the keys.",
        "The weights have a row for each query and a column for each key.",
    )
    working = (
        f"{target} queries look at {length}, so the weights are {target} × {source}: "
        f"{target}·{source} = {weights.numel()}."
    )
    if draw.below(2):
        question, answer = (
            "How many weights has one head of cross-attention?",
            NumberAnswer(float(weights.numel()), WHOLE),
        )
        hints = (*hints, f"There are {target} rows and {source} columns.")
        slips = _looks_at_itself(target**2, source**2)
        slips += (
            Slip(target + source, "did you add where rows and columns are multiplied?"),
            Slip((target + 1) * (source + 1), "did you count marks at the ends?"),
        )
    else:
        question = "Which shape have the weights of one head of cross-attention, queries first?"
        options = draw.order([(target, source), (source, target), (target, target), (source, source)])
        right = options.index((weights.shape[-2], weights.shape[-1]))
        answer = OptionAnswer(tuple(f"{rows} × {columns}" for rows, columns in options), frozenset({right}))
        slips = _looks_at_itself(options.index((target, target)), options.index((source, source)))
        slips += (Slip(options.index((source, target)), "that has the keys first; the target asks."),)
    return Exercise("shape", f"{start} {question}", (), answer, hints, working, slips)


def _counted(count: int) -> str:
    return f"{count} word{'s' if count > 1 else ''}"


def _looks_at_itself(target: int, source: int) -> tuple[Slip, ...]:
    return (
        Slip(target, "that is the target looking at itself."),
        Slip(source, "that is the source looking at itself."),
    )


_EACH = "Each word has a weight for each word: with n words a head has n·n weights."


def cost(scene: Scene, seed: int) -> Exercise:
    """Ask for several heads' number of weights, or a longer text's factor."""
    draw = Draw("cost", seed, scene.text)
    count = len(scene.words)
    return _longer(count, draw.whole(2, 10)) if draw.below(2) else _layer(count, draw.pick(_HEADS))


def _longer(count: int, longer: int) -> Exercise:
    # The shape tells: weights of a text many times as long need not be there to be counted.
    found = math.prod(_call(count * longer, count * longer).shape) / math.prod(_call(count, count).shape)
    return Exercise(
        "cost",
        f"Your text has {_counted(count)}. How many times as many weights has a head over a text that is "
        f"{longer} times as long?",
        (),
        NumberAnswer(found, WHOLE),
        (_EACH, f"There are {longer} times as many rows, and {longer} times as many columns."),
        f"{longer} times as many rows and columns: {longer}·{longer} = {longer**2}.",
        (
            Slip(longer, "there are more rows and more columns, too."),
            Slip(2 * longer, "did you add where there is to be multiplied?"),
            Slip(2**longer, "did you take the power the wrong way round?"),
        ),
    )


def _layer(count: int, heads: int) -> Exercise:
    found = _call(count, count, heads).weights.numel()
    return Exercise(
        "cost",
        f"Your text has {_counted(count)}. How many weights has a layer of {heads} heads over it?",
        (),
        NumberAnswer(float(found), WHOLE),
        (_EACH, f"Here a head has {count}·{count} = {count**2}; there are {heads} heads."),
        f"{heads} heads of {count}·{count} weights: {heads}·{count}·{count} = {found}.",
        (
            Slip(count * heads, "did you count a weight a word? Each word has one for each word."),
            Slip(count * count, "that is one head; there are more."),
            Slip(count * count + heads, "did you add the heads where there is to be multiplied?"),
            Slip(count * heads * heads, "did you square the heads, and not the words?"),
            Slip((count * heads) ** 2, "did you square the heads, too? Only the words meet each other."),
        ),
    )


_ASKED = {
    "once": "How many weights does the work in blocks hold at once?",
    "whole": "How many weights would the whole matrix hold?",
    "times": "How many such blocks fill the whole matrix?",
}


def memory(scene: Scene, seed: int) -> Exercise:
    """Ask for blockwise attention's memory beside the whole matrix."""
    draw = Draw("memory", seed, scene.text)
    block, times = draw.pick(_BLOCKS), max(2, len(scene.words))
    count, asked = block * times, draw.pick(tuple(_ASKED))
    # The rectangle is computed; of the whole matrix only the shape is asked.
    whole = _call(count, count)
    tile = whole.tile(0, slice(0, block), slice(0, block)).numel()
    everything = math.prod(whole.shape)
    right = {"once": tile, "whole": everything, "times": everything // tile}[asked]
    return Exercise(
        "memory",
        f"Over a text of {count} tokens a head works in blocks of {block} queries × {block} keys, one after the other. "
        f"{_ASKED[asked]}",
        (),
        NumberAnswer(float(right), WHOLE),
        (
            f"A block has {block} rows and {block} columns; the whole matrix has {count} of each.",
            f"{count} / {block} = {times}: so many blocks lie side by side, and as many one below the other."
            if asked == "times"
            else "How many weights there are is the rows times the columns.",
        ),
        {
            "once": f"One block: {block}·{block} = {tile}.",
            "whole": f"The whole matrix: {count}·{count} = {everything}.",
            "times": f"One block: {block}·{block}. The whole matrix: {count}·{count}. Beside each other: "
            f"({count} / {block})·({count} / {block}) = {times}·{times} = {everything // tile}.",
        }[asked],
        _memory_slips(asked, block, count),
    )


def _memory_slips(asked: str, block: int, count: int) -> tuple[Slip, ...]:
    added, times = "did you add the sides where there is to be multiplied?", count // block
    return {
        "once": (
            Slip(block * count, "that is a strip of whole rows; a block is cut off on both sides."),
            Slip(count * count, "that is the whole matrix, which is never held."),
            Slip(2 * block, added),
            Slip(block, "that is one side of the block."),
        ),
        "whole": (
            Slip(block * block, "that is one block."),
            Slip(count * block, "that is a strip; the matrix has as many columns as rows."),
            Slip(2 * count, added),
        ),
        "times": (
            Slip(times, "that many blocks lie side by side; as many lie one below the other."),
            Slip(2 * times, added),
            Slip(count * count, "that is how many weights the whole matrix holds."),
        ),
    }[asked]
