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

# How all heads are shown, and by what one can look for some of them; each by its name in the address.
VIEWS = {
    "roles": "Roles",
    "patterns": "Patterns",
    "silenced": "Silenced",
    "colours": "By a metric",
    "scatter": "Two metrics",
    "map": "By likeness",
}
# Characters, typed or in a link.
LONGEST_STORY = 1_000
PLOTS = {"weights": "Weights", "vectors": "Queries and keys"}
# The names in `attention_viz.analysis.roles`, for which the first paint doesn't wait.
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

    metric: str = parameter("entropy", OneOf(_metrics), "the metric that is shown")
    view: str = parameter("roles", OneOf(tuple(VIEWS)), "how all heads are shown")
    beside: str = parameter("previous", OneOf(_metrics), "what stands up in the scatter")
    search: str = parameter("words", OneOf(tuple(SEARCHES)), "how one searches")
    query_word: str = parameter("bank", AnyText(), "the word that looks", older=Older("query", _word("query")))
    key_word: str = parameter("river", AnyText(), "the word looked at", older=Older("key", _word("key")))
    pattern: str = parameter("", DRAWN, "what was drawn", brief=True)
    role: str | None = parameter(None, OneOf(ROLE_NAMES, nothing="none"), "the role whose heads stand out", brief=True)
    plot: str = parameter("weights", OneOf(tuple(PLOTS)), "how the chosen head is shown", brief=True)
    silence: Switch = parameter("off", OneOf(get_args(Switch)), "the chosen head silenced", brief=True)
    detector: str = parameter("previous", OneOf(_detectors), "the detector")
    texts: str = parameter("", AnyText(), "more texts", brief=True)
    scan: str = parameter("", AnyText(), "the scan of many texts that is shown", brief=True)
    story: str = parameter("", AnyText(LONGEST_STORY), "the story that is put to the test", brief=True)


HEADS_CHOICES = Group(HeadsChoice(), "heads-")
