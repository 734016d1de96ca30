"""A site shows what the scan says, escapes what texts bring, and opens from a file without a network."""

import base64
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy
import pandas
import pytest
from playwright.sync_api import Page, expect

import attention_viz as av
from attention_viz.corpus.site import writing
from attention_viz.corpus.tables import records_of
from attention_viz.corpus.tally import lots
from tests.corpus.texts import TRANSLATED, by_lot
from tests.pages import OpenPage
from tests.shipped import shipped
from tests.ui.test_accessibility import AXE, OF_COLOURS, RUN


@pytest.fixture(scope="module")
def scanned(tmp_path_factory: pytest.TempPathFactory) -> av.Scan:
    return av.scan(shipped("induction"), by_lot(50), tmp_path_factory.mktemp("scan"))


@pytest.fixture(scope="module")
def studied(tmp_path_factory: pytest.TempPathFactory) -> av.Scan:
    return av.scan(shipped("induction"), by_lot(50), tmp_path_factory.mktemp("studied")).study(5)


def flattened(path: Path) -> str:
    """A page without the line ends between its elements."""
    return re.sub(r">\n+<", "><", path.read_text("utf-8"))


def test_what_a_scan_does_not_know_has_no_number_and_no_row(scanned: av.Scan, tmp_path: Path) -> None:
    """What only pictures have, or of a scan that was made before a metric was known."""
    heads = scanned._tables["heads"]
    assert scanned.table["above"].isna().all() and not [name for name in heads if name.startswith("above")]
    old = {**scanned._tables, "heads": heads[[name for name in heads if not name.startswith("variance")]]}
    earlier = replace(scanned, _tables=old)
    assert list(earlier.table) == list(scanned.table)
    assert earlier.table["variance"].isna().all() and (earlier.table["variance_n"] == 0).all()
    earlier.site(tmp_path)
    html = (tmp_path / "head-decoder-1-1.html").read_text("utf-8")
    row = '<th scope="row">Variance</th>'
    assert row not in html and "Patch above" not in html
    assert row in scanned.site(tmp_path / "now").with_name("head-decoder-1-1.html").read_text("utf-8")


def test_every_head_has_its_page_with_the_weights_of_its_examples(scanned: av.Scan, tmp_path: Path) -> None:
    first = scanned.site(tmp_path)
    index = first.read_text("utf-8")
    pages = set(re.findall(r'href="(head-[^"]+)"', index))
    assert pages == {f"head-decoder-{layer}-{head}.html" for layer in (0, 1) for head in range(4)}
    html = (tmp_path / "head-decoder-1-1.html").read_text("utf-8")
    told = scanned.roles.loc[(1, 1)]
    often = f"in {told['role induction_holds']} of {told['role induction_texts']} texts that can show it"
    assert f'Head 1·1: Induction <span class="w">{often}</span>' in html
    assert f"{told['role induction_holds']} holds</span>" in html
    best = scanned.examples(1, 1, "induction").iloc[0]
    trace = shipped("induction").trace(best["said"])
    row = trace.weights(1, 1)[int(best["query"])]
    shown = re.findall(r"title=([\d.]+)>([^<]*)</i>", html)[: len(row)]
    assert [float(weight) for weight, _ in shown] == pytest.approx(row.tolist(), abs=1e-4)
    assert [token for _, token in shown[1:]] == list(trace.query_tokens().numbered[1:])
    assert shown[0][1] == "&lt;s&gt;"
    given = pandas.read_csv(tmp_path / "tables" / "heads.csv", encoding="utf-8")
    assert given["induction"].to_numpy() == pytest.approx(scanned.heads["induction"].to_numpy())
    assert set(re.findall(r'href="(tables/[^"]+)"', index)) == {
        f"tables/{path.name}" for path in (tmp_path / "tables").iterdir()
    }
    everything = "".join(path.read_text("utf-8") for path in tmp_path.rglob("*.*") if path.name != "explorer.js")
    assert not re.search(r"https?://", everything)


def test_cross_attention_names_the_word_that_asks(tmp_path: Path) -> None:
    found = av.scan(shipped("translation"), TRANSLATED, tmp_path / "scan")
    found.site(tmp_path / "site")
    html = (tmp_path / "site" / "head-cross-0-0.html").read_text("utf-8")
    assert re.search(r'<b class="query">[^<]+</b>: <i', html)


def test_a_site_that_can_not_be_written_is_refused(
    scanned: av.Scan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_path: Path, _content: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writing, "write_whole", full)
    with pytest.raises(av.ScanError, match=r"can't write the site to .*: No space left"):
        scanned.site(tmp_path)


def assert_open_to_all(page: Page) -> None:
    """Nothing that axe finds grave, in the dark and in light, and nothing that sticks out, narrow and wide."""
    page.evaluate(AXE)
    # Style sheets are not fetched once more: a page from a file may not.
    for dark in (True, False):
        rules, theme = [] if dark else OF_COLOURS, "dark" if dark else "light"
        page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        # The explorer follows a moment later; without motion no colour is on its way.
        expect(page.locator(f'[data-testid="explorer"]:not([data-theme="{theme}"])')).to_have_count(0)
        found = page.evaluate(RUN.replace("axe.run(document, {", "axe.run(document, {preload: false,"), rules)
        grave = [one for one in found if one["impact"] in ("serious", "critical")]
        assert not grave, [(one["id"], node["html"][:200]) for one in grave for node in one["nodes"]]
    for width in (390, 1360):
        page.set_viewport_size({"width": width, "height": 844})
        # The explorer is drawn anew for another width, a moment later.
        expect(page.locator("html")).to_have_js_property("scrollWidth", width)


def test_a_site_opens_from_a_file_is_searched_and_shuts_nobody_out(
    studied: av.Scan, open_page: OpenPage, tmp_path: Path
) -> None:
    first = studied.site(tmp_path)
    page = open_page(first.as_uri(), dark=True, width=390, height=844)
    assert_open_to_all(page)
    page.get_by_label("Search heads, roles and examples").fill("induction")
    found = page.locator("#found a")
    expect(found).to_have_count(int((studied.roles["role"] == "induction").to_numpy().sum()))
    found.filter(has_text="Head 1·1").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Head 1·1: Induction")
    assert_open_to_all(page)
    small = page.locator("#atlas a")
    expect(small).to_have_count(8)
    small.nth(2).focus()
    expect(page.locator("#atlas")).to_contain_text("Head 0·2 · ")
    # Of a head with a strongest example by the metric of its role.
    page.get_by_role("link", name="In the explorer").first.click()
    expect(page.get_by_test_id("explorer")).to_be_visible()
    expect(page.get_by_role("heading", level=1)).to_have_text(
        "An example of head 1·1, with the other heads of its layer"
    )
    cell = page.get_by_role("gridcell", name="Layer 1 head 1")
    expect(cell).to_have_attribute("aria-selected", "true")
    assert_open_to_all(page)
    page.get_by_role("link", name="Back to the head").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Head 1·1: Induction")


def test_the_strongest_examples_come_as_the_explorer_draws_them(scanned: av.Scan, tmp_path: Path) -> None:
    scanned.site(tmp_path)
    html = (tmp_path / "head-decoder-1-1.html").read_text("utf-8")
    links = re.findall(r'href="explorer\.html#head-decoder-1-1/(\d)"', html)
    packed = json.loads(
        (tmp_path / "explored" / "head-decoder-1-1.js").read_text("utf-8").split(" = ")[1].rstrip(";\n")
    )
    assert links == ["0", "1"][: len(packed)] and packed
    content = base64.b64decode(packed[0])
    header = json.loads(content[4 : 4 + int.from_bytes(content[:4], "little")])
    assert header["choice"] == {"stream": "decoder", "layer": 1, "head": 1}
    (pair,) = header["findings"]
    shown = scanned.examples(1, 1, "induction")
    first = shown[(shown["kind"] == "strongest") & (shown["rank"] == 1)].iloc[0]
    assert (pair["query"], pair["key"]) == (first["query"], first["key"])
    assert abs(pair["strength"] - first["weight"]) <= 1e-5


def test_a_site_says_what_a_study_found(studied: av.Scan, tmp_path: Path) -> None:
    index = flattened(studied.site(tmp_path))
    row = studied.silenced.iloc[0]
    layer, head = studied.silenced.index[0]
    moved = f"{'rises' if row['change'] >= 0 else 'falls'} by {abs(row['change']):.3f} ± {row['change_error']:.3f}"
    role = av.ROLES[studied.roles.loc[(layer, head), "role"]].label
    first = f'<li><a href="head-decoder-{layer}-{head}.html">Head {layer}·{head}</a> <span class="m">{role}</span>'
    assert f"{first} Without it, over 5 texts, the loss {moved} nats per token" in index
    pair = min(records_of(studied.alike.reset_index()), key=lambda one: one["apart"])
    assert f"{pair['apart']:.2f} apart</li>" in index.partition("Most similar heads</h2>")[2][:400]
    html = flattened(tmp_path / "head-decoder-1-1.html")
    near = studied.alike.loc[(1, 1)].iloc[0]
    link = f"head-decoder-{near['other_layer']:.0f}-{near['other_head']:.0f}.html"
    assert f'Most similar heads</h2><ol class="bars"><li><a href="{link}">' in html
    kept = [studied.texts["said"].iloc[at] for at in numpy.argsort(lots(studied.texts["text"].tolist()))[:2]]
    counted = [token for text in kept for token in shipped("induction").tokens_of(text).written[1:]]
    assert re.findall(r"<title>query ([^<]*)</title>", html) == counted
    words = next(one for one in studied.studied("written") if (one["layer"], one["head"]) == (1, 1))["words"]
    assert f'promotes: <span class="mono">{words}</span>' in html
