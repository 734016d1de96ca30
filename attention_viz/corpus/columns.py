"""The units and meanings of the columns in a scan's tables."""

from typing import TYPE_CHECKING

from attention_viz.analysis.head_table import metric_columns
from attention_viz.analysis.metrics import METRICS
from attention_viz.analysis.roles import ROLES, role_columns
from attention_viz.trace.files.arrow import PLACES, Column, described
from attention_viz.trace.kind import MIXER

if TYPE_CHECKING:
    import pandas

__all__ = ["columns_of", "with_columns"]

_QUERY = Column("the position of the query, from 0")
_KEY = Column("the position of the key, from 0")
_TEXT = Column("the text's number in the corpus")
_SAID = Column("the text")
_PICTURE = Column("the path of its image")
_OTHERS = {
    "kinds": {
        "query_kind": Column("the kind of the attending token"),
        "key_kind": Column("the kind of the token that is attended to"),
        "weight": Column("the sum of the weights over all texts", "weight"),
        "expected": Column("the same sum, if each query spread its weight evenly", "weight"),
        "lift": Column("weight over expected"),
        "pairs": Column("the number of pairs", "pairs"),
    },
    "examples": {
        "metric": Column("the metric that the text is an example of"),
        "kind": Column("strongest, or random in its tenth"),
        "tenth": Column("the tenth of the texts by this metric, from 1; 0 for the strongest"),
        "rank": Column("the place among its kind, from 1"),
        "text": _TEXT,
        "query": _QUERY,
        "key": _KEY,
        "weight": Column("the weight of the key in the query's row", "share of the query"),
        "value": Column("the metric's number at this query"),
    },
    "texts": {
        "text": _TEXT,
        "said": _SAID,
        "picture": _PICTURE,
        "picture_sha256": Column("the SHA-256 of its image"),
        "by_lot": Column("whether the text is in the random sample"),
    },
    "regions": {
        "label": Column("whether the head's words attend to one region"),
        "words": Column("the number of words with content after an image", "words"),
        "regions": Column("how many of them attend to one region", "words"),
        "share": Column("regions over words", "share of the words"),
        "weight": Column("the mean share of the row on that region", "share of the query"),
        "times": Column("the mean of how many times the region's area that is"),
        "text": _TEXT,
        "query": _QUERY,
        "key": _KEY,
    },
    "silenced": {
        "change": Column("the change if the head's output is 0: of the loss, or 1 − cosine of embeddings"),
        "change_error": Column("its standard error"),
        "of": Column("loss, in nats per token, or embedding"),
        "texts": Column("the number of texts", "texts"),
    },
    "alike": {
        "other_layer": Column("the layer of the similar head"),
        "other_head": Column("its number in its layer"),
        "apart": Column("the root of the mean Jensen–Shannon divergence of their rows, 0 to 1"),
    },
    "written": {
        "text": _TEXT,
        "query": _QUERY,
        "words": Column("the words that the head promotes there"),
    },
}


def columns_of(name: str, *, mixes: bool = False) -> dict[str, Column]:
    """Return the described columns of one of a scan's tables."""
    if name != "heads":
        return {**PLACES, **_OTHERS.get(name, {})}
    found = metric_columns(mixes=mixes)
    for metric in METRICS:
        unit = found[metric].unit
        found[f"{metric}_texts"] = Column(f"the number of texts behind {metric}", "texts")
        found |= {f"{metric}_d{one}": Column(f"decile {one // 10} of {metric}", unit) for one in range(10, 100, 10)}
    for role in ROLES:
        found[f"role {role}_texts"] = Column(f"the number of texts that can show the role {role}", "texts")
        found[f"role {role}_holds"] = Column(f"the number of these where the role {role} holds", "texts")
    return {**found, **role_columns("role ")}


def with_columns(name: str, table: "pandas.DataFrame") -> "pandas.DataFrame":
    """Return one of a scan's tables with its columns described."""
    mixes = "stream" in table and len(table) > 0 and str(table["stream"].iloc[0]).startswith(MIXER)
    return described(table, columns_of(name, mixes=mixes))
