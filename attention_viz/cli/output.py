"""Output: tables for eyes, CSV for spreadsheets, JSON for programs, Parquet for data frames."""

import json
import math
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    import pandas

_BINARY = "parquet"
# A column of the tokenizer's own pieces, and the one that holds them as people read them.
_READ_AS = {"token": "written", "query_token": "query_written", "key_token": "key_written"}


def show(table: "pandas.DataFrame", form: str) -> None:
    """Print a table in one of `FORMATS`."""
    if form == _BINARY:
        _put_bytes(table)
    else:
        _put(_TEXTS[form](table))


def show_pairs(pairs: Mapping[str, str]) -> None:
    """Print one name and value per line."""
    width = max(map(len, pairs))
    _put("".join(f"{name:{width}}  {value}\n" for name, value in pairs.items()))


def show_with_origin(origin: Mapping[str, Any], table: "pandas.DataFrame", form: str) -> None:
    """Print table and origin: above, in JSON, in Parquet's schema, or on standard error (CSV)."""
    lines = "".join(f"{name}: {_cell(value)}\n" for name, value in origin.items() if value is not None)
    if form == "json":
        facts = {name: _finite_or_none(_plain(value)) for name, value in origin.items()}
        _put(json.dumps({**facts, "rows": json.loads(_json(table))}, indent=2, allow_nan=False) + "\n")
    elif form == "csv":
        report(lines.rstrip("\n"))
        _put(_csv(table))
    elif form == _BINARY:
        _put_bytes(table, {name: _finite_or_none(_plain(value)) for name, value in origin.items()})
    else:
        _put(f"{lines}\n{_table(table)}")


def report(message: str) -> None:
    """Report on standard error, outside the result."""
    print(message, file=sys.stderr, flush=True)


def one_line(text: str) -> str:
    """Join lines, and escape unprintable characters."""
    return "".join(map(_visible, " ".join(text.split())))


def _visible(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode("ascii")


def _put(text: str) -> None:
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))


def check_format(_context: Any, _option: Any, form: str) -> str:
    """Refuse to fill a terminal with a binary file."""
    if form == _BINARY and sys.stdout.isatty():
        raise click.BadParameter("parquet is binary; send it to a file, such as > heads.parquet")
    return form


def _put_bytes(table: "pandas.DataFrame", about: Mapping[str, Any] | None = None) -> None:
    from attention_viz.trace.files.arrow import parquet_bytes

    sys.stdout.flush()
    sys.stdout.buffer.write(parquet_bytes(table, about))
    sys.stdout.buffer.flush()


def _table(table: "pandas.DataFrame") -> str:
    columns: list[list[str]] = []
    table = _for_eyes(table)
    for name in table.columns:
        numeric = table[name].dtype.kind in "iuf"
        # Where there is no text, pandas 3 has a NaN of its own.
        values = table[name] if numeric else table[name].astype(object).where(table[name].notna(), None)
        cells = [str(name), *map(_cell, values)]
        width = max(map(len, cells))
        columns.append([cell.rjust(width) if numeric else cell.ljust(width) for cell in cells])
    return "".join("  ".join(row).rstrip() + "\n" for row in zip(*columns, strict=True))


def _for_eyes(table: "pandas.DataFrame") -> "pandas.DataFrame":
    for own, written in _READ_AS.items():
        if written in table.columns and own in table.columns:
            table = table.assign(**{own: table[written]}).drop(columns=written)
    return table


def _cell(value: Any) -> str:
    plain = _plain(value)
    if plain is None:
        return ""
    if isinstance(plain, bool):
        return "yes" if plain else "no"
    return f"{plain:.4f}" if isinstance(plain, float) else one_line(str(plain))


def _csv(table: "pandas.DataFrame") -> str:
    """Quote text, and let no spreadsheet run it as a formula; NaN is an empty cell."""
    rows = [",".join(map(_csv_cell, row)) for row in zip(*(table[name] for name in table.columns), strict=True)]
    return "".join(f"{line}\n" for line in (",".join(map(str, table.columns)), *rows))


def _csv_cell(value: Any) -> str:
    # What a spreadsheet takes for a formula is known in one place only.
    from attention_viz.trace.export import inert

    plain = _finite_or_none(_plain(value))
    if isinstance(plain, str):
        return '"' + inert(plain).replace('"', '""') + '"'
    return "" if plain is None else str(plain)


def _json(table: "pandas.DataFrame") -> str:
    """Return one object per row, in ASCII; NaN is null."""
    columns = {str(name): [_finite_or_none(_plain(value)) for value in table[name]] for name in table.columns}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return json.dumps(rows, indent=2, allow_nan=False) + "\n"


def _plain(value: Any) -> Any:
    """Convert numpy values to Python's; pandas' empty cells to None."""
    if type(value).__name__ == "NAType":
        return None
    return value.item() if hasattr(value, "item") else value


def _finite_or_none(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


_TEXTS = {"table": _table, "csv": _csv, "json": _json}
FORMATS = (*_TEXTS, _BINARY)
