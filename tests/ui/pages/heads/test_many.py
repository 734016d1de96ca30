"""The Heads page shows a scan of many texts beside the sentence, and tests a hypothesis on it."""

import html
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import attention_viz as av
from attention_viz.serving import scans as found
from attention_viz.ui.pages.heads.many import STORIES
from tests.corpus.test_hypotheses import repeated
from tests.corpus.texts import by_lot
from tests.shipped import shipped
from tests.ui.screens import Screen

HERE = "/heads?model=induction&text=moon+ring+moon+ring&layer=1&head=1"


@pytest.fixture(scope="module")
def scans(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two scans of the model, one of another, and what is none."""
    folder = tmp_path_factory.mktemp("scans")
    av.scan(shipped("induction"), repeated(60), folder / "words")
    av.scan(shipped("induction"), by_lot(5), folder / "few")
    av.scan(shipped("lists"), by_lot(5), folder / "other")
    (folder / "letters").mkdir()
    (folder / "letters" / "manifest.json").write_text("dear")
    (folder / "beside").symlink_to(folder / "words")
    return folder


@pytest.fixture(autouse=True)
def _offered(scans: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(found, "SETTINGS", replace(found.SETTINGS, scans=(scans, scans / "nowhere")))
    yield


def test_scans_of_other_weights_and_what_is_none_are_not_offered(scans: Path) -> None:
    assert list(found.offered(shipped("induction").origin.sha256)) == ["few", "words"]
    assert found.offered(None) == found.offered("0" * 64) == {}


def test_a_head_is_told_over_the_texts_beside_the_sentence(scans: Path) -> None:
    screen = Screen().open(f"{HERE}&scan=words")
    row = av.Scan.load(scans / "words").roles.loc[(1, 1)]
    could, holds = row["role induction_texts"], row["role induction_holds"]
    often = f"{holds / could:.0%} of the {could} texts where it can be measured"
    over = f"Over 60 texts of texts, this head’s role is “Induction” (share {row['score']:.2f})"
    here = shipped("induction").trace("moon ring moon ring")
    share = av.roles(here).loc[(1, 1), "score"]
    assert f"{over}, which holds in {often}." in screen.words
    assert f"In this sentence its role is the same ({share:.2f}), as in {often}." in screen.words
    assert screen.address["scan"] == "words"


def test_its_examples_mark_the_query_and_the_key_and_open_as_the_sentence(scans: Path) -> None:
    screen = Screen().open(f"{HERE}&scan=words")
    part, examples = screen.part("scan-examples"), av.Scan.load(scans / "words").examples(1, 1, "induction")
    best = examples.iloc[0]
    tokens = shipped("induction").tokens_of(best["said"]).written
    first = part[part.index("<li>") : part.index("</li>")]
    shown = re.findall(r"<span( class=[^>]*)?>([^<]*)</span>", first)
    assert [html.unescape(text) for _, text in shown[: len(tokens)]] == list(tokens)
    marked = {at: mark for at, (mark, _) in enumerate(shown[: len(tokens)]) if mark}
    assert marked == {best["query"]: ' class="heads-query"', best["key"]: ' class="heads-key"'}
    assert "<s>" not in part and "&lt;s&gt;" in part
    link = html.unescape(re.findall(r'href="([^"]*)"', first)[0])
    opened = Screen().open(f"/heads{link}")
    assert opened.address["text"] == best["said"] and opened.address["scan"] == "words"
    assert (opened.address["query"], opened.address["key"]) == (f"{best['query']}", f"{best['key']}")


def test_a_scan_that_is_not_there_is_told_and_another_chosen() -> None:
    screen = Screen().open(f"{HERE}&scan=..%2Fwords")
    assert "This model has no scan “../words”; choose few, words." in screen.words
    assert "Over 5 texts" in screen.words
    assert "Over 60 texts" in screen.pick("Scan", "words").words
    assert screen.address["scan"] == "words"
    screen = Screen().open("/heads?model=coreference&scan=words")
    assert "This model has no scan “words”; this machine has no scan of it." in screen.words


def test_a_hypothesis_is_tested_on_the_page() -> None:
    screen = Screen().open(f"{HERE}&scan=words").press("induction")
    assert screen.address["story"] == STORIES["induction"]
    assert "Head 1·1 does this" in screen.press("Test hypothesis").words
    again = Screen().open(
        f"{HERE}&scan=words&story=query.text+%3D%3D+key.previous.text+and+key.position+%3C+query.position"
    )
    assert "Head 1·1 does this" in again.words
    wrong = Screen().open(f"{HERE}&scan=words&story=query.text+%3D%3D+key.nose")
    (said,) = [one.value for one in wrong.all("code") if not one.value.startswith("/?")]
    assert said.startswith("found “nose”") and "at character 19 of “query.text == key.▸nose”" in said
