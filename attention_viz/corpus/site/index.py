"""A site's first page: atlas, most important heads, method."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from attention_viz.analysis.roles import ROLES, roles_for
from attention_viz.corpus.site.frame import rendered
from attention_viz.corpus.site.parts import Head, Site
from attention_viz.corpus.site.studied import closest, most_of
from attention_viz.trace.kind import Unit


def index_page(site: Site, heads: Sequence[Head], made: Sequence[tuple[str, str]], files: Sequence[str]) -> str:
    """Return the page."""
    counts = {name: sum(head.role == name for head in heads) for name in ROLES}
    jobs = {name: counts[name] for name, role in ROLES.items() if role.job and counts[name]}
    atlases: dict[str, dict[int, list[Head]]] = {}
    for head in heads:
        layers = atlases.setdefault(str(head.row["stream"]), {})
        layers.setdefault(int(head.row["layer"]), []).append(head)
    words = roles_for(Unit.WORD)
    return rendered(
        "index",
        site=site,
        heads=heads,
        jobs=sum(jobs.values()),
        most_jobs=[(jobs[name], ROLES[name].label) for name in sorted(jobs, key=lambda name: -jobs[name])[:3]],
        atlases=atlases,
        legend=[(role, at, counts[name]) for at, (name, role) in enumerate(ROLES.items()) if name in words],
        most=most_of(heads),
        pairs=closest(heads),
        made=made,
        files=files,
    )


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
        head.role_index,
        round(head.share, 2),
    )


def _words_of(head: Head) -> Iterable[str]:
    for one in head.examples:
        yield one.query_token
        yield one.key_token
