"""A site shows what the scan says, escapes what texts bring, and opens from a file without a network."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import expect

import attention_viz as av
from attention_viz.corpus.site import writing
from tests.corpus.texts import TRANSLATED, by_lot
from tests.pages import OpenPage
from tests.shipped import shipped


@pytest.fixture(scope="module")
def scanned(tmp_path_factory: pytest.TempPathFactory) -> av.Scan:
    return av.scan(shipped("induction"), by_lot(50), tmp_path_factory.mktemp("scan"))


def test_a_scan_made_before_a_metric_was_known_has_no_number_of_it(scanned: av.Scan, tmp_path: Path) -> None:
    heads = scanned._tables["heads"]
    old = {**scanned._tables, "heads": heads[[name for name in heads if not name.startswith("above")]]}
    earlier = replace(scanned, _tables=old)
    assert list(earlier.table) == list(scanned.table)
    assert earlier.table["above"].isna().all() and (earlier.table["above_n"] == 0).all()
    earlier.site(tmp_path)
    assert "Patch above</" not in (tmp_path / "head-decoder-1-1.html").read_text("utf-8")
    assert "Patch above</" in scanned.site(tmp_path / "now").with_name("head-decoder-1-1.html").read_text("utf-8")


def test_every_head_has_its_page_with_the_weights_of_its_examples(scanned: av.Scan, tmp_path: Path) -> None:
    first = scanned.site(tmp_path)
    index = first.read_text("utf-8")
    pages = set(re.findall(r'href="(head-[^"]+)"', index))
    assert pages == {f"head-decoder-{layer}-{head}.html" for layer in (0, 1) for head in range(4)}
    page = (tmp_path / "head-decoder-1-1.html").read_text("utf-8")
    told = scanned.roles.loc[(1, 1)]
    holds = f"{told['role induction_holds']} of {told['role induction_texts']} texts"
    assert f"Head 1·1: Induction. It holds in {holds} that can show it." in page
    best = scanned.examples(1, 1, "induction").iloc[0]
    trace = shipped("induction").trace(best["said"])
    row = trace.weights(1, 1)[int(best["query"])]
    shown = re.findall(r'title="([\d.]+)">([^<]*)</span>', page)[: len(row)]
    assert [float(weight) for weight, _ in shown] == pytest.approx(row.tolist(), abs=1e-4)
    assert [token for _, token in shown[1:]] == list(trace.query_tokens().written[1:])
    assert shown[0][1] == "&lt;s&gt;"
    everything = "".join(path.read_text("utf-8") for path in tmp_path.iterdir())
    assert not re.search(r"https?://", everything)


def test_cross_attention_names_the_word_that_asks(tmp_path: Path) -> None:
    found = av.scan(shipped("translation"), TRANSLATED, tmp_path / "scan")
    found.site(tmp_path / "site")
    page = (tmp_path / "site" / "head-cross-0-0.html").read_text("utf-8")
    assert re.search(r'<b class="query">[^<]+</b> asks: <span', page)


def test_a_site_that_can_not_be_written_is_refused(
    scanned: av.Scan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_path: Path, _content: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writing, "write_whole", full)
    with pytest.raises(av.ScanError, match=r"can't be written to .*: No space left"):
        scanned.site(tmp_path)


def test_a_site_opens_from_a_file_is_searched_and_fits_a_phone(
    scanned: av.Scan, page: OpenPage, tmp_path: Path
) -> None:
    first = scanned.site(tmp_path)
    screen = page(first.as_uri(), dark=True, width=390, height=844)
    screen.get_by_label("Search heads, roles and examples").fill("induction")
    found = screen.locator("#found a")
    expect(found).to_have_count(int((scanned.roles["role"] == "induction").sum()))
    found.filter(has_text="Head 1·1").click()
    expect(screen.get_by_role("heading", level=1)).to_contain_text("Head 1·1: Induction.")
    assert screen.evaluate("document.documentElement.scrollWidth") <= 390
