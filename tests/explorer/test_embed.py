"""One script in somebody's page: its own colours and keys, unmoved by the page's style, several beside each other."""

import functools
import threading
from collections.abc import Callable, Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

import attention_viz as av
from attention_viz.cli import main
from attention_viz.explorer import explore
from tests.explorer.conftest import self_attention
from tests.ui.test_accessibility import assert_open_to_all

AXE = Path(__import__("axe_playwright_python").__file__).with_name("axe.min.js").read_text("utf-8")
# What a blog may say of everything in it.
STYLE = """* { letter-spacing: 4px !important; border: 3px solid red !important; }
div, section { display: none; font-size: 40px; text-transform: uppercase; }
button, table, td { padding: 30px !important; }
body { background: %s; color: %s; margin: 0 16px; }"""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Stay quiet."""


@pytest.fixture
def blog(open_page: Callable[..., Page], tmp_path: Path) -> Iterator[Callable[..., Page]]:
    """Opens a page of a blog with these explorers from a server."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(tmp_path)))
    threading.Thread(target=server.serve_forever, daemon=True).start()

    def go(*traces: av.Trace, style: str = "", width: int = 1360) -> Page:
        for number, trace in enumerate(traces):
            explore(trace).save_embed(tmp_path / f"{number}.js")
        scripts = "".join(f'<p>Text {one}</p><script src="{one}.js"></script>' for one in range(len(traces)))
        head = (
            '<!doctype html><html lang="en"><meta charset="utf-8"><title>A blog</title><link rel="icon" href="data:,">'
        )
        view = '<meta name="viewport" content="width=device-width">'
        page = f"{head}{view}<style>{style}</style><body><main><h1>A blog</h1>{scripts}</main>"
        (tmp_path / "index.html").write_text(page, "utf-8")
        opened = open_page(f"http://127.0.0.1:{server.server_port}/", width=width)
        for one in range(len(traces)):
            opened.get_by_test_id("explorer-bars").nth(one).locator("li").first.wait_for()
        return opened

    yield go
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("width", [1360, 390])
@pytest.mark.parametrize(("dark", "colours"), [(False, ("#fff", "#222")), (True, ("#111", "#eee"))])
def test_it_takes_the_blogs_light_and_nothing_of_its_style(
    blog: Callable[..., Page], width: int, dark: bool, colours: tuple[str, str]
) -> None:
    page = blog(self_attention(6), style=STYLE % colours, width=width)
    root = page.get_by_test_id("explorer")
    expect(root).to_have_attribute("data-theme", "dark" if dark else "light")
    seen = root.evaluate("""root => {
        const button = root.querySelector("button");
        const [own, word] = [getComputedStyle(root), getComputedStyle(button)];
        return [own.letterSpacing, own.textTransform, own.borderTopStyle, word.paddingTop === "30px"];
    }""")
    assert seen == ["normal", "none", "none", False]
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.evaluate(AXE)
    page.add_style_tag(content="* { border: none !important; letter-spacing: 0 !important; }")
    assert_open_to_all(page)


def test_two_on_a_page_are_chosen_apart_and_by_keyboard_without_the_pages_shortcuts(blog: Callable[..., Page]) -> None:
    page = blog(self_attention(5), self_attention(7))
    page.evaluate("() => { window.keys = []; addEventListener('keydown', ({key}) => keys.push(key)); }")
    first, second = (page.get_by_test_id("explorer").nth(one) for one in (0, 1))
    first.get_by_role("gridcell", name="Layer 0 head 0", exact=True).focus()
    for key in ("ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    expect(first.get_by_test_id("explorer-readout")).to_have_text("Head 1·1")
    expect(second.get_by_test_id("explorer-readout")).to_have_text("Head 0·0")
    assert page.evaluate("keys") == []
    assert page.evaluate("Object.keys(window).filter((name) => /explorer|embed/i.test(name))") == []


def test_it_follows_the_blogs_switch_to_the_dark(blog: Callable[..., Page]) -> None:
    page = blog(self_attention(5), style="html.dark { background: #111; color: #eee; }")
    root = page.get_by_test_id("explorer")
    expect(root).to_have_attribute("data-theme", "light")
    page.evaluate("document.documentElement.className = 'dark'")
    expect(root).to_have_attribute("data-theme", "dark")


def test_a_page_from_the_disk_shows_it_too(open_page: Callable[..., Page], tmp_path: Path) -> None:
    explore(self_attention(5)).save_embed(tmp_path / "bank.js")
    (tmp_path / "blog.html").write_text('<!doctype html><body><script src="bank.js"></script>', "utf-8")
    page = open_page((tmp_path / "blog.html").as_uri())
    expect(page.get_by_test_id("explorer-readout")).to_have_text("Head 0·0")


def test_a_sentence_takes_no_more_than_300_kilobytes_and_the_command_writes_it(tmp_path: Path) -> None:
    path = tmp_path / "bank.js"
    words = ["trace", "The bank of the river was flooded", "--model", "all-MiniLM-L6-v2", "--out", str(path)]
    assert main(words) == 0
    assert 50_000 < path.stat().st_size <= 300_000
    assert path.read_text("ascii").count("</") == 0


def test_a_text_in_it_is_never_the_end_of_a_script() -> None:
    q = self_attention(5)
    typed = "</script><script>alert(1)</script>\u2028"
    made = av.Trace(q.layers, q.queries, q.keys, q.output, av.Provenance("m", typed), q.fidelity)
    text = explore(made).embed()
    assert "</script" not in text and text.isascii()
