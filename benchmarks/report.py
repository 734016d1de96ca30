"""Write a benchmark's results: tables for the terminal, and a part of docs/performance.md."""

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
    """Figures in rows; the first column names the row."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""


@dataclass(frozen=True)
class Result:
    """The results of one run.

    Attributes:
        remarks: sentences computed from them, such as whether a target was reached.
        packages: further packages whose versions matter.
    """

    tables: Sequence[Table]
    remarks: Sequence[str] = ()
    packages: Sequence[str] = ()


@dataclass(frozen=True)
class Benchmark:
    """One comparison: its title, method and function.

    Attributes:
        title: the heading of its part of the page.
        method: the measurement, in a paragraph.
        run: makes it; True uses little input, only to show that everything works.
    """

    title: str
    method: str
    run: Callable[[bool], Result]


def at_most(what: str, found: float, mark: float, pattern: str = "{:.2f}") -> str:
    """Say in a sentence whether a value stays within its target.

    Args:
        pattern: the format of both, with any unit.
    """
    reached = "reached" if found <= mark else "missed"
    return f"The target for {what}, at most {pattern.format(mark)}, is {reached}: {pattern.format(found)}."


def to_text(table: Table) -> str:
    """Return the table in columns of even width, for the terminal."""
    widths = [max(map(len, column)) for column in zip(table.columns, *table.rows, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (table.columns, ["-" * width for width in widths], *table.rows)
    ]
    return "\n".join([table.caption, *lines] if table.caption else lines)


def to_markdown(benchmark: Benchmark, result: Result) -> str:
    """Return a benchmark's part of the page."""
    parts = [f"## {benchmark.title}", benchmark.method]
    for table in result.tables:
        rows = [table.columns, ["---"] + ["--:"] * (len(table.columns) - 1), *table.rows]
        body = "\n".join(f"| {' | '.join(row)} |" for row in rows)
        parts += [f"{table.caption}:", body] if table.caption else [body]
    parts += ["\n".join(f"- {remark}" for remark in result.remarks)] if result.remarks else []
    return "\n\n".join([*parts, f"*Measured on {_circumstances(result.packages)}.*"])


def _circumstances(packages: Sequence[str]) -> str:
    """Return the day, the kind of machine and the versions, without naming the machine."""
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
    """Return the processor's model name, or its architecture."""
    path = Path("/proc/cpuinfo")
    name = re.search(r"^model name\s*:\s*(.+)$", path.read_text(), re.MULTILINE) if path.exists() else None
    return f"{name[1].strip()}, {platform.machine()}" if name else platform.machine()


def sections(page: str) -> list[str]:
    """Return the names of a page's benchmarks, in order."""
    return re.findall(r"^<!-- (\w+): begin, written by make bench -->$", page, re.MULTILINE)


def write(name: str, text: str, path: Path = PAGE) -> None:
    """Replace a benchmark's part of the page."""
    page = path.read_text(encoding="utf-8")
    begin, end = f"<!-- {name}: begin, written by make bench -->", f"<!-- {name}: end -->"
    before, found, rest = page.partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise ValueError(f"{path.name} has no place for {name}: add the lines {begin} and {end}")
    path.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}", encoding="utf-8", newline="\n")
