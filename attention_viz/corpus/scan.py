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
from attention_viz.corpus.pictured import Pictured
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

# The number of strongest examples per head with promoted words.
_WRITTEN = 1
# The number of texts whose queries and keys a site draws together.
_MAPPED = 2


@dataclass(frozen=True, eq=False, repr=False)
class Scan(Scanned):
    """Results for every head of a model on many texts.

    Attributes:
        path: its folder.
        manifest: the model with its sha256, versions, the corpus' fingerprint, settings and progress.
        stream: the attention type of its tables; None for all.
    """

    path: Path
    manifest: dict[str, Any]
    stream: str | None
    _tables: dict[str, Any]  # of pandas, which says of what is chosen from a table only that it may be one
    _model: AttentionModel | None = None

    @classmethod
    def load(cls, out: str | PathLike[str], model: AttentionModel | None = None) -> "Scan":
        """Open a scan's folder; a stopped scan has partial results.

        Args:
            out: the folder.
            model: the scanned model, if you have it; else loaded by its name when needed.

        Raises:
            ScanError: the folder has no scan, or the scan is damaged or has no results yet.
        """
        path, manifest, tables = read_folder(out)
        return cls(path, manifest, None, tables, model)

    def of(self, stream: str) -> "Scan":
        """Return the scan with the tables of one stream.

        Raises:
            ScanError: the stream doesn't exist.
        """
        if stream not in self.streams:
            raise ScanError(f"this scan has no stream {stream!r}; choose {', '.join(self.streams)}")
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
        """Test a hypothesis about heads, such as `query.previous.text == key.text`.

        The scan's random sample of texts runs once more. Half of the texts rank the heads; the other half gives the
        results, beside a baseline that knows positions only. Attention sinks, that is special tokens or, in a decoder,
        the first token, are left out as keys, unless the hypothesis uses `is_special` or `is_first`.

        Args:
            hypothesis: the query–key pairs with attention. [Many texts](scan.md#test-a-hypothesis) explains the
                language.
            stream: the attention type; not needed if there is only one.
            texts: the most texts to run.
            model: the scanned model; by default the one in memory, or loaded by its name.
            progress: called after each text with the number of finished texts and of all; its exceptions stop the test.

        Raises:
            HypothesisError: the hypothesis can't be parsed; the message shows the position.
            ScanError: it holds nowhere in these texts, or the model is another.
        """
        found = read_hypothesis(hypothesis)
        chosen = self.stream or stream
        if chosen is None and len(self.streams) > 1:
            raise ScanError(f"a hypothesis needs one stream; choose {', '.join(self.streams)}")
        said = self._by_lot(texts)
        runs = self._worker(model).runs(said)
        counted_runs = counted(runs, len(said), progress) if progress else runs
        return put_to_the_test(found, counted_runs, chosen or min(self.streams))

    def study(
        self,
        texts: int = 8,
        *,
        model: AttentionModel | None = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> "Scan":
        """Run a few texts once more to ablate heads, find similar ones, and list the words that heads promote.

        This ablates every head by itself in each text, so it takes one run per head and text. It doesn't work for
        encoder–decoders. The results are saved in the scan's folder.

        Args:
            texts: the number of texts, from the random sample.
            model: the scanned model; by default the one in memory, or loaded by its name.
            progress: called with the number of finished steps and of all; its exceptions stop the study.

        Returns:
            The scan with `silenced`, `alike` and `written`.

        Raises:
            UnsupportedModel: the model neither predicts a next token nor embeds texts.
            ScanError: the model is another, the scan is of layers without a softmax or of texts with images, or the
                folder can't be written.
        """
        self._check_softmax("a study")
        self._check_texts("a study")
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
        """Write the scan as offline web pages: an atlas of roles, and one page per head.

        After `study`, the pages include its results. The texts of the shown examples run once more for their weights.

        Args:
            path: the folder of the site.
            model: the scanned model; by default the one in memory, or loaded by its name.

        Returns:
            The first page.

        Raises:
            ScanError: the model is another, the scan is of layers without a softmax or of texts with images, or a file
                can't be written.
        """
        self._check_softmax("a site")
        self._check_texts("a site")
        examples = chosen_examples(self._tables["heads"], self._tables["examples"])
        kept = self._tables["texts"].set_index("text")["said"].loc[sorted(set(examples["text"]))]
        worker = self._worker(model)
        runs = zip(map(int, kept.index), worker.runs(kept.tolist()), strict=True)
        maps = maps_of(list(worker.runs(self._by_lot(_MAPPED))), heads_in(self.manifest))
        site = Site(self.manifest["model"]["name"], self.manifest["corpus"], self.manifest["done"]["texts"])
        write_site(Path(path), site, self._tables | {"examples": examples}, runs, maps, facts_of_scan(self.manifest))
        return Path(path) / "index.html"

    def _check_softmax(self, what: str) -> None:
        if self.manifest["settings"].get("stream") is not None:
            raise ScanError(f"{what} needs softmax attention; this is a scan of layers without: use its tables")

    def _check_texts(self, what: str) -> None:
        if self._reads_images:
            raise ScanError(f"{what} needs texts alone; this is a scan of texts with images: use its tables")

    @property
    def _reads_images(self) -> bool:
        return bool(self.manifest["settings"].get("pictures"))

    def _by_lot(self, count: int) -> list[str]:
        """Draw at random: texts in turns would bias each half."""
        kept = self._tables["texts"]
        kept = kept[kept["by_lot"]]
        order = numpy.argsort(lots(kept["text"].tolist()), kind="stable")[:count]
        kept = kept.iloc[order]
        if not self._reads_images:
            return kept["said"].tolist()
        found = zip(kept["said"], kept["picture"], kept["picture_sha256"], strict=True)
        return [Pictured(*one).entry for one in found]

    def _worker(self, model: AttentionModel | None) -> Worker:
        name, sha256 = self.manifest["model"]["name"], self.manifest["model"]["sha256"]
        found = model or self._model or load(name, alone=not self._reads_images)
        if not isinstance(found, AttentionModel) or fingerprint_of(found) != sha256:
            raise ScanError(
                f"the weights of {found.name} differ from those of the scanned {name}; pass the scanned model"
            )
        settings = self.manifest["settings"]
        layers = None if settings["layers"] is None else tuple(settings["layers"])
        together = bool(self.manifest["together"])
        chosen = ScanSettings(
            settings["length"], layers, settings["rows"], together, settings.get("stream"), self._reads_images
        )
        return Worker(found, chosen, len(self.manifest["heads"]))
