"""Fewer keys and values: what a model stores per token, and which heads can share it."""

from collections.abc import Mapping
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from attention_viz.lesson.language import Twice
from attention_viz.lesson.lesson import Ask, Control, Lesson, Shown
from attention_viz.lesson.scene import MOST_PRESSED, Scene
from attention_viz.lesson.screens.caching.sharing import LATENT, ROTARY, Cached, Pair
from attention_viz.lesson.translation import grouped, translate
from attention_viz.lesson.words import offered, texts, weight_texts
from attention_viz.trace.spelling import weight_text
from attention_viz.views.style.axes import labelled_axis, number_axis, paint
from attention_viz.views.style.blocks import cells, hover_texts
from attention_viz.views.style.marks import add_numbers
from attention_viz.views.style.scale import colour_bar, full_colour, lying_bar, quarters
from attention_viz.views.style.theme import Palette, ThemeName, palette
from attention_viz.views.style.wording import escaped, token_names

# Of a number in half precision, and a long text, whose cache is counted beside the reader's.
_BYTES, _LONG = 2, 32_768
# Rows that differ by less are alike.
_ALIKE = 0.05
_PRINTED_UP_TO = 14
# Pixels: a bar, a head's row, and what is around them.
_BAR, _ROW, _AROUND, _GAP = 30, 28, 104, 9
# Of bars that aren't chosen.
_FAINT = 0.45


def _ask_cache(scene: Scene) -> Ask:
    found = Cached(scene)
    numbers = found.layers * found.numbers(found.own)
    options = {
        translate("queries, keys, values"): translate("too much"),
        translate("keys and values"): translate("enough"),
        translate("keys only"): translate("too little"),
        translate("weights"): translate("made anew"),
    }
    return Ask(
        translate("A model has read some tokens and predicts the next one. What must it keep of the old tokens?"),
        translate("It keeps keys and values: {numbers} numbers for each token", numbers=grouped(numbers)),
        translate("counted: {model}, all layers", model=found.model),
        tuple(options),
        tuple(float(at == 1) for at in range(len(options))),
        shown=tuple(options.values()),
        reasons=(
            translate("A query is used once, by its own token; later tokens have their own."),
            "",
            translate("Keys give the weights, but the output mixes values."),
            translate("The next token makes new weights, from its own query and the old keys."),
        ),
    )


def _show_cache(scene: Scene) -> Shown:
    found, chosen = Cached(scene), _CONTROL_CACHE.value(scene)
    stores, tokens, width = found.stores, len(found.trace.key_tokens()), found.first.key.shape[-1]
    facts = {
        **texts(model=found.model, note=Twice(scene).note, layers=found.layers, heads=found.first.shape[0]),
        **texts(own=found.own, tokens=grouped(tokens), bytes=_BYTES),
        **texts(vector=LATENT * width, rotary=int(ROTARY * width)),
        "long": grouped(_LONG),
        "name": stores[chosen].label[:1].upper() + stores[chosen].label[1:],
        "what": _what(found, chosen),
    }
    for name, store in stores.items():
        facts |= {name: store.label, f"{name}_numbers": grouped(store.numbers)}
        for length, count in (("tokens", tokens), ("long", _LONG)):
            facts[f"{name}_{length}"] = _megabytes(found.layers * store.numbers * count * _BYTES)
    says = translate(
        "{name}: {numbers} numbers per token and layer. {what}",
        name=facts["name"],
        numbers=facts[f"{chosen}_numbers"],
        what=facts["what"],
    )
    return Shown(facts, _drawn(found, chosen, scene.theme), says)


def _megabytes(size: int) -> str:
    """Write a size with three digits, or as whole megabytes."""
    number = size / 1e6
    return grouped(number, ",.0f") if number >= 100 else f"{number:.3g}"


def _what(found: Cached, chosen: str) -> str:
    sets, heads = found.stores[chosen].sets, found.first.shape[0]
    if chosen == "latent":
        width = found.first.key.shape[-1]
        return translate(
            "Each head computes its keys and values from one vector of {latent} numbers; {rotary} more hold the "
            "position. {model} has none: this is counted by DeepSeek-V2's rule.",
            latent=LATENT * width,
            rotary=int(ROTARY * width),
            model=found.model,
        )
    if sets > found.own:
        return translate(
            "{own} sets, copied for {heads} heads, give the same weights: nothing is gained. Only training could make "
            "{heads} different ones.",
            own=found.own,
            heads=heads,
        )
    if sets < found.own:
        return translate(
            "If its {own} sets are averaged to {sets}, {moved} of the probability moves to other next tokens. This "
            "model wasn't trained for that; models that were predict nearly as well as with many sets.",
            own=found.own,
            sets=sets,
            moved=weight_text(found.moved(sets)),
        )
    if sets == heads:
        return translate("This is how the model was trained: each head has keys and values of its own.")
    return _differ(found, found.pair(sets))


def _differ(found: Cached, pair: Pair) -> str:
    first, other = pair.weights
    values = {
        **texts(layer=found.layer, one=pair.heads[0], another=pair.heads[1]),
        **{"word": found.name(found.asking), "key": found.name(pair.key)},
        **weight_texts(first=first, second=other),
    }
    if abs(first - other) < _ALIKE:
        return translate(
            "This is how the model was trained. In layer {layer}, heads {one} and {another} have the same keys. Here "
            "their weights are alike, too: “{word}” gives “{key}” {first} and {second}.",
            **values,
        )
    return translate(
        "This is how the model was trained. In layer {layer}, heads {one} and {another} have the same keys, but other "
        "queries: “{word}” gives “{key}” {first} in one and {second} in the other.",
        **values,
    )


def _drawn(found: Cached, chosen: str, theme: ThemeName) -> go.Figure:
    """Draw what a token takes in the cache, and below it each head's weights, with a gap between two sets."""
    colours, sets = palette(theme), found.stores[chosen].sets
    parts = [
        translate(
            "Stored: {keys}, {values}",
            keys=_inked(translate("keys"), colours.key),
            values=_inked(translate("values"), colours.value),
        )
    ]
    high = [_BAR * len(found.stores)]
    if sets:
        word = escaped(found.name(found.asking))
        parts.append(translate("“{word}” in layer {layer}", layer=found.layer, word=word))
        high.append(_ROW * found.first.shape[0])
    height = sum(high) + _AROUND * len(parts) - (0 if sets else _ROW)
    figure = make_subplots(len(parts), 1, row_heights=high, vertical_spacing=_AROUND / height, subplot_titles=parts)
    _add_bars(figure, found, chosen, colours)
    if sets:
        _add_rows(figure, found, sets, colours)
    margin = {"l": 8, "r": 8, "t": 44, "b": 8}
    paint(figure, colours, height=height, barmode="stack", bargap=0.35, showlegend=False, margin=margin)
    figure.update_annotations(font={"size": 12, "color": colours.ink}, x=0, xanchor="left")
    return figure


def _inked(word: str, colour: str) -> str:
    return f'<span style="color:{colour}"><b>{escaped(word)}</b></span>'


def _add_bars(figure: go.Figure, found: Cached, chosen: str, colours: Palette) -> None:
    names = {name: escaped(store.label) for name, store in found.stores.items()}
    width, value = found.first.key.shape[-1], found.first.value.shape[-1]
    line = {"color": colours.background, "width": 1}
    most = max(store.sets for store in found.stores.values())
    for colour, wide, at in [(colours.key, width, at) for at in range(most)] + [
        (colours.value, value, at) for at in range(most)
    ]:
        there = [name for name, store in found.stores.items() if at < store.sets]
        shade = [1 if name == chosen else _FAINT for name in there]
        figure.add_bar(
            x=[wide] * len(there),
            y=[names[name] for name in there],
            orientation="h",
            marker={"color": colour, "line": line, "opacity": shade},
            hovertemplate="%{y}: %{x}<extra></extra>",
        )
    figure.add_bar(
        x=[LATENT * width, int(ROTARY * width)],
        y=[names["latent"]] * 2,
        orientation="h",
        marker={"color": colours.accent, "line": line, "opacity": 1 if chosen == "latent" else _FAINT},
        hovertemplate="%{y}: %{x}<extra></extra>",
    )
    figure.update_xaxes(fixedrange=True, row=1, col=1, **number_axis(colours))
    order: dict[str, Any] = {"categoryorder": "array", "categoryarray": [*names.values()], "autorange": "reversed"}
    figure.update_yaxes(automargin=True, fixedrange=True, showgrid=False, row=1, col=1, **order)


def _add_rows(figure: go.Figure, found: Cached, sets: int, colours: Palette) -> None:
    weights, keys = found.row(found.with_sets(sets), found.layer), token_names(found.trace.key_tokens())
    keys, names = keys[: found.asking + 1], [translate("head {head}", head=head) for head in range(len(weights))]
    numbers = weights.numpy()
    hover = hover_texts(names, keys, lambda head, key, i, j: f"{head} → {key}: {numbers[i, j]:.6f}")
    printed = len(keys) <= _PRINTED_UP_TO
    full = full_colour(numbers, len(keys))
    bar = {**colour_bar(""), **lying_bar(0, 1), "tickvals": quarters(full)}
    look: dict[str, Any] = {"showscale": not printed, "colorbar": bar, "xgap": 1, "ygap": 1}
    figure.add_trace(cells(numbers, (0, full), colours.weights, hover, **look), row=2, col=1)
    if printed:
        at = len([*figure.select_traces()]) - 1
        add_numbers(figure, weight_text, at=at, row=2, col=1)
    figure.update_xaxes(**labelled_axis(keys, "", colours.key, colours, vertical=False), row=2, col=1)
    figure.update_yaxes(**labelled_axis(names, "", colours.query, colours, vertical=True), row=2, col=1)
    line = {"color": colours.background, "width": _GAP}
    for edge in range(len(weights) // sets, len(weights), len(weights) // sets):
        ends = {"x0": -0.5, "x1": len(keys) - 0.5, "y0": edge - 0.5, "y1": edge - 0.5}
        figure.add_shape(type="line", line=line, row=2, col=1, **ends)


def _words(scene: Scene) -> tuple[Mapping[str, str], str]:
    found = Cached(scene)
    return offered(found.trace.query_tokens().names[:MOST_PRESSED]), str(found.asking)


def _options(scene: Scene) -> Mapping[str, str]:
    return {name: store.label for name, store in Cached(scene).stores.items()}


_CONTROL_CACHE = Control("Keys and values", _options, lambda scene: "grouped")

LESSONS = {
    "cache": Lesson(
        "Fewer keys and values",
        7,
        _ask_cache,
        _show_cache,
        _CONTROL_CACHE,
        "stored",
        deeper=("", "heads"),
        words=_words,
        idea=(
            "A language model writes one token after the other. For each, it could compute everything again from the "
            "start. That takes long, so it keeps what later tokens still need."
        ),
    ),
}
