"""A site's first page: atlas, most important heads, method."""

import json
from collections.abc import Iterable, Sequence
from html import escape
from math import isnan
from typing import Any

from attention_viz.analysis.roles import ROLES, roles_for
from attention_viz.corpus.site.frame import SCRIPTS, page
from attention_viz.corpus.site.parts import Head, Site
from attention_viz.corpus.site.studied import closest, most_of
from attention_viz.trace.unit import Unit

__all__ = ["heads_data", "index_page"]


def index_page(site: Site, heads: Sequence[Head], made: Sequence[tuple[str, str]], files: Sequence[str]) -> str:
    """The page."""
    streams = dict.fromkeys(str(head.row["stream"]) for head in heads)
    atlases = "".join(
        f'<section class="atlas-part"><h2>{escape(stream.capitalize())} <small>layer down, head across</small></h2>'
        f"{_atlas([head for head in heads if head.row['stream'] == stream])}</section>"
        for stream in streams
    )
    links = ", ".join(f'<a href="{name}">{name.rpartition("/")[2]}</a>' for name in files)
    facts = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in made)
    said = (
        "Each cell is a head, coloured by what it mostly does: the stronger the colour, the larger its share of that. "
        "Press one for its examples."
    )
    body = (
        f'<h1>{_finding(site, heads)}</h1><p class="say">{said}</p>'
        f'<div class="cols first"><div>{atlases}</div><section><h2>Roles</h2>{_legend(heads)}</section></div>'
        f'<div class="cols even" id="most">{most_of(heads)}{closest(heads)}</div>'
        f'<section id="made"><h2>How it was made</h2><dl class="made">{facts}</dl>'
        f"<p>All numbers as tables: {links}.</p></section>{SCRIPTS}"
    )
    return page(f"{site.model}: what its heads do", site, body)


def _finding(site: Site, heads: Sequence[Head]) -> str:
    counts = {name: sum(head.role == name for head in heads) for name, role in ROLES.items() if role.job}
    most = [name for name in sorted(counts, key=lambda name: -counts[name]) if counts[name]][:3]
    phrase = ", ".join(f"{counts[name]} “{ROLES[name].label}”" for name in most)
    count = sum(counts.values())
    jobs = f"{count} of {site.model}’s {len(heads)} heads {'has' if count == 1 else 'have'} a job"
    return f'{escape(jobs)}<span class="w">{escape(f": {phrase}" if phrase else "")}</span>'


def _legend(heads: Sequence[Head]) -> str:
    counts = {name: sum(head.role == name for head in heads) for name in ROLES}
    return '<ul class="legend">{}</ul>'.format(
        "".join(
            f'<li><span class="role" style="--role:var(--role-{at})">{counts[name]}</span><span><b>'
            f"{escape(role.label)}</b> {escape(role.meaning)}</span></li>"
            for at, (name, role) in enumerate(ROLES.items())
            if name in roles_for(Unit.WORD)
        )
    )


def _atlas(heads: Sequence[Head]) -> str:
    layers: dict[int, list[Head]] = {}
    for head in heads:
        layers.setdefault(int(head.row["layer"]), []).append(head)
    rows = "".join(
        f'<tr><th scope="row">{layer}</th>{"".join(f"<td>{_cell(head)}</td>" for head in some)}</tr>'
        for layer, some in layers.items()
    )
    top = "".join(f'<th scope="col">{number}</th>' for number in range(max(map(len, layers.values()))))
    return (
        '<div class="wide"><table class="atlas"><tr><th><span class="hidden">layer</span></th>'
        f"{top}</tr>{rows}</table></div>"
    )


def _cell(head: Head) -> str:
    score, share = float(head.row["score"]), _share(head)
    phrase = f"Head {head.name}: {ROLES[head.role].label}{'' if isnan(score) else f', {score:.2f}'}"
    shown, place = "" if isnan(score) else f"{share:.2f}".lstrip("0"), list(ROLES).index(head.role)
    return (
        f'<a class="role" href="{head.file}" style="--role:var(--role-{place});--s:{share:.2f}" '
        f'title="{escape(phrase)}" aria-label="{escape(phrase)}">{shown}</a>'
    )


def _share(head: Head) -> float:
    score = float(head.row["score"])
    return 0.0 if isnan(score) else min(1.0, max(0.0, score))


def heads_data(heads: Sequence[Head]) -> str:
    """Return search and atlas data as a script, because file pages can't fetch data."""
    found = [
        [
            head.file,
            f"Head {head.name} · {ROLES[head.role].label}",
            " ".join(dict.fromkeys(_words_of(head))),
            *_place_of(head),
        ]
        for head in heads
    ]
    # A closing tag in a text would end a script that stood in a page; in a file of its own it is text.
    return f"window.HEADS = {json.dumps(found, ensure_ascii=True)};\n"


def _place_of(head: Head) -> tuple[Any, ...]:
    return (
        str(head.row["stream"]),
        int(head.row["layer"]),
        int(head.row["head"]),
        list(ROLES).index(head.role),
        round(_share(head), 2),
    )


def _words_of(head: Head) -> Iterable[str]:
    for one in head.examples:
        yield one.row.asking or one.row.tokens[one.query]
        yield one.row.tokens[one.key]
