"""A head's examples as token lines, all escaped."""

from collections.abc import Mapping, Sequence
from html import escape
from urllib.parse import urlencode

from attention_viz.serving.scans import Example

__all__ = ["in_html"]

# So many of the strongest stand there at once.
_SHOWN = 3


def in_html(examples: Sequence[Example], metric: str, address: Mapping[str, str]) -> str:
    """Show the strongest, with more and random ones behind a line."""
    strongest = [one for one in examples if one.kind == "strongest"]
    by_lot = [one for one in examples if one.kind == "random"]
    parts = [
        f"<p>The strongest by “{escape(metric)}”:</p>{_listed(strongest[:_SHOWN], address)}",
        _behind("More of the strongest", strongest[_SHOWN:], address),
        _behind("By chance, from the tenth of the texts with the least of it to that with the most", by_lot, address),
    ]
    return f'<div class="heads-examples" data-testid="scan-examples">{"".join(parts)}</div>'


def _behind(title: str, some: Sequence[Example], address: Mapping[str, str]) -> str:
    if not some:
        return ""
    return f"<details><summary>{escape(title)}</summary>{_listed(some, address)}</details>"


def _listed(some: Sequence[Example], address: Mapping[str, str]) -> str:
    return f"<ol>{''.join(f'<li>{_one(example, address)}</li>' for example in some)}</ol>"


def _one(one: Example, address: Mapping[str, str]) -> str:
    pair = {"query": f"{one.query}", "key": f"{one.key}"} if one.tokens else {}
    opened = urlencode({**address, "text": one.said, **pair})
    tenth = f"tenth {one.tenth}, " if one.tenth else ""
    phrase = (
        f'<span class="heads-told">{tenth}{one.weight:.2f} <a href="?{escape(opened)}" target="_self">Open</a></span>'
    )
    return f"{_tokens(one)} {phrase}"


def _tokens(one: Example) -> str:
    if not one.tokens:
        return f"<span>{escape(one.said)}</span>"
    marks = {one.query: "query", one.key: "key"} | ({one.query: "query key"} if one.query == one.key else {})
    return "".join(
        f'<span class="heads-{marks[at].replace(" ", " heads-")}">{escape(token)}</span>'
        if at in marks
        else f"<span>{escape(token)}</span>"
        for at, token in enumerate(one.tokens)
    )
