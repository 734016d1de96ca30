"""A figure's own words in the course's language; a reader's words stay as they are."""

import re
from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy
import plotly.graph_objects as go

from attention_viz.lesson.translation import LANGUAGES, current_language, regrouped, translate

__all__ = ["translated"]

# What `views` writes, the more specific first; {names} stand for numbers and for the reader's words.
_SENTENCES = (
    "{query} attends to {key}: blocked",
    "{query} attends to {key}: {weight}",
    "{word}, enters: {number}",
    "{word}, exp(entry − largest): {number}",
    "{word}, weight: {number}",
    "{letter} of {word}, dimension {number}: {value}",
    "q × k, dimension {number}: {value}",
    "q × k, sum: {value}",
    "output of {word}: {numbers}",
    "output of {word}",
    "value of {word}: {numbers}, weight {weight}",
    "{letter} of {word}",
    "{word}, token {number}",
    "layer {layer}, head {head}: {query} takes {weight} from {key}",
    "layer {layer}, head {head}, after {steps} steps: {weight}",
    "layer {layer}, head {head}",
    "layer {layer}, attention adds {number} to a sum {length} long",
    "layer {layer}, MLP adds {number} to a sum {length} long",
    "layer {layer}",
    "{word} enters, {length} long",
    "after {count} layers: {length} long",
    "sum: {length} long",
    "head {head}: {hover}",
    "head {head}",
    "d_k {width}: largest weight {weight}, scaled by 1/√d_k",
    "d_k {width}: size of the gradient {number}, scaled by 1/√d_k",
    "d_k {width}: largest weight {weight}, no scale",
    "d_k {width}: size of the gradient {number}, no scale",
    "row {row}, column {column} (from 0): {weight}",
    "{count} tokens: {time} ms",
    "{label}: {number} milliseconds",
    "{label}: {number} weights in memory",
    "{label}: {number} megabytes kept",
    "{label}: {number} megabytes",
    "{head}: weight {weight}, the output moves by {effect}",
)
_WORDS = (
    "weight",
    "token",
    "tokens",
    "dimension",
    "values",
    "key: attended token",
    "query: attending token",
    "output: attending token (query)",
    "source: attended token (key)",
    "query: transcribed word",
    "seconds of the audio",
    "blocked: may not attend there",
    "hull of the values",
    "links",
    "words",
    "attention adds ↓",
    "MLP adds ↑ (bar: its length ÷ the sum’s)",
    "first number of a value",
    "second number",
    "first direction of the values",
    "second direction",
    "what<br>enters",
    "exp(entry<br>− largest)",
    "÷ sum =<br>weight",
    "largest weight, scaled by 1/√d_k",
    "size of the gradient, scaled by 1/√d_k",
    "largest weight, no scale",
    "size of the gradient, no scale",
    "d_k: width of a query and a key",
    "mean over the rows",
    "change ÷ length before",
    "steps of training",
    "recurrent: one word after the other",
    "attention: all at once",
    "predicted by n²",
    "measured",
    "milliseconds",
    "weights in memory",
    "megabytes kept",
    "megabytes",
    "the output moves by",
    "Query",
    "Key",
    "Value",
)
_ENDS = ["before", "after"]
_NO_EXTRA = "<extra></extra>"


def translated(figure: go.Figure) -> go.Figure:
    """Translate a figure's axis titles, legends, notes and hover texts, but no token on an axis."""
    if current_language() == next(iter(LANGUAGES)):
        return figure
    axes: Iterable[Any] = (*figure.select_xaxes(), *figure.select_yaxes())
    for axis in axes:
        if axis.ticktext is not None:
            sums = axis.title.text == "dimension"  # no words are on such an axis
            axis.ticktext = [translate("sum") if sums and one == "sum" else _filled(one) for one in axis.ticktext]
            if axis.type == "log":  # its ticks are numbers
                axis.ticktext = list(map(regrouped, axis.ticktext))
        axis.title.text = _said(axis.title.text)
    notes: Iterable[Any] = figure.layout.annotations  # pyright: ignore[reportAttributeAccessIssue] -- Plotly's own
    for note in notes:
        note.text, note.hovertext = _said(note.text), _filled(note.hovertext)
    parts: Iterable[Any] = figure.data
    for part in parts:
        _translate_part(part)
    figure.update_layout(separators=regrouped(".,"))
    return figure


def _translate_part(part: Any) -> None:
    part.name, part.hovertext = _said(part.name), _each(part.hovertext)
    if part.hovertemplate is not None:
        part.hovertemplate = _filled(part.hovertemplate.removesuffix(_NO_EXTRA)) + _NO_EXTRA
    if getattr(part, "colorbar", None) is not None:
        part.colorbar.title.text = _said(part.colorbar.title.text)
    if part.type == "bar" and list(part.y) == _ENDS:
        part.y, part.text = [translate("before"), translate("after")], list(map(regrouped, part.text))


def _each(texts: Any) -> Any:
    if isinstance(texts, numpy.ndarray):
        return numpy.vectorize(_filled, otypes=[object])(texts) if texts.size else texts
    return [_each(one) for one in texts] if isinstance(texts, list | tuple) else _filled(texts)


def _said(text: Any) -> Any:
    return translate(text) if text in _WORDS else _filled(text)


def _filled(text: Any) -> Any:
    """Translate a sentence with numbers or the reader's words in it."""
    if not isinstance(text, str):
        return text
    for sentence in _SENTENCES:
        if found := _pattern(sentence).fullmatch(text):
            words = {name: _filled(one) if name == "hover" else one for name, one in found.groupdict().items()}
            return translate(sentence, **words)
    return text


@cache
def _pattern(sentence: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\{(\w+)\\}", r"(?P<\1>.*?)", re.escape(sentence)))
