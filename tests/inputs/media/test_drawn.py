"""Drawings by name: each name is one image, wrong names are refused with a reason, and the model answers about them."""

from itertools import product
from random import Random

import numpy as np
import pytest

import attention_viz as av
from attention_viz.inputs.media.drawn import EXAMPLE, MOST_SHAPES, is_drawn, name_of, shapes_of, shows
from attention_viz.inputs.media.shapes import COLOURS, COLUMNS, ROWS, SHAPES, Shape, draw_shapes
from recipes import shapes, shapes_measures, shapes_scenes
from recipes.shapes_scenes import Scene, Turn
from tests.shipped import shipped


def drawings(count: int) -> list[Scene]:
    """Drawings as a visitor makes them: any looks in any places, all of one size, in the middle of their places."""
    chance = Random("drawn by a visitor")
    looks, places = list(product(COLOURS, SHAPES)), list(product(ROWS, COLUMNS))
    found = list[Scene]()
    for _ in range(count):
        some = chance.randint(1, MOST_SHAPES)
        parts = zip(chance.sample(looks, some), chance.sample(places, some), strict=True)
        found.append(Scene(shapes_of(name_of(Shape(*look, *place) for look, place in parts))))
    return found


def test_a_name_gives_its_shapes_in_reading_order() -> None:
    assert shapes_of("drawn.blue-ring-middle-left.red-circle-top-right") == (
        Shape("red", "circle", "top", "right"),
        Shape("blue", "ring", "middle", "left"),
    )
    assert name_of(shapes_of(EXAMPLE)) == EXAMPLE and is_drawn(EXAMPLE) and not is_drawn("shapes-two")
    assert shows(shapes_of(EXAMPLE)) == "a red circle, a blue square"
    for scene in drawings(50):
        assert shapes_of(name_of(reversed(scene.shapes))) == scene.shapes


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("drawn.", "can't read the shape ''"),
        ("drawn.red-circle", "can't read the shape 'red-circle'"),
        ("drawn.pink-circle-top-left", "unknown colour 'pink'; choose red, yellow"),
        ("drawn.red-star-top-left", "unknown shape 'star'; choose circle"),
        ("drawn.red-circle-up-left", "unknown row 'up'; choose top"),
        ("drawn.red-circle-top-1", "unknown column '1'; choose left"),
        ("drawn.red-circle-top-left.blue-ring-top-left", "two shapes are top left"),
        ("drawn.red-circle-top-left.red-circle-top-right", "there are two red circles"),
        (f"{EXAMPLE}.red-ring-top-right.red-cross-top-centre.green-ring-bottom-left", "more than 4 shapes"),
        ("drawn." + "red-" * 10_000, "more than 4 shapes"),
    ],
)
def test_a_name_that_no_drawing_has_is_refused_with_the_reason(name: str, words: str) -> None:
    with pytest.raises(av.UnusablePicture) as refused:
        shapes_of(name)
    assert words in str(refused.value) and len(str(refused.value)) < 300


def test_questions_about_drawings_are_answered_right() -> None:
    chance, rows = Random("asked about a drawing"), list[tuple[Scene, Turn]]()
    for scene in drawings(80):
        rows += [(scene, chance.choice(turns)) for turns in shapes_scenes.questions(scene).values()]
        rows.append((scene, shapes_scenes.caption(scene)))
    said = shapes_measures.answers(shipped("shapes").hf_model, shapes.tokenizer(), rows)
    right = [text == turn.answer for text, (_, turn) in zip(said, rows, strict=True)]
    assert len(right) == 5 * 80 and np.mean(right) >= 0.98
    # A control: another drawing's answers don't do.
    assert np.mean([text == turn.answer for text, (_, turn) in zip(said[5:] + said[:5], rows, strict=True)]) < 0.5


def test_a_drawing_in_the_app_is_the_image_that_the_model_was_trained_with() -> None:
    from attention_viz.serving.uploads import beside_of, shows_of, title_of

    scene = drawings(1)[0]
    name = name_of(scene.shapes)
    (picture,) = beside_of(name).values()
    assert isinstance(picture, av.Picture)
    assert np.array_equal(picture.pixels, draw_shapes(scene.shapes).pixels)
    trained = ((shapes_scenes.pixels(scene) + 1) * 127.5).round().numpy().astype(np.uint8)
    assert np.array_equal(picture.pixels, trained.transpose(1, 2, 0))
    assert (picture.name, title_of(name), shows_of(name)) == (
        "your drawing",
        "your drawing",
        shows(scene.shapes),
    )
