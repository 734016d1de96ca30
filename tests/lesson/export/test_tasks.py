"""An exercise in the browser gets the diagnoses that it gets on the server."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import pytest

from attention_viz.lesson.course import EXERCISES
from attention_viz.lesson.exercise import Cells, Exercise, NumberAnswer, OptionAnswer
from attention_viz.lesson.export.picture import fitted
from attention_viz.lesson.export.tasks import exercise_data
from attention_viz.lesson.scene import RunText, Scene
from attention_viz.lesson.translation import in_language
from attention_viz.lesson.words import readings
from scripts.javascript import NODE

TABLE: list[dict[str, Any]] = json.loads(Path(__file__).with_name("answers.json").read_text("utf-8"))
CHECKS = Path(__file__).with_name("every_answer.test.js")
TEXT = "The bank of the river was flooded"
# Numbers that are near, far, or no number at all.
TYPED = ("0", "1", "−1", "0,5", "7/3", "12 %", "1,024", "1e30", "what?", "0.0625", "-0.0004")


@pytest.mark.parametrize("row", TABLE, ids=lambda row: ascii(row["text"]))
def test_the_table_that_javascript_is_tested_with_is_what_python_reads(row: dict[str, Any]) -> None:
    assert readings(row["text"]) == row["numbers"]


def _given(exercise: Exercise) -> list[tuple[object, str]]:
    """Answers as the browser has them, and as Python does: right ones, slips and others."""
    answer = exercise.answer
    if isinstance(answer, OptionAnswer):
        return [(at, str(at)) for at in range(len(answer.options))]
    if isinstance(answer, Cells):
        slips = [slip.answer for slip in exercise.slips if isinstance(slip.answer, frozenset)]
        found = [answer.right, answer.start, frozenset[tuple[int, int]](), answer.right ^ {(0, 0)}, *slips]
        return [([list(cell) for cell in one], ",".join(f"{row}>{column}" for row, column in one)) for one in found]
    assert isinstance(answer, NumberAnswer)
    typed = [*TYPED, repr(answer.value), repr(answer.value + 2 * answer.within), exercise.solution]
    typed += [repr(float(slip.answer)) for slip in exercise.slips if not isinstance(slip.answer, frozenset)]
    return [(one, one) for one in typed]


@pytest.mark.parametrize("language", ["en", "de"])
def test_the_browser_says_of_every_answer_what_python_says(run: RunText, tmp_path: Path, language: str) -> None:
    cases = list[dict[str, object]]()
    with in_language(language):
        for kind in EXERCISES.values():
            if not kind.available:
                continue
            for seed in range(3):
                exercise = kind.make(Scene(TEXT, run), seed)
                key = exercise_data(exercise, seed)["answer"]
                for given, typed in _given(exercise):
                    found = exercise.check(typed)
                    said = {"right": found.right, "words": found.words, "understood": found.understood}
                    cases.append({"key": key, "given": given, **said})
    assert {case["key"]["kind"] for case in cases} == {"number", "options", "cells"}  # pyright: ignore[reportIndexIssue] -- a dict
    file = tmp_path / "answers.json"
    file.write_text(json.dumps(cases), encoding="utf-8")
    environment = {**os.environ, "ATTENTION_VIZ_ANSWERS": str(file)}
    done = subprocess.run([NODE, "--test", CHECKS], env=environment, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stdout[-3000:]
    assert "pass 1" in done.stdout


def test_a_wide_matrix_has_no_number_that_rounds_to_0() -> None:
    for count, kept in ((10, "&lt;0.01"), (14, " ")):
        written = [["&lt;0.01"] * (count - 1) + ["0.95"]]
        cells = go.Heatmap(z=[[0.0] * count], text=written, texttemplate="%{text}")
        drawn: Any = fitted(go.Figure(cells, {"margin": {"t": 50}}), few=False)
        assert [*drawn.data[0].text[0]] == [kept] * (count - 1) + ["0.95"]
