"""The course as files."""

import re
import time
from pathlib import Path
from types import SimpleNamespace

import click

from attention_viz.cli.arguments import TEXT, argument, command, option
from attention_viz.cli.given import given_text
from attention_viz.cli.output import report
from attention_viz.errors import AttentionVizError
from attention_viz.lesson.translation import LANGUAGES, in_language

# The most exercises of a lesson, and the largest seed, as in the app.
_MOST, _LARGEST = 200, 9_999
# Seconds between two lines of progress.
_TOLD_EVERY = 5.0


def seeds(words: str) -> range:
    """Parse a count ("5": the seeds from 0) or a span ("1-30")."""
    found = re.fullmatch(r"([0-9]{1,4})(?:-([0-9]{1,4}))?", words)
    first, last = (0, int(found[1]) - 1) if found and found[2] is None else (0, -1)
    if found and found[2] is not None:
        first, last = int(found[1]), int(found[2])
    if not 0 < last - first + 1 <= _MOST or last > _LARGEST:
        raise click.BadParameter(f"got {words!r}; give a count from 1 to {_MOST}, or a span such as 1-30")
    return range(first, last + 1)


@command(
    "Write the course to a folder of static files, which work from a disk and on any web host.",
    'course attention-course --text "The bank of the river was flooded"',
    argument("dir", "folder for the files; created if missing"),
    option("--text", "TEXT", f"{TEXT}; repeat it for several (default: the model's examples)", multiple=True),
    option("--lang", None, "language", type=click.Choice(list(LANGUAGES)), default="en"),
    option("--lesson", "NAME", "only this lesson; repeat it for several (default: all)", multiple=True),
    option(
        "--seeds", "SEEDS", "exercises per lesson: a count, or a span of seeds such as 1-30", type=seeds, default="5"
    ),
    option("--notation", None, "words as rows or as columns", type=click.Choice(["rows", "columns"]), default="rows"),
    option("--force", None, "write into a folder that has files", is_flag=True),
)
def course(arguments: SimpleNamespace) -> int:
    """Write the course, and report its size."""
    out = Path(arguments.dir)
    _check_folder(out, force=arguments.force)
    texts = [given_text(one) for one in arguments.text]
    from attention_viz.lesson.export.writing import write_course
    from attention_viz.lesson.scene import REAL_MODEL
    from attention_viz.serving.runs import run_lesson
    from attention_viz.sources import CATALOGUE

    texts = texts or list(CATALOGUE[REAL_MODEL].examples)
    more = {"lessons": arguments.lesson} if arguments.lesson else {}
    try:
        with in_language(arguments.lang):
            made = write_course(
                *(out, texts, run_lesson),
                **more,
                seeds=arguments.seeds,
                notation=arguments.notation,
                progress=_CourseProgress(),
            )
    except OSError as error:
        raise AttentionVizError(f"can't write {error.filename or out}: {error.strerror or error}") from None
    for line in made.lacking:
        report(f"Left out: {line}")
    page = out / "index.html"
    report(f"Wrote {out}, {made.size / 1e6:.1f} MB. Open {page} in a browser, or put the folder on a web host")
    return 0


def _check_folder(out: Path, *, force: bool) -> None:
    if out.exists() and not out.is_dir():
        raise AttentionVizError(f"{out} is a file; give a folder")
    if not force and out.is_dir() and any(out.iterdir()):
        raise AttentionVizError(f"the folder {out} has files already; add --force to write into it")


class _CourseProgress:
    def __init__(self) -> None:
        self._last = time.monotonic()

    def __call__(self, done: int, of: int, name: str) -> None:
        """Report how many lessons are done, and the next one."""
        if time.monotonic() - self._last >= _TOLD_EVERY:
            self._last = time.monotonic()
            report(f"{done} of {of} lessons done; computing {name}")
