"""A lesson's text: escaped facts, and terms with meanings on hover or focus."""

import html

import streamlit as st

from attention_viz.lesson import TERMS, Shown, lesson_text
from attention_viz.ui.parts.markdown import plain

__all__ = ["show_glossary", "show_text", "term"]


def term(words: str, meaning: str) -> str:
    """Format a term with its meaning, which the page's style hides."""
    tooltip = f'<span class="learn-meaning" role="tooltip">{html.escape(meaning)}</span>'
    return f'<span class="learn-term" tabindex="0">{words}{tooltip}</span>'


def show_text(name: str, shown: Shown, notation: str) -> None:
    """The text of a lesson with its numbers."""
    st.markdown(lesson_text(name, shown.facts, notation, escape=plain, term=term), unsafe_allow_html=True)


def show_glossary() -> None:
    """Every term of the course with its sentence."""
    with st.expander("Glossary: every term of the course in a sentence", key="learn-glossary"):
        st.markdown("\n".join(f"- **{plain(name)}**: {plain(meaning)}" for name, meaning in TERMS.items()))
