"""What a benchmark tells: tables for the terminal, and the same as a part of docs/performance.md."""

import datetime
import os
import platform
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

__all__ = ["PAGE", "Benchmark", "Result", "Table", "at_most", "sections", "to_markdown", "to_text", "write"]

PAGE = Path(__file__).parents[1] / "docs" / "performance.md"
_PACKAGES = ("torch", "transformers", "streamlit", "plotly")


@dataclass(frozen=True)
class Table:
    """Figures in rows; the first column says what a row is about."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""


@dataclass(frozen=True)
class Result:
    """What came out of one run.

    Attributes:
        remarks: sentences about them, computed from them: whether a mark was reached, and where not.
        packages: whose versions matter besides the usual ones.
    """

    tables: Sequence[Table]
    remarks: Sequence[str] = ()
    packages: Sequence[str] = ()


@dataclass(frozen=True)
class Benchmark:
    """One comparison: what it is called, how it is measured, and the function that makes it.

    Attributes:
        title: heads its part of the page.
        method: how it is measured, in a paragraph.
        run: makes it; True for a run on little input that only shows that everything works.
    """

    title: str
    method: str
    run: Callable[[bool], Result]


def at_most(what: str, found: float, mark: float, pattern: str = "{:.2f}") -> str:
    """The sentence on a mark that is not to be passed: whether it is reached, and with what.

    Args:
        pattern: how both are written, with the unit if there is one.
    """
    reached = "reached" if found <= mark else "missed"
    return f"The mark for {what}, at most {pattern.format(mark)}, is {reached}: {pattern.format(found)}."


def to_text(table: Table) -> str:
    """The table in columns of even width, for the terminal."""
    widths = [max(map(len, column)) for column in zip(table.columns, *table.rows, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (table.columns, ["-" * width for width in widths], *table.rows)
    ]
    return "\n".join([table.caption, *lines] if table.caption else lines)


def to_markdown(benchmark: Benchmark, result: Result) -> str:
    """A benchmark's part of the page."""
    parts = [f"## {benchmark.title}", benchmark.method]
    for table in result.tables:
        rows = [table.columns, ["---"] + ["--:"] * (len(table.columns) - 1), *table.rows]
        body = "\n".join(f"| {' | '.join(row)} |" for row in rows)
        parts += [f"{table.caption}:", body] if table.caption else [body]
    parts += ["\n".join(f"- {remark}" for remark in result.remarks)] if result.remarks else []
    return "\n\n".join([*parts, f"*Measured on {_circumstances(result.packages)}.*"])


def _circumstances(packages: Sequence[str]) -> str:
    """The day, the kind of machine and the versions, in words that name no machine in particular."""
    versions = ", ".join(f"{name} {found}" for name in (*_PACKAGES, *packages) if (found := _version(name)))
    return (
        f"{datetime.date.today():%d %B %Y}: {os.cpu_count()} cores ({_processor()}), {platform.system()}, "
        f"Python {platform.python_version()}, {versions}"
    )


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    """The maker's name for the processor, or its architecture."""
    path = Path("/proc/cpuinfo")
    name = re.search(r"^model name\s*:\s*(.+)$", path.read_text(), re.MULTILINE) if path.exists() else None
    return f"{name[1].strip()}, {platform.machine()}" if name else platform.machine()


def sections(page: str) -> list[str]:
    """The names of the benchmarks that a page has a part for, in order."""
    return re.findall(r"^<!-- (\w+): begin, written by make bench -->$", page, re.MULTILINE)


def write(name: str, text: str, path: Path = PAGE) -> None:
    """Put a benchmark's part into the page, in the place of the former one."""
    page = path.read_text(encoding="utf-8")
    begin, end = f"<!-- {name}: begin, written by make bench -->", f"<!-- {name}: end -->"
    before, found, rest = page.partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise ValueError(f"{path.name} has no place for {name}: add the lines {begin} and {end}")
    path.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}", encoding="utf-8", newline="\n")
