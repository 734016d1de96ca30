"""The glossary of the documents has every term of the course in the same words, and each link to it leads to a term."""

import json
import re
from pathlib import Path

import pytest

from attention_viz.lesson import TERMS

ROOT = Path(__file__).parents[2]
GLOSSARY = ROOT / "docs" / "glossary.md"
_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)


def _sections() -> dict[str, str]:
    """Each term's text on one line, by its heading in small letters."""
    _, *parts = _HEADING.split(GLOSSARY.read_text("utf-8"))
    return {name.casefold(): " ".join(text.split()) for name, text in zip(parts[::2], parts[1::2], strict=True)}


@pytest.mark.parametrize("term", TERMS)
def test_a_term_of_the_course_begins_with_its_meaning_in_the_course(term: str) -> None:
    assert _sections()[term.casefold()].startswith(TERMS[term])


def test_terms_are_in_order_and_each_has_a_text() -> None:
    headings = _HEADING.findall(GLOSSARY.read_text("utf-8"))
    assert headings == sorted(headings, key=str.casefold)
    assert len(_sections()) == len(headings)
    assert all(text.endswith(".") for text in _sections().values())


def test_every_link_to_the_glossary_leads_to_a_term() -> None:
    anchors = {name.replace(" ", "-") for name in _sections()}
    found = [(GLOSSARY.name, one) for one in re.findall(r"\]\(#([^)]+)\)", GLOSSARY.read_text("utf-8"))]
    documents = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    texts = {path: path.read_text("utf-8") for path in documents}
    for path in ROOT.glob("docs/*.ipynb"):
        cells = json.loads(path.read_text("utf-8"))["cells"]
        texts[path] = "\n".join("".join(cell["source"]) for cell in cells)
    for path, text in texts.items():
        found += [(path.name, one) for one in re.findall(r"glossary\.md#([\w-]+)", text)]
    assert not [one for one in found if one[1] not in anchors]
