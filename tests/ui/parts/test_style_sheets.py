"""Style sheets are files beside what they arrange: read once, whole in the package, and never part of a program."""

import ast
import re
from pathlib import Path

import pytest

from attention_viz.ui.parts.layout import style_sheet
from attention_viz.views.style.theme import palette

PACKAGE = Path(__file__).parents[3] / "attention_viz"
UI = PACKAGE / "ui"
PAGES = sorted(folder.name for folder in (UI / "pages").iterdir() if (folder / "page.py").is_file())

# A rule, or a declaration of an element's own.
CSS = re.compile(r"\{\s*[a-z-]+\s*:[^{}]+;\s*\}|\bstyle\s*=\s*[\"'][^\"']*:|<style>[^{]*\{[^}]*\}")


def programs() -> list[Path]:
    return [*UI.rglob("*.py"), PACKAGE.parent / "app.py", *(PACKAGE.parent / "pages").glob("*.py")]


def css_in(source: str) -> list[str]:
    """The strings of a program that hold CSS, what is filled in left out."""
    texts: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            texts.append(node.value)
        elif isinstance(node, ast.JoinedStr):
            texts.append("".join(part.value if isinstance(part, ast.Constant) else "0" for part in node.values))
    return [text for text in texts if CSS.search(text)]


def test_no_program_of_the_pages_holds_css() -> None:
    assert not {str(path): found for path in programs() if (found := css_in(path.read_text("utf-8")))}


@pytest.mark.parametrize(
    "planted", ["x = '.pen { color: red; }'", "x = f'<p style=\"margin:0;color:{y}\">'", "x = '<style>p { margin: 0 }'"]
)
def test_planted_css_is_found(planted: str) -> None:
    assert css_in(planted)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_its_own_rules_and_those_that_all_share(name: str) -> None:
    sheet = style_sheet(name, "light")
    assert (UI / "parts" / "layout.css").read_text("utf-8") in sheet
    assert all(own.read_text("utf-8") in sheet for own in (UI / "pages" / name).glob("page.css"))
    assert style_sheet(name, "light") is sheet, "read once"
    assert (UI / "parts" / "layout-dark.css").read_text("utf-8") in style_sheet(name, "dark")
    assert (UI / "parts" / "layout-dark.css").read_text("utf-8") not in sheet


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_colour_that_a_rule_names_is_of_the_look(name: str, theme: str) -> None:
    sheet = style_sheet(name, "dark" if theme == "dark" else "light")
    named = set(re.findall(r"var\((--av-[a-z-]+)", sheet))
    declared = dict(re.findall(r"(--av-[a-z-]+): ([^;]+);", sheet))
    assert named <= declared.keys()
    assert declared["--av-ink"] == palette("dark" if theme == "dark" else "light").ink


def test_every_page_asks_for_its_own_style_sheet() -> None:
    root = PACKAGE.parent
    asked = {
        found[1]
        for path in (root / "app.py", *(root / "pages").glob("*.py"))
        if (found := re.search(r'arranged\("(\w+)"\)', path.read_text("utf-8")))
    }
    assert asked == set(PAGES)


def test_style_sheets_are_well_formed() -> None:
    for path in UI.rglob("*.css"):
        text = re.sub(r"/\*.*?\*/", "", path.read_text("utf-8"), flags=re.DOTALL)
        assert text.count("{") == text.count("}"), path
        assert "<" not in text, f"{path}: a sign that a browser reads as markup"
