"""The Heads page in words: what a metric is, what the chosen head does, which heads link two words."""

from typing import TYPE_CHECKING

from attention_viz.ui.heads_choice import HeadsChoice

if TYPE_CHECKING:
    import pandas

    from attention_viz.trace import Trace

__all__ = ["found_words", "head_words", "metric_words", "safe_csv"]

# The highest of all is nothing to speak of where it is about 0.
_NOTHING = 0.005


def metric_words(name: str, *, formula: bool = False) -> str:
    """A metric's meaning in one sentence; with its formula, unit and source, as Markdown."""
    from attention_viz.metrics import METRICS

    metric = METRICS[name]
    if not formula:
        return metric.label
    return f"{metric.meaning} ${metric.formula}$, in {metric.unit}. :small[Source: {metric.source}.]"


def head_words(table: "pandas.DataFrame", head: tuple[int, int]) -> str:
    """What stands out in one head: the metrics in which it is among the highest of all."""
    from attention_viz.metrics import METRICS

    if head not in table.index:
        return ""
    ranks = table.rank(ascending=False, method="min").loc[head]
    row = table.loc[head]
    most = [name for name in METRICS if row[name] > _NOTHING and ranks[name] <= max(1, len(table) // 20)]
    most.sort(key=lambda name: float(ranks[name]))
    told = [
        f"{METRICS[name].label.lower()} {table.loc[head, name]:.3f} (rank {int(ranks[name])} of {len(table)})"
        for name in most
    ]
    where = f"Layer {head[0]}, head {head[1]}"
    return f"{where} stands out in {', '.join(told)}." if told else f"{where} stands out in no metric."


def found_words(trace: "Trace", found: "pandas.DataFrame", choice: HeadsChoice) -> str:
    """The heaviest head of a search, in a sentence."""
    top = found.iloc[0]
    labels = trace.query_tokens().labels[int(top["query"])], trace.key_tokens().labels[int(top["key"])]
    return (
        f"“{labels[0]}” (position {int(top['query'])}) looks most at “{labels[1]}” (position {int(top['key'])}) in "
        f"layer {int(top['layer'])}, head {int(top['head'])}: {top['weight']:.3f}. A click on a row's box chooses that "
        "head."
    )


def safe_csv(table: "pandas.DataFrame") -> bytes:
    """The table for a spreadsheet: numbers and our own names only; the mark at the start tells that it is UTF-8."""
    return b"\xef\xbb\xbf" + table.reset_index().to_csv(index=False, float_format="%.9g", lineterminator="\n").encode()
