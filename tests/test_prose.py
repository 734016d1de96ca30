"""Plain English everywhere, by a count of habits that plain English avoids: the budget of a text may only fall."""

import re
from pathlib import Path

import pytest

from tests.prose import LONG, TERMS, Sentence, read_texts, sentences_of

ROOT = Path(__file__).parents[1]
TEXTS = read_texts()
# Habits per text: lower a number once a text is better, never raise it.
BUDGET = {
    "README": 0,
    "changelog": 0,
    "contributing, security": 0,
    "docs": 1,
    "lessons": 0,
    "docstrings": 10,
    "errors": 1,
    "other strings": 4,
    "command line": 0,
    "page texts": 1,
    "browser strings": 0,
}
# Of a text's sentences, how many per hundred may have more than `LONG` words.
MOST_LONG = 3.0


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_keeps_its_budget_of_habits(text: str) -> None:
    hits = [f"{one.file}:{one.line} {habit}: {one.text}" for one in TEXTS[text] for habit in one.habits()]
    assert len(hits) <= BUDGET[text], f"{text}: {len(hits)} hits, {BUDGET[text]} allowed\n" + "\n".join(hits)
    assert len(hits) == BUDGET[text], f"“{text}” got better: lower its budget from {BUDGET[text]} to {len(hits)}"


@pytest.mark.parametrize("text", TEXTS)
def test_few_sentences_of_a_text_are_long(text: str) -> None:
    long = [one for one in TEXTS[text] if len(one) > LONG]
    listed = "\n".join(f"{one.file}:{one.line} {one.text}" for one in long)
    assert 100 * len(long) <= MOST_LONG * len(TEXTS[text]), listed


def test_every_text_has_a_budget_and_the_reverse() -> None:
    assert BUDGET.keys() == TEXTS.keys()
    assert all(len(sentences) > 20 for sentences in TEXTS.values())


@pytest.mark.parametrize(
    ("sentence", "count"),
    [
        ("Which words lose their accents is told.", 1),
        ("The page lists words that lose their accents.", 0),
        ("Of a longer sound those from its start on stand here.", 2),
        ("What does it attend to?", 0),
        ("It has what the model hands on.", 2),
        ("Where the model has no mask, nothing is shown.", 1),
        ("Where does it look?", 0),
        ("The head is silenced and rests on a row a token.", 3),
        ("The colour stands for a weight.", 0),
    ],
)
def test_habits_are_counted(sentence: str, count: int) -> None:
    assert len(Sentence(sentence, "", 0).habits()) == count


def test_a_paragraph_is_split_into_sentences_without_code_and_links() -> None:
    assert sentences_of("Run `make run`. Then [open](docs/README.md) it (once). “Done.” Good.") == [
        "Run X.",
        "Then [open] it (once).",
        "“Done.",
        "Good.",
    ]


def test_the_glossary_has_every_term_that_stands_in_for_a_home_made_one() -> None:
    headings = re.findall(r"^#+ (.+)$", (ROOT / "docs" / "glossary.md").read_text("utf-8"), re.MULTILINE)
    entries = " · ".join(headings).lower()
    missing = sorted({term for term in TERMS.values() if term and term not in entries})
    assert not missing, f"docs/glossary.md has no entry for {missing}"
