"""Files that a page hands out, as a person takes them away, and what a file holds."""

import io
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pandas
import pytest
from playwright.sync_api import expect
from streamlit.delta_generator import DeltaGenerator

import attention_viz as av
from attention_viz.errors import AttentionVizError
from attention_viz.scratch.model import Scratch
from attention_viz.trace.files.arrow import parquet_bytes
from attention_viz.ui.parts import exports
from attention_viz.ui.parts.exports import csv_bytes, model_part
from attention_viz.ui.parts.markdown import plain
from attention_viz.views.export import browsers
from tests.conftest import OpenPage
from tests.pages import open_menu

MOON = "moon cheese frog ring moon cheese"


def test_a_table_is_taken_away_with_what_names_its_rows_and_nothing_to_run() -> None:
    table = pandas.DataFrame(
        {"word": ["=1+1", "plain"], "share": [1 / 3, float("nan")]},
        index=pandas.MultiIndex.from_tuples([(0, 1), (2, 3)], names=["layer", "head"]),
    )
    text = csv_bytes(table)
    assert text.startswith(b"\xef\xbb\xbflayer,head,word,share\n")
    back = pandas.read_csv(io.BytesIO(text))
    assert list(back["word"]) == ["'=1+1", "plain"]
    assert back["share"].tolist()[0] == pytest.approx(1 / 3, rel=1e-8)
    assert back["share"].isna().tolist() == [False, True]
    pandas.testing.assert_frame_equal(pandas.read_parquet(io.BytesIO(parquet_bytes(table))), table.reset_index())


def test_a_model_s_name_is_fit_for_a_file() -> None:
    trace = Scratch().trace("a b")
    assert model_part(trace) == "scratch"


def test_a_refusal_is_told_in_its_place_and_still_ends_the_download(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(DeltaGenerator, "warning", lambda _, words: told.append(words))

    def refuse() -> bytes:
        raise AttentionVizError("a PNG couldn't be drawn: *others*")

    with pytest.raises(AttentionVizError):
        exports._telling(refuse, DeltaGenerator())()
    assert told == [plain("A PNG couldn't be drawn: *others*.")]
    assert exports._telling(lambda: b"drawn", DeltaGenerator())() == b"drawn"


def test_more_formats_hold_the_head_on_the_screen_and_its_link(open_page: OpenPage, tmp_path: Path) -> None:
    page = open_page(f"/?model=induction&text={MOON.replace(' ', '+')}&layer=1&head=1")
    expect(open_menu(page, "Export").get_by_role("button", name="Picture (SVG)")).to_be_visible()
    link = page.get_by_test_id("stCode").inner_text().strip()
    # A link to hand out is in sight, below all files.
    expect(page.get_by_test_id("stCode")).to_be_in_viewport(ratio=1)
    assert urlsplit(link)[:3] == urlsplit(page.url)[:3]
    expect(page.get_by_text("This link works on this machine only")).to_be_visible()
    assert parse_qs(urlsplit(link).query) == parse_qs(urlsplit(page.url).query)
    with page.expect_download() as download:
        page.get_by_role("button", name="Weights (parquet)").click()
    assert download.value.suggested_filename == "attention_induction_layer1_head1.parquet"
    taken, own = tmp_path / "w.parquet", av.load("induction").trace(MOON).table(1, 1)
    download.value.save_as(taken)
    pandas.testing.assert_frame_equal(pandas.read_parquet(taken), own, rtol=1e-4, atol=1e-6)
    png, pdf = b"\x89PNG\r\n\x1a\n", b"%PDF-"
    for name, start in (("Picture (PNG)", png), ("Picture (PDF)", pdf), ("All heads (PDF)", pdf)):
        button = page.get_by_role("button", name=name)
        if browsers.at_hand() is None:  # Playwright's own browser is none that the app would look for
            expect(button).to_have_count(0)
            expect(page.get_by_text("need Chrome, Chromium or Edge on the machine that runs this app")).to_be_visible()
            continue
        with page.expect_download(timeout=180_000) as download:
            button.click()
        assert download.value.path().read_bytes().startswith(start)
