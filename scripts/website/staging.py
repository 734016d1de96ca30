"""Lay out the documents for the site: with those at the root, notebooks as pages, and adapted links.

In an editor and on a forge the documents are read where they lie. Nothing is written twice: the menu follows the index
in `docs/README.md`.
"""

import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["menu", "places", "stage"]

# Documents at the root, and what they are called in the site; the README there is what the index in docs/ isn't.
_AT_THE_ROOT = {
    "README.md": "start.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "CITATION.cff": "CITATION.cff",
    "LICENSE": "LICENSE.txt",
}
# What is found in it comes after what is found elsewhere: it names everything once.
_LAST = "---\nsearch:\n  boost: 0.1\n---\n\n"
_COURSE = "**[Take the course on this site](course/index.html).** It runs in your browser alone."
_LINK = re.compile(r"(?<=\]\()([^)\s#]+)(#[^)\s]*)?(?=\))")
_SECTION = re.compile(r"^\*\*(.+)\*\*$", re.MULTILINE)
_ENTRY = re.compile(r"\[([^\]]+)\]\(([^)#\s]+\.(?:md|ipynb))\)")


def places(root: Path) -> dict[Path, str]:
    """Return each site file's path in the site, by its path in the project."""
    docs = root / "docs"
    found = {path: path.relative_to(docs).as_posix() for path in sorted(docs.rglob("*")) if path.is_file()}
    found = {path: _page(place) for path, place in found.items()}
    return found | {root / name: place for name, place in _AT_THE_ROOT.items()}


def stage(root: Path, folder: Path, course: Path | None = None) -> None:
    """Write the site's files into a folder, with the static course and a link to it; empty the folder first."""
    shutil.rmtree(folder, ignore_errors=True)
    where = places(root)
    for path, place in where.items():
        target = folder / place
        target.parent.mkdir(parents=True, exist_ok=True)
        if place.endswith(".md"):
            target.write_text(_with_links(_markdown(path), path, where), encoding="utf-8", newline="\n")
        elif place == "llms.txt":
            text = _with_links(path.read_text("utf-8"), path, where)
            target.write_text(text.replace(".md)", ".html)"), encoding="utf-8", newline="\n")
        else:
            shutil.copyfile(path, target)
    for notebook in (root / "docs").glob("*.ipynb"):
        shutil.copyfile(notebook, folder / notebook.name)
    if course is not None:
        shutil.copytree(course, folder / "course")
        page = folder / "lessons.md"
        heading, _, text = page.read_text("utf-8").partition("\n")
        page.write_text(f"{heading}\n\n{_COURSE}\n{text}", encoding="utf-8", newline="\n")


def menu(root: Path) -> list[Any]:
    """Return the site's menu for mkdocs: the index's sections with their links, each document once."""
    index, where = root / "docs" / "README.md", places(root)
    title, *parts = _SECTION.split(index.read_text("utf-8"))
    seen, found = {"README.md"}, list[Any]([{_title(title): "README.md"}])
    for section, text in zip(parts[::2], parts[1::2], strict=True):
        entries = list[dict[str, str]]()
        for label, link in _ENTRY.findall(text):
            place = where[Path(os.path.normpath(index.parent / link))]
            if place not in seen:
                seen.add(place)
                entries.append({label[0].upper() + label[1:]: place})
        found.append({section: entries})
    return found


def _page(place: str) -> str:
    return place.removesuffix(".ipynb") + ".md" if place.endswith(".ipynb") else place


def _title(text: str) -> str:
    """Return a document's first heading."""
    return text.partition("\n")[0].removeprefix("# ").strip()


def _markdown(path: Path) -> str:
    if path.suffix != ".ipynb":
        return (_LAST if path.name == "CHANGELOG.md" else "") + path.read_text("utf-8")
    return "\n\n".join(_cells(path)) + "\n"


def _cells(path: Path) -> Iterator[str]:
    """Yield a notebook's cells, and below its heading a link to the notebook itself."""
    cells = json.loads(path.read_text("utf-8"))["cells"]
    for number, cell in enumerate(cells):
        text = "".join(cell["source"]).strip()
        yield text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```"
        if number == 0:
            yield f"To run this notebook in Jupyter, download [the file](./{path.name})."


def _with_links(text: str, path: Path, where: dict[Path, str]) -> str:
    """Rewrite a text's links for the site; links to other files stay."""
    here = Path(where[path]).parent

    def moved(found: re.Match[str]) -> str:
        place = where.get(Path(os.path.normpath(path.parent / found[1])))
        if place is None or found[1].startswith("./"):
            return found[0]
        return Path(os.path.relpath(place, here)).as_posix() + (found[2] or "")

    return _LINK.sub(moved, text)
