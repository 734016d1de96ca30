"""What a scan found of each head: its tables, its examples."""

from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy

from attention_viz.analysis.head_table import COUNT, ERROR
from attention_viz.analysis.metrics import METRICS
from attention_viz.corpus.folder import Folder
from attention_viz.corpus.hypotheses.language import read_hypothesis
from attention_viz.corpus.hypotheses.testing import Tested, put_to_the_test
from attention_viz.corpus.one_text import Heads
from attention_viz.corpus.site.pages import Site
from attention_viz.corpus.site.writing import chosen_examples, write_site
from attention_viz.corpus.tables import SPREAD, tables_of
from attention_viz.corpus.tally import lots
from attention_viz.corpus.worker import Settings, Worker, fingerprint_of
from attention_viz.errors import ScanError, ShapeError
from attention_viz.models.model import AttentionModel
from attention_viz.models.sources.by_name import load

if TYPE_CHECKING:
    import pandas

__all__ = ["Scan"]

_TABLES = ("heads", "kinds", "examples", "texts")
_PLACE = ["layer", "head"]


@dataclass(frozen=True, eq=False, repr=False)
class Scan:
    """What every head of a model does on many texts.

    Attributes:
        path: its folder.
        manifest: what it is of: the model with its sha256, versions, the corpus' fingerprint, settings, what is done.
        stream: which attention its tables are of; None where all.
    """

    path: Path
    manifest: dict[str, Any]
    stream: str | None
    _tables: dict[str, Any]  # of pandas, which says of what is chosen from a table only that it may be one
    _model: AttentionModel | None = None

    @classmethod
    def load(cls, out: str | PathLike[str], model: AttentionModel | None = None) -> "Scan":
        """Open a scan's folder; of one that was stopped, with what is done.

        Args:
            out: the folder.
            model: the one that was scanned, where it is at hand; loaded by its name where it is needed.

        Raises:
            ScanError: it holds no scan, or one that is damaged or hasn't done anything yet.
        """
        import pandas

        folder = Folder(Path(out))
        manifest = folder.manifest()
        if manifest is None:
            raise ScanError(f"{out} holds no scan; needed: a folder that av.scan or attention-viz scan has written")
        if manifest["complete"]:
            try:
                tables: dict[str, Any] = {
                    name: pandas.read_parquet(folder.path / f"{name}.parquet") for name in _TABLES
                }
            except (OSError, ValueError) as error:
                raise ScanError(f"the scan in {out} is damaged: {error}") from None
        else:
            state = folder.state()
            if state is None:
                raise ScanError(f"the scan in {out} has nothing done yet; start it again")
            tables = dict(tables_of(state.part, _heads_in(manifest)))
            manifest |= state.told
        return cls(folder.path, manifest, None, tables, model)

    def __repr__(self) -> str:
        """One line: the model, the corpus, how many texts."""
        done = self.manifest["done"]["texts"]
        stopped = "" if self.complete else ", stopped"
        return f"Scan({self.manifest['model']['name']!r}, {self.manifest['corpus']!r}, {done:,} texts{stopped})"

    @property
    def complete(self) -> bool:
        """Whether it went to the end of its corpus."""
        return bool(self.manifest["complete"])

    @property
    def streams(self) -> tuple[str, ...]:
        """The kinds of attention that were scanned."""
        return tuple(dict.fromkeys(stream for stream, _, _ in _heads_in(self.manifest)))

    def of(self, stream: str) -> "Scan":
        """The same scan with the tables of one stream.

        Raises:
            ScanError: there is no such stream.
        """
        if stream not in self.streams:
            raise ScanError(f"the stream {stream!r} was asked for; this scan has {', '.join(self.streams)}")
        return replace(self, stream=stream)

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

        Index (layer, head): role, score, and of each role its share ("role previous"), in how many texts it could be
        told ("_texts"), and in how many of them the head reached its threshold ("_holds").

        Raises:
            ScanError: the scan has several streams; name one with `of`.
        """
        table = self._alone("roles")
        return table[["role", "score", *(name for name in table if str(name).startswith("role "))]]

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

    def test(
        self,
        hypothesis: str,
        *,
        stream: str | None = None,
        texts: int = 200,
        model: AttentionModel | None = None,
    ) -> Tested:
        """Put a story about heads to the test, such as `query.previous.text == key.text`.

        The texts that were kept by lot run once more. Heads are ranked on every other one; what is told of them is of
        the rest, which the ranking didn't see, beside what goes by position alone. Keys on which heads rest, special
        ones and where none looks ahead the first, are left out, unless the story asks `is_special` or `is_first`.

        Args:
            hypothesis: the story: for which pairs of a query and a key it says that the head looks from one to the
                other. [Many texts](scan.md#a-story-put-to-the-test) has its words.
            stream: which attention; the only one there is, if none is named.
            texts: how many texts at most.
            model: the one that was scanned; the one at hand, or loaded by its name, if none is given.

        Raises:
            HypothesisError: the story can't be read; the message shows the place.
            ScanError: it holds nowhere in these texts, or the model is another.
        """
        story = read_hypothesis(hypothesis)
        chosen = self.stream or stream
        if chosen is None and len(self.streams) > 1:
            raise ScanError(f"a story is of one stream; this scan has {', '.join(self.streams)}: name one of them")
        kept = self._tables["texts"]
        kept = kept[kept["by_lot"]]
        # By lot again: a corpus whose texts come in turns would give each half those of one kind.
        order = numpy.argsort(lots(kept["text"].tolist()), kind="stable")[:texts]
        runs = self._worker(model).runs(kept["said"].iloc[order].tolist())
        return put_to_the_test(story, runs, chosen or min(self.streams))

    def site(self, path: str | PathLike[str], *, model: AttentionModel | None = None) -> Path:
        """Write the scan as pages that a double click opens, without a network: an atlas of roles, a page a head.

        The texts of the examples that are shown run once more, for the weights of their rows.

        Args:
            path: the folder of the site.
            model: the one that was scanned; the one at hand, or loaded by its name, if none is given.

        Returns:
            The page to begin with.

        Raises:
            ScanError: the model is another, or a file can't be written.
        """
        examples = chosen_examples(self._tables["heads"], self._tables["examples"])
        kept = self._tables["texts"].set_index("text")["said"].loc[sorted(set(examples["text"]))]
        runs = zip(map(int, kept.index), self._worker(model).runs(kept.tolist()), strict=True)
        site = Site(self.manifest["model"]["name"], self.manifest["corpus"], self.manifest["done"]["texts"])
        write_site(Path(path), site, self._tables["heads"], self._tables["kinds"], examples, runs)
        return Path(path) / "index.html"

    def _worker(self, model: AttentionModel | None) -> Worker:
        """What runs the scan's texts as they ran.

        Raises:
            ScanError: the model isn't the one that was scanned.
        """
        name, sha256 = self.manifest["model"]["name"], self.manifest["model"]["sha256"]
        found = model or self._model or load(name)
        if not isinstance(found, AttentionModel) or fingerprint_of(found) != sha256:
            raise ScanError(f"{found.name} was given, and its weights are not those of {name} that was scanned")
        settings = self.manifest["settings"]
        layers = None if settings["layers"] is None else tuple(settings["layers"])
        chosen = Settings(settings["length"], layers, settings["rows"], bool(self.manifest["together"]))
        return Worker(found, chosen, len(self.manifest["heads"]))

    def _has(self, layer: int, head: int) -> bool:
        return any(place[1:] == (layer, head) for place in _heads_in(self.manifest))

    def _sizes(self) -> str:
        layers = sorted({layer for _, layer, _ in _heads_in(self.manifest)})
        heads = max(head for _, _, head in _heads_in(self.manifest))
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


def _heads_in(manifest: dict[str, Any]) -> Heads:
    return tuple((str(stream), int(layer), int(head)) for stream, layer, head in manifest["heads"])
