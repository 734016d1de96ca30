"""One head's page: its role's frequency, examples and numbers."""

from html import escape
from math import isnan, log2
from typing import Any

from attention_viz.analysis.metrics import METRICS
from attention_viz.analysis.roles import ROLES, SHARES
from attention_viz.corpus.kinds import KINDS
from attention_viz.corpus.site.examples import listed, others
from attention_viz.corpus.site.frame import SCRIPTS, bars, number, page, table
from attention_viz.corpus.site.parts import Head, Site
from attention_viz.corpus.site.studied import near, silence
from attention_viz.corpus.tables import DECILES, HOLDS, LEADING, TEXTS

__all__ = ["head_page"]

# Of fewer pairs a lift says little.
_FEW = 300


def head_page(site: Site, head: Head) -> str:
    """The page."""
    metric = LEADING[head.role]
    label = METRICS[metric].label
    left = f"<section>{_text_by_text(head, metric)}{near(head)}</section>"
    strongest = (
        f'<section class="mid"><h2>Strongest examples <small>by “{escape(label)}”; framed: <b class="q">query</b>, '
        f'<b class="k">key</b> it looks at most</small></h2>{listed(head, metric, "strongest")}</section>'
    )
    by_lot = (
        "<section><h2>By lot, weak to strong <small>from the tenth of the texts with least of it to that with most"
        f"</small></h2>{listed(head, metric, 'random')}</section>"
    )
    map_ = f"<h2>Queries and keys together</h2>{head.picture}" if head.picture else ""
    body = (
        f'<div class="top"><div>{_said(site, head)}</div><div id="atlas" data-head="{head.file}"></div></div>'
        f'<div class="cols">{left}{strongest}</div><div class="cols low">{by_lot}<section>{map_}</section></div>'
        f'<div class="cols even"><section><h2>Which kinds of tokens look at which <small>times chance</small></h2>'
        f"{_kinds(head)}</section><section><h2>All metrics <small>over the texts</small></h2>{_metrics(head)}</section>"
        f"</div><section><h2>By other metrics</h2>{others(head, metric)}</section>{SCRIPTS}"
    )
    return page(f"Head {head.name} of {site.model}", site, body)


def _said(site: Site, head: Head) -> str:
    role = ROLES[head.role]
    place = list(ROLES).index(head.role)
    sign = f'<i class="sig" style="--role:var(--role-{place})"></i>'
    often, split = "", ""
    if head.role in SHARES:
        could, holds = (int(head.row.get(f"role {head.role}{ending}") or 0) for ending in (TEXTS, HOLDS))
        often = f' <span class="w">in {holds:,} of {could:,} texts that can show it</span>'
        split = _split(holds, could - holds, site.texts - could, place)
    score = float(head.row["score"])
    share = "" if isnan(score) else f" Its share is <b>{score:.2f}</b>; from {role.threshold:g} on a head is called so."
    if head.role == "mixed":
        share = "" if isnan(score) else f" Its largest share of a job is <b>{score:.2f}</b>."
    return (
        f'<h1>{sign}Head {head.name}: {escape(role.label)}{often}</h1><p class="say">{escape(role.meaning)}{share}</p>'
        f"{split}{silence(head)}"
    )


def _split(holds: int, fails: int, rest: int, place: int) -> str:
    parts = ((holds, "holds", "on"), (fails, "not", "off"), (rest, "can’t show it", "none"))
    shown = "".join(f'<i class="{kind}" style="flex:{count}"></i>' for count, _, kind in parts if count)
    phrase = "".join(f'<span class="{kind}">{count:,} {name}</span>' for count, name, kind in parts if count)
    return f'<div class="split" style="--role:var(--role-{place})"><div>{shown}</div><p>{phrase}</p></div>'


def _text_by_text(head: Head, metric: str) -> str:
    found = [float(head.row.get(f"{metric}_d{decile}", float("nan"))) for decile in DECILES]
    mean, spread = (float(head.row.get(f"{metric}{ending}", float("nan"))) for ending in ("", "_spread"))
    title = (
        f"<h2>{escape(METRICS[metric].label)}, text by text <small>mean {number(mean, 2)} ± {number(spread, 2)}</small>"
        "</h2>"
    )
    if all(isnan(one) for one in found):
        return f'{title}<p class="note">No text has what it asks for.</p>'
    top = max([one for one in found if not isnan(one)] + [1e-9])
    rows = (
        (f"<span>{decile} %</span>", max(0.0, value) / top, value) for decile, value in zip(DECILES, found, strict=True)
    )
    return (
        f'{title}{bars(rows)}<p class="note">So much or less is in the text’s mean of so many texts; '
        f"in {escape(METRICS[metric].unit)}.</p>"
    )


def _metrics(head: Head) -> str:
    names = ("mean", "spread", "10 %", "median", "90 %")
    endings = ("", "_spread", "_d10", "_d50", "_d90")
    rows = [
        (escape(metric.label), *(number(head.row[f"{name}{ending}"]) for ending in endings))
        for name, metric in METRICS.items()
        if name in head.row  # a scan that was made before a metric was known has none of it
    ]
    return table(["metric", *names], rows)


def _kinds(head: Head) -> str:
    """Colour twice chance fully, half of it grey."""
    known = {(str(one["query_kind"]), str(one["key_kind"])): one for one in head.kinds}
    rows = [name for name in KINDS if any(query == name for query, _ in known)]
    columns = [name for name in KINDS if any(key == name for _, key in known)]
    body = "".join(
        f'<tr><th scope="row">{escape(row)}</th>{"".join(_lift(known.get((row, column))) for column in columns)}</tr>'
        for row in rows
    )
    top = "".join(f'<th scope="col">{escape(column)}</th>' for column in columns)
    return (
        f'<div class="wide" tabindex="0"><table class="kinds"><tr><th>from ↓ to →</th>{top}</tr>{body}</table></div>'
        '<p class="note">Weight over an even spread of what isn’t given to special tokens and the first; below it, of '
        f"how many pairs. Pale: fewer than {_FEW}.</p>"
    )


def _lift(one: Any) -> str:
    if one is None:
        return "<td></td>"
    lift, pairs = float(one["lift"]), int(one["pairs"])
    phrase = f"{number(lift, 1)}<small>{_short(pairs)}</small>"
    if pairs < _FEW or isnan(lift):
        return f'<td class="few" title="{pairs:,} pairs">{phrase}</td>'
    depth = max(-1.0, min(1.0, log2(max(lift, 0.05))))
    side = "more" if depth >= 0 else "less"
    return f'<td class="{side}" style="--d:{abs(depth):.2f}" title="{pairs:,} pairs">{phrase}</td>'


def _short(count: int) -> str:
    return f"{count / 1_000:.1f}k" if count >= 1_000 else str(count)
