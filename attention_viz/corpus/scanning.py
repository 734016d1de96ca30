"""One resumable pass of a model over a corpus."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain, islice
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import torch

from attention_viz.corpus.chunks import CHUNK, Chunk, chunks_of
from attention_viz.corpus.engines.local import run_local
from attention_viz.corpus.folder import Folder, Progressed
from attention_viz.corpus.one_text import Heads, heads_of
from attention_viz.corpus.part import CorpusPart
from attention_viz.corpus.pictured import Pictured
from attention_viz.corpus.reading import Corpus, Source
from attention_viz.corpus.scan import Scan
from attention_viz.corpus.tables import file_of, tables_of
from attention_viz.corpus.worker import ScanSettings, Worker, fingerprint_of, runs_together
from attention_viz.errors import ScanError, ShapeError, UnsupportedModel, UnusableText
from attention_viz.models.model import AttentionModel
from attention_viz.operation.shapes import is_whole
from attention_viz.trace.kept import chosen_layers
from attention_viz.trace.kind import InputKind

__all__ = ["ENGINES", "Progress", "scan"]

ENGINES = ("local", "ray")
# Tokens that are read of each text by default.
_LENGTH = 128
# Seconds after which what was done is kept, at the end of a chunk.
KEPT_EVERY = 5.0
# Texts of which a batch is compared with single runs before a model is believed to run in batches.
_TRIED = 4


class Progress(NamedTuple):
    """A scan's progress.

    Attributes:
        texts: the number of finished texts.
        of: the number of all texts; None if unknown before the end.
        seconds_left: the estimated time for the rest; None if unknown.
    """

    texts: int
    of: int | None
    seconds_left: float | None


def scan(
    model: AttentionModel,
    texts: Source | Corpus,
    out: str | PathLike[str],
    *,
    engine: str = "local",
    limit: int | None = None,
    length: int | None = None,
    layers: Sequence[int] | None = None,
    rows: int | None = None,
    stream: str | None = None,
    workers: int | None = None,
    progress: Callable[[Progress], object] | None = None,
) -> Scan:
    """Measure every head of a model on many texts, in constant memory.

    The scan runs each text once, in batches, and keeps sums and the best examples. It saves its progress in the folder
    every few seconds. After a stop or a crash, the same call continues from there and gives the same files, bit for
    bit, as an uninterrupted scan, with any number of workers and either engine.

    Args:
        model: from `load` or `wrap`.
        texts: a .txt, .jsonl, .csv or .parquet file, a folder of these, "-" for standard input, the texts themselves,
            or a `Corpus`, which says how to split a file. A model that reads text with images takes pairs (text, path
            of an image), or a .jsonl, .csv or .parquet file with the columns `text` and `picture`.
        out: the folder of the scan; created if missing.
        engine: "local" for threads of this process, or "ray" for Ray actors (the extra `attention-viz[ray]`).
        limit: the most texts to read, from the first on.
        length: the most tokens to read of a text, special ones included and its image's left out, 128 by default; the
            rest is cut off at a whole word.
        layers: the numbers of the layers to measure; all by default.
        rows: the number of queries per text, spread over it, for the means; by default all, or 256 of a very long
            text. The table then has the resulting standard error.
        stream: "mixer" measures the layers without a softmax instead, by shares of size (see `head_table`), one text at
            a time. They need a matrix per head. None measures all attention.
        workers: the number of parallel chunks; by default torch's threads, or Ray's processors.
        progress: called after each chunk with the scan's progress; its exceptions stop the scan.

    Raises:
        ScanError: the folder is of another model, version, corpus or setting, is in use, or can't be written.
        UnusableText: the corpus can't be read, or has no text; or a text has no image for a model that needs one.
        UnusablePicture: the file of an image is missing.
        UnsupportedModel: our own module; or the engine is missing or fails.
        ShapeError: a number below 1, or a missing layer.
    """
    _check(model, engine, limit=limit, length=length, rows=rows, workers=workers)
    length = min(one for one in (length or _LENGTH, model.limit) if one is not None)
    if stream is None and not model.layers and model.anatomy.mixers:
        stream = next(iter(model.anatomy.mixers))
    corpus = _fitting(model, texts if isinstance(texts, Corpus) else Corpus(texts), stream)
    chosen = None if layers is None else tuple(layers)
    settings = ScanSettings(length, chosen, rows, stream=stream, pictures=_reads_beside(model))
    folder = Folder(Path(out))
    with folder.locked():
        work = _Work.begun(folder, model, corpus, limit, settings)
        if not work.complete:
            work.go_on(engine, workers, progress)
            work.finish()
    return Scan.load(out, model)


@dataclass(eq=False)
class _Work:
    """A scan in progress."""

    folder: Folder
    worker: Worker
    heads: Heads
    manifest: dict[str, Any]
    ahead: Iterator[Chunk]
    state: Progressed
    count: int | None
    complete: bool = False

    @classmethod
    def begun(
        cls, folder: Folder, model: AttentionModel, corpus: Corpus, limit: int | None, settings: ScanSettings
    ) -> "_Work":
        """Begin, or resume a stopped scan."""
        found, count = folder.manifest(), None
        if corpus.again:
            count = sum(1 for _ in islice(corpus.pairs() if settings.pictures else corpus.texts(), limit))
        chunks = chunks_of(islice(_entries(corpus, settings), limit), CHUNK)
        first = next(chunks, None)
        if first is None:
            raise UnusableText(f"{corpus.name} has no text; needed: one or more")
        heads = _heads(model, settings, first.texts)
        if found is None:
            together = runs_together(model, settings, first.texts[:_TRIED])
        else:
            together = bool(found["together"])
        worker = Worker(model, replace(settings, together=together), len(heads))
        manifest = _manifest(model, corpus, limit, worker.settings, heads)
        if found is None:
            folder.write_manifest(manifest)
        else:
            _check_same(folder, found, manifest)
        state = folder.state() or Progressed(0, "", CorpusPart.empty(len(heads)))
        work = cls(folder, worker, heads, manifest, chain([first], chunks), state, count)
        work._pass_over(found)
        return work

    def _pass_over(self, found: dict[str, Any] | None) -> None:
        if found is not None and found["complete"]:
            read = self.state.fingerprint
            for chunk in self.ahead:
                read = chunk.fingerprint
            self._check_corpus(read, found["fingerprint"])
            self.folder.drop_state()
            self.complete = True
            return
        read = ""
        for chunk in islice(self.ahead, self.state.chunks):
            read = chunk.fingerprint
        self._check_corpus(read, self.state.fingerprint)

    def _check_corpus(self, read: str, kept: str) -> None:
        if read != kept:
            raise ScanError(
                f"{self.folder.path} is a scan of another corpus: the texts that were done there are not those of "
                f"{self.manifest['corpus']}; name another folder"
            )

    def go_on(self, engine: str, workers: int | None, progress: Callable[[Progress], object] | None) -> None:
        """Work on the rest; finished chunks survive any stop."""
        kept = started = time.monotonic()
        before = self.state.part.read
        try:
            for chunk, part in self._run(engine, workers):
                self.state = Progressed(chunk.number + 1, chunk.fingerprint, self.state.part.and_then(part))
                if time.monotonic() - kept > KEPT_EVERY:
                    self.folder.write_state(self.state)
                    kept = time.monotonic()
                if progress is not None:
                    progress(self._progress(before, time.monotonic() - started))
        except ScanError:
            raise
        except BaseException:
            self.folder.write_state(self.state)
            raise

    def _progress(self, before: int, seconds: float) -> Progress:
        read = self.state.part.read
        left = None if self.count is None else seconds / (read - before) * (self.count - read)
        return Progress(read, self.count, left)

    def _run(self, engine: str, workers: int | None) -> Iterator[tuple[Chunk, CorpusPart]]:
        if engine == "ray":
            from attention_viz.corpus.engines.on_ray import run_ray

            return run_ray(self.worker, self.ahead, workers)
        return run_local(self.worker, self.ahead, workers or torch.get_num_threads())

    def finish(self) -> None:
        """Write the tables, mark completion, drop resume data."""
        self.folder.write_state(self.state)
        part = self.state.part
        for name, table in tables_of(part, self.heads, pictures=self.worker.settings.pictures).items():
            self.folder.write(*file_of(name, table))
        self.folder.write_manifest({**self.manifest, **self.state.summary, "complete": True})
        self.folder.drop_state()


def _manifest(
    model: AttentionModel, corpus: Corpus, limit: int | None, settings: ScanSettings, heads: Heads
) -> dict[str, Any]:
    """Only an equal manifest may resume a scan."""
    origin, chosen = model.origin, asdict(settings)
    together = chosen.pop("together")
    if settings.stream is None:  # as in scans from before there were others
        del chosen["stream"]
    if settings.pictures:
        chosen["picture"] = corpus.picture
    else:
        del chosen["pictures"]
    return {
        "model": {
            "name": origin.model,
            "revision": origin.revision,
            "sha256": fingerprint_of(model),
            "dtype": origin.dtype,
            "route": origin.route,
        },
        "versions": dict(origin.versions),
        "corpus": corpus.name,
        "settings": {**chosen, "limit": limit, "column": corpus.column, "split": corpus.split, "chunk": CHUNK},
        "together": together,
        "heads": [list(head) for head in heads],
        "complete": False,
    }


def _check_same(folder: Folder, found: dict[str, Any], wanted: dict[str, Any]) -> None:
    plain = json.loads(json.dumps(wanted))
    for what in ("model", "versions", "settings", "heads"):
        if found.get(what) == plain[what]:
            continue
        one, other = found[what], plain[what]
        apart = [name for name in other if one.get(name) != other[name]] if isinstance(other, dict) else []
        said = "; ".join(f"{name} was {one.get(name)!r}, now {other[name]!r}" for name in apart)
        raise ScanError(
            f"{folder.path} is a scan with other {what}{f' ({said})' if said else ''}; two scans can't share a folder: "
            "name another one"
        )


def _reads_beside(model: AttentionModel) -> bool:
    return model.reads is InputKind.BESIDE


def _fitting(model: AttentionModel, corpus: Corpus, stream: str | None) -> Corpus:
    """Return the corpus with its column of images, if the model reads them; refuse what doesn't fit."""
    if not _reads_beside(model):
        if corpus.picture is not None:
            raise UnsupportedModel(f"{model.name} reads no text with an image; leave out picture={corpus.picture!r}")
        return corpus
    if stream is not None:
        raise ScanError(f"a scan of layers without a softmax reads texts alone; leave out stream={stream!r}")
    in_files = isinstance(corpus.source, str | PathLike)
    return replace(corpus, picture="picture") if in_files and corpus.picture is None else corpus


def _entries(corpus: Corpus, settings: ScanSettings) -> Iterator[str]:
    """Yield the texts, or entries of texts with images."""
    if settings.pictures:
        return (Pictured.of(text, path).entry for text, path in corpus.pairs())
    return corpus.texts()


def _heads(model: AttentionModel, settings: ScanSettings, texts: Sequence[str]) -> Heads:
    if settings.stream is not None:
        return _mixer_heads(model, settings, settings.stream, texts)
    layers = model.layers
    kept = layers if settings.layers is None else chosen_layers(settings.layers, layers)
    return tuple(
        (stream, layer, head)
        for stream, one in kept.items()
        for layer in one.numbers
        for head in range(model.facts.head_count(stream, layer))
    )


def _mixer_heads(model: AttentionModel, settings: ScanSettings, stream: str, texts: Sequence[str]) -> Heads:
    """Count the heads of layers without a softmax in the first text that can be read."""
    if stream not in (known := model.anatomy.mixers):
        choice = f"choose {', '.join(known)}, or none for its attention" if known else "leave out stream"
        raise ScanError(f"{model.name} has no layers without a softmax in the stream {stream!r}; {choice}")
    if wrong := [number for number in settings.layers or () if number not in known[stream]]:
        raise ShapeError(f"no layer {wrong[0]!r} in the {stream}; choose {', '.join(map(str, known[stream]))}")
    worker = Worker(model, replace(settings, together=False), 0)
    read, _ = worker.read_all(0, texts)
    if not read:
        raise UnusableText(f"none of the first {len(texts)} texts can be read; needed: one or more")
    (trace,) = worker.traces(read[:1])
    wide = [layer for layer in trace.mixers[stream] if layer.mixer.per == "channel"]
    if wide:
        raise ScanError(
            f"a scan measures heads, and layer {wide[0].label} of the {stream} has {wide[0].mixer.shape[0]:,} channels "
            f'({wide[0].mixer.kind}); measure single texts with av.head_table(trace, stream="{stream}"), or choose '
            "layers with heads"
        )
    return heads_of(trace, stream)


def _check(model: object, engine: str, **numbers: int | None) -> None:
    if not isinstance(model, AttentionModel):
        raise UnsupportedModel(f"scan takes a model from av.load or av.wrap; got {type(model).__name__}")
    if engine not in ENGINES:
        raise UnsupportedModel(f"unknown engine {engine!r}; choose {', '.join(ENGINES)}")
    for name, number in numbers.items():
        if number is not None and (not is_whole(number) or number < 1):
            raise ShapeError(f"{name} must be a whole number, 1 or more; got {number!r}")
