"""Our own menu."""

import streamlit as st

from attention_viz.explorer import script
from attention_viz.inputs.media.shipped import SAMPLES
from attention_viz.serving.settings import SETTINGS
from attention_viz.sources import CATALOGUE
from attention_viz.ui import visit, widgets
from attention_viz.ui.address import EXAMPLES
from attention_viz.ui.address.kinds import fits_link
from attention_viz.ui.controls import pickers
from attention_viz.ui.controls.thing import SHOWN_ON, choose_sample, shown_models
from attention_viz.ui.parts import open_trace as opening
from attention_viz.ui.parts.layout import follow_theme
from attention_viz.ui.parts.markdown import plain
from attention_viz.ui.presenting.button import show_button
from attention_viz.ui.selection import SHARED, Filled

# The app's pages by label; each file's name is its URL path. One line per page.
PAGES = {
    "Explore": "app.py",
    "Step by step": "pages/steps.py",
    "Masks": "pages/masks.py",
    "Heads": "pages/heads.py",
    "Cross-attention": "pages/cross.py",
    "Compare": "pages/compare.py",
    "Why": "pages/why.py",
    "Learn": "pages/learn.py",
}
# Pages for which the menu has no link, because they aren't for everybody.
UNLISTED = {"Class": "pages/class.py"}
# The boxes that all pages share, which a URL carries under the same names.
_SHARED = ("text", "second", "target")
# The others whose text is run as a whole, by their keys: the group in `Selection.parts`, and the parameter.
_OWN = {"batch": ("masks", "batch"), "compare-other": ("compare-", "other")}
_KEY = "texts-follower"

_follower = widgets.component("texts", js=script("page/texts.js"))


def show_header() -> None:
    """Draw the menu."""
    carried = pickers.address()
    with st.container(key="header", horizontal=True, vertical_alignment="center", gap="medium"):
        st.markdown("**attention_viz**", width="content")
        with st.container(key="menu", horizontal=True, gap="small"):
            for label, page in PAGES.items():
                st.page_link(page, label=label, query_params=carried)
        # A new key closes the popover after a choice.
        with st.popover("Examples", key=widgets.fresh("examples")):
            show_examples()
        with st.popover("Open a trace", key=f"open-{opening.count()}"):
            opening.offer()
        show_button()
        follow_theme()
        _follow_texts()


def show_examples() -> None:
    """Draw the model's examples, then others', which also choose their model."""
    chosen = visit.shared().model
    for model in dict.fromkeys((chosen, *shown_models(chosen))):
        entry = CATALOGUE.get(model)
        texts = entry.examples if entry is not None else ()
        samples = entry.samples if entry is not None and entry.reads in SHOWN_ON else ()
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
    choose_sample(SAMPLES[name].kind.medium or SAMPLES[name].kind, name, model=model)
    widgets.renew("examples")


def _take(model: str, text: str, chat: bool) -> None:
    visit.pick(SHARED, model=model, text=text, chat="on" if chat else "off")
    widgets.renew("examples")


def _follow_texts() -> None:
    """Run typed text on Enter, and mark an outdated page."""
    texts = {name: getattr(visit.shared(), name) for name in _SHARED}
    parts = visit.here().selection.parts
    texts |= {key: getattr(parts[group].value, name) for key, (group, name) in _OWN.items() if group in parts}
    long = [key for key in _SHARED if not fits_link(texts.get(key, ""))]
    _follower(key=_KEY, data={"texts": texts, "long": long}, on_kept_change=_take_kept)


def _take_kept() -> None:
    kept = widgets.sent(_KEY, "kept")
    # Anything can come from a browser.
    for key in _SHARED if isinstance(kept, dict) else ():
        if isinstance(text := kept.get(key), str):
            # The URL's other parameters belong to this text.
            visit.send(Filled(SHARED, {key: text[: SETTINGS.longest_input]}, stays=True, late=True))
