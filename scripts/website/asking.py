"""Find requests to other hosts that a site's pages make by themselves; links don't count."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

__all__ = ["asked_elsewhere"]

# What a browser loads by itself: each tag with the attribute that says from where.
_LOADED = {
    "audio": "src", "embed": "src", "iframe": "src", "image": "href", "img": "src", "input": "src", "link": "href",
    "object": "data", "script": "src", "source": "src", "track": "src", "use": "href", "video": "src",
}  # fmt: skip
# Links of a page's head that say where else it is, and load nothing.
_SAID = {"author", "canonical", "license", "next", "prev"}
_ELSEWHERE = re.compile(r"(?:\w+:)?//", re.ASCII)
_IN_STYLE = re.compile(r"(?:url\(\s*|@import\s*)['\"]?((?:https?:)?//[^'\")\s]+)")


def asked_elsewhere(folder: Path) -> Iterator[str]:
    """Return each URL on another host that a page or a style sheet loads, after the file's name."""
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".html", ".svg"):
            page = _Page()
            page.feed(path.read_text("utf-8"))
            found = page.found
        elif path.suffix == ".css":
            found = _IN_STYLE.findall(path.read_text("utf-8"))
        else:
            continue
        yield from (f"{path.relative_to(folder).as_posix()}: {one}" for one in found)


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._in_style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what this tag loads."""
        given = {name.removeprefix("xlink:"): value or "" for name, value in attrs}
        self._in_style = tag == "style"
        said = set(given.get("rel", "").split()) & _SAID
        address = given.get(_LOADED.get(tag, ""), "")
        if _ELSEWHERE.match(address) and not said:
            self.found.append(address)
        self.found += _IN_STYLE.findall(given.get("style", ""))

    def handle_endtag(self, tag: str) -> None:
        """Note the end of a style sheet."""
        self._in_style = self._in_style and tag != "style"

    def handle_data(self, data: str) -> None:
        """Note what a style sheet inside the page loads."""
        if self._in_style:
            self.found += _IN_STYLE.findall(data)
