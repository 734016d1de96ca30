"""Sentences worth a look, each with the model that shows something on it."""

import streamlit as st

from attention_viz.models import CATALOGUE
from attention_viz.models.inputs.media.shipped import SAMPLES
from attention_viz.ui.address import EXAMPLES
from attention_viz.ui.controls.model import show_model
from attention_viz.ui.controls.thing import choose_sample
from attention_viz.ui.parts import open_trace as opening
from attention_viz.ui.parts.markdown import plain

__all__ = ["count", "show_examples"]


def count() -> int:
    """How many examples were taken on this visit."""
    return st.session_state.get("examples_taken", 0)


def show_examples() -> None:
    """The examples of the chosen model, and below them those of the others, which choose their model, too."""
    chosen = st.session_state.get("model", "")
    for model in dict.fromkeys((chosen, *CATALOGUE)):
        entry = CATALOGUE.get(model)
        texts = entry.examples if entry is not None else ()
        samples = () if entry is None else entry.samples
        if model == chosen and not samples:
            texts = texts or EXAMPLES
        if texts or samples:
            st.caption(plain(model if entry is None else f"{model}, {entry.short}"))
        messages = () if entry is None else entry.messages
        for text, chat in (*((text, False) for text in texts), *((message, True) for message in messages)):
            # By keys, since two models may have the same sentence.
            label, key = f"In a chat: {text}" if chat else text, f"example-{model}-{text}"
            st.button(label, key=key, on_click=_take, args=(model, text, chat), type="tertiary")
        for name in samples:
            label = plain(f"{SAMPLES[name].file}: {SAMPLES[name].shows}")
            st.button(label, key=f"example-{model}-{name}", on_click=_take_sample, args=(model, name), type="tertiary")


def _take_sample(model: str, name: str) -> None:
    if model != st.session_state["model"]:
        show_model(model)
    choose_sample(SAMPLES[name].kind, name)
    st.session_state["examples_taken"] = count() + 1


def _take(model: str, text: str, chat: bool) -> None:
    if model != st.session_state["model"]:
        show_model(model)
    st.session_state["text"], st.session_state["chat"] = text, "on" if chat else "off"
    st.session_state["examples_taken"] = count() + 1
    opening.close()
