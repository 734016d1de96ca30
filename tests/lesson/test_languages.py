"""The course in each language: each sentence has a translation, none is left over, none is forgotten."""

import ast
import itertools
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any

import numpy
import pytest

from attention_viz import lesson as course
from attention_viz.errors import AttentionVizError
from attention_viz.inputs.media.shapes import COLOURS, DRAWN, SHAPES
from attention_viz.inputs.media.shipped import SAMPLES
from attention_viz.lesson import EXERCISES, LESSONS, TERMS, Exercise, Scene
from attention_viz.lesson import translation as languages
from attention_viz.lesson.answering import ANSWERS
from attention_viz.lesson.exercise import Cells, OptionAnswer
from attention_viz.lesson.render import template
from attention_viz.lesson.scene import RunText
from attention_viz.lesson.translation import LANGUAGES, TEXTS, current_language, grouped, in_language, translate
from attention_viz.lesson.words import counted, listed
from attention_viz.sources import CATALOGUE
from attention_viz.trace.trace import Trace
from attention_viz.ui.pages.learn.page import NOTATIONS

PACKAGE = Path(course.__file__).parents[1]
SOURCES = sorted([*PACKAGE.glob("lesson/**/*.py"), *PACKAGE.glob("ui/pages/learn/*.py")])
OTHERS = [code for code in LANGUAGES if code != "en"]
TEXT = "The bank of the river was flooded"
FACT = re.compile(r"\{\{ *([\w.]+) *\}\}")
TERM = re.compile(r"\(term:([^)]+)\)")


@dataclass(frozen=True)
class Written:
    """What the sources hold: the sentences that are looked up, and every other text, which may be one of a list."""

    sentences: frozenset[str]
    constants: frozenset[str]


@cache
def written() -> Written:
    sentences, constants = set[str](), set[str]()
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                constants.add(node.value)
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or not node.args:
                continue
            last = node.args[-1]
            if not isinstance(last, ast.Constant) or not isinstance(last.value, str):
                continue
            if node.func.id == "translate":
                sentences.add(last.value)
            elif node.func.id == "counted":
                sentences |= {f"{{number}} {last.value}", f"{{number}} {last.value}s"}
    return Written(frozenset(sentences), frozenset(constants))


def tables(code: str) -> list[tuple[str, dict[str, str]]]:
    """The entries of a language, by file."""
    return [(path.name, json.loads(path.read_text("utf-8"))) for path in sorted((TEXTS / code).glob("**/*.json"))]


def table(code: str) -> dict[str, str]:
    return {english: words for _, part in tables(code) for english, words in part.items()}


def names(sentence: str) -> Counter[str]:
    return Counter(name for _, name, _, _ in Formatter().parse(sentence) if name is not None)


def listed_texts() -> set[str]:
    """English texts that are held as data, and translated where they are shown."""
    found = {lesson.title for lesson in LESSONS.values()} | {lesson.control.label for lesson in LESSONS.values()}
    found |= {lesson.idea for lesson in LESSONS.values()} | {kind.label for kind in EXERCISES.values()}
    found |= {*TERMS, *TERMS.values(), *NOTATIONS.values()}
    return found - {""}


def held_elsewhere() -> set[str]:
    """Texts of other rooms that the course names."""
    shapes = [shape for shapes in DRAWN.values() for shape in shapes]
    found = {sample.shows for sample in SAMPLES.values()} | {one.words for one in shapes}
    return found | {one.place for one in shapes} | {"not a number"}  # what `block_row` tells of an empty row


@pytest.mark.parametrize("code", OTHERS)
def test_every_sentence_of_the_course_has_a_translation(code: str) -> None:
    missing = sorted((written().sentences | listed_texts()) - table(code).keys())
    assert not missing


@pytest.mark.parametrize("code", OTHERS)
def test_a_translation_has_the_names_of_its_sentence(code: str) -> None:
    differ = [english for english, words in table(code).items() if set(names(english)) != set(names(words))]
    assert not differ
    assert not [english for english, words in table(code).items() if not words.strip()]


@pytest.mark.parametrize("code", OTHERS)
def test_no_translation_is_left_over(code: str) -> None:
    used = written().sentences | written().constants | listed_texts() | held_elsewhere()
    assert not sorted(table(code).keys() - used)


@pytest.mark.parametrize("code", OTHERS)
def test_no_sentence_has_two_translations(code: str) -> None:
    several = {(english, words) for _, part in tables(code) for english, words in part.items()}
    assert len(several) == len(table(code)), [
        one for one, count in Counter(one for one, _ in several).items() if count > 1
    ]


@pytest.mark.parametrize("code", OTHERS)
def test_german_quotes_are_german(code: str) -> None:
    if code == "de":
        assert not [words for words in table(code).values() if re.search("“[^„]*”|”", words)]


@pytest.mark.parametrize("code", OTHERS)
@pytest.mark.parametrize("name", LESSONS)
def test_a_text_has_the_facts_formulas_and_terms_of_the_english_one(code: str, name: str) -> None:
    assert (TEXTS / code / f"{name}.md").exists()
    english = template(name)
    with in_language(code):
        other = template(name)
    for mark in (FACT, TERM):
        assert set(mark.findall(other)) == set(mark.findall(english))
    assert re.findall(r"\$[^$]+\$", other) == re.findall(r"\$[^$]+\$", english)
    assert other != english


def test_a_language_is_set_for_a_while_and_a_wrong_one_is_named() -> None:
    with in_language("de"):
        assert current_language() == "de" and translate("“{word}”", word="bank") == "„bank“"
        assert (counted(1, "word"), counted(2, "word")) == ("1 Wort", "2 Wörter")
        assert listed(["a", "b", "c"]) == "a, b und c"
    assert current_language() == "en" and listed(["a", "b", "c"]) == "a, b and c"
    with pytest.raises(AttentionVizError, match="unknown language 'xx'; choose en or de"), in_language("xx"):
        pass


@pytest.mark.parametrize("kind", ["head", "matters", "permute", "erase"])
def test_an_option_is_read_in_each_language(kind: str, run: RunText) -> None:
    made = [_made(kind, Scene(TEXT, run), code) for code in LANGUAGES]
    answers = [one.answer for one in made if isinstance(one.answer, OptionAnswer)]
    assert len(answers) == len(LANGUAGES)
    if answers[0].options == answers[1].options:  # this seed asks for a number or a word of the reader's
        return
    for answer, other in itertools.permutations(answers, 2):
        assert [answer.read(option) for option in other.options] == [*range(len(answer.options))]


def _made(kind: str, scene: Scene, code: str) -> Exercise:
    with in_language(code):
        return EXERCISES[kind].make(scene, 0)


@pytest.mark.parametrize("kind", EXERCISES)
def test_an_exercise_has_the_same_numbers_and_answer_in_each_language(kind: str, run: RunText) -> None:
    first, *others = (_made(kind, Scene(TEXT, run), code) for code in LANGUAGES)
    for other in others:
        assert [one.numbers for one in other.given] == [one.numbers for one in first.given]
        assert [slip.answer for slip in other.slips] == [slip.answer for slip in first.slips]
        assert len(other.hints) == len(first.hints)
        assert other.question != first.question
        numbers = [sorted(re.findall(r"−?\d+(?:\.\d+)?", one.working)) for one in (first, other)]
        assert numbers[0] == numbers[1]
        right = first.answer
        if isinstance(right, OptionAnswer):
            assert isinstance(other.answer, OptionAnswer) and other.answer.right == right.right
        elif isinstance(right, Cells):
            assert isinstance(other.answer, Cells) and other.answer.right == right.right
        else:
            assert other.answer == right


# A language of marks: whatever is outside of them was forgotten, or is no word of ours.
MARKED = re.compile("⟦[^⟦⟧]*⟧")
LETTERS = re.compile(r"[^\W\d_₀-₉]{3,}")
# Names, signs and formulas, the same in each language.
SAME = {
    *("cls", "sep", "pad", "unk", "softmax", "tanh", "exp", "mlp", "bahdanau", "luong", "transformer", "dim", "nbsp"),
    *("nan", "eos", "bos", "sin", "cos", "gelu", "logit", "logits", "token", "tokens", "head", "png", "jpg", "flac"),
}
# What the language model predicts after the text.
PREDICTED = {"with", "and"}


class Marks(dict[str, str]):
    """Every sentence between marks."""

    def get(self, english: str, default: object = None) -> str:  # type: ignore[override]
        return f"⟦{english}⟧"


def _marks(_code: str) -> Marks:
    return Marks()


@pytest.fixture
def marked(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(LANGUAGES, "xx", "marks")
    monkeypatch.setattr(languages, "sentences", _marks)
    with in_language("xx"):
        yield


class Watched:
    """A run that notes every token that it showed."""

    def __init__(self, run: RunText) -> None:
        self.words, self._run = set[str](), run

    def __call__(self, *given: Any, **how: Any) -> Trace:
        trace = self._run(*given, **how)
        self.words |= _words(" ".join(str(one) for one in given))
        for stream in trace.streams:
            for tokens in (trace.query_tokens(stream), trace.key_tokens(stream)):
                self.words |= _words(" ".join((*tokens.names, *tokens.labels)))
        return trace


def _words(text: str) -> set[str]:
    return {word.casefold() for word in LETTERS.findall(text)}


def unmarked(text: str, data: set[str]) -> set[str]:
    """The words outside of all marks that are neither data nor signs."""
    while (inner := MARKED.sub(" ", text)) != text:
        text = inner
    # A sentence may have been cut off at its end.
    return _words(text.partition("⟦")[0]) - data


def forgotten(texts: list[str], data: set[str]) -> dict[str, set[str]]:
    return {text: left for text in texts if not text.startswith("data:") and (left := unmarked(text, data))}


def data_of(scene: Scene) -> set[str]:
    names = " ".join(
        (*CATALOGUE, *COLOURS, *SHAPES, *ANSWERS, scene.text, *(sample.file for sample in SAMPLES.values()))
    )
    return _words(names) | SAME | PREDICTED


def figure_texts(figure: Any) -> Iterator[str]:
    """What a figure shows, without the title, which the page leaves out."""
    for axis in (*figure.select_xaxes(), *figure.select_yaxes()):
        yield from _strings(axis.title.text)
        yield from _strings(axis.ticktext)
    for note in figure.layout.annotations:
        yield from _strings((note.text, note.hovertext))
    for part in figure.data:
        if part.showlegend is not False and part.type not in ("heatmap",):
            yield from _strings(part.name)
        yield from _strings((part.hovertext, getattr(part, "text", None)))
        if part.hovertemplate:
            yield re.sub(r"%\{[^}]*\}|<[^>]*>", " ", part.hovertemplate)
        if part.type == "bar":
            yield from _strings(part.y)
        if getattr(part, "colorbar", None) is not None:
            yield from _strings(part.colorbar.title.text)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield re.sub(r"&\w+;|</?\w+/?>", " ", value)
    elif isinstance(value, numpy.ndarray):
        yield from _strings(value.ravel().tolist())
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _strings(one)


def all_strings(value: Any) -> Iterator[str]:
    """Every text in a dataclass of texts."""
    if is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from all_strings(getattr(value, field.name))
    elif isinstance(value, dict):
        yield from all_strings([*value.values()])
    else:
        yield from _strings(value)


def lesson_texts(name: str, scene: Scene) -> list[str]:
    lesson = LESSONS[name]
    ask, shown = lesson.ask(scene), lesson.show(scene)
    used = [shown.facts[fact] for fact in FACT.findall(template(name)) if not fact.startswith("formula.")]
    found = [ask.question, ask.finding, ask.source, ask.premise, *ask.options, *ask.written, shown.says, *used]
    found += [ask.said(at) for at in range(len(ask.options))]
    if ask.opening is not None:
        found += [ask.opening.how, *all_strings({**ask.opening.before()}), *all_strings({**ask.opening.after()})]
        found += [one.words for one in ask.opening.replies]
    return [*found, *lesson.control.options(scene).values(), *figure_texts(shown.figure)]


@pytest.mark.parametrize("kind", EXERCISES)
@pytest.mark.parametrize("seed", [0, 1])
def test_no_word_of_an_exercise_is_forgotten(kind: str, seed: int, run: RunText, marked: None) -> None:
    watched = Watched(run)
    scene = Scene(TEXT, watched, notation=("rows", "columns")[seed])
    made = EXERCISES[kind].make(scene, seed)
    texts = [made.question, *made.hints, made.working, made.desk, made.solution, made.answer.form]
    texts += [made.explain(slip.answer) for slip in made.slips]
    if isinstance(made.answer, OptionAnswer):
        texts += made.answer.options
    for table in made.given:
        texts += [table.title, *table.rows, *table.columns]
    assert not forgotten(texts, data_of(scene) | watched.words)


@pytest.mark.parametrize("name", LESSONS)
def test_no_word_of_a_lesson_is_forgotten(name: str, run: RunText, marked: None) -> None:
    watched = Watched(run)
    texts = lesson_texts(name, Scene(TEXT, watched))
    assert not forgotten(texts, data_of(Scene(TEXT, watched)) | watched.words)


def test_a_forgotten_word_would_be_found() -> None:
    assert forgotten(["⟦layer ⟦“bank”⟧⟧ 3 bank", "0.58 s"], {"bank"}) == {}
    assert forgotten(["⟦layer⟧ head"], {"bank"}) == {"⟦layer⟧ head": {"head"}}


def test_thousands_are_parted_by_a_narrow_space_in_german() -> None:
    assert (grouped(100_000), grouped(1234.5, ",.2f")) == ("100,000", "1,234.50")
    with in_language("de"):
        assert (grouped(100_000), grouped(1234.5, ",.2f")) == ("100\u202f000", "1\u202f234.50")


@pytest.mark.parametrize("name", LESSONS)
def test_no_german_lesson_parts_thousands_with_a_comma(name: str, run: RunText) -> None:
    with in_language("de"):
        texts = lesson_texts(name, Scene(TEXT, run))
    assert not [text for text in texts if re.search(r"\d,\d{3}(?!\d)", text)]


def test_german_places_stand_in_whole_sentences(run: RunText) -> None:
    with in_language("de"):
        ask, shown = LESSONS["where"].ask(Scene("", run)), LESSONS["where"].show(Scene("", run))
        picture = LESSONS["picture"].ask(Scene("", run))
    assert (
        f"schaut am stärksten auf die Stelle {ask.options[max(range(9), key=ask.values.__getitem__)]}:" in ask.finding
    )
    assert shown.facts["place"] in ask.options and "in der Mitte" in ask.options[4]
    assert picture.question.startswith("Klicke auf eine Stelle des Bildes (ein")


def test_german_figures_and_masks_have_no_english_left(run: RunText) -> None:
    with in_language("de"):
        legend = [part.name for part in LESSONS["mixture"].show(Scene(TEXT, run)).figure.data]
        shown = LESSONS["masks"].show(Scene(TEXT, run))
    assert [name for name in legend if name and name.startswith("Ausgabe von ")]
    assert not [name for name in legend if name and "output" in name]
    assert shown.facts["plain"] == "keine Zahl (NaN)"


def test_german_has_one_word_for_a_thing() -> None:
    texts = [*table("de").values(), *(path.read_text("utf-8") for path in (TEXTS / "de").glob("*.md"))]
    uneven = r"Punktwert|\b([Dd]ie|[Ee]iner?)\s+\[?Softmax\b|[\d}]%"
    assert not [text for text in texts if re.search(uneven, text)]
