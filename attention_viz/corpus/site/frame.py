"""Templates of a site's pages, numbers, theme colours."""

from math import isnan
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from attention_viz.analysis.metrics import METRICS
from attention_viz.analysis.roles import ROLES
from attention_viz.corpus.site.studied import change_words
from attention_viz.views.style.theme import DARK, LIGHT, MONOSPACE, SANS, Palette


def number(value: Any, digits: int = 3) -> str:
    """Format a number; a dash if none."""
    return "–" if isnan(float(value)) else f"{float(value):.{digits}f}".replace("-", "−")


_TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).with_name("templates")),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.filters["number"] = number
_GLOBALS = {"change_words": change_words, "metrics": METRICS, "roles": ROLES}


def rendered(name: str, **values: Any) -> Markup:
    """Fill in a template, escaping everything except `Markup`."""
    return Markup(_TEMPLATES.get_template(f"{name}.html", globals=_GLOBALS).render(values))


def style_sheet(own: str) -> str:
    """Return both themes' colours and the rules that use them."""
    dark = f"@media (prefers-color-scheme: dark) {{\n:root {{ {_colours(DARK)} }}\n}}"
    fonts = f"--sans: {SANS}; --mono: {MONOSPACE};"
    return f":root {{ color-scheme: light dark; {fonts} {_colours(LIGHT)} }}\n{dark}\n{own}"


def _colours(palette: Palette) -> str:
    names = ("background", "surface", "ink", "muted", "line", "query", "key", "accent")
    found = {name: getattr(palette, name) for name in names} | {"deep": palette.weights[-1]}
    found |= {f"role-{at}": colour for at, colour in enumerate(palette.roles)}
    return " ".join(f"--{name}: {colour};" for name, colour in found.items())
