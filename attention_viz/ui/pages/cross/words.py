"""Cross-attention read off: what was said and by whom, and the source word that each word looks at most."""

import html
from typing import TYPE_CHECKING

import streamlit as st

if TYPE_CHECKING:
    from attention_viz.trace.trace import Trace
    from attention_viz.views.style.theme import ThemeName

__all__ = ["aligned", "in_words", "show_alignment", "show_said"]

_STREAM = "cross"
_LONGEST_SAID = 400


def aligned(trace: "Trace", layer: int, head: int) -> list[tuple[str, str, float]]:
    """Of each word that was said: itself, the word of the source that it looks at most, and with what weight."""
    from attention_viz.views.style.wording import shown

    weights = trace.weights(layer, head, _STREAM)
    said, read = trace.query_tokens(_STREAM).labels, trace.key_tokens(_STREAM).labels
    best = weights.max(dim=-1)
    pairs = zip(said, best.indices.tolist(), best.values.tolist(), strict=True)
    return [(shown(word), shown(read[place]), weight) for word, place, weight in pairs]


def in_words(trace: "Trace", layer: int, head: int) -> str:
    """The alignment as a sentence."""
    told = [f"“{word}” at “{source}” ({weight:.3f})" for word, source, weight in aligned(trace, layer, head)]
    return f"In layer {layer}, head {head}, each word that is said looks most at: {', '.join(told)}."


def show_said(trace: "Trace") -> None:
    """What was said, and whether the model said it of its own accord."""
    from attention_viz.views.style.wording import one_line

    origin = trace.provenance
    own = bool(origin.generated)
    said = one_line(origin.target or " ".join(trace.query_tokens(_STREAM).labels), _LONGEST_SAID)
    who = "The model says" if own else "Told to say"
    st.html(
        f'<p style="margin:0;font-size:13px;line-height:1.45"><span style="font-weight:600">{who}</span><br>'
        f'<span data-testid="said" style="font-size:15px">{html.escape(said)}</span></p>'
    )


def show_alignment(trace: "Trace", layer: int, head: int, theme: "ThemeName") -> None:
    """A row a step: the word that it produces, the source word that it looks at most, and the weight."""
    from attention_viz.views.style.theme import MONOSPACE, palette

    colours = palette(theme)
    query, key = (f"color-mix(in srgb,{one} 84%,{colours.ink})" for one in (colours.query, colours.key))
    cell, number = "padding:1px 6px;text-align:left", "padding:1px 6px;text-align:right"
    rows = "".join(
        f'<tr><th scope="row" style="{cell};font-weight:400;color:{query}">{html.escape(word)}</th>'
        f'<td style="{cell};color:{key}">{html.escape(source)}</td>'
        f'<td style="{number};font-variant-numeric:tabular-nums">{weight:.3f}</td></tr>'
        for word, source, weight in aligned(trace, layer, head)
    )
    heads = "".join(
        f'<th scope="col" style="{style};font-weight:600;color:{colour};border-bottom:1px solid {colours.line}">'
        f"{words}</th>"
        for words, colour, style in (
            ("is said", query, cell),
            ("looks most at", key, cell),
            ("weight" if trace.provenance.reading == "raw" else "share", colours.ink, number),
        )
    )
    st.html(
        '<div role="group" tabindex="0" aria-label="Alignment, a row a word" style="max-height:420px;overflow:auto">'
        '<table data-testid="alignment" style="border-collapse:collapse;width:100%;font-size:13px;'
        f'color:{colours.ink}">'
        f"<thead><tr>{heads}</tr></thead>"
        f'<tbody style="font-family:{html.escape(MONOSPACE)}">{rows}</tbody></table></div>'
    )
    st.caption(
        "Each row is named by the word that this step produces. A step reads the word before it, so a row is about "
        "choosing its word."
    )
