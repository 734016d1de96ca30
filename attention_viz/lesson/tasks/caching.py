"""Tasks about a cache: the numbers that it holds, and the tokens that a window shows."""

import torch

from attention_viz.lesson.exercise import Exercise, NumberAnswer, Slip
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.tasks.drawing import WHOLE, Draw
from attention_viz.lesson.translation import translate
from attention_viz.operation.masks import causal, sliding_window

# Query heads, and sets of keys and values that divide them.
_SHARED = ((8, 2), (8, 4), (12, 3), (12, 4), (16, 2), (16, 4))
_WIDTHS, _LAYERS = (4, 5, 8, 10), (2, 3, 4, 6)


def stored(scene: Scene, seed: int) -> Exercise:
    """Ask how many numbers a cache holds after the reader's text."""
    draw = Draw("stored", seed, scene.text)
    tokens, layers, width = len(scene.words), draw.pick(_LAYERS), draw.pick(_WIDTHS)
    heads, sets = draw.pick(_SHARED)
    cache = torch.empty(layers, 2, sets, tokens, width)
    found, numbers = cache.numel(), {"layers": layers, "sets": sets, "width": width, "tokens": tokens}
    return Exercise(
        "stored",
        translate(
            "A model has {layers} layers. In each, {heads} query heads share {sets} sets of keys and values, and each "
            "key and value has {width} numbers. The chosen sentence counts as {tokens} tokens here, one per "
            "word. How many numbers does the cache hold after it?",
            heads=heads,
            **numbers,
        ),
        (),
        NumberAnswer(float(found), WHOLE),
        (
            translate("Queries aren't stored, so the number of query heads doesn't count."),
            translate("For each token, a layer stores {sets} keys and {sets} values.", sets=sets),
            translate("That makes 2·{sets}·{width} numbers per token and layer.", sets=sets, width=width),
        ),
        translate(
            "Keys and values, sets, width, layers, tokens: 2·{sets}·{width}·{layers}·{tokens} = {found}.",
            found=found,
            **numbers,
        ),
        (
            Slip(found // 2, translate("did you forget the values? Each set has a key and a value per token.")),
            Slip(found // sets * heads, translate("did you count a set for each query head? They share sets.")),
            Slip(found // layers, translate("that is one layer; each layer stores its own.")),
            Slip(found // tokens, translate("that is one token; all are stored.")),
            Slip(
                found + layers * heads * width * tokens,
                translate("did you count the queries, too? They aren't stored."),
            ),
        ),
    )


def window(scene: Scene, seed: int) -> Exercise:
    """Ask how many tokens a window shows, or how far back several layers reach."""
    draw = Draw("window", seed, scene.text)
    width = draw.whole(4, 9)
    return _reach(width, draw.whole(2, 5)) if draw.below(2) else _seen(width, draw.whole(2, 4), draw.whole(20, 60))


def _reach(width: int, layers: int) -> Exercise:
    far, one = layers * (width - 1), sliding_window(layers * width + 1, width)
    seen = (one & causal(len(one))).float()
    found = int(torch.linalg.matrix_power(seen, layers)[-1].count_nonzero()) - 1
    values = {"layers": layers, "width": width, "fewer": width - 1}
    return Exercise(
        "window",
        translate(
            "Each token looks at {width} tokens: itself and the {fewer} before it. After {layers} layers, from how "
            "many tokens back can something have reached it?",
            **values,
        ),
        (),
        NumberAnswer(float(found), WHOLE),
        (
            translate("In one layer, something comes from at most {fewer} tokens back.", fewer=width - 1),
            translate("That token, too, looked {fewer} tokens back, one layer before.", fewer=width - 1),
        ),
        translate("Each layer adds {fewer} tokens: {layers}·{fewer} = {found}.", found=far, **values),
        (
            Slip(layers * width, translate("did you count the token itself in each layer? It isn't a step back.")),
            Slip(width - 1, translate("that is one layer; each layer adds as much.")),
            Slip(far + 1, translate("did you count the token itself, too? The question is how far back.")),
            Slip(width, translate("that is how many tokens one layer shows, with the token itself.")),
            Slip((width - 1) ** layers, translate("did you multiply the layers' steps? They add up.")),
        ),
    )


def _seen(width: int, kept: int, place: int) -> Exercise:
    count = place + 1
    mask = causal(count) & (sliding_window(count, width) | (torch.arange(count) < kept))
    values = {"width": width, "kept": kept, "number": count}
    return Exercise(
        "window",
        translate(
            "Each token looks at the last {width} tokens, itself included, and at the first {kept}, which stay as "
            "sinks. How many tokens does token number {number} look at?",
            **values,
        ),
        (),
        NumberAnswer(float(mask[-1].count_nonzero()), WHOLE),
        (
            translate("Does the window reach back to the beginning of the text?"),
            translate("Count the window and the sinks: no token is in both."),
        ),
        translate("The window and the sinks: {width} + {kept} = {found}.", found=width + kept, **values),
        (
            Slip(width, translate("did you forget the sinks? They stay in sight.")),
            Slip(width + kept + 1, translate("did you count the token itself twice? It is in the window.")),
            Slip(width + kept - 1, translate("did you leave out the token itself? It is in the window.")),
            Slip(count, translate("that would be without a window.")),
            Slip(width * kept, translate("did you multiply? Add the sinks to the window.")),
            Slip(kept, translate("that is the sinks alone.")),
        ),
    )
