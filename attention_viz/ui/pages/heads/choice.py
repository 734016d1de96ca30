"""The Heads page's URL choices."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import get_args

from attention_viz.analysis.metrics import METRICS
from attention_viz.ui.address import Switch
from attention_viz.ui.address.cells import DRAWN
from attention_viz.ui.address.codec import Older, parameter
from attention_viz.ui.address.kinds import AnyText, OneOf
from attention_viz.ui.selection import Group

# Views of all heads, by name in the URL.
VIEWS = {
    "roles": "Roles",
    "patterns": "Patterns",
    "silenced": "Ablated",
    "colours": "One metric",
    "scatter": "Two metrics",
    "map": "Similarity",
}
METRIC_VIEWS = {name: VIEWS[name] for name in ("colours", "scatter", "map")}
# Characters, typed or in a link.
LONGEST_STORY = 1_000
PLOTS = {"weights": "Weights", "vectors": "Queries and keys", "arrived": "What arrived"}
# Names from `attention_viz.analysis.roles`, repeated so that the first paint needn't import it.
ROLE_NAMES = (
    *("previous", "next", "above", "itself", "same token", "induction", "punctuation"),
    *("first", "broad", "mixed"),
)
SEARCHES = {"words": "Words", "pattern": "Pattern", "detector": "Detector"}


def _metrics(choice: object, known: object) -> Collection[str]:
    return METRICS


def _detectors(choice: object, known: Collection[str]) -> Collection[str]:
    return known


def _word(name: str) -> Callable[[Mapping[str, str]], bool]:
    """Return whether an old URL uses a position's name for a word."""
    return lambda address: not address[name].isdecimal()


@dataclass(frozen=True)
class HeadsChoice:
    """The Heads page's URL choices."""

    metric: str = parameter("entropy", OneOf(_metrics), "the metric shown")
    view: str = parameter("roles", OneOf(tuple(VIEWS)), "how all heads are shown")
    beside: str = parameter("previous", OneOf(_metrics), "the scatter's vertical axis")
    search: str = parameter("words", OneOf(tuple(SEARCHES)), "how to search")
    query_word: str = parameter("bank", AnyText(), "the query word", older=Older("query", _word("query")))
    key_word: str = parameter("river", AnyText(), "the key word", older=Older("key", _word("key")))
    pattern: str = parameter("", DRAWN, "the drawn pattern", brief=True)
    role: str | None = parameter(None, OneOf(ROLE_NAMES, nothing="none"), "the highlighted role", brief=True)
    plot: str = parameter("weights", OneOf(tuple(PLOTS)), "how the chosen head is shown", brief=True)
    silence: Switch = parameter("off", OneOf(get_args(Switch)), "whether the chosen head is ablated", brief=True)
    detector: str = parameter("previous", OneOf(_detectors), "the detector")
    texts: str = parameter("", AnyText(), "more texts", brief=True)
    scan: str = parameter("", AnyText(), "the scan shown", brief=True)
    story: str = parameter("", AnyText(LONGEST_STORY), "the hypothesis tested", brief=True)


HEADS_CHOICES = Group(HeadsChoice(), "heads-")
