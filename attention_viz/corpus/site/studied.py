"""A study's findings on a site's pages."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from attention_viz.analysis.roles import ROLES
from attention_viz.corpus.site.frame import bars
from attention_viz.corpus.site.parts import Head, file_of

__all__ = ["change_words", "closest", "most_of", "near", "silence"]

# So many heads are told to matter most, and so many pairs to be most alike.
_MOST = 10
_APART = '<p class="note">How far their rows are apart: 0 is equal, 1 the most.</p>'


def most_of(heads: Sequence[Head]) -> str:
    """List heads whose ablation changes the model most; empty if not studied."""
    known = [(head, head.silenced) for head in heads if head.silenced is not None]
    if not known:
        return ""
    known.sort(key=lambda pair: -abs(float(pair[1]["change"])))
    lines = "".join(
        f'<li><a href="{head.file}">Head {head.name}</a> <span class="m">{escape(ROLES[head.role].label)}</span> '
        f"{escape(change_words(silenced))}</li>"
        for head, silenced in known[:_MOST]
    )
    count = min(_MOST, len(known))
    return f'<section><h2>The {count} heads that matter most</h2><ol class="plain">{lines}</ol></section>'


def closest(heads: Sequence[Head]) -> str:
    """List the most similar pairs of heads; empty if not studied."""
    pairs = {frozenset((head.file, _other(one))): (head, one) for head in heads for one in head.alike}
    if not pairs:
        return ""
    names = {head.file: head.name for head in heads}
    some = sorted(pairs.values(), key=lambda pair: float(pair[1]["apart"]))[:_MOST]
    lines = "".join(
        f'<li><a href="{head.file}">Head {head.name}</a> and <a href="{_other(one)}">{names[_other(one)]}</a>, '
        f'<span class="m">{escape(ROLES[head.role].label)}</span>, {float(one["apart"]):.2f} apart</li>'
        for head, one in some
    )
    return f'<section><h2>Heads that are most alike</h2><ol class="plain">{lines}</ol>{_APART}</section>'


def silence(head: Head) -> str:
    """What becomes of the model without a head."""
    return "" if head.silenced is None else f'<p class="note">{escape(change_words(head.silenced))}</p>'


def near(head: Head) -> str:
    """Draw similar heads as bars: shorter is nearer."""
    if not head.alike:
        return ""
    known = [(one, float(one["apart"])) for one in head.alike]
    rows = (
        (f'<a href="{_other(one)}">{one["other_layer"]}·{one["other_head"]}</a>', apart, apart) for one, apart in known
    )
    return f"<h2>Heads most like it</h2>{bars(rows)}{_APART}"


def _other(one: Mapping[str, Any]) -> str:
    return file_of(one["stream"], one["other_layer"], one["other_head"])


def change_words(silenced: Mapping[str, Any]) -> str:
    """Describe a head's ablation, its standard error, and whether it exceeds chance."""
    change, error, texts = float(silenced["change"]), float(silenced["change_error"]), int(silenced["texts"])
    if silenced["of"] == "loss":
        moved = f"the loss {'rises' if change >= 0 else 'falls'} by {abs(change):.3f} ± {error:.3f} nats a token"
    else:
        moved = f"the embedding moves by {change:.4f} ± {error:.4f} (1 − the cosine)"
    chance = "" if abs(change) > 2 * error else ", which can't be told from chance"
    return f"Without it, over {texts} texts, {moved}{chance}."
