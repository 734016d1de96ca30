"""The files of a site, written into a folder."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy

from attention_viz.corpus.site.pages import Example, Head, Site, head_page, index_page, search_data, style_sheet
from attention_viz.corpus.site.rows import Row, Wanted, rows_of
from attention_viz.errors import ScanError
from attention_viz.trace.trace import Trace
from attention_viz.trace.whole_file import write_whole

if TYPE_CHECKING:
    import pandas

__all__ = ["chosen_examples", "write_site"]

# Whose examples stand first on the page of a head of this role; of the others so many of the strongest are shown.
_LEADING = {
    "previous": "previous", "next": "next", "itself": "self", "same token": "duplicate", "induction": "induction",
    "punctuation": "confidence", "first": "first", "broad": "entropy", "mixed": "confidence",
}  # fmt: skip
_OTHERS = 3
_HERE = Path(__file__).parent


def chosen_examples(heads: "pandas.DataFrame", examples: "pandas.DataFrame") -> "pandas.DataFrame":
    """Those that are shown: of the metric of a head's role all, of the others some of the strongest.

    Args:
        heads: a row a head.
        examples: all of them.
    """
    leading = {_place(one): _LEADING[str(one["role"])] for one in _records(heads)}
    places = zip(examples["stream"], examples["layer"], examples["head"], examples["metric"], strict=True)
    leads = numpy.array([leading[str(one[0]), int(one[1]), int(one[2])] == one[3] for one in places], dtype=bool)
    some = (examples["kind"] == "strongest") & (examples["rank"] <= _OTHERS)
    shown: Any = examples.assign(leads=~leads)[leads | some]
    return shown.sort_values("leads", kind="stable").drop(columns="leads")


def write_site(
    path: Path,
    site: Site,
    heads: "pandas.DataFrame",
    kinds: "pandas.DataFrame",
    examples: "pandas.DataFrame",
    runs: Iterable[tuple[int, Trace]],
) -> None:
    """Write a site.

    Args:
        path: its folder, made where it isn't there.
        site: what it is of.
        heads: a row a head.
        kinds: which kinds look at which.
        examples: those that are shown; see `chosen_examples`.
        runs: the texts that they are of, by number.

    Raises:
        ScanError: a file can't be written.
    """
    wanted = dict[int, set[Wanted]]()
    for one in _records(examples):
        wanted.setdefault(int(one["text"]), set()).add(_wanted(one))
    rows = dict(rows_of(runs, wanted))
    by_head, looks = dict[tuple[str, int, int], list[Example]](), dict[tuple[str, int, int], list[Any]]()
    for one in _records(examples):
        by_head.setdefault(_place(one), []).append(_example(one, rows[int(one["text"]), _wanted(one)]))
    for one in _records(kinds):
        looks.setdefault(_place(one), []).append(one)
    found = [Head(one, by_head.get(_place(one), []), looks.get(_place(one), [])) for one in _records(heads)]
    files = {head.file: head_page(site, head) for head in found} | {
        "index.html": index_page(site, found),
        "style.css": style_sheet((_HERE / "style.css").read_text("utf-8")),
        "search.js": (_HERE / "search.js").read_text("utf-8"),
        "search-data.js": search_data(found),
    }
    try:
        path.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            write_whole(path / name, text.encode("utf-8", "replace"))
    except OSError as error:
        raise ScanError(f"the site can't be written to {path}: {error.strerror or error}") from None


def _records(table: "pandas.DataFrame") -> list[dict[str, Any]]:
    return [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]


def _wanted(one: dict[str, Any]) -> Wanted:
    return Wanted(str(one["stream"]), int(one["layer"]), int(one["head"]), int(one["query"]))


def _place(one: dict[str, Any]) -> tuple[str, int, int]:
    return str(one["stream"]), int(one["layer"]), int(one["head"])


def _example(one: dict[str, Any], row: Row) -> Example:
    tenth, query, key = (int(one[name]) for name in ("tenth", "query", "key"))
    return Example(str(one["metric"]), str(one["kind"]), tenth, query, key, float(one["weight"]), row)
