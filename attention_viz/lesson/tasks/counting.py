"""Tasks that count: shapes, weights, and memory of blockwise attention."""

import math

import torch
from torch import Tensor

from attention_viz.lesson.exercise import Exercise, NumberAnswer, OptionAnswer, Slip
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.tasks.drawing import WHOLE, Draw
from attention_viz.lesson.translation import translate
from attention_viz.lesson.words import counted
from attention_viz.operation.attention import Attention, attend

_BLOCKS = (16, 32, 64)
_HEADS = (2, 4, 8, 12)
_EACH = "Each word has a weight for each word: with n words a head has n·n weights."
_ASKED = {
    "once": "How many weights does the work in blocks hold at once?",
    "times": "How many such blocks fill the whole matrix?",
}


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
    weights, length = _call(target, source).weights, counted(source, "word")
    start = translate(
        "The source has {words}; the target, its translation, has {target} words. Marks at "
        "their ends don't count here.",
        words=length,
        target=target,
    )
    hints = (
        translate("The words of the target are the queries, those of the source are the keys."),
        translate("The weights have one row per query and one column per key."),
    )
    working = translate(
        "{target} queries look at {words}, so the weights are {target} × {source}: {target}·{source} = {product}.",
        target=target,
        words=length,
        source=source,
        product=weights.numel(),
    )
    if draw.below(2):
        question, answer = (
            translate("How many weights does one head of cross-attention have?"),
            NumberAnswer(float(weights.numel()), WHOLE),
        )
        hints = (*hints, translate("There are {target} rows and {source} columns.", target=target, source=source))
        slips = _looks_at_itself(target**2, source**2)
        slips += (
            Slip(target + source, translate("did you add rows and columns? Multiply them.")),
            Slip((target + 1) * (source + 1), translate("did you count marks at the ends?")),
        )
    else:
        question = translate("What shape do the weights of one head of cross-attention have, queries first?")
        options = draw.order([(target, source), (source, target), (target, target), (source, source)])
        right = options.index((weights.shape[-2], weights.shape[-1]))
        answer = OptionAnswer(tuple(f"{rows} × {columns}" for rows, columns in options), frozenset({right}))
        slips = _looks_at_itself(options.index((target, target)), options.index((source, source)))
        slips += (
            Slip(options.index((source, target)), translate("that has the keys first; the target has the queries.")),
        )
    return Exercise("shape", f"{start} {question}", (), answer, hints, working, slips)


def _looks_at_itself(target: int, source: int) -> tuple[Slip, ...]:
    return (
        Slip(target, translate("that is the target looking at itself.")),
        Slip(source, translate("that is the source looking at itself.")),
    )


def cost(scene: Scene, seed: int) -> Exercise:
    """Ask for several heads' number of weights, or a longer text's factor."""
    draw = Draw("cost", seed, scene.text)
    count = len(scene.words)
    return _longer(count, draw.whole(2, 10)) if draw.below(2) else _layer(count, draw.pick(_HEADS))


def _longer(count: int, longer: int) -> Exercise:
    # Only the shape is needed, so the weights of the longer text are never computed.
    found = math.prod(_call(count * longer, count * longer).shape) / math.prod(_call(count, count).shape)
    return Exercise(
        "cost",
        translate(
            "The chosen sentence has {words}; another text is {longer} times as long. How many times as many weights "
            "does a head have over it?",
            words=counted(count, "word"),
            longer=longer,
        ),
        (),
        NumberAnswer(found, WHOLE),
        (
            translate(_EACH),
            translate("There are {longer} times as many rows, and {longer} times as many columns.", longer=longer),
        ),
        translate(
            "{longer} times as many rows and columns: {longer}·{longer} = {product}.", longer=longer, product=longer**2
        ),
        (
            Slip(longer, translate("there are more columns, too, not only more rows.")),
            Slip(2 * longer, translate("did you add? Multiply instead.")),
            Slip(2**longer, translate("did you take the power the wrong way round?")),
        ),
    )


def _layer(count: int, heads: int) -> Exercise:
    found = _call(count, count, heads).weights.numel()
    return Exercise(
        "cost",
        translate(
            "The chosen sentence has {words}. How many weights does a layer of {heads} heads have over it?",
            words=counted(count, "word"),
            heads=heads,
        ),
        (),
        NumberAnswer(float(found), WHOLE),
        (
            translate(_EACH),
            translate(
                "Here a head has {count}·{count} = {product}; there are {heads} heads.",
                count=count,
                product=count**2,
                heads=heads,
            ),
        ),
        translate(
            "{heads} heads of {count}·{count} weights: {heads}·{count}·{count} = {product}.",
            heads=heads,
            count=count,
            product=found,
        ),
        (
            Slip(count * heads, translate("did you count one weight per word? Each word has one for each word.")),
            Slip(count * count, translate("that is one head; there are more.")),
            Slip(count * count + heads, translate("did you add the heads? Multiply by them.")),
            Slip(count * heads * heads, translate("did you square the heads, and not the words?")),
            Slip((count * heads) ** 2, translate("did you square the heads, too? Only the words meet each other.")),
        ),
    )


def memory(scene: Scene, seed: int) -> Exercise:
    """Ask for blockwise attention's memory beside the whole matrix."""
    draw = Draw("memory", seed, scene.text)
    block, times = draw.pick(_BLOCKS), max(2, len(scene.words))
    count, asked = block * times, draw.pick(tuple(_ASKED))
    # The block is computed; for the whole matrix the shape is enough.
    whole = _call(count, count)
    tile = whole.tile(0, slice(0, block), slice(0, block)).numel()
    everything = math.prod(whole.shape)
    right = {"once": tile, "times": everything // tile}[asked]
    return Exercise(
        "memory",
        translate(
            "Over a text of {count} tokens a head works in blocks of {block} queries × {block} keys, one "
            "after the other. {question}",
            count=count,
            block=block,
            question=translate(_ASKED[asked]),
        ),
        (),
        NumberAnswer(float(right), WHOLE),
        (
            translate(
                "A block has {block} rows and {block} columns; the whole matrix has {count} of each.",
                block=block,
                count=count,
            ),
            translate(
                "{count} / {block} = {times}: that many blocks fit side by side, and as many below each other.",
                count=count,
                block=block,
                times=times,
            )
            if asked == "times"
            else translate("The number of weights is rows times columns."),
        ),
        {
            "once": translate("One block: {block}·{block} = {product}.", block=block, product=tile),
            "times": translate(
                "One block: {block}·{block}. The whole matrix: {count}·{count}. In blocks: ({count} / "
                "{block})·({count} / {block}) = {times}·{times} = {product}.",
                block=block,
                count=count,
                times=times,
                product=everything // tile,
            ),
        }[asked],
        _memory_slips(asked, block, count),
    )


def _memory_slips(asked: str, block: int, count: int) -> tuple[Slip, ...]:
    added, times = translate("did you add the sides? Multiply them."), count // block
    return {
        "once": (
            Slip(block * count, translate("that is a strip of whole rows; a block is cut off on both sides.")),
            Slip(count * count, translate("that is the whole matrix, which is never held.")),
            Slip(2 * block, added),
            Slip(block, translate("that is one side of the block.")),
        ),
        "times": (
            Slip(times, translate("that many blocks fit side by side, and as many below each other.")),
            Slip(2 * times, added),
            Slip(count * count, translate("that is the number of weights in the whole matrix.")),
        ),
    }[asked]
