"""Shared page parts: search bar, tables, numbers, theme colours."""

from collections.abc import Iterable, Sequence
from html import escape
from math import isnan
from typing import Any

from attention_viz.corpus.site.parts import Site
from attention_viz.views.style.theme import DARK, LIGHT, MONOSPACE, SANS, Palette

__all__ = ["SCRIPTS", "bar", "bars", "number", "page", "style_sheet", "table"]

# What the search and the small atlas are drawn by, at the end of a page.
SCRIPTS = '<script src="heads-data.js"></script><script src="heads.js"></script>'


def page(title: str, site: Site, body: str, *, more: str = "") -> str:
    """A whole page."""
    return (
        '<!doctype html>\n<html lang="en" data-theme="auto"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{escape(title)}</title><link rel="stylesheet" href="style.css">{more}</head><body>{bar(site)}'
        f"<main>{body}</main></body></html>\n"
    )


def bar(site: Site) -> str:
    """Return the top bar: place, first page's parts, search."""
    texts = f"{site.texts:,} texts of {site.corpus}"
    links = (("index.html", "Heads"), ("index.html#most", "What matters most"), ("index.html#made", "How it was made"))
    return (
        f'<header class="bar"><a class="name" href="index.html">{escape(site.model)}</a>'
        f'<nav aria-label="Pages">{"".join(f"""<a href="{link}">{name}</a>""" for link, name in links)}</nav>'
        f'<span class="about">{escape(texts)}</span>'
        '<div class="search"><input type="search" id="search" autocomplete="off" placeholder="Head, role or word" '
        'aria-label="Search heads, roles and examples"><ul id="found" aria-live="polite"></ul></div></header>'
    )


def table(names: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of HTML cells, scrollable on narrow screens."""
    top = "".join(f'<th scope="col">{escape(name)}</th>' for name in names)
    body = "".join(
        f'<tr><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in rest)}</tr>' for first, *rest in rows
    )
    return f'<div class="wide" tabindex="0"><table><tr>{top}</tr>{body}</table></div>'


def bars(rows: Iterable[tuple[str, float, float]]) -> str:
    """Return bars: name as HTML, share of the width, number."""
    return '<ol class="bars">{}</ol>'.format(
        "".join(
            f'<li>{name}<span class="b"><i style="width:{part:.0%}"></i></span>'
            f'<span class="v">{number(value, 2)}</span></li>'
            for name, part, value in rows
        )
    )


def number(value: Any, digits: int = 3) -> str:
    """Format a number; a dash if none."""
    return "–" if isnan(float(value)) else f"{float(value):.{digits}f}".replace("-", "−")


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
