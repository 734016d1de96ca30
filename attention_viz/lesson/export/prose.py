"""A lesson's text as a tree of elements: terms with their meanings, formulas as MathML, a reader's words as text."""

import html
import re
from collections.abc import Callable
from xml.etree import ElementTree

from markdown_it import MarkdownIt

from attention_viz.lesson.formulas import mathml
from attention_viz.lesson.render import lesson_text
from attention_viz.trace.spelling import xml_text

__all__ = ["lesson_html", "lesson_tree"]

_MARKDOWN = MarkdownIt("commonmark", {"html": False, "xhtmlOut": True}).enable("table")
# What Markdown reads as a mark; a backslash before it makes it a sign.
_SIGNS = re.compile(r"([!-/:-@\[-`{-~])")
# Signs that stand for no character: they keep our HTML through Markdown, and no reader's word has them.
_PRIVATE = re.compile("[\ue000-\uf8ff]")
_FORMULA = re.compile(r"(?<!\\)\$\$(.+?)(?<!\\)\$\$|(?<![\\$])\$([^$\n]+?)(?<!\\)\$(?!\$)", re.DOTALL)
_HELD = re.compile("\ue000([0-9]+)\ue001")


def lesson_tree(name: str, facts: dict[str, str], notation: str) -> list[object]:
    """Return a lesson's text as elements: [tag, {attribute: value}, children], where a child is one or a text.

    The page makes elements of these alone, so no word of a reader's becomes markup.
    """
    return [_tree(part) for part in ElementTree.fromstring(f"<div>{lesson_html(name, facts, notation)}</div>")]


def lesson_html(name: str, facts: dict[str, str], notation: str) -> str:
    """Return a lesson's text as HTML that is XML, too; a reader's words in it are escaped."""
    held = list[str]()

    def hold(markup: str) -> str:
        held.append(markup)
        return f"\ue000{len(held) - 1}\ue001"

    def formula(found: re.Match[str]) -> str:
        return hold(mathml(found[1], block=True) if found[1] else mathml(found[2]))

    text = lesson_text(name, facts, notation, escape=_escaped, term=_terms(hold))
    return _HELD.sub(lambda found: held[int(found[1])], _MARKDOWN.render(_FORMULA.sub(formula, text)))


def _tree(part: ElementTree.Element) -> list[object]:
    children = list[object]([part.text] if part.text else [])
    for inner in part:
        children.append(_tree(inner))
        if inner.tail:
            children.append(inner.tail)
    return [part.tag.rpartition("}")[2], dict(part.attrib), children]


def _terms(hold: Callable[[str], str]) -> Callable[[str, str], str]:
    def term(words: str, meaning: str) -> str:
        begin = hold('<span class="course-term" tabindex="0">')
        end = hold(f'<span class="course-meaning" role="tooltip">{html.escape(meaning)}</span></span>')
        return f"{begin}{words}{end}"

    return term


def _escaped(words: str) -> str:
    return _SIGNS.sub(r"\\\1", " ".join(_PRIVATE.sub("\ufffd", xml_text(words)).split()))
