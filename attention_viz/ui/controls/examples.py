"""Example sentences, each with a model that shows something on it."""

import streamlit as st

from attention_viz.inputs.media.shipped import SAMPLES
from attention_viz.sources import CATALOGUE
from attention_viz.ui import visit, widgets
from attention_viz.ui.address import EXAMPLES
from attention_viz.ui.controls.thing import choose_sample
from attention_viz.ui.parts.markdown import plain
from attention_viz.ui.selection import SHARED

__all__ = ["show_examples"]


def show_examples() -> None:
    """Draw the model's examples, then others', which also choose their model."""
    chosen = visit.shared().model
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
    choose_sample(SAMPLES[name].kind, name, model=model)
    widgets.renew("examples")


def _take(model: str, text: str, chat: bool) -> None:
    visit.pick(SHARED, model=model, text=text, chat="on" if chat else "off")
    widgets.renew("examples")
