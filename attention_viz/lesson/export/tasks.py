"""An exercise for a page without Python: its tables, hints and solution, and what checks an answer there."""

from attention_viz.lesson.exercise import Cells, Exercise, NumberAnswer, OptionAnswer, Table
from attention_viz.lesson.translation import translate

__all__ = ["exercise_data"]


def exercise_data(exercise: Exercise, seed: int) -> dict[str, object]:
    """Return an exercise as JSON values; `static/lesson/answers.js` checks with its "answer"."""
    return {
        "seed": seed,
        "question": f"{exercise.question} {exercise.desk}".strip(),
        "tables": [_table(one) for one in exercise.given],
        "hints": list(exercise.hints),
        "solution": exercise.solution,
        "working": exercise.working,
        "answer": _answer(exercise),
    }


def _table(table: Table) -> dict[str, object]:
    cells = [list(row) for row in table.cells]
    return {"title": table.title, "rows": list(table.rows), "columns": list(table.columns), "cells": cells}


def _answer(exercise: Exercise) -> dict[str, object]:
    answer = exercise.answer
    if isinstance(answer, OptionAnswer):
        explained = [exercise.explain(at) for at in range(len(answer.options))]
        right = sorted(answer.right)
        return {"kind": "options", "options": list(answer.options), "right": right, "explained": explained}
    if isinstance(answer, Cells):
        return _cells(exercise, answer)
    return _number(exercise, answer)


def _number(exercise: Exercise, answer: NumberAnswer) -> dict[str, object]:
    return {
        "kind": "number",
        "value": answer.value,
        "within": answer.within,
        "form": answer.form,
        "working": exercise.working,
        "arithmetic": exercise.arithmetic,
        "said": translate("You said {answer}", answer="{answer}"),
        "slips": [{"answer": slip.answer, "words": slip.words} for slip in exercise.slips],
    }


def _cells(exercise: Exercise, answer: Cells) -> dict[str, object]:
    marks = {"count": "{count}", "row": "{row}"}
    return {
        "kind": "cells",
        "rows": list(answer.rows),
        "columns": list(answer.columns),
        "start": _places(answer.start),
        "right": _places(answer.right),
        "working": exercise.working,
        "wrong": {
            "one": translate("1 cell is wrong, in the row of “{row}”", **marks),
            "many": translate("{count} cells are wrong, one of them in the row of “{row}”", **marks),
        },
        "slips": [
            {"answer": _places(slip.answer), "words": slip.words}
            for slip in exercise.slips
            if isinstance(slip.answer, frozenset)
        ],
    }


def _places(cells: frozenset[tuple[int, int]]) -> list[list[int]]:
    return [list(cell) for cell in sorted(cells)]
