"""A head's examples as lines of tokens; text and tokens are escaped."""

from html import escape

from attention_viz.analysis.metrics import METRICS
from attention_viz.corpus.site.parts import Head, SiteExample

__all__ = ["listed", "others"]

# A weight smaller than this tints nothing.
_SEEN = 0.02


def listed(head: Head, metric: str, kind: str) -> str:
    """The examples of a metric, in their order."""
    some = [one for one in head.examples if one.metric == metric and one.kind == kind]
    if not some:
        return '<p class="note">No text has one.</p>'
    return f'<ol class="examples">{"".join(f"<li>{_example(one, head)}</li>" for one in some)}</ol>'


def others(head: Head, metric: str) -> str:
    """List the strongest by other metrics, after their names."""
    names = [name for name in dict.fromkeys(one.metric for one in head.examples) if name != metric]
    return "".join(
        f"<details><summary>{escape(METRICS[name].label)}</summary>{listed(head, name, 'strongest')}</details>"
        for name in names
    )


def _example(one: SiteExample, head: Head) -> str:
    tenth = f'<span class="m">tenth {one.tenth}</span>' if one.tenth else ""
    query = one.row.asking or one.row.tokens[one.query]
    writes = (
        f'<span class="m">makes likelier: <span class="mono">{escape(one.words)}</span></span>' if one.words else ""
    )
    asking = f'<b class="query">{escape(one.row.asking)}</b> asks: ' if one.row.asking else ""
    phrase = (
        f'<p class="told">{tenth}<span class="mono"><b class="q">{escape(query)}</b> → <b class="k">'
        f"{escape(one.row.tokens[one.key])}</b></span><b>{one.weight:.3f}</b>{writes}{_link(one, head)}</p>"
    )
    return f'{phrase}<p class="tokens">{asking}{_tokens(one)}</p>'


def _tokens(one: SiteExample) -> str:
    shown: list[str] = []
    for place, (token, weight) in enumerate(zip(one.row.tokens, one.row.weights, strict=True)):
        marks = ("query",) * (place == one.query and not one.row.asking) + ("key",) * (place == one.key)
        kind = f' class="{" ".join(marks)}"' if marks else ""
        tint = f" style=--w:{weight:.2f}" if weight >= _SEEN else ""
        # Short, since a site has millions of them.
        shown.append(f"<i{kind}{tint} title={weight:.4f}>{escape(token)}</i>")
    return " ".join(shown)


def _link(one: SiteExample, head: Head) -> str:
    if one.explored is None:
        return ""
    name = head.file.removesuffix(".html")
    return f'<a class="open" href="explorer.html#{name}/{one.explored}">In the explorer</a>'
