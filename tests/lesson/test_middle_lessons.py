"""Masks, many heads, positions, cross-attention and older attention: what the lessons say is so."""

import math
from dataclasses import replace

import numpy
import pytest
import torch

from attention_viz.lesson import LESSONS, Scene
from attention_viz.lesson.scene import RunText
from attention_viz.lesson.screens.kinds import KINDS, scored
from attention_viz.scratch.model import Scratch
from attention_viz.scratch.vectors import word_vectors
from attention_viz.trace.spelling import number_repeats

TEXT = "The bank of the river was flooded"


@pytest.fixture
def scene(run: RunText) -> Scene:
    return Scene(TEXT, run)


@pytest.mark.parametrize(("mask", "blocked", "cells"), [("none", 0, 81), ("causal", 36, 81), ("padding", 22, 121)])
def test_blocked_cells_are_counted(scene: Scene, mask: str, blocked: int, cells: int) -> None:
    facts = LESSONS["masks"].show(replace(scene, choice=mask)).facts
    assert (facts["blocked"], facts["cells"]) == (str(blocked), str(cells))


def test_a_mask_shares_out_what_is_left(scene: Scene, run: RunText) -> None:
    facts = LESSONS["masks"].show(replace(scene, choice="causal")).facts
    call = run("all-MiniLM-L6-v2", TEXT).attention(0).head(4)
    row = (call.key @ call.query[2]) / math.sqrt(32)
    assert (facts["layer"], facts["head"], facts["word"], facts["other"]) == ("0", "4", "bank", "river")
    assert facts["before"] == f"{float(row.softmax(-1)[5]):.2f}" == "0.58"
    assert facts["after"] == "0" and facts["sum"] == "1.00"
    # Filled up and not masked, the filling takes a part, which the mask gives back.
    facts = LESSONS["masks"].show(replace(scene, choice="padding")).facts
    call = run("all-MiniLM-L6-v2", TEXT, beside=f"{TEXT} and dry").attention(0).head(4)
    row = (call.key @ call.query[2]) / math.sqrt(32)
    assert row.shape == (11,)
    assert facts["before"] == f"{float(row.softmax(-1)[5]):.2f}"
    assert facts["after"] == f"{float(row[:9].softmax(-1)[5]):.2f}"
    assert float(facts["after"]) > float(facts["before"])


def test_a_row_with_nothing_left_is_told_apart(scene: Scene) -> None:
    facts = LESSONS["masks"].show(scene).facts
    row = torch.randn(9)
    assert torch.full((9,), -math.inf).softmax(-1).isnan().all()
    assert facts["plain"] == "not a number"
    assert facts["uniform"] == f"{float((row - 1e9).softmax(-1)[0]):.2f}" == "0.11"
    assert facts["ours"] == "0"


def test_a_mask_of_zeros_leaks_and_weights_that_are_cut_afterwards_lack_a_part(scene: Scene, run: RunText) -> None:
    facts = LESSONS["masks"].show(scene).facts
    call = run("all-MiniLM-L6-v2", TEXT).attention(0).head(4)
    row = (call.key @ call.query[2]) / math.sqrt(32)
    zeros = torch.cat([row[:3], torch.zeros(6)]).softmax(-1)
    assert facts["leak"] == f"{float(zeros[3:].sum()):.2f}"
    assert facts["left"] == f"{float(row.softmax(-1)[:3].sum()):.2f}"


def test_heads_share_the_width_and_not_the_weights(scene: Scene) -> None:
    told_of = [LESSONS["heads"].show(replace(scene, choice=str(heads))).facts for heads in (1, 2, 4, 8)]
    assert [facts["width"] for facts in told_of] == ["8 numbers", "4 numbers", "2 numbers", "1 number"]
    assert {facts["parameters"] for facts in told_of} == {str(4 * 8 * 8)}


@pytest.mark.parametrize(("setting", "positions", "mask"), [("none", False, False), ("causal", False, True)])
def test_without_positions_only_a_mask_tells_the_order(scene: Scene, setting: str, positions: bool, mask: bool) -> None:
    """Our module worked out here word by word, over the sentence and over the same words backwards."""
    lesson, words = LESSONS["positions"], TEXT.split()
    asked, shown = (make(replace(scene, choice=setting)) for make in (lesson.ask, lesson.show))
    scratch = Scratch(8, 2, positions="sinusoidal" if positions else "none")
    old, new = (_own_output(scratch, some, causal=mask) for some in (words, words[::-1]))
    new = new.flip(0)
    moved = ((new - old).norm(dim=-1) / old.norm(dim=-1)).tolist()
    assert asked.right == ({1} if mask else {0})
    assert ("stays the same" in asked.finding) != mask
    # “bank” takes the place of “was”.
    away = float((new[1] - old[5]).norm() / old[5].norm())
    assert asked.options[2] == "it is that of ‘was’" and asked.shown[2] == f"{away:.0%} away".replace("%", " %")
    if mask:
        assert f"“{words[moved.index(max(moved))]}” moves most: by {max(moved):.0%}".replace("%", " %") in (
            shown.facts["moved"].replace("₁", "").replace("₂", "")
        )
    else:
        assert max(moved) < 1e-5 and shown.facts["moved"] == "No output changes by more than rounding."


def _own_output(scratch: Scratch, words: list[str], *, causal: bool) -> torch.Tensor:
    known, x = scratch.projections(), scratch.embed(words)
    query, key, value = (x @ known[name].weight for name in ("query", "key", "value"))
    mixed = []
    for head in range(scratch.heads):
        own = slice(4 * head, 4 * head + 4)
        scores = query[:, own] @ key[:, own].T / 2
        if causal:
            scores = scores.masked_fill(torch.ones_like(scores).triu(1) > 0, -math.inf)
        mixed.append(scores.softmax(-1) @ value[:, own])
    return torch.cat(mixed, dim=-1) @ known["output"].weight


def test_positions_tell_the_order_of_words(scene: Scene) -> None:
    asked, shown = (
        make(replace(scene, choice="sinusoidal")) for make in (LESSONS["positions"].ask, LESSONS["positions"].show)
    )
    scratch = Scratch(8, 2)
    old, new = scratch.trace(TEXT).output, scratch.trace(" ".join(TEXT.split()[::-1])).output.flip(0)
    moved = numpy.linalg.norm((new - old).numpy(), axis=-1) / numpy.linalg.norm(old.numpy(), axis=-1)
    assert asked.right == {1} and f"moves by {_percent(moved[1])}" in asked.finding
    word = number_repeats(TEXT.split())[int(moved.argmax())]
    assert shown.facts["moved"] == f"The output of “{word}” moves most: by {_percent(moved.max())} of its length."


def _percent(share: float) -> str:
    return (f"{share:.1%}" if share < 0.0995 else f"{share:.0%}").replace("%", " %")


def test_a_trained_model_is_told_the_order_too(scene: Scene, run: RunText) -> None:
    scene = replace(scene, choice="trained")
    facts, ask = LESSONS["positions"].show(scene).facts, LESSONS["positions"].ask(scene)
    old, new = (run("all-MiniLM-L6-v2", text).output for text in (TEXT, " ".join(TEXT.split()[::-1])))
    # Both marks stay where they are.
    new = torch.cat([new[:1], new[1:-1].flip(0), new[-1:]])
    moved = ((new - old).norm(dim=-1) / old.norm(dim=-1))[1:-1]
    assert ask.right == {1} and ask.shown[1] == f"moves by {_percent(float(moved[1]))}"
    word = number_repeats(TEXT.lower().split())[int(moved.argmax())]
    assert facts["moved"] == f"The output of “{word}” moves most: by {_percent(float(moved.max()))} of its length."


def test_a_translator_looks_from_what_it_says_to_what_it_read(run: RunText) -> None:
    scene = Scene("the cat sees the dog", run)
    facts, trace = LESSONS["cross"].show(scene).facts, run("translation", "the cat sees the dog")
    queries, keys = trace.weights(0, 0, "cross").shape
    assert facts["cells"] == str(queries * keys)
    assert facts["word"] == trace.query_tokens("cross").names[int(LESSONS["cross"].control.value(scene))]
    row = max(trace.weights(0, head, "cross")[0].max().item() for head in range(4))
    assert facts["weight"] == f"{row:.2f}"
    assert LESSONS["cross"].show(Scene(TEXT, run)).facts["sentence"] != TEXT  # "flooded" isn't among its words


@pytest.mark.parametrize("kind", KINDS)
def test_older_scores_are_those_of_their_papers(kind: str) -> None:
    torch.manual_seed(0)
    x, w, u, v = torch.randn(5, 3), torch.randn(3, 3), torch.randn(3, 3), torch.randn(3)
    ways = {
        "additive": lambda s, h: v @ torch.tanh(w @ s + u @ h),
        "dot": lambda s, h: s @ h,
        "general": lambda s, h: s @ w @ h,
        "scaled": lambda s, h: s @ h / math.sqrt(3),
    }
    scores = torch.stack([torch.stack([ways[kind](s, h) for h in x]) for s in x])
    assert torch.allclose(scored(x, w, u, v, kind).weights[0], scores.softmax(-1), atol=1e-6)


@pytest.mark.parametrize(("kind", "right"), [("additive", 0), ("dot", 2), ("general", 2), ("scaled", 2)])
def test_only_the_additive_score_cant_grow_with_its_vectors(scene: Scene, kind: str, right: int) -> None:
    ask = LESSONS["older"].ask(replace(scene, choice=kind))
    assert ask.right == {right}
    scratch = Scratch(8, 1, positions="none")
    x, known, v = scratch.embed(scene.words), scratch.projections(), word_vectors(("v",), 8, 0)[0]
    w, u, s = known["query"].weight, known["key"].weight, x[1]
    ways = {
        "additive": lambda s, h: v @ torch.tanh(w @ s + u @ h),
        "dot": lambda s, h: s @ h,
        "general": lambda s, h: s @ w @ h,
        "scaled": lambda s, h: s @ h / math.sqrt(8),
    }
    short, long = (max(abs(float(ways[kind](s * times, h * times))) for h in x) for times in (1, 10))
    assert ask.shown[right] == f"{short:.2f} → {long:,.2f}"
    assert kind != "additive" or long <= float(v.abs().sum())


def test_the_weight_told_is_that_of_the_reader_s_words(scene: Scene) -> None:
    facts = LESSONS["older"].show(scene).facts
    scratch = Scratch(8, 1, positions="none")
    x, known, v = scratch.embed(scene.words), scratch.projections(), word_vectors(("v",), 8, 0)[0]
    row = torch.stack([v @ torch.tanh(known["query"].weight @ x[1] + known["key"].weight @ h) for h in x]).softmax(-1)
    assert (facts["word"], facts["other"]) == ("bank", scene.words[int(row.argmax())])
    assert facts["weight"] == f"{float(row.max()):.2f}"
