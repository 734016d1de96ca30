"""Text of a person's or a tokenizer's in places where Streamlit reads Markdown."""

import re

__all__ = ["plain"]

_SIGNS = re.compile(r"([\\`*_{}\[\]()#+\-.!|~:$<>&@])")


def plain(text: str) -> str:
    """The text with every sign escaped that Markdown, formulas, colours or emoji codes begin with."""
    return _SIGNS.sub(r"\\\1", text)
