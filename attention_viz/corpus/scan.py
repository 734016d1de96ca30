"""A scan's results for each head: tables, examples."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy

from attention_viz.corpus.folder import Folder
from attention_viz.corpus.hypotheses.language import read_hypothesis
from attention_viz.corpus.hypotheses.testing import Tested, counted, put_to_the_test
from attention_viz.corpus.opening import heads_in, read_folder
from attention_viz.corpus.scanned import Scanned
from attention_viz.corpus.site.made import facts_of_scan
from attention_viz.corpus.site.maps import maps_of
from attention_viz.corpus.site.parts import Site
from attention_viz.corpus.site.writing import chosen_examples, write_site
from attention_viz.corpus.study.study import study
from attention_viz.corpus.tables import LEADING, file_of, records_of
from attention_viz.corpus.tally import lots
from attention_viz.corpus.worker import ScanSettings, Worker, fingerprint_of
from attention_viz.errors import ScanError
from attention_viz.models.loading.by_name import load
from attention_viz.models.model import AttentionModel

__all__ = ["Scan"]

# Of each head so many of the strongest examples have the words that it writes told.
_WRITTEN = 1
# Of so many texts a site shows the queries and keys together.
_MAPPED = 2


@dataclass(frozen=True, eq=False, repr=False)
class Scan(Scanned):
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
        path, manifest, tables = read_folder(out)
        return cls(path, manifest, None, tables, model)

    def of(self, stream: str) -> "Scan":
        """The same scan with the tables of one stream.

        Raises:
            ScanError: there is no such stream.
        """
        if stream not in self.streams:
            raise ScanError(f"the stream {stream!r} was asked for; this scan has {', '.join(self.streams)}")
        return replace(self, stream=stream)

    def test(
        self,
        hypothesis: str,
        *,
        stream: str | None = None,
        texts: int = 200,
        model: AttentionModel | None = None,
        progress: Callable[[int, int], object] | None = None,
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
            progress: told after each text how many have run, and of how many; what it raises stops the test.

        Raises:
            HypothesisError: the story can't be read; the message shows the place.
            ScanError: it holds nowhere in these texts, or the model is another.
        """
        story = read_hypothesis(hypothesis)
        chosen = self.stream or stream
        if chosen is None and len(self.streams) > 1:
            raise ScanError(f"a story is of one stream; this scan has {', '.join(self.streams)}: name one of them")
        said = self._by_lot(texts)
        runs = self._worker(model).runs(said)
        counted_runs = counted(runs, len(said), progress) if progress else runs
        return put_to_the_test(story, counted_runs, chosen or min(self.streams))

    def study(
        self,
        texts: int = 8,
        *,
        model: AttentionModel | None = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> "Scan":
        """Run a few texts once more for what no sum says: heads silenced, heads alike, the words that heads write.

        Every head is silenced by itself in each of the texts, which takes as long as so many runs; of encoder–decoders,
        which would have to be told what to say, it isn't done. What is found is kept in the scan's folder.

        Args:
            texts: how many, of those that were kept by lot.
            model: the one that was scanned; the one at hand, or loaded by its name, if none is given.
            progress: told how many steps are done, and of how many; what it raises stops the study.

        Returns:
            The scan with `silenced`, `alike` and `written`.

        Raises:
            UnsupportedModel: the model neither goes on with a text nor embeds one.
            ScanError: the model is another, or the folder can't be written.
        """
        worker, heads = self._worker(model), self._tables["heads"]
        leading = {(row["layer"], row["head"]): LEADING[str(row["role"])] for row in records_of(heads)}
        shown = self._tables["examples"].merge(self._tables["texts"][["text", "said"]], on="text")
        shown = records_of(shown[(shown["kind"] == "strongest") & (shown["rank"] <= _WRITTEN)])
        own = [row for row in shown if leading[row["layer"], row["head"]] == row["metric"]]
        tables = study(worker, heads_in(self.manifest), self._by_lot(texts), own, progress)
        folder = Folder(self.path)
        with folder.locked():
            for name, table in tables.items():
                folder.write(*file_of(name, table))
        return replace(self, _tables=self._tables | tables)

    def site(self, path: str | PathLike[str], *, model: AttentionModel | None = None) -> Path:
        """Write the scan as pages that a double click opens, without a network: an atlas of roles, a page a head.

        Of a scan that was studied, the pages say what `study` found. The texts of the examples that are shown run once
        more, for the weights of their rows.

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
        worker = self._worker(model)
        runs = zip(map(int, kept.index), worker.runs(kept.tolist()), strict=True)
        maps = maps_of(list(worker.runs(self._by_lot(_MAPPED))), heads_in(self.manifest))
        site = Site(self.manifest["model"]["name"], self.manifest["corpus"], self.manifest["done"]["texts"])
        write_site(Path(path), site, self._tables | {"examples": examples}, runs, maps, facts_of_scan(self.manifest))
        return Path(path) / "index.html"

    def _by_lot(self, count: int) -> list[str]:
        """Draw by lot: texts in turns would bias each half."""
        kept = self._tables["texts"]
        kept = kept[kept["by_lot"]]
        order = numpy.argsort(lots(kept["text"].tolist()), kind="stable")[:count]
        return kept["said"].iloc[order].tolist()

    def _worker(self, model: AttentionModel | None) -> Worker:
        name, sha256 = self.manifest["model"]["name"], self.manifest["model"]["sha256"]
        found = model or self._model or load(name, alone=True)
        if not isinstance(found, AttentionModel) or fingerprint_of(found) != sha256:
            raise ScanError(f"{found.name} was given, and its weights are not those of {name} that was scanned")
        settings = self.manifest["settings"]
        layers = None if settings["layers"] is None else tuple(settings["layers"])
        chosen = ScanSettings(settings["length"], layers, settings["rows"], bool(self.manifest["together"]))
        return Worker(found, chosen, len(self.manifest["heads"]))
