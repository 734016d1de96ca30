"""Turn formulas of the documents into MathML, which browsers draw without scripts or fonts."""

import html
import re
from typing import Any

from latex2mathml.converter import convert  # pyright: ignore[reportMissingImports]

__all__ = ["on_page_content"]

_FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)


def on_page_content(content: str, **_: Any) -> str:
    """Return the page with each formula as MathML; mkdocs calls this name."""
    return _FORMULA.sub(lambda found: _drawn(html.unescape(found[2]), found[1]), content)


def _drawn(formula: str, tag: str) -> str:
    return str(convert(formula, display="block" if tag == "div" else "inline"))
