"""The first HTML says what a URL shows, for people and messengers that haven't run it."""

import re
from html import unescape
from urllib.parse import quote

import pytest

from attention_viz.ui.address.titles import label
from attention_viz.ui.front.sharing import head_of
from attention_viz.ui.parts.menu import PAGES, UNLISTED
from tests.conftest import Server
from tests.ui.front.test_server import get


def told(head: str) -> dict[str, str]:
    found = re.findall(r'<meta (?:name|property)="([^"]+)" content="([^"]*)"', head)
    title = re.search("<title>(.*?)</title>", head)
    assert title is not None
    return {"title": unescape(title[1]), **{name: unescape(content) for name, content in found}}


def test_every_page_has_its_label_by_its_name_in_the_url() -> None:
    names = {"" if page == "app.py" else page[6:-3]: called for called, page in (PAGES | UNLISTED).items()}
    assert {name: label(name) for name in names} == names


@pytest.mark.parametrize("path", ["/", "/heads", "/why?x=1", "/learn"])
def test_the_first_html_names_the_text_and_the_page(app_server: Server, path: str) -> None:
    text = 'Ünïcode <b>"and"</b> markup & more'
    address = f"{path}{'&' if '?' in path else '?'}text={quote(text)}&model=SmolLM2-135M-Instruct"
    status, headers, content = get(app_server, address)
    page = content.decode()
    found = told(page)
    assert status == 200 and int(headers["Content-Length"]) == len(content)
    assert found["title"] == found["og:title"] == f"{text} · {label(path.strip('/').partition('?')[0])} · attention_viz"
    assert text in found["description"] and found["description"] == found["og:description"]
    assert "<b>" not in page and "Streamlit</title>" not in page
    assert '<div id="root">' in page  # the page itself is whole


def test_scripts_and_answers_of_the_server_stay_as_they_are(app_server: Server) -> None:
    script = re.search(r'src="\./(static/js/index[^"]+)"', get(app_server, "/")[2].decode())
    assert script is not None
    for path in (f"/{script[1]}", "/_stcore/health"):
        assert b'property="og:title"' not in get(app_server, path)[2]


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        (b"", "The bank of the river was flooded"),
        (b"model=dinov2-small", "a cat"),
        (b"model=whisper-tiny.en", "She opened"),
        (b"model=%2Fetc%2Fpasswd&text=%FF%00%E2%80%AE", "\ufffd"),
        (b"text=" + b"long%20" * 3_000, "long long"),
        (b"text=" + b"a" * 1_000_000, "aaa"),
        (b"text=%0A%0D", "no text"),
        (b"&&=&text", "The bank"),
    ],
)
def test_whatever_a_url_says_makes_one_short_line(query: bytes, shown: str) -> None:
    found = told(head_of("/steps", query).decode())
    assert shown in found["title"] and len(found["title"]) < 130
    assert not re.search("[\x00-\x1f\u202e]", "".join(found.values()))


@pytest.mark.parametrize(
    ("model", "unit"), [("whisper-tiny.en", "frame"), ("dinov2-small", "patch"), ("shapes", "token")]
)
def test_a_description_names_what_attends(model: str, unit: str) -> None:
    assert f"each {unit} of" in told(head_of("/", f"model={model}".encode()).decode())["description"]
