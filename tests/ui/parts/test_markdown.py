"""Text of a person's where Streamlit reads Markdown: nothing of it becomes a link, an icon or an emoji."""

from urllib.parse import quote

from tests.conftest import OpenPage

HOSTILE = "http://evil.test/b www.evil.test me@evil.test :material/delete: :smile: **a** [b](c) $x$ :red[d]"


def test_what_an_address_holds_stands_as_it_was_typed_in_what_a_page_says(stay: OpenPage) -> None:
    page = stay(f"/heads?model=induction&text=moon+ring+moon&scan={quote(HOSTILE)}")
    told = page.get_by_test_id("stAlert").filter(has_text="evil.test")
    told.wait_for()
    assert told.locator("a, code, strong, .katex, [data-testid=stIconMaterial]").count() == 0
    # What keeps the signs apart has no width.
    assert HOSTILE in told.inner_text().replace("\u2060", "")
