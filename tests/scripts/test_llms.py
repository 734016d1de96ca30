"""The list of documents for language models: complete, in the form of llmstxt.org, with links that lead somewhere."""

import re
from pathlib import Path

from scripts import llms
from scripts.website.staging import stage

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
_LINK = re.compile(r"^- \[([^\]]+)\]\(([^)]+)\): (.+)$", re.MULTILINE)


def test_it_has_a_title_a_summary_and_sections_of_described_links() -> None:
    title, summary, note, *sections = llms.page().strip().split("\n\n")
    assert title == "# attention_viz" and summary.startswith("> ") and "attention-viz mcp" in note
    for heading, links in zip(sections[::2], sections[1::2], strict=True):
        assert heading.startswith("## ")
        assert all(_LINK.fullmatch(line) for line in links.splitlines())


def test_every_document_is_in_it_once_under_its_own_heading() -> None:
    found = {(DOCS / link).resolve(): title for title, link, _ in _LINK.findall(llms.page())}
    there = {*DOCS.rglob("*.md"), *DOCS.glob("*.ipynb"), *ROOT.glob("*.md")} - {DOCS / "README.md"}
    assert found.keys() == there
    assert len(_LINK.findall(llms.page())) == len(found)
    for path, title in found.items():
        assert path.suffix == ".ipynb" or f"# {title}\n" in path.read_text("utf-8")


def test_in_the_site_its_links_are_the_pages(tmp_path: Path) -> None:
    stage(ROOT, tmp_path / "docs")
    links = [link for _, link, _ in _LINK.findall((tmp_path / "docs" / "llms.txt").read_text("utf-8"))]
    assert len(links) == len(_LINK.findall(llms.page())) > 30
    for link in links:
        assert link.endswith(".html")
        assert (tmp_path / "docs" / link).with_suffix(".md").is_file(), link
