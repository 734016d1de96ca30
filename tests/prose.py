"""Collect the project's texts, and find in their sentences the patterns that plain English avoids.

A text is everything of one kind that people read: documents, pages, errors and so on. `PATTERNS` are habits of syntax,
`TERMS` home-made words and the entry of the glossary that says them in the field's words.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "attention_viz"
# Scripts and measurements write these.
GENERATED = frozenset({"api.md", "families.md", "performance.md", "gallery.md", "print.md", "versions.md"})
DOCUMENTS: Mapping[str, tuple[str, ...]] = {
    "README": ("README.md",),
    "changelog": ("CHANGELOG.md",),
    "contributing, security": ("CONTRIBUTING.md", "SECURITY.md"),
    "docs": ("docs/**/*.md",),
    "lessons": ("attention_viz/lesson/text/en/*.md",),
}
# The text of a string in Python, by the folder it is in; errors and docstrings are texts of their own.
STRINGS = {"ui": "page texts", "cli": "command line"}
LONG = 35
FEWEST_WORDS = 4

_BE = r"(?:is|are|was|were|be|been|isn['’]t|aren['’]t|wasn['’]t|weren['’]t)"
_BEFORE_WHICH = "of at on by from into with behind beside against to in for under through".split()
_THINGS = "row text slide number line bar cell step weight piece call token column file page head".split()
_AFTER_WHAT = "it is was has the each one they this that come comes came follows goes remains".split()
PATTERNS: Mapping[str, str] = {
    "a passive of “tell”": rf"\b{_BE} told\b|\btold (?:of|as|apart|against)\b|\btells? of\b",
    "“was asked for”": rf"\b{_BE} asked (?:for|of|about)\b",
    "a thing that stands or lies": r"\b(?:stand|stands|stood|lie|lies|lay)\b(?! (?:for|still)\b)",
    "“whoever” or “nobody”": r"\b(?:whoever|whomever|somebody|nobody|everybody)\b",
    "a preposition before “which”": rf"\b(?:{'|'.join(_BEFORE_WHICH)}) (?:which|whom)\b(?![^.]*\?)",
    "a sentence that begins with “Of” or “Where”": r"^(?-i:Of|Where|Beside|Behind) (?![^.]*\?)",
    "“is no”": r"\b(?:is|are|was) no (?!longer\b|more\b|smaller\b|different\b|need\b)\w+",
    "“so many”": r"\bso many\b|\bof so\b",
    "“can be had”": r"\bbe had\b|\bthat is had\b",
    "a clause with “what” for a noun": r"(?<!\bdo )(?<!\bdoes )(?<!\bknow )(?<!\bsay )(?<!\bsays )"
    rf"(?<!\bsee )(?<!\bshows )"
    rf"\bwhat (?:{'|'.join(_AFTER_WHAT)})\b(?![^.]*\?)",
    "“a row a head”": rf"\b(?:a|one) (?:{'|'.join(_THINGS)}) an? \w+",
    "“goes on with” or “hands over”": r"\bsomething else came\b|\bgo(?:es)? on with\b|\bhands? (?:on|over|out)\b",
}
TERMS: Mapping[str, str] = {
    r"\brests? on\b|\bat rest\b": "attention sink",
    r"\bsilenc(?:e[sd]?|ing)\b|\bfalls? silent\b|\blet\w* .{0,12}speak\b": "ablate",
    r"\bword heads?\b": "unembedding",
    r"\bstor(?:y|ies)\b": "hypothesis",
    r"\blikeness\b": "similarity",
    r"\bevenness\b": "normalized entropy",
    r"\bthrow\w* .{0,12}keys away\b|\bkeys? thrown away\b": "evict",
    r"\bpieces? of (?:a )?words?\b|\bword's pieces\b": "subword token",
    r"\bmoments? of training\b": "checkpoint",
    r"\bby lot\b": "",
    r"\bmend(?:ed|s|ing)?\b": "",
}
_FINDERS = {
    **{name: re.compile(pattern, re.IGNORECASE) for name, pattern in PATTERNS.items()},
    **{f"home-made words, {word}": re.compile(word, re.IGNORECASE) for word in TERMS},
}
_ITEM = re.compile(r"\s*(?:[-*]|\d+\.)\s+")
_NO_PROSE = re.compile(r"\s*(?:#|\||<|!\[)|    ")
_SECTIONS = re.compile(r"^\s*(?:Args|Attributes|Raises|Returns|Source|Yields):", re.MULTILINE)
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
# Strings with these are CSS, code or markup.
_CODE = re.compile(r"[{}<>;=]{2}|</|\bvar\(")
_JAVASCRIPT = re.compile(
    r"/\*.*?\*/|^\s*//[^\n]*|\"((?:[^\"\\\n]|\\.)*)\"|`((?:[^`\\]|\\.)*)`", re.DOTALL | re.MULTILINE
)


@dataclass(frozen=True)
class Sentence:
    """A sentence of a text, with the file and line of its paragraph."""

    text: str
    file: str
    line: int

    def habits(self) -> list[str]:
        """Return the names of the patterns in it, each as often as it occurs."""
        return [name for name, finder in _FINDERS.items() for _ in finder.finditer(self.text)]

    def __len__(self) -> int:
        """Return the number of words."""
        return len(self.text.split())


def read_texts() -> dict[str, list[Sentence]]:
    """Return the sentences of all that people read, by text."""
    found: dict[str, list[Sentence]] = {name: [] for name in DOCUMENTS}
    for name, patterns in DOCUMENTS.items():
        for file in sorted({file for pattern in patterns for file in ROOT.glob(pattern)}):
            if file.name not in GENERATED:
                _add(found[name], file, _paragraphs(file.read_text("utf-8")))
    for file in sorted(PACKAGE.rglob("*.py")):
        room = STRINGS.get(file.relative_to(PACKAGE).parts[0], "other strings")
        for kind, line, text in _strings(ast.parse(file.read_text("utf-8"))):
            _add(found.setdefault(kind or room, []), file, [(line, text)])
    for file in sorted(PACKAGE.rglob("*.js")):
        _add(found.setdefault("browser strings", []), file, _literals(file.read_text("utf-8")))
    return found


def sentences_of(paragraph: str) -> list[str]:
    """Split a paragraph, without the targets of links; code counts as one word."""
    plain = re.sub(r"\]\([^)]*\)", "]", re.sub(r"`[^`]*`", "X", paragraph)).replace("*", "")
    parts = re.split(r"(?<=[.!?])[\"”)]?\s+(?=[A-Z“\"(])", " ".join(plain.split()))
    return [part for part in parts if re.search(r"[A-Za-z]{2}", part)]


def _add(found: list[Sentence], file: Path, paragraphs: "Iterator[tuple[int, str]] | list[tuple[int, str]]") -> None:
    name = file.relative_to(ROOT).as_posix()
    found += [Sentence(text, name, line) for line, paragraph in paragraphs for text in sentences_of(paragraph)]


def _paragraphs(markdown: str) -> Iterator[tuple[int, str]]:
    """Yield running text and list items; headings, tables, code and pictures aren't sentences."""
    start, lines, fenced = 0, list[str](), False
    for number, line in enumerate([*markdown.splitlines(), ""], 1):
        fence = line.lstrip().startswith("```")
        fenced ^= fence
        prose = bool(line.strip()) and not fenced and not fence and not _NO_PROSE.match(line)
        if lines and (not prose or _ITEM.match(line)):
            yield start, " ".join(lines)
            lines = []
        if prose:
            start = start if lines else number
            lines.append(_ITEM.sub("", line, count=1).strip())


def _strings(tree: ast.Module) -> Iterator[tuple[str, int, str]]:
    """Yield "errors", "docstrings" or "", a line and the text of each string that reads like prose."""
    nodes = list(ast.walk(tree))
    documented = [node for node in nodes if isinstance(node, _DOCUMENTED) and ast.get_docstring(node) is not None]
    docstrings = {id(node.body[0].value) for node in documented if isinstance(node.body[0], ast.Expr)}
    errors = {id(inner) for node in nodes if isinstance(node, ast.Raise) for inner in ast.walk(node)}
    parts = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in nodes:
        if not isinstance(node, ast.Constant | ast.JoinedStr) or id(node) in parts:
            continue
        text = _text(node)
        if not _reads_like_prose(text):
            continue
        if id(node) in docstrings:
            for paragraph in re.split(r"\n\s*\n", text):
                yield "docstrings", node.lineno, _SECTIONS.sub("", paragraph)
        elif not _CODE.search(text):
            yield "errors" if id(node) in errors else "", node.lineno, text


def _text(node: ast.Constant | ast.JoinedStr) -> str:
    """Return a string's or f-string's text, with X for each value put in; empty for other constants."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    return "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values)


def _literals(script: str) -> Iterator[tuple[int, str]]:
    """Yield the string literals of a script that read like prose; comments aren't text."""
    for found in _JAVASCRIPT.finditer(script):
        text = found[1] or found[2] or ""
        text = re.sub(r"\$\{[^}]*\}", "X", text)
        if _reads_like_prose(text) and not _CODE.search(text):
            yield script.count("\n", 0, found.start()) + 1, text


def _reads_like_prose(text: str) -> bool:
    return " " in text.strip() and len(re.findall(r"[A-Za-z]{2,}", text)) >= FEWEST_WORDS
