"""What follows from the registries is written, and would be written again as it stands."""

from pathlib import Path

import pytest

from scripts.registries import ROOT, written

WRITTEN = written()


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_it_stands_as_the_registries_have_it(path: Path) -> None:
    assert path.read_text("utf-8") == WRITTEN[path], "run .venv/bin/python -m scripts.registries"


def test_every_page_of_the_folder_is_one_of_the_menu() -> None:
    assert {path for path in WRITTEN if path.parent == ROOT / "pages"} == set((ROOT / "pages").glob("*.py"))


def test_rows_that_are_gone_or_changed_are_replaced_and_other_words_stay(tmp_path: Path) -> None:
    for path in WRITTEN:
        copy = tmp_path / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(path.read_text("utf-8"), encoding="utf-8")
    for page in (ROOT / "docs" / "pages").glob("*.md"):
        (tmp_path / "docs" / "pages" / page.name).write_text(page.read_text("utf-8"), encoding="utf-8")
    document = tmp_path / "docs" / "metrics.md"
    whole = document.read_text("utf-8")
    document.write_text(whole.replace("| `entropy` |", "| `chance` |").replace("| nats |", "| bits |"), "utf-8")
    assert written(tmp_path)[document] == whole
