"""The pages of a site, as HTML; whatever a text or a tokenizer brings is escaped."""

import json
from collections.abc import Iterable, Sequence
from html import escape
from math import isnan
from typing import Any

from attention_viz.analysis.metrics import METRICS
from attention_viz.analysis.roles import ROLES, roles_for
from attention_viz.corpus.site.parts import Example, Head, Site
from attention_viz.corpus.site.studied import most_of, studied
from attention_viz.views.style.theme import DARK, LIGHT, MONOSPACE, SANS, Palette

__all__ = ["head_page", "index_page", "search_data", "style_sheet"]


def index_page(site: Site, heads: Sequence[Head]) -> str:
    """The atlas of roles, and the search."""
    streams = dict.fromkeys(str(head.told["stream"]) for head in heads)
    counts = {name: sum(head.role == name for head in heads) for name in ROLES}
    legend = "".join(
        f'<li><span class="role" style="--role:var(--role-{at})">{counts[name]}</span> <b>{escape(role.label)}</b> '
        f"{escape(role.meaning)}</li>"
        for at, (name, role) in enumerate(ROLES.items())
        if name in roles_for("word")
    )
    atlases = "".join(
        f"<h2>{escape(stream.capitalize())}</h2>{_atlas([head for head in heads if head.told['stream'] == stream])}"
        for stream in streams
    )
    most = max(ROLES, key=lambda name: counts[name])
    body = (
        f"<h1>{escape(ROLES[most].label)} is what most heads of {escape(site.model)} do: {counts[most]} of {len(heads)}"
        f"</h1><p>Over {site.texts:,} texts of {escape(site.corpus)}. Each cell is a head; press one for its examples."
        '</p><label>Search heads, roles and examples <input type="search" id="search" autocomplete="off"></label>'
        f'<ul id="found" aria-live="polite"></ul>{atlases}{most_of(heads)}<h2>Roles</h2>'
        f'<ul class="legend">{legend}</ul>'
        '<script src="search-data.js"></script><script src="search.js"></script>'
    )
    return _page(f"{site.model}: what its heads do", body)


def _atlas(heads: Sequence[Head]) -> str:
    layers: dict[int, list[Head]] = {}
    for head in heads:
        layers.setdefault(int(head.told["layer"]), []).append(head)
    rows = "".join(
        f'<tr><th scope="row">{layer}</th>{"".join(f"<td>{_cell(head)}</td>" for head in some)}</tr>'
        for layer, some in layers.items()
    )
    most = max(map(len, layers.values()))
    top = "".join(f'<th scope="col">{number}</th>' for number in range(most))
    return f'<div class="wide"><table class="atlas"><tr><th>layer</th>{top}</tr>{rows}</table></div>'


def _cell(head: Head) -> str:
    label = ROLES[head.role].label
    score = float(head.told["score"])
    told = f"Head {head.name}: {label}{'' if isnan(score) else f', {score:.2f}'}"
    place = list(ROLES).index(head.role)
    return (
        f'<a class="role" href="{head.file}" style="--role:var(--role-{place})" title="{escape(told)}" '
        f'aria-label="{escape(told)}">{"" if isnan(score) else f"{score:.2f}"[1:]}</a>'
    )


def head_page(site: Site, head: Head) -> str:
    """All that is told of one head."""
    role = ROLES[head.role]
    holds = _holds(head)
    metrics = list(dict.fromkeys(one.metric for one in head.examples))
    parts = [_examples(head, name, is_open=at == 0) for at, name in enumerate(metrics)]
    body = (
        f'<p><a href="index.html">All heads of {escape(site.model)}</a></p>'
        f"<h1>Head {head.name}: {escape(role.label)}. {escape(holds)}</h1><p>{escape(role.meaning)}</p>"
        f"{studied(head)}<h2>Examples</h2>{''.join(parts)}<h2>Metrics over {site.texts:,} texts</h2>{_metrics(head)}"
        f"<h2>Which kinds of tokens it looks at</h2>{_kinds(head)}<h2>Queries and keys together</h2>{head.picture}"
    )
    return _page(f"Head {head.name} of {site.model}", body)


def _holds(head: Head) -> str:
    could, holds = (head.told.get(f"role {head.role}{ending}") for ending in ("_texts", "_holds"))
    if could is None:
        return ""
    return f"It holds in {int(holds or 0):,} of {int(could):,} texts that can show it."


def _examples(head: Head, metric: str, *, is_open: bool) -> str:
    def listed(kind: str) -> str:
        some = [one for one in head.examples if one.metric == metric and one.kind == kind]
        return "".join(f"<li>{_example(one, head)}</li>" for one in some)

    by_lot = listed("random")
    lot = f"<h3>By lot, from the tenth of the texts with least of it to that with most</h3><ol>{by_lot}</ol>"
    return (
        f"<details{' open' * is_open}><summary>{escape(METRICS[metric].label)}: the strongest</summary>"
        f"<ol>{listed('strongest')}</ol>{lot if by_lot else ''}</details>"
    )


def _example(one: Example, head: Head) -> str:
    shown: list[str] = []
    for place, (token, weight) in enumerate(zip(one.row.tokens, one.row.weights, strict=True)):
        marks = ("query",) * (place == one.query and not one.row.asking) + ("key",) * (place == one.key)
        kind = f' class="{" ".join(marks)}"' if marks else ""
        shown.append(f'<span{kind} style="--w:{weight:.3f}" title="{weight:.4f}">{escape(token)}</span>')
    asking = f'<b class="query">{escape(one.row.asking)}</b> asks: ' if one.row.asking else ""
    tenth = f"tenth {one.tenth}, " if one.tenth else ""
    query = one.row.asking or one.row.tokens[one.query]
    told = f"{tenth}“{query}” gives “{one.row.tokens[one.key]}” {one.weight:.3f}"
    writes = f'; it makes likelier: <span class="mono">{escape(one.words)}</span>' if one.words else ""
    link = "" if one.explored is None else _link(head, one.explored)
    return f'<p class="tokens">{asking}{"".join(shown)}</p><p class="told">{escape(told)}{writes}{link}</p>'


def _link(head: Head, place: int) -> str:
    """To an example in the explorer."""
    return f' · <a href="explorer.html#{head.file.removesuffix(".html")}/{place}">In the explorer</a>'


def _metrics(head: Head) -> str:
    names = ["mean", "spread", *(f"{decile} %" for decile in range(10, 100, 10))]
    rows = [
        (
            escape(metric.label),
            *(_number(head.told[f"{name}{ending}"]) for ending in ("", "_spread")),
            *(_number(head.told[f"{name}_d{decile}"]) for decile in range(10, 100, 10)),
        )
        for name, metric in METRICS.items()
        if name in head.told  # a scan that was made before a metric was known has none of it
    ]
    return _table(["metric", *names], rows)


def _kinds(head: Head) -> str:
    most = sorted(head.kinds, key=lambda one: -float(one["lift"]) if not isnan(float(one["lift"])) else 0.0)
    rows = [
        (
            escape(str(one["query_kind"])),
            escape(str(one["key_kind"])),
            _number(one["lift"]),
            f"{int(one['pairs']):,}{' (few)' if int(one['pairs']) < 300 else ''}",
        )
        for one in most
    ]
    return _table(["from", "to", "times chance", "pairs"], rows)


def _table(names: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    top = "".join(f'<th scope="col">{escape(name)}</th>' for name in names)
    body = "".join(
        f'<tr><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in rest)}</tr>' for first, *rest in rows
    )
    return f'<div class="wide"><table><tr>{top}</tr>{body}</table></div>'


def _number(value: Any) -> str:
    return "–" if isnan(float(value)) else f"{float(value):.3f}"


def search_data(heads: Sequence[Head]) -> str:
    """What the search looks through: a script, since a page from a file may not read one otherwise."""
    found = [
        [head.file, f"Head {head.name} · {ROLES[head.role].label}", " ".join(dict.fromkeys(_words_of(head)))]
        for head in heads
    ]
    # A closing tag in a text would end a script that stood in a page; in a file of its own it is text.
    return f"window.HEADS = {json.dumps(found, ensure_ascii=True)};\n"


def _words_of(head: Head) -> Iterable[str]:
    for one in head.examples:
        yield one.row.asking or one.row.tokens[one.query]
        yield one.row.tokens[one.key]


def style_sheet(own: str) -> str:
    """The colours of both themes, and the rest, which knows them by name."""
    dark = f"@media (prefers-color-scheme: dark) {{\n:root {{ {_colours(DARK)} }}\n}}"
    fonts = f"--sans: {SANS}; --mono: {MONOSPACE};"
    return f":root {{ color-scheme: light dark; {fonts} {_colours(LIGHT)} }}\n{dark}\n{own}"


def _colours(palette: Palette) -> str:
    names = ("background", "surface", "ink", "muted", "line", "query", "key", "accent")
    found = {name: getattr(palette, name) for name in names} | {"deep": palette.weights[-1]}
    found |= {f"role-{at}": colour for at, colour in enumerate(palette.roles)}
    return " ".join(f"--{name}: {colour};" for name, colour in found.items())


def _page(title: str, body: str) -> str:
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{escape(title)}</title><link rel="stylesheet" href="style.css"></head><body><main>{body}</main></body>'
        "</html>\n"
    )
