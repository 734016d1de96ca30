"""A site's files in a folder."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy
from markupsafe import Markup

from attention_viz.corpus.site.explored import explored_data, explorer_page, explorer_script, explorer_style
from attention_viz.corpus.site.frame import style_sheet
from attention_viz.corpus.site.head import head_page
from attention_viz.corpus.site.index import heads_data, index_page
from attention_viz.corpus.site.parts import Head, Site, SiteExample
from attention_viz.corpus.site.rows import SiteRow, Wanted, rows_of
from attention_viz.corpus.tables import LEADING, records_of
from attention_viz.errors import ScanError
from attention_viz.trace.export import to_csv
from attention_viz.trace.files.whole_file import write_whole
from attention_viz.trace.spelling import xml_text
from attention_viz.trace.trace import Trace

if TYPE_CHECKING:
    import pandas

# Of the metrics that don't belong to a head's role so many of the strongest examples are shown.
_OTHERS = 3
# So many of those that do have their whole layer drawn by the explorer.
_EXPLORED = 2
_HERE = Path(__file__).parent


def chosen_examples(heads: "pandas.DataFrame", examples: "pandas.DataFrame") -> "pandas.DataFrame":
    """Keep all examples of the role's metric, and the others' strongest."""
    leading = {_place(one): LEADING[str(one["role"])] for one in records_of(heads)}
    places = zip(examples["stream"], examples["layer"], examples["head"], examples["metric"], strict=True)
    leads = numpy.array([leading[str(one[0]), int(one[1]), int(one[2])] == one[3] for one in places], dtype=bool)
    some = (examples["kind"] == "strongest") & (examples["rank"] <= _OTHERS)
    shown: Any = examples.assign(leads=leads)[leads | some]
    return shown.sort_values("leads", ascending=False, kind="stable")


def write_site(
    path: Path,
    site: Site,
    tables: Mapping[str, Any],
    runs: Iterable[tuple[int, Trace]],
    maps: Mapping[tuple[str, int, int], Markup],
    made: Sequence[tuple[str, str]],
) -> None:
    """Write a site.

    Args:
        tables: of scan and study, examples from `chosen_examples`; written too, without texts not shown.
    """
    found = [replace(head, picture=maps.get(_place(head.row))) for head in _heads(tables, runs)]
    files = {head.file: head_page(site, head) for head in found} | {
        "index.html": index_page(site, found, made, [f"tables/{name}.csv" for name in tables]),
        "style.css": style_sheet((_HERE / "style.css").read_text("utf-8")),
        "heads.js": (_HERE / "heads.js").read_text("utf-8"),
        "heads-data.js": heads_data(found),
        "explorer.html": explorer_page(site),
        "explorer.css": explorer_style(),
        "explorer.js": explorer_script() + (_HERE / "open.js").read_text("utf-8"),
    }
    files |= {f"explored/{head.stem}.js": explored_data(head) for head in found}
    files |= {f"tables/{name}.csv": to_csv(table) for name, table in _whole(tables).items()}
    try:
        for folder in ("explored", "tables"):
            (path / folder).mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            kept = xml_text(text) if name.endswith(".html") else text
            write_whole(path / name, kept.encode("utf-8", "replace"))
    except OSError as error:
        raise ScanError(f"can't write the site to {path}: {error.strerror or error}") from None


def _whole(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Drop texts not shown and columns only for display."""
    shown = set(tables["examples"]["text"])
    texts = tables["texts"]
    return {**tables, "examples": tables["examples"].drop(columns="leads"), "texts": texts[texts["text"].isin(shown)]}


def _heads(tables: Mapping[str, Any], runs: Iterable[tuple[int, Trace]]) -> Iterator[Head]:
    shown, wanted = records_of(tables["examples"]), dict[int, set[Wanted]]()
    for one in shown:
        wanted.setdefault(int(one["text"]), set()).add(_wanted(one))
    explored = {(int(one["text"]), _wanted(one)): int(one["key"]) for one in shown if _is_explored(one)}
    rows = dict(rows_of(runs, wanted, explored))
    words = {(int(one["text"]), _wanted(one)): str(one["words"]) for one in _rows_in(tables, "written")}
    examples = dict[tuple[str, int, int], list[SiteExample]]()
    for one in shown:
        asked, of_head = (int(one["text"]), _wanted(one)), examples.setdefault(_place(one), [])
        place = len(of_head) if _is_explored(one) else None
        of_head.append(_example(one, rows[asked], words.get(asked, ""), place))
    looks, alike = (_by_head(_rows_in(tables, name)) for name in ("kinds", "alike"))
    silenced = {_place(one): one for one in _rows_in(tables, "silenced")}
    for one in records_of(tables["heads"]):
        place = _place(one)
        yield Head(one, examples.get(place, []), looks.get(place, []), silenced.get(place), alike.get(place, ()))


def _rows_in(tables: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    return records_of(tables[name]) if name in tables else []


def _by_head(rows: Iterable[dict[str, Any]]) -> dict[tuple[str, int, int], list[dict[str, Any]]]:
    found = dict[tuple[str, int, int], list[dict[str, Any]]]()
    for one in rows:
        found.setdefault(_place(one), []).append(one)
    return found


def _wanted(one: dict[str, Any]) -> Wanted:
    return Wanted(str(one["stream"]), int(one["layer"]), int(one["head"]), int(one["query"]))


def _place(one: Mapping[str, Any]) -> tuple[str, int, int]:
    return str(one["stream"]), int(one["layer"]), int(one["head"])


def _is_explored(one: Mapping[str, Any]) -> bool:
    return bool(one["leads"]) and one["kind"] == "strongest" and int(one["rank"]) <= _EXPLORED


def _example(one: dict[str, Any], row: SiteRow, words: str, place: int | None) -> SiteExample:
    tenth, query, key = (int(one[name]) for name in ("tenth", "query", "key"))
    return SiteExample(str(one["metric"]), str(one["kind"]), tenth, query, key, float(one["weight"]), row, words, place)
