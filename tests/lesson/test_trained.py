"""Lessons on heads that work together: their numbers against the toy's own tensors, worked out anew."""

from dataclasses import replace
from typing import Any

import pytest
import torch

import attention_viz as av
from attention_viz.errors import ShapeError
from attention_viz.lesson import EXERCISES, LESSONS, Scene
from attention_viz.lesson.composed import STEPS, TOY_WORDS, Composed, WrittenBy
from attention_viz.lesson.exercise import NumberAnswer
from attention_viz.lesson.scene import RunText
from attention_viz.views import composition
from tests.shipped import shipped


@pytest.fixture
def scene(run: RunText) -> Scene:
    return Scene("The bank of the river was flooded", run)


def test_the_earlier_head_wrote_the_key_by_its_slice_of_w_o(scene: Scene) -> None:
    pair, model = Composed(scene, 1), shipped("induction")
    assert (pair.writer, pair.reader) == ((0, 0), (1, 1))
    assert isinstance(model, av.AttentionModel)
    first, second = model.hf_model.model.layers
    call, later = pair.trace.attention(0), pair.trace.attention(1)
    width = call.value.shape[-1]
    with torch.no_grad():
        entering: list[torch.Tensor] = []

        def keep(_: torch.nn.Module, given: tuple[torch.Tensor, ...]) -> None:
            entering.append(given[0][0])

        handle = second.register_forward_pre_hook(keep)
        model.hf_model(torch.tensor([pair.trace.query_tokens().ids]))
        handle.remove()
        norm = second.input_layernorm
        root = (entering[0][pair.key].square().mean() + norm.variance_epsilon).rsqrt()
        wrote = call.output[0, pair.key] @ first.self_attn.o_proj.weight[:, :width].T
        made = second.self_attn.k_proj((wrote * norm.weight * root)[None])[:, width : 2 * width]
        position = torch.tensor([[pair.key]])
        cosine, sine = model.hf_model.model.rotary_emb(made[None], position)
        halves = torch.cat((-made[:, width // 2 :], made[:, : width // 2]), dim=-1)
        turned = (made * cosine[0] + halves * sine[0])[0]
        by_hand = float(later.query[1, pair.query] @ turned * later.scale)
    assert pair.parts["head", 0, 0] == pytest.approx(by_hand, abs=1e-4)
    assert sum(pair.parts.values()) == pytest.approx(float(later.scaled[1, pair.query, pair.key]), abs=1e-4)


def test_what_came_before_is_what_a_word_is_found_by_once_trained_and_not_at_first(scene: Scene) -> None:
    lesson = LESSONS["together"]
    for at in range(len(TOY_WORDS) - 1):
        ask = lesson.ask(replace(scene, word=at))
        assert [ask.options[one] for one in ask.right] == [f"{TOY_WORDS[at]}₁"]
        assert ask.finding.startswith(f"“{TOY_WORDS[at]}₁” led it there")
        # The last word is followed by nothing the first time; of the others each that is pressed asks.
        assert ask.pressed == ("", *map(str, range(len(TOY_WORDS) - 1)), "")[: len(ask.options)]
    assert "No word led it there" in lesson.ask(replace(scene, choice=str(STEPS[0]))).finding


def test_both_weights_are_those_of_each_moment_and_without_the_first_head_the_second_finds_nothing(
    scene: Scene,
) -> None:
    pair = Composed(scene, 1)
    for step, (before, weight) in pair.over_training.items():
        trace = av.load("induction", revision=f"step-{step}").trace(pair.text)
        assert (before, weight) == (
            pytest.approx(float(trace.weights(0, 0)[3, 2])),
            pytest.approx(float(trace.weights(1, 1)[6, 3])),
        )
    assert pair.without_writer < 0.05 < 0.8 < pair.looks[1]
    drawn: Any = LESSONS["together"].show(scene).figure.data
    curves = [list(one.y) for one in drawn[-2:]]
    assert curves == [list(one) for one in zip(*pair.over_training.values(), strict=True)]
    with pytest.raises(ShapeError, match="after 7 steps"):
        composition(pair.trace, (0, 0), (1, 1), 6, 3, pair.over_training, marked=7)


def test_the_missing_part_is_what_the_head_wrote(scene: Scene) -> None:
    for seed in range(12):
        exercise = EXERCISES["part"].make(scene, seed)
        assert isinstance(exercise.answer, NumberAnswer)
        words = exercise.question.split("“")[2].split("”")[0].split()[: len(TOY_WORDS)]
        asked = exercise.question.split("“")[1].split("”")[0]
        pair = Composed(scene, words.index(asked.rstrip("₂")), words=tuple(words))
        # What is given is rounded to two decimals, each of its handful of numbers.
        assert exercise.answer.value == pytest.approx(pair.parts["head", *pair.writer], abs=0.04)
        assert exercise.answer.value > 0.5 * pair.opened.total
        assert not any(exercise.answer.accepts(slip.answer) for slip in exercise.slips)


def test_what_a_head_writes_for_is_its_slice_of_w_o_through_the_last_norm_and_the_word_head(scene: Scene) -> None:
    found, model = WrittenBy(scene, 1), shipped("induction")
    assert found.place == (1, 1) and isinstance(model, av.AttentionModel)
    hf, call = model.hf_model, found.trace.attention(1)
    width = call.value.shape[-1]
    entering: list[torch.Tensor] = []
    handle = hf.model.norm.register_forward_pre_hook(lambda _, given: entering.append(given[0][0]))
    with torch.no_grad():
        hf(torch.tensor([found.trace.query_tokens().ids]))
        handle.remove()
        norm = hf.model.norm
        root = (entering[0][found.query].square().mean() + norm.variance_epsilon).rsqrt()
        slice_of = hf.model.layers[1].self_attn.o_proj.weight[:, width : 2 * width]
        logits = hf.lm_head((call.output[1, found.query] @ slice_of.T) * norm.weight * root)
    logits = logits - logits.mean()
    assert list(found.added.values()) == pytest.approx([float(logits[token]) for token in found.ids], abs=1e-4)
    # It goes on with the pattern: what came after the first time gets most, and is lost without the head.
    assert max(found.added, key=found.added.__getitem__) == TOY_WORDS[2]
    assert found.likely[TOY_WORDS[2]] > 0.8 > 0.3 > found.likely_without[TOY_WORDS[2]]
    ask = LESSONS["writes"].ask(scene)
    assert ask.premise.startswith(
        f"After “cheese₂” comes “frog”. Layer 1, head 1 adds {found.added['frog']:.2f} to its logit."
    )
    # The head that writes the reader's keys is needed, though another of them adds more and looks at the word, too.
    writer, decoy = found.pair.writer, WrittenBy(scene, 1, (1, 0))
    (right,) = ask.right
    assert ask.pressed[right] == "·".join(map(str, writer)) and ask.finding.startswith("Without head 0·0,")
    assert decoy.added["frog"] > WrittenBy(scene, 1, writer).added["frog"] and int(decoy.row.argmax()) == found.pair.key
    assert ask.values[ask.pressed.index("1·0")] < 0.05 < 0.9 < ask.values[right]
    assert LESSONS["writes"].ask(replace(scene, choice="0·2")).values == ask.values
    pressed = LESSONS["writes"].ask(replace(scene, word=0))
    assert pressed.premise.startswith("After “moon₂” comes “cheese”.") and "“cheese”" in pressed.finding


def test_what_a_head_adds_is_what_each_word_would_add_by_its_weight(scene: Scene) -> None:
    for seed in range(8):
        exercise = EXERCISES["added"].make(scene, seed)
        assert isinstance(exercise.answer, NumberAnswer)
        words = tuple(exercise.question.split("“")[2].split("”")[0].split()[: len(TOY_WORDS)])
        asked, word = (exercise.question.split("“")[at].split("”")[0] for at in (1, 3))
        found = WrittenBy(scene, words.index(asked.rstrip("₂")), words=words)
        whole = sum(weight * number for weight, number in found.sources(word).values())
        # Each of a handful of numbers is rounded to two decimals.
        assert exercise.answer.value == pytest.approx(whole, abs=0.15)
        rows = av.decompose(shipped("induction"), found.trace, av.Logit(word, found.query)).table
        own = rows[(rows["layer"] == 1) & (rows["head"] == 1)]["contribution"].sum()
        assert whole == pytest.approx(own, abs=1e-3)
