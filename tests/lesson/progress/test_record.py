"""Progress files: ours are read whole, anything else is refused by the name of its part."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from attention_viz.errors import AttentionVizError
from attention_viz.lesson.progress.record import MOST_BYTES, Progress, Tried, first_seed, read_progress
from scripts.javascript import NODE

ROOT = Path(__file__).parents[3]
ID = "0123456789abcdef"
ONE = {"lesson": "scores", "text": "The cat sat", "seed": 700, "tries": ["1", "#2"], "hints": 1, "solved": True}


def record(**changes: Any) -> bytes:
    whole = {"version": 1, "id": ID, "language": "en", "course": {}, "exercises": [ONE], "test": {}}
    return json.dumps(whole | changes).encode()


def test_what_the_browser_writes_is_read(tmp_path: Path) -> None:
    module = ROOT / "attention_viz" / "explorer" / "static" / "lesson" / "progress.js"
    script = tmp_path / "write.mjs"
    script.write_text(
        f"""import * as progress from {json.dumps(module.as_uri())};
        const one = {{lesson: "scores", text: "Größe 字 \\ud83d\\ude00", seed: 712}};
        let kept = {{...progress.newProgress(), course: {{lessons: ["scores", "why"], student: 7}}}};
        for (const note of [{{answer: "3"}}, {{hints: 2}}, {{answer: "3.5", right: true}}, {{solution: true}}])
          kept = progress.addNote(kept, {{...one, ...note}});
        kept.test.before = ["#1", "#0"];
        console.log(progress.progressText(kept));"""
    )
    done = subprocess.run([NODE, script], capture_output=True, check=True)
    found = read_progress(done.stdout)
    tried = Tried("scores", "Größe 字 😀", 712, ("3", "3.5"), 2, False, True)
    assert found == Progress(found.id, ("scores", "why"), 7, (tried,), ("#1", "#0"))
    assert len(found.id) == 16


def test_a_file_of_before_has_lessons_and_no_exercises() -> None:
    assert read_progress(b'{"done": ["why", "plain"]}') == Progress(done=("why", "plain"))


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"{", "valid JSON"),
        (b"\xff\xfe\x00", "valid JSON"),
        (b"[" * 100_000, "valid JSON"),
        (b"1" * 10_000, "valid JSON"),
        (b"[]", "isn't a progress file"),
        (b'{"done": "why"}', "“done” must be a list; got 'why'"),
        (b'{"done": [1]}', r"“done\[0\]” must be a text; got 1"),
        (b" " * (MOST_BYTES + 1), "at most 200,000 bytes; this one has 200,001"),
        (b"{}", "“version” must be 1; got None"),
        (record(version=2), "“version” must be 1; got 2"),
        (record(id="<script>"), "“id” must have 16 digits from 0 to f; got '<script>'"),
        (record(exercises={}), "“exercises” must be a list; got dict"),
        (record(exercises=[ONE] * 301), "“exercises” may have at most 300 entries; got 301"),
        (record(exercises=[ONE, 3]), r"“exercises\[1\]” must be an exercise; got 3"),
        (record(exercises=[ONE | {"seed": "1"}]), r"“exercises\[0\].seed” must be a whole number from 0 to 9999"),
        (record(exercises=[ONE | {"seed": True}]), "whole number from 0 to 9999; got True"),
        (record(exercises=[ONE | {"seed": 1.5}]), r"whole number from 0 to 9999; got 1\.5"),
        (record(exercises=[ONE | {"text": "x" * 2_001}]), "at most 2,000 characters; got 2,001"),
        (record(exercises=[ONE | {"tries": ["x" * 201]}]), r"tries\[0\]” may have at most 200 characters"),
        (record(exercises=[ONE | {"tries": ["1"] * 21}]), "at most 20 entries; got 21"),
        (record(course=[]), "“course” must be an object; got list"),
        (record(course={"student": 100}), "“course.student” must be a whole number from 0 to 99; got 100"),
    ],
)
def test_what_is_no_progress_is_refused_by_its_part(content: bytes, why: str) -> None:
    with pytest.raises(AttentionVizError, match=why):
        read_progress(content)


def test_an_exercise_with_a_seed_that_none_has_is_left_out() -> None:
    others = [ONE | {"seed": seed} for seed in (10_000, -1, 1e300, float("nan"), 10**50)]
    whole = read_progress(record(exercises=[*others, ONE, ONE | {"seed": 9_999}]))
    assert [one.seed for one in whole.exercises] == [700, 9_999]


def test_a_half_letter_is_replaced_because_nothing_can_write_it() -> None:
    (one,) = read_progress(record(exercises=[ONE | {"text": "a \ud800"}])).exercises
    assert one.text == "a ?"


def test_each_student_has_a_hundred_seeds_and_others_are_noticed() -> None:
    assert [*range(first_seed(7), first_seed(8))] == [*range(700, 800)]
    exercises = (Tried("why", "a b", 700), Tried("why", "a b", 799))
    assert not Progress(student=7, exercises=exercises).other_seeds
    assert Progress(student=8, exercises=exercises).other_seeds
    assert not Progress(exercises=exercises).other_seeds
