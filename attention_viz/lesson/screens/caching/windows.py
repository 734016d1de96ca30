"""Windows and sinks: the loss of a model that may look at a few tokens only, and the worth of the first token.

Sources: Beltagy et al. 2020, "Longformer", section 3.1 (windows); Xiao et al. 2024, "Efficient Streaming Language
Models with Attention Sinks", section 3 (sinks). Unlike there, the kept tokens keep their positions.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import plotly.graph_objects as go
import torch
from jaxtyping import Bool, Float
from plotly.subplots import make_subplots
from torch import Tensor

from attention_viz.edits.kinds.masks import Allow
from attention_viz.lesson.language import Twice
from attention_viz.lesson.lesson import Ask, Control, Lesson, Shown
from attention_viz.lesson.scene import Scene
from attention_viz.lesson.translation import translate
from attention_viz.lesson.words import in_words, signed, texts, weight_texts
from attention_viz.operation.masks import causal, sliding_window
from attention_viz.trace.once import once, once_for_each
from attention_viz.trace.spelling import weight_text
from attention_viz.trace.trace import Trace
from attention_viz.views.style.axes import labelled_axis, paint
from attention_viz.views.style.blocks import cells, hover_texts
from attention_viz.views.style.marks import add_hatch
from attention_viz.views.style.scale import colour_bar, lying_bar, quarters
from attention_viz.views.style.theme import ThemeName, palette
from attention_viz.views.style.wording import escaped, token_names

# What follows the reader's text, so that any is longer than a window.
PASSAGE = (
    "It had rained for nine days, and no one could cross the old bridge any more. A woman sat at the window and "
    "watched the water rise. Her brother had gone to the village in the morning to buy bread, and he had not come back."
)
_ENDS = (".", "!", "?", "…", "。", "؟")
# Of the real model, and of the toy, whose text is short; and how often that is repeated.
_WIDTHS, _TOY_WIDTHS, _TIMES = (4, 8, 16, 32), (3, 4, 6, 8), 4
# Letters of the text in a sentence.
_QUOTED = 600
# Two probabilities closer than this are written as alike.
_ALIKE = 0.005
# Pixels: a row, and what is around a matrix.
_ROW, _AROUND = 26, 120


class Measured(NamedTuple):
    """A mask's run: each true next token's probability, and every head's row of weights at the last word."""

    likely: Float[Tensor, " prediction"]
    rows: Mapping[int, Float[Tensor, "head key"]]


@dataclass(frozen=True, eq=False)
class Windowed:
    """A text's runs through a language model that may look at `width` tokens, chosen in three ways."""

    scene: Scene
    width: int

    @once
    def text(self) -> str:
        """The reader's text and a passage; of the toy, its own words again and again."""
        twice = Twice(self.scene)
        if not twice.real:
            return " ".join([twice.typed] * _TIMES)
        return f"{twice.typed}{'' if twice.typed.endswith(_ENDS) else '.'} {PASSAGE}"

    @property
    def quoted(self) -> str:
        """The text for a sentence."""
        return in_words(self.text, _QUOTED)

    @once
    def trace(self) -> Trace:
        """The run without a limit."""
        return self.scene.run(Twice(self.scene).model, self.text)

    @property
    def labels(self) -> Mapping[str, str]:
        """Name the ways to choose tokens, in an answer."""
        few = self.width - 1
        return {
            "last": translate("last {count}", count=self.width),
            "sink": translate("first + last {count}", count=few),
            "start": translate("first {count} + itself", count=few),
        }

    @property
    def asking(self) -> int:
        """The last word's position; the last token's if none is a word."""
        texts = self.trace.query_tokens().texts
        return next((at for at in range(len(texts) - 1, 0, -1) if texts[at].strip().isalpha()), len(texts) - 1)

    @property
    def taken(self) -> float:
        """The first token's share of the last word's weights, the mean over all heads."""
        return float(torch.cat([rows[:, 0] for rows in self.measured("all").rows.values()]).mean())

    def allowed(self, way: str) -> Bool[Tensor, "query key"]:
        """Return a way's mask: no token looks at more than `width` tokens."""
        count, few = len(self.trace.query_tokens()), self.width - 1
        place = torch.arange(count)
        if way == "all":
            return causal(count)
        if way == "last":
            return causal(count) & sliding_window(count, self.width)
        if way == "sink":
            return causal(count) & (sliding_window(count, few) | (place == 0))
        return causal(count) & ((place < few) | torch.eye(count, dtype=torch.bool))

    def measured(self, way: str) -> Measured:
        """Run the model with a way's mask in all layers, or without a limit ("all"); once per text."""
        known = _known(self.trace)
        if (way, self.width) not in known:
            edits = (Allow(self.allowed(way)),)
            run = self.trace if way == "all" else self.scene.run(Twice(self.scene).model, self.text, edits=edits)
            known[way, self.width] = _measure(run, self.asking)
        return known[way, self.width]

    def mean(self, way: str) -> float:
        """Return the mean probability of the true next token, where the window has left a token out."""
        return float(self.measured(way).likely[self.width :].mean())

    @once
    def sink(self) -> tuple[int, int]:
        """The layer and head whose weight from the last word to the first token is largest."""
        shares = {
            (layer, head): float(share)
            for layer, rows in self.measured("all").rows.items()
            for head, share in enumerate(rows[:, 0])
        }
        return max(shares, key=shares.__getitem__)

    def row(self, way: str) -> Float[Tensor, " key"]:
        """Return the last word's weights in that head."""
        layer, head = self.sink
        return self.measured(way).rows[layer][head]

    def name(self, position: int) -> str:
        """Shorten a token for a sentence."""
        return in_words(self.trace.query_tokens().names[position])


@once_for_each
def _known(trace: Trace) -> dict[tuple[str, int], Measured]:
    """Hold a text's measurements."""
    return {}


def _measure(run: Trace, asking: int) -> Measured:
    ids = torch.tensor(run.query_tokens().numbers, device=run.output.device)
    shares = run.output[:-1].detach().float().softmax(dim=-1)
    rows = {
        layer: run.attention(layer).rows([asking]).weights[:, 0].detach().float().cpu() for layer in run.layer_numbers()
    }
    return Measured(shares.gather(1, ids[1:, None])[:, 0].cpu(), rows)


def _windowed(scene: Scene) -> Windowed:
    return Windowed(scene, int(_CONTROL_WINDOWS.value(scene)))


def _ask_windows(scene: Scene) -> Ask:
    found = _windowed(scene)
    labels, means = found.labels, [found.mean(way) for way in found.labels]
    best = [*labels.values()][means.index(max(means))]
    whole = found.mean("all")
    return Ask(
        translate(
            "Each token may look at {count} tokens only, itself included. Which {count} leave the best predictions?",
            count=found.width,
        ),
        translate(
            "Best: {option}. The true next token gets {best}, and {all} without a limit",
            option=best,
            best=weight_text(max(means)),
            all=weight_text(whole),
        ),
        translate("{model}: mean probability of the true next token", model=Twice(scene).model),
        tuple(labels.values()),
        tuple(means),
        shown=tuple(map(weight_text, means)),
        whole=max(whole, *means) or 1.0,
        premise=translate("Text: “{text}”", text=found.quoted),
        reasons=tuple(
            _why_not(way, mean) if mean < max(means) else "" for way, mean in zip(labels, means, strict=True)
        ),
    )


def _why_not(way: str, mean: float) -> str:
    weight = weight_text(mean)
    if way == "last":
        return translate("Without the first token, the true next token gets {weight}.", weight=weight)
    if way == "start":
        return translate("Without the tokens just before, the true next token gets {weight}.", weight=weight)
    return translate("With one recent token fewer, the true next token gets {weight}.", weight=weight)


def _show_windows(scene: Scene) -> Shown:
    found, twice = _windowed(scene), Twice(scene)
    layer, head = found.sink
    layers, before, after = len(found.trace.layer_numbers()), found.row("all"), found.row("last")
    other = int((after - before).argmax())
    facts = {
        **texts(model=twice.model, note=twice.note, text=found.quoted, width=found.width),
        **texts(fewer=found.width - 1, layer=layer, head=head, layers=layers, reach=layers * (found.width - 1)),
        **weight_texts(all=found.mean("all"), last=found.mean("last"), sink=found.mean("sink")),
        **weight_texts(taken=found.taken, share=before[0], before=before[other], after=after[other]),
        "word": found.name(found.asking),
        "other": found.name(other),
        "value": _value(found),
    }
    says = translate(
        "Mean probability of the true next token: {all} without a limit, {last} with the last {width} tokens, {sink} "
        "with the first and the last {fewer}.",
        **{name: facts[name] for name in ("all", "last", "width", "sink", "fewer")},
    )
    return Shown(facts, _drawn(found, scene.theme), says)


def _value(found: Windowed) -> str:
    layer, head = found.sink
    lengths = found.trace.attention(layer).head(head).value.norm(dim=-1)
    numbers = {"length": signed(float(lengths[0]), 2), "others": signed(float(lengths[1:].mean()), 2)}
    if lengths[0] < lengths[1:].mean():
        return translate(
            "It fetches little there: that value is {length} long, and others {others} on average.", **numbers
        )
    return translate("The value there is {length} long, and others {others} on average.", **numbers)


def _drawn(found: Windowed, theme: ThemeName) -> go.Figure:
    """Draw each way's probabilities, and below them the last word's weights; the tokens are the same."""
    colours, tokens = palette(theme), token_names(found.trace.query_tokens())
    ways, names = ("all", *found.labels), [translate("all"), *found.labels.values()]
    likely = torch.stack([found.measured(way).likely for way in ways])
    # The first token isn't predicted.
    likely = torch.cat([torch.full((len(ways), 1), torch.nan), likely], dim=1).numpy()
    weights = torch.stack([found.row(way) for way in ways]).numpy()
    layer, head = found.sink
    titles = (
        translate("Probability of each token"),
        translate("Weights of “{word}” in head {head}", word=escaped(found.name(found.asking)), head=f"{layer}·{head}"),
    )
    height = 2 * (_ROW * len(ways) + _AROUND)
    figure = make_subplots(2, 1, vertical_spacing=_AROUND / height, subplot_titles=titles)
    for row, numbers in enumerate((likely, weights), 1):
        hover = hover_texts(
            names,
            tokens,
            lambda way, token, i, j, n=numbers: "" if math.isnan(n[i, j]) else f"{way}, {token}: {n[i, j]:.6f}",
        )
        look: dict[str, Any] = {"showscale": row == 1, "hoverongaps": False, "ygap": 2}
        bar = {**colour_bar(""), **lying_bar(0, 1), "tickvals": quarters(1.0)}
        figure.add_trace(cells(numbers, (0, 1), colours.weights, hover, colorbar=bar, **look), row=row, col=1)
        figure.update_xaxes(**labelled_axis(tokens, "", colours.muted, colours, vertical=False), row=row, col=1)
        figure.update_yaxes(**labelled_axis(names, "", colours.ink, colours, vertical=True), row=row, col=1)
    hatched = go.Figure()
    open_cells = torch.stack([found.allowed(way)[found.asking] for way in ways])
    add_hatch(hatched, ~open_cells.numpy(), colours, key=False)
    for lines in hatched.select_traces():
        figure.add_trace(lines, row=2, col=1)
    # Before this line, no window has left a token out.
    line = {"color": colours.ink, "width": 1, "dash": "dot"}
    edge = {"x0": found.width + 0.5, "x1": found.width + 0.5, "y0": -0.5, "y1": len(ways) - 0.5}
    figure.add_shape(type="line", line=line, row=1, col=1, **edge)
    paint(figure, colours, height=height, margin={"l": 8, "r": 8, "t": 44, "b": 48})
    figure.update_annotations(font={"size": 12, "color": colours.ink}, x=0, xanchor="left")
    return figure


def _options(scene: Scene) -> Mapping[str, str]:
    return {str(one): str(one) for one in (_WIDTHS if Twice(scene).real else _TOY_WIDTHS)}


_CONTROL_WINDOWS = Control("Window", _options, lambda scene: [*_options(scene)][1], ordered=True)

LESSONS = {
    "windows": Lesson(
        "Windows and sinks",
        7,
        _ask_windows,
        _show_windows,
        _CONTROL_WINDOWS,
        "window",
        deeper=("masks", "heads"),
        idea=(
            "In a long text, it costs much to look at all tokens before. Many models let each token look at a few "
            "only, its window. Remember that each row of weights adds up to 1, whatever a head finds there."
        ),
    ),
}
