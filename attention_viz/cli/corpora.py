"""The scan of many texts."""

import os
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING

import click

from attention_viz.cli.answers.answer import Answer
from attention_viz.cli.arguments import FORMAT, MODEL, argument, command, count, option, places
from attention_viz.cli.given import model_of, pretrained
from attention_viz.cli.output import report, show

if TYPE_CHECKING:
    from attention_viz.corpus.scanning import Progress

# Seconds between two lines of progress.
_TOLD_EVERY = 5.0


@command(
    "Measure every head on many texts and write tables to a folder; repeat the command to continue a stopped scan.",
    "scan all-MiniLM-L6-v2 letters.txt --out letters",
    argument("model", MODEL),
    argument(
        "corpus",
        "a .txt, .jsonl, .csv or .parquet file, a folder of these, - for standard input, or hub:NAME for a data set "
        "on the hub",
    ),
    option("--out", "DIR", "folder for the tables; created if missing", required=True),
    option("--limit", "N", "maximum number of texts (default: all)", type=count),
    option("--length", "N", "maximum number of tokens per text", type=count, default=128),
    option("--layers", "N,N", "only these layers (default: all)", type=places),
    option("--stream", "NAME", "mixer measures layers without a softmax instead of attention, by shares of size"),
    option("--sample", "N", "take means over only N queries per text, and report the sampling error", type=count),
    option("--column", "NAME", "column with the texts, in a .jsonl, .csv or .parquet file", default="text"),
    option(
        "--picture",
        "NAME",
        "column with the images' paths, for a model that reads text with images (default: text alone)",
    ),
    option("--sentences", None, "cut .txt files at the ends of sentences (default: one text per line)", is_flag=True),
    option("--workers", "N", "number of chunks to work on at once (default: the number of processors)", type=count),
    option(
        "--engine", None, "compute on this machine, or with Ray", type=click.Choice(["local", "ray"]), default="local"
    ),
    option("--address", "ADDRESS", "address of a Ray cluster (default: one on this machine)"),
    option("--site", "DIR", "also write web pages to this folder; double-click a page to open it"),
    option(
        "--study",
        "N",
        "also rerun N of the texts: ablate each head, find similar heads, list the words that heads write",
        type=count,
    ),
    FORMAT,
)
def scan(arguments: SimpleNamespace) -> int:
    """Scan, and print each head's role."""
    import attention_viz as av

    if arguments.address is not None:
        os.environ["RAY_ADDRESS"] = arguments.address
    split = "sentences" if arguments.sentences else "lines"
    corpus = av.Corpus(arguments.corpus, arguments.column, split, 4 * arguments.length, arguments.picture)
    if corpus.again:
        # One that can't be read is refused before a model is loaded, which may take minutes.
        next(corpus.texts() if corpus.picture is None else corpus.pairs(), None)
    scan_progress = _ScanProgress()
    loaded = model_of(arguments.model, arguments, alone=arguments.picture is None)
    model = pretrained(arguments.model, arguments, loaded)
    try:
        found = av.scan(
            model,
            corpus,
            arguments.out,
            engine=arguments.engine,
            limit=arguments.limit,
            length=arguments.length,
            layers=arguments.layers,
            rows=arguments.sample,
            stream=arguments.stream,
            workers=arguments.workers,
            progress=scan_progress,
        )
    except KeyboardInterrupt:
        report(f"Stopped after {scan_progress.texts:,} texts; repeat the command to continue")
        raise
    done = found.manifest["done"]
    report(
        f"Wrote {arguments.out}: {done['texts']:,} texts, {done['cut']:,} of them cut, {done['skipped']:,} unreadable"
    )
    if arguments.study is not None:
        found = found.study(arguments.study, progress=scan_progress.steps)
    if arguments.site is not None:
        report(f"Wrote {found.site(arguments.site)}")
    shown = ["stream", "layer", "head", "role", "score", "label"]
    show(Answer("scan", model.name, table=found.heads.filter(items=shown)), arguments.format)
    return 0


class _ScanProgress:
    def __init__(self) -> None:
        self.texts = 0
        self._last = time.monotonic()

    def __call__(self, progress: "Progress") -> None:
        """Report a chunk."""
        self.texts = progress.texts
        if not self._due():
            return
        of = "" if progress.of is None else f" of {progress.of:,}"
        left = "" if progress.seconds_left is None else f", {_span(progress.seconds_left)} left"
        report(f"{progress.texts:,}{of} texts done{left}")

    def steps(self, done: int, of: int) -> None:
        """Report a study's step."""
        if self._due():
            report(f"{done:,} of {of:,} steps of the study done")

    def _due(self) -> bool:
        due = time.monotonic() - self._last >= _TOLD_EVERY
        self._last = time.monotonic() if due else self._last
        return due


def _span(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5_400 else f"{seconds / 3_600:.1f} h"
