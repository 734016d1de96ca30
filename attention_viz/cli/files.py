"""What `trace` writes: one kind of file for each ending."""

import importlib.util
from argparse import Namespace
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from attention_viz.errors import AttentionVizError
from attention_viz.trace.whole_file import write_whole
from attention_viz.views.export.browsers import needed
from attention_viz.views.export.sheet import Sheet

if TYPE_CHECKING:
    from attention_viz.trace.trace import Trace

    Writer = Callable[[Trace, Path, int | None, int | None, str | None, Mapping[str, Any]], None]

__all__ = ["ENDINGS", "check_target", "layout_of", "write"]

_LAYOUT = ("width", "height", "title", "footer", "numbers", "font_size")


@dataclass(frozen=True)
class Kind:
    """A kind of file.

    Attributes:
        holds: what it holds, in a few words.
        write: writes it: trace, path, layer, head, stream, and how a picture is to be laid out.
    """

    holds: str
    write: "Writer"


def check_target(arguments: Namespace) -> Path:
    """Refuse, before anything is loaded, what couldn't be written in the end.

    Raises:
        AttentionVizError: there is a file already, no folder for it, or what writes this kind isn't on this machine.
        SystemExit: with 2, where ending and options don't go together.
    """
    path, ending = Path(arguments.out), Path(arguments.out).suffix.lower()
    places = [f"--{name}" for name in ("layer", "head", "stream") if getattr(arguments, name) is not None]
    if ending not in ENDINGS:
        what = f"{ending} files aren't written" if ending else f"{arguments.out!r} has no ending"
        arguments.usage_error(f"argument --out: {what}; the endings are {', '.join(ENDINGS)}")
    if ending in PICTURES and (arguments.layer is None or arguments.head is None):
        arguments.usage_error(f"argument --out: {ending} shows one head; it needs --layer and --head")
    asked = [f"--{name.replace('_', '-')}" for name in layout_of(arguments)]
    if ending not in PICTURES and asked:
        arguments.usage_error(f"argument --out: {ending} is no picture; leave out {', '.join(asked)}")
    if ending == ".safetensors" and places:
        arguments.usage_error(f"argument --out: .safetensors keeps the whole trace; leave out {', '.join(places)}")
    if ending == ".parquet" and importlib.util.find_spec("pyarrow") is None:
        raise AttentionVizError("to write .parquet pyarrow is needed, which isn't installed: pip install pyarrow")
    if ending in (".png", ".pdf"):
        needed(f"{ending}, unlike .svg,")
    if not path.parent.is_dir():
        raise AttentionVizError(f"there is no folder {path.parent} to write {path.name} into")
    if path.is_dir():
        raise AttentionVizError(f"{path} is a folder; --out needs the name of a file")
    if not arguments.force and path.exists():
        raise AttentionVizError(f"{path} is there already; --force writes over it")
    return path


def layout_of(arguments: Namespace) -> dict[str, Any]:
    """How a picture is to be laid out, as far as it was asked for, by the names that `heatmap_svg` has.

    Raises:
        AttentionVizError: a length or a size that is none.
    """
    found = {name: getattr(arguments, name) for name in _LAYOUT if getattr(arguments, name) is not None}
    Sheet.asked(**found)
    return found


def write(
    trace: "Trace",
    path: Path,
    layer: int | None,
    head: int | None,
    stream: str | None,
    laid_out: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Write a trace, or a part of it, by the path's ending; a picture laid out as `heatmap_svg` takes it.

    Raises:
        AttentionVizError: there is no such layer, head or stream, or the file can't be written.
    """
    try:
        ENDINGS[path.suffix.lower()].write(trace, path, layer, head, stream, laid_out)
    except OSError as error:
        raise AttentionVizError(f"{path} can't be written: {error.strerror or error}") from None


def _safetensors(
    trace: "Trace", path: Path, layer: int | None, head: int | None, stream: str | None, laid_out: Mapping[str, Any]
) -> None:
    trace.save(path)


def _csv(
    trace: "Trace", path: Path, layer: int | None, head: int | None, stream: str | None, laid_out: Mapping[str, Any]
) -> None:
    from attention_viz.trace.table import to_csv

    write_whole(path, to_csv(trace.table(layer, head, stream)).encode())


def _parquet(
    trace: "Trace", path: Path, layer: int | None, head: int | None, stream: str | None, laid_out: Mapping[str, Any]
) -> None:
    # By way of Python's own file, so that what goes wrong is said as for the others.
    write_whole(path, trace.table(layer, head, stream).to_parquet(engine="pyarrow", index=False))


def _html(
    trace: "Trace", path: Path, layer: int | None, head: int | None, stream: str | None, laid_out: Mapping[str, Any]
) -> None:
    from attention_viz.explorer import explore

    explore(trace, stream=stream, layer=layer or 0, head=head or 0).save_html(path)


def _svg(
    trace: "Trace", path: Path, layer: int | None, head: int | None, stream: str | None, laid_out: Mapping[str, Any]
) -> None:
    from attention_viz.views import heatmap_svg

    if layer is not None and head is not None:
        write_whole(path, heatmap_svg(trace, layer, head, stream, **laid_out).encode())


def _drawn(
    trace: "Trace", path: Path, layer: int | None, head: int | None, stream: str | None, laid_out: Mapping[str, Any]
) -> None:
    from attention_viz.views import heatmap_svg, save

    if layer is not None and head is not None:
        save(heatmap_svg(trace, layer, head, stream, **laid_out), path)


ENDINGS: dict[str, Kind] = {
    ".safetensors": Kind("the whole trace, for Trace.load", _safetensors),
    ".csv": Kind("the weights, a row each", _csv),
    ".parquet": Kind("the same in less room", _parquet),
    ".html": Kind("the explorer, works offline", _html),
    ".svg": Kind("one head as a picture, needs --layer and --head", _svg),
    ".png": Kind("the same in dots, drawn by Chrome, Chromium or Edge", _drawn),
    ".pdf": Kind("the same on a page, drawn by one of them too", _drawn),
}
PICTURES = (".svg", ".png", ".pdf")
