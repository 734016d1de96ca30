"""Output: tables for eyes, CSV for spreadsheets, JSON for programs, Parquet for data frames."""

import json
import math
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from attention_viz.cli.answers.answer import plain

if TYPE_CHECKING:
    import pandas

    from attention_viz.cli.answers.answer import Answer

_BINARY = "parquet"
# A column of the tokenizer's own pieces, and the one that holds them as people read them.
_READ_AS = {"token": "written", "query_token": "query_written", "key_token": "key_written"}
# Less than this has no digit among four decimals.
_TINY = 5e-5


def show(answer: "Answer", form: str) -> None:
    """Print an answer in one of `FORMATS`.

    In CSV, its facts go to standard error; in Parquet, the schema has them.
    """
    if form == "json":
        from attention_viz.cli.answers.answer import envelope

        _put(json.dumps(envelope(answer), indent=2, allow_nan=False) + "\n")
        return
    facts = {"model": answer.model, **answer.facts} if answer.facts else {}
    lines = "".join(f"{name}: {_fact(value)}\n" for name, value in facts.items() if value is not None)
    assert answer.table is not None
    if form == _BINARY:
        _put_bytes(answer.table, plain({"model": answer.model, **answer.facts}))
        return
    if form == "csv":
        if lines:
            report(lines.rstrip("\n"))
        _put(_csv(answer.table))
    else:
        _put(f"{lines}\n{_table(answer.table)}" if lines else _table(answer.table))


def print_answer(answer: "Answer", form: str) -> None:
    """Print an answer; its notes are in JSON, else on standard error."""
    for note in answer.notes if form != "json" else ():
        report(one_line(note))
    show(answer, form)


def check_format(_context: Any, _option: Any, form: str) -> str:
    """Refuse to fill a terminal with a binary file."""
    if form == _BINARY and sys.stdout.isatty():
        raise click.BadParameter("parquet is binary; send it to a file, such as > heads.parquet")
    return form


def _put_bytes(table: "pandas.DataFrame", about: Mapping[str, Any]) -> None:
    from attention_viz.trace.files.arrow import parquet_bytes

    sys.stdout.flush()
    sys.stdout.buffer.write(parquet_bytes(table, about))
    sys.stdout.buffer.flush()


def show_pairs(pairs: Mapping[str, str]) -> None:
    """Print one name and value per line."""
    width = max(map(len, pairs))
    _put("".join(f"{name:{width}}  {value}\n" for name, value in pairs.items()))


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


def _fact(value: Any) -> str:
    """Write a fact; a number too small for four decimals, such as a remainder, by its first two digits."""
    tiny = isinstance(value, float) and 0 < abs(value) < _TINY
    return f"{value:.1e}" if tiny else _cell(value)


def _cell(value: Any) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if (found := plain(value)) is None:
        return ""
    if isinstance(found, bool):
        return "yes" if found else "no"
    return f"{found:.4f}" if isinstance(found, float) else one_line(str(found))


def _csv(table: "pandas.DataFrame") -> str:
    """Quote text, and let no spreadsheet run it as a formula; NaN is an empty cell."""
    rows = [",".join(map(_csv_cell, row)) for row in zip(*(table[name] for name in table.columns), strict=True)]
    return "".join(f"{line}\n" for line in (",".join(map(str, table.columns)), *rows))


def _csv_cell(value: Any) -> str:
    # What a spreadsheet takes for a formula is known in one place only.
    from attention_viz.trace.export import inert

    found = plain(value)
    if isinstance(found, str):
        return '"' + inert(found).replace('"', '""') + '"'
    return "" if found is None else str(found)


FORMATS = ("table", "csv", "json", _BINARY)
