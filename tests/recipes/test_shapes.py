"""The shapes model that ships: its answers, where its heads look, and what hiding a shape changes."""

import copy
import functools
import json
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import attention_viz as av
from attention_viz.inputs.media.shapes import COLOURS, DRAWN, SHAPES, Shape, draw_shapes
from attention_viz.trace.trace import Trace
from recipes import shapes, shapes_measures, shapes_scenes
from recipes.shapes_scenes import Scene, Turn
from recipes.training import UNASKED
from tests.shipped import shipped

FOLDER = Path(av.__file__).parent / "sources" / "trained" / "shapes"
IMAGES = 100
PATCHES = slice(1, 65)


@functools.cache
def figures() -> dict[str, Any]:
    return json.loads((FOLDER / "figures.json").read_text("utf-8"))


@functools.cache
def answered() -> tuple[list[tuple[Scene, Turn]], list[str]]:
    """Questions about unseen images, other than those that the card's numbers come from, and what it generates."""
    chance = Random("shapes in a test")
    rows = list[tuple[Scene, Turn]]()
    for _ in range(IMAGES):
        scene = shapes_scenes.draw(chance, unseen=True)
        rows += [(scene, chance.choice(turns)) for turns in shapes_scenes.questions(scene).values()]
        rows.append((scene, shapes_scenes.caption(scene)))
    model = shipped("shapes")
    assert model.tokenizer is not None
    return rows, shapes_measures.answers(model.hf_model, shapes.tokenizer(), rows)


def about_one() -> list[tuple[Scene, Turn]]:
    """The questions about one shape that it answers right."""
    return [row for row, text in zip(*answered(), strict=True) if text == row[1].answer and row[1].about is not None]


def changed_patches(scene: Scene, without: Shape) -> np.ndarray[Any, Any]:
    """Which patches change if a shape is left out of the image, (64,): by pixels, not by the drawing's own geometry."""
    whole, less = (draw_shapes(some).pixels for some in (scene.shapes, [one for one in scene.shapes if one != without]))
    return (whole != less).any(-1).reshape(8, 8, 8, 8).any((1, 3)).flatten()


def trace_of(scene: Scene, text: str, *edits: Any) -> Trace:
    return shipped("shapes").trace(text, picture=draw_shapes(scene.shapes), edits=list(edits))


def next_word(trace: Trace) -> str:
    return shipped("shapes").labels([int(trace.output[-1].argmax())])[0]


def without(patches: np.ndarray[Any, Any], length: int) -> Any:
    """Hide patches from all words, in every layer of the decoder."""
    allowed = torch.ones(length, length, dtype=torch.bool)
    allowed[65:, PATCHES] = ~torch.from_numpy(patches)
    return av.Allow(allowed, stream="decoder")


def test_the_marks_that_the_card_states() -> None:
    told = figures()
    assert told["images"] >= 1_000 and told["answers"] >= 5_000
    assert told["all"] >= 0.98
    assert min(told[kind] for kind in (*shapes_scenes.KINDS, "absent")) >= 0.95
    assert min(told["colour_on"], told["a_colour_on"]) >= 0.97
    assert min(told["shape_on"], told["a_shape_on"]) >= 0.99
    assert min(told[f"hidden_{kind}"] for kind in ("colour", "shape", "place", "there")) >= 0.95
    assert max(told["hidden_ground"], told["hidden_other"]) <= 0.01


def test_all_files_together_are_small() -> None:
    assert sum(file.stat().st_size for file in FOLDER.iterdir()) <= 450_000


def test_it_answers_questions_about_images_that_it_never_saw() -> None:
    rows, said = answered()
    right = [text == turn.answer for text, (_, turn) in zip(said, rows, strict=True)]
    assert len(right) == 5 * IMAGES
    assert sum(right) / len(right) >= 0.96
    blind = [other == turn.answer for other, (_, turn) in zip(said[5:] + said[:5], rows, strict=True)]
    assert sum(blind) / len(blind) < 0.5  # another image's answers don't do


def test_a_trace_reads_text_and_image_as_the_model_was_trained_to() -> None:
    model, shown = shipped("shapes"), DRAWN["shapes-two"]
    assert model.reads == "text beside a picture"
    trace = model.trace("<image>what colour is the circle ?", picture=draw_shapes(shown))
    assert trace.fidelity.ok and trace.streams == ("picture", "decoder")
    batch = shapes.batch_of(
        shapes.tokenizer(), [(Scene(shown), [Turn("colour", "what colour is the circle ?", "red")])]
    )
    assert trace.query_tokens("decoder").labels[65:] == ("what", "colour", "is", "the", "circle", "?")
    with torch.no_grad():
        own = model.hf_model(**{name: batch[name] for name in shapes.GIVEN}).logits[0, :-2]
    assert torch.allclose(trace.output, own, atol=1e-4)
    assert next_word(trace) == "red"


def test_the_processor_makes_the_pixels_of_training() -> None:
    scene = shapes_scenes.held_out(1)[0]
    given = shapes.processor(shapes.tokenizer())(
        text="<image>", images=Image.fromarray(draw_shapes(scene.shapes).pixels), return_tensors="pt"
    )
    assert torch.allclose(given["pixel_values"][0], shapes_scenes.pixels(scene), atol=1e-6)


def test_a_head_attends_to_the_shape_that_the_next_word_is_about() -> None:
    found, control = {"colour": list[bool](), "shape": list[bool]()}, list[bool]()
    for kind, before in (("colour", ""), ("shape", " the")):
        layer, head = figures()[f"{kind}_layer"], figures()[f"{kind}_head"]
        for scene, turn in about_one():
            if turn.kind != kind or turn.about is None:
                continue
            trace, its = trace_of(scene, turn.question + before), changed_patches(scene, turn.about)
            row, below = (trace.weights(*at, stream="decoder")[-1, PATCHES] for at in ((layer, head), (0, 0)))
            found[kind].append(bool(its[int(row.argmax())]))
            control.append(bool(its[int(below.argmax())]))
    assert min(map(len, found.values())) >= 25
    assert all(sum(right) >= len(right) - 1 for right in found.values())
    assert sum(control) < 0.8 * len(control)


def test_an_answer_changes_if_its_shape_is_hidden_and_not_if_ground_is() -> None:
    chance, changed, control = Random(0), list[bool](), list[bool]()
    rows = [(scene, turn) for scene, turn in about_one() if turn.kind == "colour"]
    for scene, turn in rows:
        length = 65 + len(turn.question.split())
        assert turn.about is not None
        its = changed_patches(scene, turn.about)
        free = np.flatnonzero(~np.any([changed_patches(scene, one) for one in scene.shapes], axis=0))
        ground = np.isin(np.arange(64), chance.sample(free.tolist(), int(its.sum())))
        words = [next_word(trace_of(scene, turn.question, without(hidden, length))) for hidden in (its, ground)]
        changed.append(words[0] != turn.answer)
        control.append(words[1] != turn.answer)
    assert len(rows) >= 25
    assert sum(changed) >= len(rows) - 1 and sum(control) <= 1


def test_the_marks_hold_on_other_images_than_the_cards() -> None:
    """The card's own measures, by the weights that ship, on other images; another head fails."""
    model, words = copy.deepcopy(shipped("shapes").hf_model), shapes.tokenizer()
    looks = shapes_measures.looks(model, words, about_one())
    for word, least in (("colour", 0.97), ("shape", 0.99), ("a_colour", 0.97), ("a_shape", 0.99)):
        layer, head = figures()[f"{word}_layer"], figures()[f"{word}_head"]
        assert float(looks[word][layer, head, 0]) >= least
        assert float(looks[word][0, 0, 0]) < least
    hidden = shapes_measures.hiding(model, words, about_one())
    assert min(hidden[f"hidden_{kind}"] for kind in ("colour", "shape", "place", "there")) >= 0.95
    assert max(hidden["hidden_ground"], hidden["hidden_other"]) <= 0.01


def test_every_question_has_the_one_right_answer() -> None:
    chance = Random(1)
    for scene in (shapes_scenes.draw(chance, unseen=False) for _ in range(200)):
        seen = [(one.colour, one.shape, f"{one.row} {one.column}") for one in scene.shapes]
        assert len(set(seen)) == len({place for *_, place in seen}) == len(seen)
        for turns in shapes_scenes.questions(scene).values():
            for turn in turns:
                asked = turn.question.removesuffix(" ?").split()
                of = [one for one in seen if set(asked) & {*one[:2]} or turn.question == f"what is {one[2]} ?"]
                of = [one for one in of if all(word in one for word in asked[3:])] if turn.kind == "place" else of
                assert len(of) <= 1 and (turn.about is None) == (not of)
                for colour, shape, place in of:
                    right = {
                        "colour": colour,
                        "shape": f"the {shape}",
                        "place": place,
                        "there": f"a {colour} {shape}",
                    }
                    assert turn.answer == right[turn.kind]


def test_a_turn_in_training_sees_the_image_and_itself_alone() -> None:
    scene = Scene(DRAWN["shapes-three"])
    turns = [turns[0] for turns in shapes_scenes.questions(scene).values()]
    words = shapes.tokenizer()
    batch = shapes.batch_of(words, [(scene, turns)])
    together = shapes.model_of(words).eval()
    with torch.no_grad():
        whole = together(**{name: batch[name] for name in shapes.GIVEN}).logits[0]
        at = shapes_measures.START
        for turn in turns:
            alone = shapes.batch_of(words, [(scene, [turn])])
            own = together(**{name: alone[name] for name in shapes.GIVEN}).logits[0, shapes_measures.START :]
            assert torch.allclose(whole[at : at + len(own)], own, atol=1e-5)
            asked = alone["labels"][0, shapes_measures.START :]
            assert [int(one) for one in asked if one != UNASKED] == shapes.turn_ids(words, turn)[1]
            at += len(own)


def test_what_a_patch_shows_is_named_by_what_covers_it() -> None:
    scene = Scene((Shape("red", "square", "top", "left", 9), Shape("blue", "ring", "bottom", "right", 9)))
    names = shapes_scenes.names(scene).reshape(8, 8, 4)
    assert names[1, 1].tolist() == [1, 1 + SHAPES.index("square"), 1, 1]
    assert names[5, 6].tolist() == [1 + [*COLOURS].index("blue"), 1 + SHAPES.index("ring"), 3, 3]
    assert not names[4].any()


@pytest.mark.parametrize("name", DRAWN)
def test_it_captions_the_samples(name: str) -> None:
    scene = Scene(DRAWN[name])
    turn = shapes_scenes.caption(scene)
    model = shipped("shapes")
    assert shapes_measures.answers(model.hf_model, shapes.tokenizer(), [(scene, turn)]) == [turn.answer]
