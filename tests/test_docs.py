"""What the documents name exists, and what exists is named: in both directions."""

import re
from pathlib import Path

import pytest

import attention_viz as av
from attention_viz.metrics import METRICS
from attention_viz.models import CATALOGUE
from attention_viz.ui.downloads import BUTTONS
from attention_viz.ui.settings import Settings
from attention_viz.ui.state import State, write_address
from attention_viz.views import VIEWS

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
README = (ROOT / "README.md").read_text("utf-8")


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
    named = {
        target for document in DOCUMENTS for target in re.findall(r"`?make ([a-z]+)\b", document.read_text("utf-8"))
    }
    assert named <= targets | {"sure"}
    helped = set(re.findall(r"make ([a-z]+) ", (ROOT / "Makefile").read_text("utf-8")))
    assert targets - {"help"} <= helped


def test_the_readme_names_every_page_model_and_download() -> None:
    pages = ["/", *(f"/{page.stem}" for page in sorted((ROOT / "pages").glob("*.py")))]
    assert sorted(re.findall(r"\(`(/[a-z]*)`\)", README)) == sorted(pages)
    for name in (*CATALOGUE, *BUTTONS):
        assert name in README, f"the README doesn't name {name}"


def test_the_readme_names_every_picture_and_no_other() -> None:
    assert set(re.findall(r"av\.views\.(\w+)", README)) == set(VIEWS)


def test_the_link_in_the_readme_is_the_one_that_the_app_writes() -> None:
    (link,) = re.findall(r"`/\?([^`]+)`", README)
    assert {part.split("=")[0] for part in link.split("&")} == set(write_address(State()))


def test_every_setting_is_told_to_the_operator() -> None:
    told = re.findall(r"^        (\w+):", Settings.__doc__ or "", re.MULTILINE)
    assert told == list(Settings.__dataclass_fields__)


def test_the_version_is_in_the_changelog() -> None:
    assert re.search(rf"^## {re.escape(av.__version__)}\b", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)


def test_every_metric_stands_in_its_document_as_it_is_in_the_code_and_no_other() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \| (.+) \| \$(.+)\$ \| (.+) \| (.+) \|$", (ROOT / "docs/metrics.md").read_text("utf-8"), re.M
    )
    formulas = {name: metric.formula.replace("|i-j|", r"\lvert i-j\rvert") for name, metric in METRICS.items()}
    assert rows == [(name, one.meaning, formulas[name], one.unit, one.source) for name, one in METRICS.items()]
