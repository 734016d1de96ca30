"""What a chat or a blog reads of a link to a saved page: a title at once, and oEmbed if the page has an address."""

import html
import json
import re
from pathlib import Path

import pytest

import attention_viz as av
from attention_viz.explorer import explore
from tests.explorer.conftest import self_attention

URL = "https://example.org/x/bank.html"
TYPED = '"><script>alert(1)</script>&'


def named(text: str) -> av.Explorer:
    made = self_attention(5)
    return explore(av.Trace(made.layers, made.queries, made.keys, made.output, av.Provenance("m", text), made.fidelity))


def tags(page: str) -> dict[str, str]:
    found = re.findall(r'<meta property="(og:\w+)" content="([^"]*)">', page)
    return {name: html.unescape(value) for name, value in found}


def test_a_page_without_an_address_has_a_title_and_names_no_host() -> None:
    page = named(TYPED).html()
    assert tags(page)["og:title"] == f"{TYPED} · m"
    assert tags(page).keys() == {"og:type", "og:title", "og:description"}
    assert "https://" not in page and "<script>alert" not in page


def test_a_page_with_an_address_names_the_answer_beside_it(tmp_path: Path) -> None:
    named(TYPED).save_html(tmp_path / "bank.html", url=URL)
    page = (tmp_path / "bank.html").read_text("utf-8")
    assert tags(page)["og:url"] == URL
    assert f'<link rel="canonical" href="{URL}">' in page
    assert 'type="application/json+oembed" href="https://example.org/x/bank.json"' in page
    answer = json.loads((tmp_path / "bank.json").read_text("utf-8"))
    assert (answer["version"], answer["type"], answer["title"]) == ("1.0", "rich", f"{TYPED} · m")
    assert {type(answer[name]) for name in ("width", "height")} == {int}
    frame = re.fullmatch(
        r'<iframe src="([^"]*)" title="([^"]*)" sandbox="allow-scripts" [^<>]*></iframe>', answer["html"]
    )
    assert frame
    assert (frame[1], html.unescape(frame[2])) == (URL, f"{TYPED} · m")


def test_without_an_address_no_second_file_is_written(tmp_path: Path) -> None:
    named("a").save_html(tmp_path / "bank.html")
    assert [path.name for path in tmp_path.iterdir()] == ["bank.html"]


@pytest.mark.parametrize("url", ["javascript:alert(1)//a.html", "bank.html", "https://example.org/bank", "//x/a.html"])
def test_an_address_that_is_none_is_refused_and_nothing_written(url: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"begins with https:// and ends with \.html"):
        named("a").save_html(tmp_path / "bank.html", url=url)
    with pytest.raises(ValueError, match=r"an \.html file; got 'bank'"):
        named("a").save_html(tmp_path / "bank", url=URL)
    assert not list(tmp_path.iterdir())
