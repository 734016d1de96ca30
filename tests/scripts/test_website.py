"""The site that `make docs` builds: each document once in its menu, links that lead somewhere, no other host."""

import re
from pathlib import Path

import pytest

from scripts.website.asking import asked_elsewhere
from scripts.website.staging import menu, stage

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def staged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("website") / "docs"
    stage(ROOT, folder)
    return folder


def anchors(page: Path) -> set[str]:
    """What a page's headings are called in a link, here as on a forge."""
    headings = re.findall(r"^#+ (.+)$", _FENCE.sub("", page.read_text("utf-8")), re.MULTILINE)
    plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", one) for one in headings]
    return {re.sub(r"[^\w\- ]", "", one.lower()).strip().replace(" ", "-") for one in plain}


def test_every_link_of_the_site_leads_to_one_of_its_pages_and_to_a_heading_there(staged: Path) -> None:
    followed = 0
    for page in staged.rglob("*.md"):
        for link, anchor in re.findall(r"\]\(([^)\s#]*)(#[^)\s]*)?\)", _FENCE.sub("", page.read_text("utf-8"))):
            if link.startswith(("http", "/")) or not (link or anchor):
                continue
            target = (page.parent / link).resolve() if link else page
            assert target.is_file() and target.is_relative_to(staged), f"{page.name} links to {link}"
            assert not anchor or anchor[1:] in anchors(target), f"{page.name} links to {link}{anchor}"
            followed += 1
    assert followed > 200


def test_the_course_is_a_folder_of_the_site_and_linked(tmp_path: Path) -> None:
    (tmp_path / "course").mkdir()
    (tmp_path / "course" / "index.html").write_text("<h1>the course</h1>")
    stage(ROOT, tmp_path / "docs", tmp_path / "course")
    page = tmp_path / "docs" / "lessons.md"
    (link,) = re.findall(r"\]\((course/[^)]*)\)", page.read_text("utf-8"))
    assert (page.parent / link).read_text() == "<h1>the course</h1>"
    assert page.read_text("utf-8").startswith((ROOT / "docs" / "lessons.md").read_text("utf-8").partition("\n")[0])


def test_the_menu_has_every_page_once(staged: Path) -> None:
    (first,), *sections = [list(one.values()) for one in menu(ROOT)]
    listed = [first, *(page for (section,) in sections for entry in section for page in entry.values())]
    assert sorted(listed) == sorted(page.relative_to(staged).as_posix() for page in staged.rglob("*.md"))


def test_a_notebook_is_a_page_and_a_file_beside_it(staged: Path) -> None:
    page = (staged / "tutorial.md").read_text("utf-8")
    assert page.startswith("# ") and "\n\n```python\nimport attention_viz as av" in page
    assert "](./tutorial.ipynb)" in page and (staged / "tutorial.ipynb").is_file()


def test_whatever_a_built_page_would_ask_of_another_host_is_found(tmp_path: Path) -> None:
    (tmp_path / "bad.html").write_text(
        '<link rel="stylesheet" href="https://a.example/x.css"><script src="//b.example/x.js"></script>'
        '<style>@import "https://c.example/x.css"; p { background: url(http://d.example/x.png) }</style>'
    )
    (tmp_path / "bad.css").write_text("@font-face { src: url('https://e.example/x.woff2') }")
    (tmp_path / "good.html").write_text(
        '<link rel="canonical" href="https://a.example/"><a href="https://b.example/">there</a>'
        '<img src="a/b.png"><script src="../x.js"></script><style>p { background: url(x.png) }</style>'
    )
    found = list(asked_elsewhere(tmp_path))
    assert [re.search(r"(\w)\.example", one)[1] for one in found if one] == ["e", "a", "b", "c", "d"]  # type: ignore[index]
