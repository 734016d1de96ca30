"""The Step by step page of layers without a softmax: a pair's pipeline, and each step's matrix."""

import functools
import html
from collections.abc import Sequence

import streamlit as st
import torch
from torch import Tensor

from attention_viz.errors import ShapeError
from attention_viz.serving.runs import Run
from attention_viz.steps.arithmetic import Arithmetic, ProductTerm
from attention_viz.steps.mixer_steps import MIXER_STEPS, exact_row, mixer_steps_of, mixer_tensors, open_mixer_cell
from attention_viz.steps.mixing import MixerHead, open_mixer
from attention_viz.steps.pair import PAIR_STEPS, MixerPair, arriving, erasers, open_pair, pair_steps
from attention_viz.trace.export import to_safetensors
from attention_viz.ui.address import State
from attention_viz.ui.pages.steps.controls import chosen_cell, show_keys, show_picker, take_cell
from attention_viz.ui.pages.steps.grids import Numbers, axis_labels, show_numbers
from attention_viz.ui.pages.steps.numbers import (
    cell_html,
    label_of,
    number_html,
    show_arithmetic,
    table_html,
)
from attention_viz.ui.pages.steps.page import PIPELINE, Possible, StepChoice
from attention_viz.ui.parts.badge import power_of_ten
from attention_viz.ui.parts.downloads import show_downloads
from attention_viz.ui.parts.layout import theme_name
from attention_viz.ui.parts.markdown import plain
from attention_viz.views.style.theme import palette
from attention_viz.views.style.wording import share_text, weight_text

# A text of so many keys has a line for each; of a longer one the largest have one, and the rest share one.
_LINES, _LARGEST = 25, 12
_ERASERS = 8
_OF_A_PAIR = ("query", "key")


def mixes(run: Run, state: State) -> bool:
    """Return whether the chosen stream has no softmax."""
    return run.stream(state.stream) in run.trace.mixers


def head_of(run: Run, state: State) -> MixerHead:
    """Open the chosen head or channel."""
    stream = run.stream(state.stream)
    return open_mixer(run.trace, *run.place(stream, state.layer, state.head), stream)


def known_choices(opened: MixerHead) -> Possible:
    """Return the page's choices for this head."""
    queries, keys = opened.mixer.shape
    widest = max(opened.mixer.value.shape[-1], opened.mixer.query.shape[-1])
    only = {
        "scale": ["model"],
        "precision": ["model"],
        "notation": ["rows"],
        "variant": ["multi"],
        "all": ["no", "yes"],
    }
    steps = [PIPELINE, *mixer_steps_of(opened)]
    return Possible({"step": steps, "query": range(queries), "key": range(keys), "dimension": range(widest), **only})


def _show_pickers(opened: MixerHead, axes: tuple[str, ...], shape: Sequence[int]) -> None:
    with st.container(key="steps-switches", horizontal=True, vertical_alignment="bottom", gap="small"):
        for axis, count in zip(axes, shape, strict=True):
            if axis != "one" and count > 1:
                show_picker(axis, opened.trace, opened.stream, count)


def _show_pair(opened: MixerHead, choice: StepChoice) -> None:
    """Draw the pair's pickers; of a short text, the row's keys are buttons with their weights."""
    queries, keys = opened.mixer.shape
    if not 1 < keys <= _LINES:
        _show_pickers(opened, ("query", "key"), (queries, keys))
        return
    row = exact_row(opened, choice.query).tolist()
    reach = choice.query + 1 if opened.mixer.is_causal else keys
    with st.container(key="steps-pair", horizontal=True, vertical_alignment="top", gap="small"):
        show_picker("query", opened.trace, opened.stream, queries)
        weights = {at: weight_text(row[at]) for at in sorted({*range(reach), choice.key})}
        show_keys(opened.trace, opened.stream, weights)


def show_mixer_exports(opened: MixerHead) -> None:
    """Draw the export menu; its tensors are all steps' matrices."""
    place = (opened.layer, opened.head, opened.stream)
    tensors = functools.partial(to_safetensors, opened.trace, *place, functools.partial(mixer_tensors, opened))
    labels = ("Weights (CSV)", "Tensors (safetensors)", "Picture (SVG)")
    made = {"Tensors (safetensors)": tensors}
    show_downloads(opened.trace, opened.stream, opened.layer, opened.head, labels, made)


def show_mixer_step(opened: MixerHead, choice: StepChoice) -> None:
    """Draw the chosen step's matrix with its numbers, or all matrices."""
    if choice.all == "yes":
        for name in mixer_steps_of(opened):
            left, right = st.columns([5, 7], gap="medium")
            with left:
                st.markdown(f"##### {MIXER_STEPS[name].label}")
                _show_words(opened, name)
            with right:
                show_numbers(opened, _numbers(opened, name), f"steps-picture-{name}")
        return
    name, step, matrix = choice.step, MIXER_STEPS[choice.step], _matrix(opened, choice.step)
    row, column = (min(at, count - 1) for at, count in zip(chosen_cell(step), matrix.shape, strict=True))
    cell = (row, 0 if step.axes[1] == "one" else column)
    _show_words(opened, name)
    take = functools.partial(take_cell, step.axes)
    show_numbers(opened, _numbers(opened, name), f"steps-picture-{name}", cell, take)
    # The pair is chosen in the pipeline, which stays in sight.
    if step.axes[1] not in _OF_A_PAIR:
        _show_pickers(opened, step.axes[1:], matrix.shape[1:])
    show_arithmetic(opened, step, cell, open_mixer_cell(opened, name, *cell), "rows")


def _numbers(opened: MixerHead, name: str) -> Numbers:
    """Return a step's matrix; from later tokens nothing arrives."""
    step, matrix = MIXER_STEPS[name], _matrix(opened, name)
    later = None
    if opened.mixer.is_causal and step.axes == ("query", "key"):
        later = torch.ones_like(matrix, dtype=torch.bool).triu(1)
    return Numbers(step.label, matrix, step.axes, blocked=later)


def _matrix(opened: MixerHead, name: str) -> Tensor:
    found = MIXER_STEPS[name].function(opened)
    if found is None:
        raise ShapeError(f"{name} isn't a step of {opened.mixer.kind}")
    return found


def _show_words(opened: MixerHead, name: str) -> None:
    step = MIXER_STEPS[name]
    st.markdown(f"{step.explanation} {plain(step.change(opened))}")


def show_mixer_pipeline(opened: MixerHead, choice: StepChoice) -> None:
    """Draw the way from the chosen key to the chosen query."""
    pair = open_pair(opened, choice.query, choice.key)
    colours = palette(theme_name())
    columns = (
        f"{_chain(pair)}{_eraser_part(pair)}",
        _row_part(pair),
        f"{_arrival(pair)}{_sum(pair, choice.dimension)}",
    )
    # The colours of differences, plus and minus, and of values.
    style = f"--plus: {colours.accent}; --minus: {colours.less}; --value: {colours.value}"
    st.html(f'<div class="mixer mixer-top" data-testid="mixer-claim" style="{style}">{_title(pair)}</div>')
    _show_pair(opened, choice)
    content = "".join(f"<div>{column}</div>" for column in columns)
    st.html(f'<div class="mixer" data-testid="mixer-pipeline" style="{style}">{content}</div>')


def _title(pair: MixerPair) -> str:
    opened = pair.opened
    call, label = opened.mixer, opened.trace.label(opened.layer, opened.stream)
    query, key = (label_of(opened, axis, at) for axis, at in (("query", pair.query), ("key", pair.key)))
    said = "is taken away from" if pair.weight < 0 else "is carried to"
    middle = f"{said}" if pair.weight else "doesn't reach"
    place = opened.trace.layer_numbers(opened.stream).index(opened.layer)
    mixed = opened.trace.mixers[opened.stream][place].convolved
    note = f" · values already mix the last {mixed} tokens" if mixed > 1 else ""
    return (
        f'<p class="mixer-place">Layer {html.escape(label)} · {call.kind} · {call.per} {opened.head}{note}</p>'
        f'<p class="mixer-title">The value of <code class="mixer-key">{html.escape(key)}</code> {middle} '
        f'<code class="mixer-query">{html.escape(query)}</code>: {_signed_html(pair.weight)}</p>'
    )


def _chain(pair: MixerPair) -> str:
    steps = pair_steps(pair)
    lines = [_line(pair, name, found) for name, found in steps.items()]
    note = ""
    if pair.opened.mixer.keeps_state and pair.reached and pair.opened.has_vectors:
        left = open_mixer_cell(pair.opened, "kept", pair.query, pair.key)
        note = _opening("Still there", "the part that the key itself would still read", left)
        note = f'<p class="mixer-note">How much of this write is left in the state:</p>{note}'
    return f'<h6>The weight</h6><div class="mixer-chain">{"".join(lines)}</div>{note}'


def _line(pair: MixerPair, name: str, found: Arithmetic) -> str:
    step = PAIR_STEPS[name]
    says = step.says
    if name in ("read", "write", "gate") and pair.letter(name) != name:
        says = f"{pair.letter(name)}: {says}"
    return _opening(step.label, says, found, kind="mixer-last" if name == "weight" else "")


def _opening(label: str, says: str, found: Arithmetic, kind: str = "") -> str:
    """Write a line that opens to its arithmetic."""
    return (
        f'<details class="mixer-step {kind}"><summary><span class="mixer-name">{html.escape(label)}</span>'
        f'<span class="mixer-says">{html.escape(says)}</span>{_signed_html(found.total)}</summary>'
        f"<p>{html.escape(found.sentence)}</p>{_terms(found)}</details>"
    )


def _terms(found: Arithmetic) -> str:
    if not found.terms:
        return ""
    names = next(([name for name, _ in term.factors] for term in found.terms if term.factors), [])
    last = "product" if names else "number"
    head = [cell_html(name, "th") for name in ("", *names, last)]
    closing = "product" if found.rule == "product" else "sum"
    foot = [cell_html(closing, "th"), *[cell_html("", "td")] * len(names), number_html(found.computed, marked=True)]
    return table_html(head, [_term(term, len(names)) for term in found.terms], f"{closing} of terms", foot)


def _term(term: ProductTerm, count: int) -> list[str]:
    cells = [number_html(number) for _, number in term.factors]
    return [
        cell_html(term.label, "th"),
        *cells,
        *[cell_html("", "td")] * (count - len(cells)),
        number_html(term.product),
    ]


def _eraser_part(pair: MixerPair) -> str:
    found = erasers(pair)
    if not found:
        return ""
    head = [cell_html(name, "th") for name in ("token", "erased", "weight without it", "change")]
    lines = [
        [
            cell_html(f"{one.position} · {label_of(pair.opened, 'key', one.position)}", "th"),
            *(number_html(number) for number in (-one.erased, one.without, one.change)),
        ]
        for one in found[:_ERASERS]
    ]
    rest = f" These {_ERASERS} of {len(found)} change it most." if len(found) > _ERASERS else ""
    return (
        "<h6>Which later tokens erased it</h6><p>“Weight without it” is the weight if this one token erased nothing "
        f"and all others did.{rest} The parts under “erased” of all later tokens sum to the step above.</p>"
        + table_html(head, lines, "erasers")
    )


def _arrival(pair: MixerPair) -> str:
    call, vector = pair.call, arriving(pair)
    terms = tuple(
        ProductTerm(f"dimension {d}", (("weight", pair.weight), ("value", value)), product)
        for d, (value, product) in enumerate(zip(call.value[pair.key].tolist(), vector.tolist(), strict=True))
    )
    size = float(vector.norm())
    head = [cell_html(name, "th") for name in ("", "weight", "value", "arrives")]
    table = table_html(head, [_term(term, 2) for term in terms], "arrives")
    return (
        f"<h6>What arrives</h6>{_strip(vector)}"
        '<details class="mixer-step"><summary><span class="mixer-name">‖weight · value‖</span>'
        f'<span class="mixer-says">the length of what arrives, {len(terms)} '
        f"{'dimension' if len(terms) == 1 else 'dimensions'}</span>{_signed_html(size)}</summary>{table}</details>"
    )


def _row_part(pair: MixerPair) -> str:
    """Write the query's row: each key's weight, its share of size and what arrives from it."""
    opened, row = pair.opened, exact_row(pair.opened, pair.query)
    lengths = row.abs() * pair.call.value.norm(dim=-1)
    total, sizes = float(row.sum()), float(row.abs().sum())
    shown, rest = _shown(row, pair)
    ends = min(0.0, float(row.min())), max(0.0, float(row.max()))
    names = axis_labels(opened, "key", range(len(row)))
    head = [cell_html(name, "th") for name in ("key", "", "weight", "share of size", "arrives")]
    lines = [
        [
            cell_html(names[at], "th", "mixer-chosen" if at == pair.key else "mixer-lane"),
            f'<td class="mixer-bar">{_bar(float(row[at]), ends)}</td>',
            f'<td class="steps-number" title="{float(row[at]):.6g}">{_written(float(row[at]))}</td>',
            _share(abs(float(row[at])) / (sizes or 1.0)),
            f'<td class="steps-number" title="{float(lengths[at]):.6g}">{_written(float(lengths[at]))}</td>',
        ]
        for at in shown
    ]
    if rest:
        share = float(row[rest].abs().sum()) / (sizes or 1.0)
        others = f'<td class="steps-number">{_written(float(row[rest].sum()))}</td>'
        lines.append([cell_html(f"{len(rest)} others", "th"), cell_html("", "td"), others, _share(share), "<td></td>"])
    skip = ""
    if pair.call.skip is not None:
        own = _written(float(pair.call.skip) * pair.gate)
        skip = f" The token's own weight has {own} of skip, its way to itself beside the state."
    name = html.escape(label_of(opened, "query", pair.query))
    return (
        f"<h6>The row of <code>{name}</code></h6><p>Σ = <b>{_written(total)}</b>, Σ|·| = <b>{_written(sizes)}</b>. "
        f"Plus is carried, minus is taken away.{skip}</p>" + table_html(head, lines, "row")
    )


def _shown(row: Tensor, pair: MixerPair) -> tuple[list[int], list[int]]:
    """Return the keys that have a line of their own, and those that share one."""
    reach = pair.query + 1 if pair.call.is_causal else len(row)
    if reach <= _LINES:
        return sorted({*range(reach), pair.key}), []
    largest = row[:reach].abs().topk(_LARGEST).indices.tolist()
    shown = sorted({*largest, pair.key})
    return shown, [at for at in range(reach) if at not in shown]


def _sum(pair: MixerPair, dimension: int) -> str:
    """Write the row's sum as the output, and how far it is from the recorded one."""
    opened = pair.opened
    output = opened.mixer.output[pair.query].double()
    summed = exact_row(opened, pair.query) @ pair.call.value
    off = float((summed - output).abs().max()) / (float(output.abs().max()) or 1.0)
    column = min(dimension, len(output) - 1)
    found = open_mixer_cell(opened, "output", pair.query, column)
    says = f"dimension {column} of {len(output)}: the sum of weight × value over the row"
    near = power_of_ten(off)
    return (
        f"<h6>Output</h6>{_strip(output)}{_opening('Output', says, found)}"
        f'<p class="mixer-note">The row’s sum differs from the head’s output by {near.replace("-", "−")} of its '
        "largest number.</p>"
    )


def _share(part: float) -> str:
    return cell_html(share_text(part), "td", "steps-number")


def _bar(number: float, ends: tuple[float, float]) -> str:
    """Draw a bar from 0 between the row's ends; the page removes SVG from HTML."""
    low, high = ends
    whole = (high - low) or 1.0
    zero, width = -low / whole, abs(number) / whole
    side, left = ("minus", zero - width) if number < 0 else ("plus", zero)
    axis = f'<i style="{_placed(left=zero)}"></i>'
    return f'{axis}<div class="mixer-{side}" style="{_placed(left=left, width=width)}"></div>'


def _placed(**share: float) -> str:
    """Return declarations, each a share of the box around."""
    return "; ".join(f"{name}: {value:.1%}" for name, value in share.items())


def _strip(vector: Tensor) -> str:
    """Draw a vector as upright bars from its middle, the longest as high as half the strip."""
    longest = float(vector.abs().max()) or 1.0
    bars = list[str]()
    for number in vector.tolist():
        height = 0.5 * abs(number) / longest
        bars.append(f'<i style="{_placed(top=0.5 - height * (number > 0), height=height)}"></i>')
    words = f"{len(bars)} dimensions, the largest {weight_text(longest)} from 0"
    spans = "".join(f"<span>{bar}</span>" for bar in bars)
    return f'<div class="mixer-strip" role="img" aria-label="{html.escape(words)}">{spans}</div>'


def _signed_html(number: float) -> str:
    return f'<b class="mixer-number mixer-{"minus" if number < 0 else "plus"}-ink">{_written(number)}</b>'


def _written(number: float) -> str:
    """Write a number in two digits, as HTML; the tables have more."""
    return html.escape(weight_text(number))
