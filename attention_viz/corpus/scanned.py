"""A scan's tables, on request."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attention_viz.analysis.head_table import COUNT, ERROR, metric_columns
from attention_viz.analysis.metrics import METRICS, metrics_in
from attention_viz.corpus.opening import heads_in
from attention_viz.corpus.tables import REGIONS, SPREAD, records_of
from attention_viz.errors import ScanError, ShapeError
from attention_viz.trace.files.arrow import described
from attention_viz.trace.kind import MIXER

if TYPE_CHECKING:
    import pandas

_PLACE = ["layer", "head"]


@dataclass(frozen=True, eq=False, repr=False)
class Scanned:
    """A scan's results, without the model.

    Attributes:
        path: its folder.
        manifest: model, corpus, settings and progress.
        stream: the attention type of its tables; None for all.
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
        """The size of its tables in memory, in bytes."""
        return int(sum(table.memory_usage(deep=True).sum() for table in self._tables.values()))

    @property
    def complete(self) -> bool:
        """Whether it reached the end of its corpus."""
        return bool(self.manifest["complete"])

    @property
    def streams(self) -> tuple[str, ...]:
        """The scanned attention types."""
        return tuple(dict.fromkeys(stream for stream, _, _ in heads_in(self.manifest)))

    @property
    def table(self) -> "pandas.DataFrame":
        """Every metric of every head, as `head_table` of all the traces would give.

        Index (layer, head). Each metric has its mean over the texts where it is defined, its spread ("_spread"), its
        standard error if queries were sampled ("_error"), and its number of queries ("_n").

        Raises:
            ScanError: the scan has several streams; name one with `of`.
        """
        names = metrics_in("mixer" if min(self.streams).startswith(MIXER) else "softmax")
        endings = [ending for ending in ("", SPREAD, ERROR, COUNT) if f"previous{ending}" in self.heads]
        found = self._alone("table")
        # A scan that was made before a metric was known has no number of it.
        later = [name + ending for ending in endings for name in names if name + ending not in found]
        found = found.assign(**{name: 0 if name.endswith(COUNT) else float("nan") for name in later})
        found = found[[name + ending for ending in endings for name in names]]
        return described(found, metric_columns(mixes=min(self.streams).startswith(MIXER)))

    @property
    def roles(self) -> "pandas.DataFrame":
        """Each head's role, as `av.roles` of all the traces would give, and how often it holds.

        Index (layer, head): role, score, label, and for each role its share ("role previous"), the number of texts that
        can show it ("_texts"), and the number of these where the head reached its threshold ("_holds").

        Raises:
            ScanError: the scan has several streams; name one with `of`.
        """
        table = self._alone("roles")
        return table[["role", "score", "label", *(name for name in table if str(name).startswith("role "))]]

    @property
    def deciles(self) -> "pandas.DataFrame":
        """The nine deciles of each metric over a random sample of the texts, or all if they are few.

        Index (layer, head), columns such as "previous_d10"; `attrs["texts"]` is the number of texts.

        Raises:
            ScanError: the scan has several streams; name one with `of`.
        """
        table = self._alone("deciles")
        found = table[[name for name in table if str(name).rpartition("_d")[2].isdigit()]]
        found.attrs["texts"] = int(self._tables["texts"]["by_lot"].sum())
        return found

    @cached_property
    def heads(self) -> "pandas.DataFrame":
        """All results for each head of all streams, one row per head."""
        return self._of("heads")

    @cached_property
    def kinds(self) -> "pandas.DataFrame":
        """Attention between kinds of tokens, one row per head and two kinds.

        Columns stream, layer, head, query_kind, key_kind; weight, the sum over all texts; expected, the same if each
        query spread its weight outside special tokens and the first token evenly; lift, weight over expected; pairs,
        the number of pairs: with few, lift means little.
        """
        return self._of("kinds")

    @cached_property
    def texts(self) -> "pandas.DataFrame":
        """The texts of examples and of the random sample: text (its number), said, by_lot."""
        return self._tables["texts"]

    @property
    def regions(self) -> "pandas.DataFrame":
        """How often words attend to one region of their image, if the texts have images.

        Index (layer, head) of the words' stream: label, "attends to one region" if at least half of the words do;
        words, the number of words with content after an image; regions, how many of them attend to one region, as in
        [findings](findings.md); share, regions over words; weight, the mean share of the row on that
        region; times, the mean of how many times the region's area that is; said, picture, query and key of the
        strongest word, NaN or −1 without one.

        Raises:
            ScanError: the texts have no images.
        """
        if REGIONS not in self._tables:
            raise ScanError("this scan's texts have no images; scan a model that reads text with images")
        table = self._tables[REGIONS].merge(self.texts[["text", "said", "picture"]], on="text", how="left")
        return table.drop(columns="stream").set_index(_PLACE)

    def examples(self, layer: int, head: int, metric: str) -> "pandas.DataFrame":
        """Return a head's strongest examples by a metric, one per text and pair of tokens, and some at random.

        Args:
            layer: the number of the layer.
            head: the number of the head.
            metric: a name in `METRICS`.

        Returns:
            kind ("strongest" or "random"); tenth, for random ones the tenth of the texts by the metric's mean, from the
            lowest; rank; text, its number; said, the text as read; picture, the path of its image, if it has one;
            query, the position with the largest metric; key, the position with its largest weight; weight, that weight,
            or its share of size in a layer without a softmax; value, the query's metric. Queries without a letter are
            left out.

        Raises:
            ShapeError: the head or metric doesn't exist.
            ScanError: the scan has several streams; name one with `of`.
        """
        if metric not in METRICS:
            raise ShapeError(f"unknown metric {metric!r}; choose {', '.join(METRICS)}")
        table = self._one_stream("examples", "examples")
        found = table[(table["layer"] == layer) & (table["head"] == head)]
        if found.empty and not self._has(layer, head):
            raise ShapeError(f"the scan has no head {layer}·{head}; it has {self._sizes()}")
        named = [name for name in ("said", "picture") if name in self.texts]
        found = found[found["metric"] == metric].merge(self.texts[["text", *named]], on="text", how="left")
        return found[["kind", "tenth", "rank", "text", *named, "query", "key", "weight", "value"]]

    @property
    def silenced(self) -> "pandas.DataFrame":
        """The effect of ablating each head, from the texts of `study`.

        Index (layer, head), largest change first. change is the rise of the loss in nats per token with the head's
        output zero; for an encoder, 1 − the cosine between the embeddings with and without it; both are means over the
        texts. change_error is its standard error. `attrs` has `of` ("loss" or "embedding") and `texts`.

        Raises:
            ScanError: the scan wasn't studied.
        """
        table = self._studied("silenced").set_index(_PLACE)
        found = table[["change", "change_error"]].sort_values("change", key=abs, ascending=False, kind="stable")
        found.attrs.update(of=str(table["of"].iloc[0]), texts=int(table["texts"].iloc[0]))
        return found

    @property
    def alike(self) -> "pandas.DataFrame":
        """The five most similar heads of each head, from the texts of `study`.

        Index (layer, head), nearest first: other_layer, other_head; apart, the square root of the mean Jensen–Shannon
        divergence of their rows, from 0, equal, to 1.

        Raises:
            ScanError: the scan wasn't studied.
        """
        return self._studied("alike").set_index(_PLACE).drop(columns="stream")

    @property
    def written(self) -> "pandas.DataFrame":
        """The words that each head promotes at the query of its strongest example, for a model that chooses words.

        Columns layer, head, text, query, words.

        Raises:
            ScanError: the scan wasn't studied.
        """
        return self._studied("written").drop(columns="stream")

    def studied(self, name: str) -> list[dict[str, Any]]:
        """Return the rows of a study's table, of all streams; none without `study`.

        Args:
            name: "silenced", "alike" or "written".
        """
        return records_of(self._tables[name]) if name in self._tables else []

    def _studied(self, name: str) -> Any:
        if name not in self._tables:
            raise ScanError(f"this scan has no {name} yet; run scan.study() first")
        return self._tables[name]

    def _has(self, layer: int, head: int) -> bool:
        return any(place[1:] == (layer, head) for place in heads_in(self.manifest))

    def _sizes(self) -> str:
        layers = sorted({layer for _, layer, _ in heads_in(self.manifest)})
        heads = max(head for _, _, head in heads_in(self.manifest))
        return f"layers {', '.join(map(str, layers))} with heads 0 to {heads}"

    def _alone(self, what: str) -> Any:
        return self._one_stream("heads", what).drop(columns="stream").set_index(_PLACE)

    def _one_stream(self, name: str, what: str) -> Any:
        streams = self.streams
        if self.stream is None and len(streams) > 1:
            raise ScanError(
                f"{what} needs one stream of {', '.join(streams)}; name it, as in scan.of({min(streams)!r}).{what}"
            )
        table = self._tables[name]
        return table[table["stream"] == (self.stream or min(streams))]

    def _of(self, name: str) -> Any:
        table = self._tables[name]
        return table if self.stream is None else table[table["stream"] == self.stream].reset_index(drop=True)
