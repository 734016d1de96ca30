"""What a study found, on the pages of a site."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from attention_viz.corpus.site.parts import Head, file_of

__all__ = ["change_words", "most_of", "studied"]

# So many heads are told to matter most.
_MOST = 10


def most_of(heads: Sequence[Head]) -> str:
    """The heads without which the model changes most; nothing of a scan that wasn't studied."""
    known = [(head, head.silenced) for head in heads if head.silenced is not None]
    if not known:
        return ""
    known.sort(key=lambda pair: -abs(float(pair[1]["change"])))
    lines = "".join(
        f'<li><a href="{head.file}">Head {head.name}</a> {escape(change_words(silenced))}</li>'
        for head, silenced in known[:_MOST]
    )
    return f"<h2>The {min(_MOST, len(known))} heads that matter most</h2><ol>{lines}</ol>"


def studied(head: Head) -> str:
    """What becomes of the model without a head, and which heads are like it."""
    parts = list[str]()
    if head.silenced is not None:
        parts.append(f"<p>{escape(change_words(head.silenced))}</p>")
    if head.alike:
        links = ", ".join(
            f'<a href="{file_of(one["stream"], one["other_layer"], one["other_head"])}">'
            f"{one['other_layer']}·{one['other_head']}</a> ({float(one['apart']):.2f})"
            for one in head.alike
        )
        parts.append(f"<p>Heads like it, with how far their rows are apart (0 is equal, 1 the most): {links}.</p>")
    return "".join(parts)


def change_words(silenced: Mapping[str, Any]) -> str:
    """What becomes of the model without a head, with the standard error; whether that can be told from chance.

    Args:
        silenced: a row of a study's table.
    """
    change, error, texts = float(silenced["change"]), float(silenced["change_error"]), int(silenced["texts"])
    if silenced["of"] == "loss":
        moved = f"the loss {'rises' if change >= 0 else 'falls'} by {abs(change):.3f} ± {error:.3f} nats a token"
    else:
        moved = f"the embedding moves by {change:.4f} ± {error:.4f} (1 − the cosine)"
    chance = "" if abs(change) > 2 * error else ", which can't be told from chance"
    return f"Without it, over {texts} texts, {moved}{chance}."
