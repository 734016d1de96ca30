"""Cross-attention's output, and each output word's strongest source word."""

import html

import streamlit as st

from attention_viz.trace.trace import Trace
from attention_viz.views.style.wording import one_line

__all__ = ["aligned", "show_alignment", "show_target"]

_STREAM = "cross"
_LONGEST_TARGET = 400


def aligned(trace: Trace, layer: int, head: int) -> list[tuple[str, str, float]]:
    """Return each output word, its strongest source word, and the weight."""
    weights = trace.weights(layer, head, _STREAM)
    target, read = trace.query_tokens(_STREAM).written, trace.key_tokens(_STREAM).said
    best = weights.max(dim=-1)
    pairs = zip(target, best.indices.tolist(), best.values.tolist(), strict=True)
    return [(word, read[place], weight) for word, place, weight in pairs]


def show_target(trace: Trace) -> None:
    """Show the output, and whether the model chose it."""
    origin = trace.provenance
    own = bool(origin.generated)
    target = one_line(origin.target or " ".join(trace.query_tokens(_STREAM).written), _LONGEST_TARGET)
    who = "The model says" if own else "It was told to say"
    st.html(f'<p class="cross-said"><b>{who}</b> <span data-testid="said">{html.escape(target)}</span></p>')


def show_alignment(trace: Trace, layer: int, head: int) -> None:
    """Show each step's output word, strongest source word and weight."""
    rows = "".join(
        f'<tr><th scope="row" class="cross-query">{html.escape(word)}</th>'
        f'<td class="cross-key">{html.escape(source)}</td><td class="cross-weight">{weight:.3f}</td></tr>'
        for word, source, weight in aligned(trace, layer, head)
    )
    heads = "".join(
        f'<th scope="col" class="cross-{kind}">{words}</th>'
        for kind, words in (
            ("query", "is said"),
            ("key", "looks most at"),
            ("weight", "weight" if trace.provenance.reading == "raw" else "share"),
        )
    )
    st.html(
        '<div class="cross-alignment" role="group" tabindex="0" aria-label="Alignment, a row a word">'
        f'<table data-testid="alignment"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>'
    )
    st.caption(
        "Each row is named by the word that this step produces. A step reads the word before it, so a row is about "
        "choosing its word."
    )
