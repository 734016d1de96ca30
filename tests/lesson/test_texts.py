"""The course's texts: every lesson has one, no number in it was typed, and all that it names is there."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from attention_viz import lesson as course
from attention_viz.errors import AttentionVizError
from attention_viz.lesson import EXERCISES, LESSONS, TERMS, Scene, lesson_text
from attention_viz.lesson.render import template
from attention_viz.lesson.scene import RunText
from attention_viz.operation.attention import attend
from attention_viz.operation.masks import causal
from attention_viz.steps.steps import STEPS

TEXTS = Path(course.__file__).parent / "text" / "en"
ORDER = [
    *(
        "why",
        "vectors",
        "plain",
        "roles",
        "scores",
        "softmax",
        "scaling",
        "mixture",
        "masks",
        "heads",
        "around",
        "next",
        "jobs",
        "together",
        "writes",
    ),
    *("positions", "cross", "picture", "where", "sound", "older", "recurrent", "cost", "cache"),
    *("windows", "practice"),
    *("linear", "delta", "limits"),
]
MARK = re.compile(r"\{\{.*?\}\}")
TERM = re.compile(r"\[([^\]]+)\]\(term:([^)]+)\)")
FORMULA = re.compile(r"\$\$?[^$]+\$\$?")
LEFT_OVER = re.compile(r"\{\{ *[\w.]+ *\}\}|\(term:")
Say = Callable[[str, str], str]


def test_the_course_has_its_lessons_in_order_each_with_a_text_and_an_exercise_of_its_own() -> None:
    assert list(LESSONS) == ORDER
    assert sorted(path.stem for path in TEXTS.glob("*.md")) == sorted(LESSONS)
    kinds = [lesson.exercise for lesson in LESSONS.values()]
    assert sorted(kinds) == sorted(EXERCISES)
    assert all(5 <= lesson.minutes <= 10 and lesson.title for lesson in LESSONS.values())


@pytest.mark.parametrize("name", LESSONS)
def test_no_number_in_a_text_was_typed(name: str) -> None:
    text = FORMULA.sub(" ", MARK.sub(" ", TERM.sub(r"\1", template(name))))
    assert not re.search(r"\d", text), text
    counted = len(TERM.sub(r"\1", template(name)).split())
    assert 80 <= counted <= 175, counted
    assert template(name).split("\n\n")[-1].startswith("**Try it:** ")


@pytest.mark.parametrize("name", LESSONS)
def test_a_text_finds_its_facts_formulas_and_terms_in_both_notations(name: str, run: RunText) -> None:
    tellings: list[str] = []
    for notation in ("rows", "columns"):
        scene = Scene("The bank of the river was flooded", run, notation=notation)
        shown = LESSONS[name].show(scene)
        tellings.append(lesson_text(name, shown.facts, notation, escape=lambda fact: f"«{fact}»"))
        assert not LEFT_OVER.search(tellings[-1])
        used = {fact for fact in re.findall(r"\{\{ *([\w.]+) *\}\}", template(name)) if fact[:8] != "formula."}
        assert all(f"«{shown.facts[fact]}»" in tellings[-1] for fact in used)
        assert shown.says.rstrip().endswith((".", "!", "?"))
    steps = {step for step in re.findall(r"\{\{ *formula\.(\w+) *\}\}", template(name)) if step in STEPS}
    differ = [step for step in steps if STEPS[step].rows != STEPS[step].columns]
    assert (tellings[0] != tellings[1]) or not differ


def test_every_term_is_one_sentence_and_used_by_a_lesson() -> None:
    used = {found[1] for name in LESSONS for found in TERM.findall(template(name))}
    assert used == set(TERMS)
    assert list(TERMS) == sorted(TERMS, key=str.casefold)
    for meaning in TERMS.values():
        assert meaning.endswith(".")
        assert meaning[:-1].count(". ") == 0


def test_a_readers_words_are_no_markup_of_ours_and_what_is_missing_is_named() -> None:
    facts = {fact: "{{model}} [a](term:head)" for fact in re.findall(r"\{\{(\w+)\}\}", template("why"))}
    assert lesson_text("why", facts).count("{{model}} [a](term:head)") >= len(facts)
    with pytest.raises(AttentionVizError, match="'model', which wasn't computed"):
        lesson_text("why", {})
    with pytest.raises(AttentionVizError, match="'sideways'; choose rows or columns"):
        lesson_text("why", facts, "sideways")


def test_what_heads_read_and_when_order_is_known_is_said_as_it_is() -> None:
    """Each head reads the whole vector; a causal mask tells places apart without positions."""
    assert "shared out" not in template("heads") and "each reads all" in template("heads")
    assert "without a [mask]" in template("positions") and "causal mask" in template("positions")


@pytest.mark.parametrize("seed", [0, 1])
def test_without_positions_a_causal_mask_still_tells_places_apart(seed: int) -> None:
    """Attention over shuffled words: the same outputs shuffled without a mask, others under a causal one."""
    words = torch.randn(5, 6, generator=torch.Generator().manual_seed(seed))
    order = [3, 0, 4, 1, 2]
    for allowed, apart in ((None, False), (causal(5), True)):
        before, after = (attend(x, x, x, allowed).output for x in (words, words[order]))
        assert bool((after - before[order]).abs().max() > 1e-3) is apart
