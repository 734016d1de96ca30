"""Write `docs/llms.txt`, the list of documents for language models, as llmstxt.org describes it.

Its sections and descriptions are those of the index in `docs/README.md`; each title is the document's own heading.
"""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path

from scripts.website.staging import menu, places

__all__ = ["page"]

ROOT = Path(__file__).parents[1]
_AGENTS = "Agents can call the library's tools: `attention-viz mcp` serves them, see [the guide](how-to/agents.md)."
_TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
# A line of the index: an item of a list, or a row of its table.
_DESCRIBED = re.compile(r"^(?:- |\| )\[[^\]]+\]\(([^)#\s]+)\)(?:: | \| )(.+?)(?: \|)?$", re.MULTILINE)


def page() -> str:
    """Return the file's text: title, summary, and a line per document."""
    index = ROOT / "docs" / "README.md"
    described = dict(_DESCRIBED.findall(index.read_text("utf-8")))
    whence = {place: path for path, place in places(ROOT).items()}
    title, summary = (ROOT / "README.md").read_text("utf-8").split("\n\n")[:2]
    lines = [title, "", f"> {summary}", "", _AGENTS]
    for part in menu(ROOT)[1:]:
        for section, entries in part.items():
            documents = [whence[place] for entry in entries for place in entry.values()]
            lines += ["", f"## {section}", "", *(_line(path, described) for path in documents)]
    return "\n".join(lines) + "\n"


def _line(path: Path, described: Mapping[str, str]) -> str:
    link = Path(os.path.relpath(path, ROOT / "docs")).as_posix()
    if link not in described:
        raise SystemExit(f"docs/README.md must describe {link} in a line of its own: - [title]({link}): …")
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", described[link])
    return f"- [{_title(path)}]({link}): {plain}"


def _title(path: Path) -> str:
    """Return a document's own heading."""
    text = path.read_text("utf-8")
    if path.suffix == ".ipynb":
        text = "".join(json.loads(text)["cells"][0]["source"])
    found = _TITLE.search(text)
    assert found is not None, f"{path} has no heading"
    return found[1]
