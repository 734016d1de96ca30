"""Untrusted text inside Streamlit's Markdown."""

import re

import streamlit as st

from attention_viz.serving import permissions as allowed
from attention_viz.ui import visit

_SIGNS = re.compile(r"([\\`*_{}\[\]()#+\-.!|~:$<>&@])")
# Looked for once signs are read, escaped or not: addresses of the web and of mail, codes of emoji and of icons. What
# has no width and breaks no line keeps them apart.
_FOUND_LATER = re.compile(r":(?=//|material/|[\w+-]+:)|www(?=\.)|(?<=[\w.+-])(?=@)", re.IGNORECASE)
_JOINER = "\u2060"

# The first word of a sentence of ours that doesn't begin with a name.
_WORD = re.compile(r"[^\W\d_A-Z]+(['’-][^\W\d_A-Z]+)*[,:;]?")


def plain(text: str) -> str:
    """Escape all Streamlit Markdown."""
    return _SIGNS.sub(r"\\\1", _FOUND_LATER.sub(rf"\g<0>{_JOINER}", text))


def as_sentence(message: str) -> str:
    """Escape a message; add a capital (except for names such as d_model) and full stop."""
    first, *_ = message.split(maxsplit=1) or [""]
    named = not _WORD.fullmatch(first) or any(re.match(rf"{re.escape(name)}(?!\w)", message) for name in _models())
    begun = message if named else message[:1].upper() + message[1:]
    return plain(begun if begun.endswith((".", "!", "?", "…", ":")) else f"{begun}.")


def _models() -> list[str]:
    asked = (visit.shared().model, st.query_params.get("other_model"))
    return [allowed.display_name(name) for name in asked if name]
