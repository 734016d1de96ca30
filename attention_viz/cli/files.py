"""The files `trace` writes, one kind per ending."""

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click

from attention_viz.errors import AttentionVizError
from attention_viz.trace.files.whole_file import write_whole
from attention_viz.views.export.browsers import needed
from attention_viz.views.export.sheet import Sheet

if TYPE_CHECKING:
    from attention_viz.explorer import Explorer
    from attention_viz.trace.trace import Trace

    Writer = Callable[[Trace, Path, "FilePart"], None]

# Lines of CSV that are written together, and what one core of 2023 writes in a second.
LINES_AT_A_TIME, LINES_A_SECOND = 2**20, 2.5e5
_LAYOUT = ("width", "height", "title", "font_size", "no_footer", "no_numbers")
_LESS = ("what", "dtype")


@dataclass(frozen=True)
class FilePart:
    """The part of a trace to write.

    Attributes:
        layer: only this, or the explorer's opening one.
        layers: only these; of the explorer, those with numbers.
        laid_out: for `heatmap_svg`.
        less: left out by `Trace.save`.
    """

    layer: int | None = None
    head: int | None = None
    stream: str | None = None
    layers: Sequence[int] | None = None
    laid_out: Mapping[str, Any] = field(default_factory=dict[str, Any])
    less: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class FileKind:
    """A kind of file, with its content in words."""

    holds: str
    write: "Writer"


def check_target(arguments: SimpleNamespace) -> Path:
    """Reject an unwritable target before a model loads."""
    path, ending = Path(arguments.out), Path(arguments.out).suffix.lower()
    places = [f"--{name}" for name in ("layer", "head", "stream") if getattr(arguments, name) is not None]
    if ending not in ENDINGS:
        what = f"{ending} files aren't written" if ending else f"{arguments.out!r} has no ending"
        raise click.UsageError(f"argument --out: {what}; use one of {', '.join(ENDINGS)}")
    if ending in PICTURES and (arguments.layer is None or arguments.head is None):
        raise click.UsageError(f"argument --out: {ending} shows one head; it needs --layer and --head")
    layout_of(arguments)  # raises on a bad layout
    asked = [f"--{name.replace('_', '-')}" for name in _LAYOUT if getattr(arguments, name) not in (None, False)]
    if ending not in PICTURES and asked:
        raise click.UsageError(f"argument --out: {ending} isn't a picture; leave out {', '.join(asked)}")
    _check_less(arguments, ending)
    if ending == ".safetensors" and places:
        raise click.UsageError(f"argument --out: .safetensors keeps the whole trace; leave out {', '.join(places)}")
    if ending == ".parquet" and importlib.util.find_spec("pyarrow") is None:
        raise AttentionVizError(".parquet files need pyarrow, which isn't installed; run pip install pyarrow")
    if ending in (".png", ".pdf"):
        needed(f"{ending}, unlike .svg,")
    if not path.parent.is_dir():
        raise AttentionVizError(f"can't write {path.name}: create the folder {path.parent} first")
    if path.is_dir():
        raise AttentionVizError(f"{path} is a folder; --out needs a file name")
    if not arguments.force and path.exists():
        raise AttentionVizError(f"{path} exists already; add --force to overwrite it")
    return path


def _check_less(arguments: SimpleNamespace, ending: str) -> None:
    less = [f"--{name}" for name in _LESS if getattr(arguments, name) is not None]
    if ending != ".safetensors" and less:
        raise click.UsageError(f"argument --out: {ending} isn't a saved trace; leave out {', '.join(less)}")
    if arguments.layers is not None and ending in PICTURES:
        raise click.UsageError(f"argument --out: {ending} shows one head; leave out --layers")
    if arguments.layers is not None and arguments.layer is not None and ending not in (".html", ".js"):
        raise click.UsageError("argument --layers: it can't go with --layer, so leave out either")


def part_of(arguments: SimpleNamespace) -> FilePart:
    """Return the requested part of a trace."""
    less = {name: getattr(arguments, name) for name in _LESS if getattr(arguments, name) is not None}
    places = (arguments.layer, arguments.head, arguments.stream)
    return FilePart(*places, arguments.layers, layout_of(arguments), less)


def layout_of(arguments: SimpleNamespace) -> dict[str, Any]:
    """Return the requested layout by `heatmap_svg`'s names."""
    found = {name: getattr(arguments, name) for name in _LAYOUT if getattr(arguments, name) is not None}
    found |= {name: False for name in ("footer", "numbers") if found.pop(f"no_{name}")}
    Sheet.asked(**found)
    return found


def write(trace: "Trace", path: Path, part: FilePart) -> None:
    """Write a trace or its part, by the path's ending."""
    try:
        ENDINGS[path.suffix.lower()].write(trace, path, part)
    except OSError as error:
        raise AttentionVizError(f"can't write {path}: {error.strerror or error}") from None


def _safetensors(trace: "Trace", path: Path, part: FilePart) -> None:
    trace.save(path, layers=part.layers, **part.less)


def _csv(trace: "Trace", path: Path, part: FilePart) -> None:
    from attention_viz.trace.ahead import ahead
    from attention_viz.trace.export import to_csv

    table = trace.table(part.layer, part.head, part.stream, layers=part.layers)
    report = ahead(path.name, len(table), len(table) / LINES_A_SECOND, None)
    lines: list[str] = []
    for start in range(0, max(1, len(table)), LINES_AT_A_TIME):
        heading, _, rest = to_csv(table.iloc[start : start + LINES_AT_A_TIME]).partition("\n")
        lines += [rest] if start else [f"{heading}\n", rest]
        report(min(1.0, (start + LINES_AT_A_TIME) / max(1, len(table))))
    write_whole(path, "".join(lines).encode())


def _parquet(trace: "Trace", path: Path, part: FilePart) -> None:
    trace.to_parquet(path, part.layer, part.head, part.stream, layers=part.layers)


def _html(trace: "Trace", path: Path, part: FilePart) -> None:
    _explorer(trace, part).save_html(path)


def _js(trace: "Trace", path: Path, part: FilePart) -> None:
    _explorer(trace, part).save_embed(path)


def _explorer(trace: "Trace", part: FilePart) -> "Explorer":
    from attention_viz.explorer.page import ExplorerPage, opening_of

    first = part.layers[0] if part.layers else None
    layer = first if part.layer is None else part.layer
    opening = opening_of(trace, stream=part.stream, layer=layer, head=part.head or 0, layers=part.layers)
    return ExplorerPage(trace, opening)


def _drawn(trace: "Trace", path: Path, part: FilePart) -> None:
    from attention_viz.views import heatmap_svg, save

    if part.layer is not None and part.head is not None:
        save(heatmap_svg(trace, part.layer, part.head, part.stream, **part.laid_out), path)


ENDINGS: dict[str, FileKind] = {
    ".safetensors": FileKind("the whole trace, for Trace.load and the app", _safetensors),
    ".csv": FileKind("the weights, one per row", _csv),
    ".parquet": FileKind("the same in a smaller file, with units and meanings", _parquet),
    ".html": FileKind("the explorer, which works offline", _html),
    ".js": FileKind("the explorer for another page, by one script tag", _js),
    ".svg": FileKind("a picture of one head (needs --layer and --head)", _drawn),
    ".png": FileKind("the same in pixels (needs Chrome, Chromium or Edge)", _drawn),
    ".pdf": FileKind("the same on a page (needs one of these, too)", _drawn),
}
PICTURES = (".svg", ".png", ".pdf")
