"""A study's findings on a site's pages."""

from collections.abc import Mapping, Sequence
from typing import Any

from attention_viz.corpus.site.parts import Head, file_of

# The number of most important heads, and of most similar pairs, on a page.
_MOST = 10


def most_of(heads: Sequence[Head]) -> list[tuple[Head, Mapping[str, Any]]]:
    """Return heads whose ablation changes the model most; none if not studied."""
    known = [(head, head.silenced) for head in heads if head.silenced is not None]
    return sorted(known, key=lambda pair: -abs(float(pair[1]["change"])))[:_MOST]


def closest(heads: Sequence[Head]) -> list[tuple[Head, Head, float]]:
    """Return the most similar pairs of heads and how far they are apart; none if not studied."""
    by_file = {head.file: head for head in heads}
    pairs = {
        frozenset((head.file, _other(one))): (head, by_file[_other(one)], float(one["apart"]))
        for head in heads
        for one in head.alike
    }
    return sorted(pairs.values(), key=lambda pair: pair[2])[:_MOST]


def near(head: Head) -> list[tuple[str, str, float, float]]:
    """Return similar heads as bars: shorter is nearer."""
    return [
        (_other(one), f"{one['other_layer']}·{one['other_head']}", float(one["apart"]), float(one["apart"]))
        for one in head.alike
    ]


def _other(one: Mapping[str, Any]) -> str:
    return file_of(one["stream"], one["other_layer"], one["other_head"])


def change_words(silenced: Mapping[str, Any]) -> str:
    """Describe a head's ablation, its standard error, and whether it exceeds chance."""
    change, error, texts = float(silenced["change"]), float(silenced["change_error"]), int(silenced["texts"])
    if silenced["of"] == "loss":
        moved = f"the loss {'rises' if change >= 0 else 'falls'} by {abs(change):.3f} ± {error:.3f} nats per token"
    else:
        moved = f"the embedding changes by {change:.4f} ± {error:.4f} (1 − cosine)"
    chance = "" if abs(change) > 2 * error else ", within chance"
    return f"Without it, over {texts} texts, {moved}{chance}."
