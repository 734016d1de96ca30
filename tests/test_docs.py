"""What the documents name exists, and what exists is named: in both directions."""

import importlib
import re
import tomllib
from collections.abc import Collection
from pathlib import Path

import pytest

import attention_viz as av
from attention_viz.analysis.search import DETECTORS
from attention_viz.scratch.variants import VARIANTS
from attention_viz.serving.settings import Settings
from attention_viz.steps.head import PRECISIONS, SCALES
from attention_viz.steps.mixer_steps import MIXER_STEPS
from attention_viz.steps.steps import NOTATIONS, STEPS
from attention_viz.ui.address import State, write_address
from attention_viz.ui.address.codec import Parameter, parameters
from attention_viz.ui.address.titles import folder_of
from attention_viz.ui.front.server import READY
from attention_viz.ui.front.waiting import headers
from attention_viz.ui.pages.steps.page import PIPELINE
from attention_viz.ui.parts.downloads import EXPORTS
from attention_viz.ui.parts.menu import PAGES as MENU
from attention_viz.ui.parts.menu import UNLISTED
from attention_viz.ui.presenting.button import PresentChoice
from attention_viz.views import VIEWS
from tests import controls
from tests.test_architecture import ROOMS

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
README = (ROOT / "README.md").read_text("utf-8")
DOCS = ROOT / "docs"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_file_and_link_that_a_document_names_exists(document: Path) -> None:
    text = document.read_text("utf-8")
    links = {link for link in re.findall(r"\]\(([^)#\s]+)", text) if not link.startswith(("http", "/"))}
    named = {name for name in re.findall(r"`([\w./-]+/[\w./-]*|[\w-]+\.(?:py|md|toml|txt))`", text) if name[0] != "/"}
    for name in links:
        assert (document.parent / name).exists(), f"{document.name} links to {name}"
    rooms = (ROOT, ROOT / "attention_viz", *(ROOT / "attention_viz").glob("*/"))
    for name in named:
        assert any((room / name).exists() for room in rooms), f"{document.name} names {name}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_public_name_that_a_document_uses_exists(document: Path) -> None:
    for dotted in re.findall(r"\bav\.([\w.]+)", document.read_text("utf-8")):
        owner: object = av
        for part in dotted.rstrip(".").split("."):
            owner = getattr(owner, part)


def test_every_make_target_that_a_document_names_exists_and_the_reverse() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    # As code: in running text one can make other things, too.
    as_code = re.compile(r"(?:`|^)make ([a-z]+)\b", re.MULTILINE)
    named = {target for document in DOCUMENTS for target in as_code.findall(document.read_text("utf-8"))}
    assert named <= targets
    helped = set(re.findall(r"make ([a-z]+) ", (ROOT / "Makefile").read_text("utf-8")))
    assert targets - {"help"} <= helped


def test_the_readme_fits_on_two_screens_and_shows_one_picture() -> None:
    assert len(README.splitlines()) <= 90
    assert len(re.findall(r"!\[", README)) == 1


def test_every_document_is_one_step_from_the_readme_or_its_index() -> None:
    linked = {(ROOT / link).resolve() for link in re.findall(r"\]\(([^)#\s]+)", README)}
    index = DOCS / "README.md"
    linked |= {(DOCS / link).resolve() for link in re.findall(r"\]\(([^)#\s]+)", index.read_text("utf-8"))}
    assert set(DOCUMENTS) - {ROOT / "README.md", index} <= linked


def test_every_download_stands_in_the_pages_document() -> None:
    told = _rows(_ALL_PAGES, "button")
    assert set(EXPORTS) <= {label.strip("*") for label in told}


def test_every_picture_stands_in_the_gallery_and_no_document_names_another() -> None:
    assert set(re.findall(r"^## (\w+)$", (DOCS / "gallery.md").read_text("utf-8"), re.MULTILINE)) == set(VIEWS)
    named = {name for document in DOCUMENTS for name in re.findall(r"av\.views\.(\w+)\(", document.read_text("utf-8"))}
    assert named <= {*VIEWS, "save", "heatmap_svg"}


def test_the_rooms_in_contributing_are_those_of_the_package_from_the_roof_to_the_ground() -> None:
    rows = re.findall(
        r"^\| `attention_viz/(\w+)(?:/|\.py)` \|", (ROOT / "CONTRIBUTING.md").read_text("utf-8"), re.MULTILINE
    )
    package = ROOT / "attention_viz"
    there = {path.parent.name for path in package.glob("*/__init__.py")} | {"errors"}
    assert rows == [room for room in reversed(ROOMS) if room in there]
    assert set(rows) == there


def test_the_link_in_the_readme_is_the_one_that_the_app_writes() -> None:
    (link,) = re.findall(r"`/\?([^`]+)`", README)
    assert {part.split("=")[0] for part in link.split("&")} == set(write_address(State()))


def test_every_setting_is_told_to_the_operator() -> None:
    told = re.findall(r"^        (\w+):", Settings.__doc__ or "", re.MULTILINE)
    assert told == list(Settings.__dataclass_fields__)


def test_the_operator_is_told_the_headers_that_go_with_each_answer_and_where_to_ask() -> None:
    told = (ROOT / "docs" / "deploying.md").read_text("utf-8")
    for name, value in headers("").items():
        assert f"`{name}: {value}`" in " ".join(told.split())
    assert f"**`{READY}`**" in told


def test_a_proxy_lets_as_much_be_uploaded_as_the_app_does() -> None:
    told = (ROOT / "docs" / "deploying.md").read_text("utf-8")
    configuration = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text("utf-8"))
    most = configuration["server"]["maxUploadSize"]
    assert f"client_max_body_size {most}m;" in told
    assert f"max_size {most}MB" in told
    assert f"**Uploads** of {most} MB at most" in told


def test_the_version_is_in_the_changelog() -> None:
    assert re.search(rf"^## {re.escape(av.__version__)}\b", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)


def test_changes_are_short_entries_of_one_line_under_added_changed_or_fixed() -> None:
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert set(re.findall(r"^### (.+)$", text, re.MULTILINE)) <= {"Added", "Changed", "Fixed"}
    entries = re.findall(r"^ *- (.+)$", text, re.MULTILINE)
    assert entries and not [entry for entry in entries if len(entry.split()) > 25]
    assert not re.search(r"^ *- .+\n +\w", text, re.MULTILINE), "an entry has a second line"


# -- The site in docs/ -------------------------------------------------------------------------------------------------

_FILES = {"explore": ROOT / "app.py", **{page.stem: page for page in (ROOT / "pages").glob("*.py")}}
_ALL_PAGES = (DOCS / "pages" / "README.md").read_text("utf-8")


def _page(name: str) -> str:
    return (DOCS / "pages" / f"{name}.md").read_text("utf-8")


def _modules(name: str) -> frozenset[str]:
    (entry,) = re.findall(r"from attention_viz\.ui\.([\w.]+) import PAGE", _FILES[name].read_text("utf-8"))
    # The runner imports a page's view by name, once its controls are drawn.
    return controls.modules(entry) | controls.modules(f"{entry.rpartition('.')[0]}.view")


def _rows(text: str, heading: str) -> dict[str, str]:
    """The first two columns of the table with that heading."""
    table = re.search(rf"^\| {heading} \|.*\n\|[-|:]+\|\n((?:\|.*\n)+)", text, re.MULTILINE)
    return {} if table is None else dict(re.findall(r"^\| (.+?) \| (.+?) \|", table[1], re.MULTILINE))


def _table(text: str, heading: str) -> dict[str, tuple[str, str]]:
    """The rows of the table with that heading, by their first column."""
    table = re.search(rf"^\| {heading} \|.*\n\|[-|:]+\|\n((?:\|.*\n)+)", text, re.MULTILINE)
    rows = [] if table is None else re.findall(r"^\| (.+?) \| (.+?) \| (.+?) \|$", table[1], re.MULTILINE)
    return {first: (second, third) for first, second, third in rows}


def test_every_page_has_a_document_and_every_document_a_page() -> None:
    assert {path.stem for path in (DOCS / "pages").glob("*.md")} == {*_FILES, "README"}
    menu = {Path(page).stem: label for label, page in (MENU | UNLISTED).items()}
    for name in _FILES:
        address = "/" if name == "explore" else f"/{name}"
        label = menu["app" if name == "explore" else name]
        assert _page(name).startswith(f"# {label} (`{address}`)\n")
        assert f"| [{label}]({name}.md) | `{address}` |" in _ALL_PAGES


@pytest.mark.parametrize("name", _FILES)
def test_every_control_stands_in_its_pages_document(name: str) -> None:
    told = _page(name) + _ALL_PAGES
    missing = [label for label in controls.labels(_modules(name)) if f"*{label}" not in told]
    assert not missing, f"docs/pages/{name}.md doesn't name {missing}"


@pytest.mark.parametrize("name", [*_FILES, "README"])
def test_every_control_in_a_document_is_one_of_its_page(name: str) -> None:
    modules = frozenset.union(*map(_modules, _FILES)) if name == "README" else _modules(name)
    known = {one.casefold() for one in controls.strings(modules)}
    explorer = "".join(path.read_text("utf-8") for path in (ROOT / "attention_viz/explorer/static").rglob("*.js"))
    # The words of a lesson's question, and of the test of learning.
    explorer += "".join((ROOT / f"attention_viz/lesson/{one}.py").read_text("utf-8") for one in ("question", "quiz"))
    for heading in ("control", "button"):
        for cell in _rows(_page(name), heading):
            for label in re.findall(r"\*([^*]+)\*", cell):
                # A form of a file, such as (PNG), is put behind its name.
                named = label.casefold().partition("(")[0] + "("
                whole = {label.casefold(), named} & known or any(label.casefold() == one.strip() for one in known)
                assert whole or f'"{label}"' in explorer, f"docs/pages/{name}.md names a control “{label}”"


def _parameters(name: str) -> list[Parameter]:
    """What a page keeps in the address of its own; of the README, what all pages share."""
    if name == "README":
        return [*parameters(State), *parameters(PresentChoice)]
    groups = importlib.import_module(f"attention_viz.ui.pages.{folder_of(name)}.page").PAGE.groups
    return [one for group in groups for one in parameters(type(group.default))]


# What is allowed where the declaration leaves it to the trace on the screen.
_ALLOWED: dict[tuple[str, str], Collection[str]] = {
    ("steps", "step"): (PIPELINE, *STEPS, *(name for name in MIXER_STEPS if name not in STEPS)),
    ("steps", "scale"): SCALES,
    ("steps", "precision"): ("model", *PRECISIONS),
    ("steps", "notation"): NOTATIONS,
    ("steps", "variant"): VARIANTS,
    ("heads", "detector"): DETECTORS,
}


@pytest.mark.parametrize("name", ["README", *_FILES])
def test_every_parameter_of_an_address_stands_in_its_document_as_it_is_declared_and_no_other(name: str) -> None:
    declared = {f"`{one.name}`": one for one in _parameters(name)}
    rows = _table(_page(name), "parameter")
    assert sorted(rows) == sorted(declared)
    for parameter, (allowed, means) in rows.items():
        one = declared[parameter]
        assert means == one.means, parameter
        assert allowed.startswith(one.kind.documented()), parameter
        if (name, one.name) in _ALLOWED:
            assert re.findall(r"`([^`]+)`", allowed) == list(_ALLOWED[name, one.name]), parameter


def test_every_link_into_the_app_that_a_document_shows_uses_names_that_its_page_has() -> None:
    links = re.compile(r"(?:^|`)/(\w*)\?([^\s`]+)", re.MULTILINE)
    shown = [link for document in DOCUMENTS for link in links.findall(document.read_text("utf-8"))]
    assert len(shown) > 3
    for page, query in shown:
        known = {one.name for name in ("README", page or "explore") for one in _parameters(name)}
        assert {part.partition("=")[0] for part in query.split("&")} <= known, f"/{page}?{query}"


def test_no_name_in_an_address_means_two_things() -> None:
    meanings = dict[str, set[str]]()
    for name in ("README", *_FILES):
        for one in _parameters(name):
            meanings.setdefault(one.name, set()).add(one.means)
    assert not {name: means for name, means in meanings.items() if len(means) > 1}


def test_the_index_links_every_document() -> None:
    linked = set(re.findall(r"\]\(([^)#\s]+)", (DOCS / "README.md").read_text("utf-8")))
    there = {str(path.relative_to(DOCS)) for path in (*DOCS.rglob("*.md"), *DOCS.glob("*.ipynb"))} - {"README.md"}
    assert there <= linked


def test_every_setting_stands_in_the_classroom_document() -> None:
    told = re.findall(
        r"^\| `ATTENTION_VIZ_(\w+)` \| (.+?) \|", (DOCS / "classroom.md").read_text("utf-8"), re.MULTILINE
    )
    assert [name.lower() for name, _ in told] == list(Settings.__dataclass_fields__)
    usual = Settings()
    for name, value in told:
        given = getattr(usual, name.lower())
        if isinstance(given, int) and not isinstance(given, bool):
            assert value.replace(",", "") == str(given), name
