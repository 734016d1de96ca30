"""Text of a person's or a tokenizer's in places where Streamlit reads Markdown."""

import re

__all__ = ["as_sentence", "plain"]

_SIGNS = re.compile(r"([\\`*_{}\[\]()#+\-.!|~:$<>&@])")


def plain(text: str) -> str:
    """The text with every sign escaped that Markdown, formulas, colours or emoji codes begin with."""
    return _SIGNS.sub(r"\\\1", text)


def as_sentence(message: str) -> str:
    """A message of ours as a sentence of the page, harmless as `plain` makes it.

    It begins with a capital, but for a name such as d_model, and ends with a full stop where it ends with no sign.
    """
    first, *_ = message.split(maxsplit=1) or [""]
    begun = message if "_" in first else message[:1].upper() + message[1:]
    return plain(begun if begun.endswith((".", "!", "?", "…", ":")) else f"{begun}.")
