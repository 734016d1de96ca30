"""A scan's sentences on a head."""

from collections.abc import Mapping
from math import isnan
from typing import Any

from attention_viz.analysis.roles import ROLES, SHARES
from attention_viz.corpus.tables import HOLDS, TEXTS

__all__ = ["here_words", "over_words"]


def over_words(row: Mapping[str, Any], texts: int, corpus: str) -> str:
    """Describe a head's role over the texts, with its frequency."""
    role = str(row["role"])
    label = ROLES[role].label
    over = f"Over {texts:,} texts of {corpus} this head is “{label}”"
    if role not in SHARES:
        most = "" if isnan(row["score"]) else f"; its largest share of a role is {row['score']:.2f}"
        return f"{over}: nothing often enough to reach a threshold{most}."
    return f"{over}, with a share of {row['score']:.2f}: it is that in {_often(row, role)}."


def here_words(row: Mapping[str, Any], role: str, score: float) -> str:
    """Return how often this sentence's role recurs over the texts."""
    if role not in SHARES:
        return f"In this sentence it is “{ROLES[role].label}”."
    same = "the same" if role == row["role"] else f"“{ROLES[role].label}”"
    return f"In this sentence it is {same}, with {score:.2f}: it does here what it does in {_often(row, role)}."


def _often(row: Mapping[str, Any], role: str) -> str:
    could, holds = (int(row[f"role {role}{ending}"]) for ending in (TEXTS, HOLDS))
    if not could:
        return "none of these texts, which can't show it"
    return f"{holds / could:.0%} of the {could:,} texts that can show it"
