"""A scan's tables, on request."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attention_viz.analysis.head_table import COUNT, ERROR
from attention_viz.analysis.metrics import METRICS
from attention_viz.corpus.opening import heads_in
from attention_viz.corpus.tables import SPREAD, records_of
from attention_viz.errors import ScanError, ShapeError

if TYPE_CHECKING:
    import pandas

_PLACE = ["layer", "head"]


@dataclass(frozen=True, eq=False, repr=False)
class Scanned:
    """What a scan says, without the model.

    Attributes:
        path: its folder.
        manifest: what it is of.
        stream: which attention its tables are of; None where all.
    """

    path: Path
    manifest: dict[str, Any]
    stream: str | None
    _tables: dict[str, Any]  # of pandas, which says of what is chosen from a table only that it may be one

    def __repr__(self) -> str:
        """Return model, corpus and number of texts."""
        done = self.manifest["done"]["texts"]
        stopped = "" if self.complete else ", stopped"
        return f"Scan({self.manifest['model']['name']!r}, {self.manifest['corpus']!r}, {done:,} texts{stopped})"

    @property
    def nbytes(self) -> int:
        """What its tables take in memory."""
        return int(sum(table.memory_usage(deep=True).sum() for table in self._tables.values()))

    @property
    def complete(self) -> bool:
        """Whether it went to the end of its corpus."""
        return bool(self.manifest["complete"])

    @property
    def streams(self) -> tuple[str, ...]:
        """The kinds of attention that were scanned."""
        return tuple(dict.fromkeys(stream for stream, _, _ in heads_in(self.manifest)))

    @property
    def table(self) -> "pandas.DataFrame":
        """Every metric of every head, as `head_table` of all the traces would be.

        Index (layer, head); each metric's mean over the texts that have what it asks for, its spread ("_spread"), where
        texts were measured by samples of their queries its standard error ("_error"), and of how many queries ("_n").

        Raises:
            ScanError: the scan has several streams; name one with `of`.
        """
        endings = [ending for ending in ("", SPREAD, ERROR, COUNT) if f"{next(iter(METRICS))}{ending}" in self.heads]
        found = self._alone("table")
        # A scan that was made before a metric was known has no number of it.
        later = [name + ending for ending in endings for name in METRICS if name + ending not in found]
        found = found.assign(**{name: 0 if name.endswith(COUNT) else float("nan") for name in later})
        return found[[name + ending for ending in endings for name in METRICS]]

    @property
    def roles(self) -> "pandas.DataFrame":
        """What each head mostly does, as `av.roles` of all the traces would say, and how often.

        Index (layer, head): role, score, label, and each role's share ("role previous"), in how many texts it could be
        told ("_texts"), and in how many of them the head reached its threshold ("_holds").

        Raises:
            ScanError: the scan has several streams; name one with `of`.
        """
        table = self._alone("roles")
        return table[["role", "score", "label", *(name for name in table if str(name).startswith("role "))]]

    @property
    def deciles(self) -> "pandas.DataFrame":
        """The nine deciles of each metric over the texts that were kept by lot: of all texts, where they are few.

        Index (layer, head), columns such as "previous_d10"; `attrs["texts"]` says of how many texts they are.

        Raises:
            ScanError: the scan has several streams; name one with `of`.
        """
        table = self._alone("deciles")
        found = table[[name for name in table if str(name).rpartition("_d")[2].isdigit()]]
        found.attrs["texts"] = int(self._tables["texts"]["by_lot"].sum())
        return found

    @cached_property
    def heads(self) -> "pandas.DataFrame":
        """All that is known of each head, of all streams: a row a head."""
        return self._of("heads")

    @cached_property
    def kinds(self) -> "pandas.DataFrame":
        """Which kinds of tokens look at which, a row a head and two kinds.

        Columns stream, layer, head, query_kind, key_kind; weight, what queries of one kind gave to keys of the other,
        in all texts; expected, what they would have given had each spread evenly what it didn't give to special tokens
        and the first; lift, the one over the other; pairs, of how many pairs: few say little.
        """
        return self._of("kinds")

    @cached_property
    def texts(self) -> "pandas.DataFrame":
        """The texts that examples are of and those kept by lot: text (its number), said, by_lot."""
        return self._tables["texts"]

    def examples(self, layer: int, head: int, metric: str) -> "pandas.DataFrame":
        """The strongest examples of a head by a metric, one a text and no pair of tokens twice, and some by lot.

        Args:
            layer: the number of the layer.
            head: the number of the head.
            metric: a name in `METRICS`.

        Returns:
            kind ("strongest" or "random"); tenth, of those by lot in which tenth of the texts by the metric's mean,
            from the least; rank; text, its number; said, what was read of it; query and key, the positions of the token
            that has most of the metric and of the one that it looks at most; weight, what that one gets; value, what
            the query has of the metric. Queries without a letter are left out.

        Raises:
            ShapeError: no such head or metric.
            ScanError: the scan has several streams; name one with `of`.
        """
        if metric not in METRICS:
            raise ShapeError(f"the metric {metric!r} was asked for; there are {', '.join(METRICS)}")
        table = self._one_stream("examples", "examples")
        found = table[(table["layer"] == layer) & (table["head"] == head)]
        if found.empty and not self._has(layer, head):
            raise ShapeError(f"head {layer}·{head} was asked for; the scan has {self._sizes()}")
        found = found[found["metric"] == metric].merge(self.texts[["text", "said"]], on="text", how="left")
        return found[["kind", "tenth", "rank", "text", "said", "query", "key", "weight", "value"]]

    @property
    def silenced(self) -> "pandas.DataFrame":
        """What becomes of the model without each head, from a few texts that `study` runs once more.

        Index (layer, head), what changes most first: change, how many nats a token the loss rises where the head says
        nothing, or of an encoder 1 − the cosine between the embeddings with it and without it, means over the texts;
        change_error, its standard error. `attrs` says of what it is ("loss" or "embedding") and of how many texts.

        Raises:
            ScanError: the scan wasn't studied.
        """
        table = self._studied("silenced").set_index(_PLACE)
        found = table[["change", "change_error"]].sort_values("change", key=abs, ascending=False, kind="stable")
        found.attrs.update(of=str(table["of"].iloc[0]), texts=int(table["texts"].iloc[0]))
        return found

    @property
    def alike(self) -> "pandas.DataFrame":
        """The five heads that are nearest to each, from the texts of `study`.

        Index (layer, head), the nearest first: other_layer, other_head; apart, the square root of the mean
        Jensen–Shannon divergence of their rows, from 0, equal, to 1.

        Raises:
            ScanError: the scan wasn't studied.
        """
        return self._studied("alike").set_index(_PLACE).drop(columns="stream")

    @property
    def written(self) -> "pandas.DataFrame":
        """The words that each head makes likelier where its strongest example asks, of a model that chooses words.

        Columns layer, head, text, query, words.

        Raises:
            ScanError: the scan wasn't studied.
        """
        return self._studied("written").drop(columns="stream")

    def studied(self, name: str) -> list[dict[str, Any]]:
        """The rows of a table of the study, of all streams; none of a scan that wasn't studied.

        Args:
            name: "silenced", "alike" or "written".
        """
        return records_of(self._tables[name]) if name in self._tables else []

    def _studied(self, name: str) -> Any:
        if name not in self._tables:
            raise ScanError(f"{name} was asked for, and this scan wasn't studied; scan.study() runs some texts for it")
        return self._tables[name]

    def _has(self, layer: int, head: int) -> bool:
        return any(place[1:] == (layer, head) for place in heads_in(self.manifest))

    def _sizes(self) -> str:
        layers = sorted({layer for _, layer, _ in heads_in(self.manifest)})
        heads = max(head for _, _, head in heads_in(self.manifest))
        return f"layers {', '.join(map(str, layers))} with heads from 0 to {heads}"

    def _alone(self, what: str) -> Any:
        return self._one_stream("heads", what).drop(columns="stream").set_index(_PLACE)

    def _one_stream(self, name: str, what: str) -> Any:
        streams = self.streams
        if self.stream is None and len(streams) > 1:
            raise ScanError(
                f"{what} of all streams were asked for; this scan has {', '.join(streams)}: name one of them, as in "
                f"scan.of({min(streams)!r}).{what}"
            )
        table = self._tables[name]
        return table[table["stream"] == (self.stream or min(streams))]

    def _of(self, name: str) -> Any:
        table = self._tables[name]
        return table if self.stream is None else table[table["stream"] == self.stream].reset_index(drop=True)
