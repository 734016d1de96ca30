"""The files of the course: what is in them, what isn't, and what is refused."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy
import pytest

from attention_viz.errors import AttentionVizError
from attention_viz.lesson.course import EXERCISES, LESSONS
from attention_viz.lesson.export.packed import packed
from attention_viz.lesson.export.prose import lesson_tree
from attention_viz.lesson.export.writing import write_course
from attention_viz.lesson.render import template
from attention_viz.lesson.scene import LONGEST, RunText, Scene
from attention_viz.lesson.translation import in_language, translate
from tests.lesson.export.conftest import HOSTILE, TEXT
from tests.lesson.export.conftest import LESSONS as THREE

_CALL = re.compile(r'attentionCourse\("([^"]+)",(.*)\);\n', re.DOTALL)


def _unpacked(part: Any, shared: list[Any]) -> Any:
    """What the page makes of packed data."""
    if isinstance(part, list):
        return [_unpacked(one, shared) for one in part]
    if not isinstance(part, dict):
        return part
    return (
        _unpacked(shared[part["$"]], shared) if "$" in part else {n: _unpacked(one, shared) for n, one in part.items()}
    )


def _data(file: Path) -> Any:
    found = _CALL.fullmatch(file.read_text("utf-8"))
    assert found is not None and file.as_posix().endswith(found[1])
    content = json.loads(found[2])
    return _unpacked(content["value"], content["shared"])


def _words(node: Any) -> Iterator[str]:
    for child in node[2]:
        if isinstance(child, str):
            yield child
        else:
            yield from _words(child)


def test_packed_data_is_shorter_and_stands_for_the_same() -> None:
    number = list(range(50))
    value = {"a": [number, {"x": number}], "b": {"x": number}, "c": ["$", 3], "d": "w" * 60, "e": "w" * 60}
    found: Any = packed(value)
    assert _unpacked(found["value"], found["shared"]) == value
    assert len(json.dumps(found)) < len(json.dumps(value))


def test_a_lesson_has_every_setting_and_every_word_that_can_be_pressed_with_python_s_numbers(
    course: Path, run: RunText
) -> None:
    for name in THREE:
        lesson, scene = LESSONS[name], Scene(TEXT, run)
        states = _data(course / "data" / f"{name}-1.js")["states"]
        settings = ["", *lesson.control.options(scene)]
        words = [None, *(int(one) for one in (lesson.words(scene)[0] if lesson.words else ()))]
        for choice in settings:
            for word in words:
                one = replace(scene, choice=choice, word=word)
                state, ask = states[f"{choice}|{'' if word is None else word}"], lesson.ask(one)
                assert state["answer"]["heading"] == ask.finding
                assert state["answer"]["data"]["truth"]["written"] == list(ask.written)
                assert state["says"] == lesson.show(one).says
                assert state["choice"] == lesson.control.value(one)


def test_a_figure_has_the_numbers_of_the_app_s_in_both_themes(course: Path, run: RunText) -> None:
    state = _data(course / "data" / "scores-1.js")["states"]["|"]
    shown: Any = LESSONS["scores"].show(Scene(TEXT, run)).figure.data[0]
    for theme in ("light", "dark"):
        (drawn, *_) = state["figure"][theme]["data"]
        assert numpy.array(drawn["z"]) == pytest.approx(shown.z, rel=1e-5)
    light, dark = (state["figure"][theme]["layout"]["paper_bgcolor"] for theme in ("light", "dark"))
    assert light != dark


def test_exercises_are_those_of_their_seeds(course: Path, run: RunText) -> None:
    for name in THREE:
        made = [EXERCISES[LESSONS[name].exercise].make(Scene(TEXT, run), seed) for seed in (0, 7)]
        found = _data(course / "data" / f"{name}-1.js")["exercises"]
        assert [(one["seed"], one["solution"], one["working"]) for one in found] == [
            (seed, one.solution, one.working) for seed, one in zip((0, 7), made, strict=True)
        ]
        assert [one["hints"] for one in found] == [list(one.hints) for one in made]


@pytest.mark.parametrize("name", LESSONS)
def test_every_lesson_s_text_becomes_elements_with_all_its_words_formulas_and_terms(name: str) -> None:
    facts = {found: "⟪fact⟫" for found in re.findall(r"\{\{ *([\w.]+) *\}\}", template(name))}
    facts = {fact: "x_1" if fact.startswith("formula.") else words for fact, words in facts.items()}
    tree = lesson_tree(name, facts, "rows")
    text, flat = " ".join(word for part in tree for word in _words(part)), json.dumps(tree)
    shown = [fact for fact in re.findall(r"\{\{ *([\w.]+) *\}\}", template(name)) if not fact.startswith("formula.")]
    assert text.count("⟪fact⟫") == len(shown)
    assert flat.count('"course-term"') == template(name).count("](term:")
    formulas = len(re.findall(r"\$\$[^$]+\$\$|\{\{ *formula\.", template(name)))
    assert flat.count('"display": "block"') == formulas
    assert not re.search(r"\$|\*\*|\{\{|\]\(|[\ue000-\uf8ff]|\|--", text)


def test_a_reader_s_words_are_text_and_end_no_script(hostile: Path) -> None:
    for file in hostile.rglob("*"):
        if file.is_file() and file.name != "plotly.min.js":
            content = file.read_text("utf-8")
            assert "<img" not in content and "\u2028" not in content
            assert content.count("</script>") == (1 if file.name == "index.html" else 0)
    for file in (hostile / "data").iterdir():
        for state in _data(file)["states"].values():
            tags = set(re.findall(r'\["(\w+)", \{', json.dumps(state["text"])))
            assert tags and not tags & {"img", "script", "b"}
    assert _data(hostile / "index.js")["texts"] == [" ".join(text.split()) for text in HOSTILE]


def test_a_text_of_no_word_or_one_is_refused_and_a_long_one_is_cut(run: RunText, tmp_path: Path) -> None:
    for text, said in (("", "no word"), ("  \n", "no word"), ("word", "only one word")):
        with pytest.raises(AttentionVizError, match=said):
            write_course(tmp_path, (TEXT, text), run, lessons=("plain",))
    assert not list(tmp_path.iterdir())
    made = write_course(tmp_path, (" ".join(f"w{n}" for n in range(5000)),), run, lessons=("plain",), seeds=(0,))
    (line,) = [one for one in made.lacking if "cut" in one]
    assert f"cut after {LONGEST} words" in line
    (text,) = _data(tmp_path / "index.js")["texts"]
    assert text == " ".join(f"w{n}" for n in range(LONGEST))


def test_an_unknown_lesson_is_named_before_anything_is_written(run: RunText, tmp_path: Path) -> None:
    with pytest.raises(AttentionVizError, match="unknown lesson 'nope'; choose from why"):
        write_course(tmp_path / "new", (TEXT,), run, lessons=("plain", "nope"))
    assert not (tmp_path / "new").exists()


def test_a_lesson_whose_model_is_missing_says_so_and_the_rest_is_written(
    run: RunText, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_scene: Scene) -> Any:
        raise AttentionVizError("no package has the model")

    monkeypatch.setitem(LESSONS, "plain", replace(LESSONS["plain"], ask=refuse))
    made = write_course(tmp_path, (TEXT,), run, lessons=("plain", "recurrent"), seeds=(0,))
    assert made.lacking == ("lesson plain: no package has the model",)
    assert _data(tmp_path / "data" / "plain-1.js") == {"missing": "no package has the model"}
    assert _data(tmp_path / "data" / "recurrent-1.js")["states"]


def test_the_size_is_that_of_the_files_and_other_files_stay(run: RunText, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    made = write_course(tmp_path, (TEXT,), run, lessons=("plain",), seeds=(0,))
    ours = [file for file in tmp_path.rglob("*") if file.is_file() and file.name != "notes.txt"]
    assert made.size == sum(file.stat().st_size for file in ours)
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_in_german_the_page_and_its_lessons_are_german(run: RunText, tmp_path: Path) -> None:
    with in_language("de"):
        check = translate("Check")
        write_course(tmp_path, (TEXT,), run, lessons=("scores",), seeds=(0,))
    assert check == "Prüfen"
    index = _data(tmp_path / "index.js")
    assert index["language"] == "de" and index["words"]["check"] == check
    assert '<html lang="de">' in (tmp_path / "index.html").read_text("utf-8")
