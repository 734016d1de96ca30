"""What the shapes model reads: images of one to four shapes, questions about them, and captions."""

import functools
import random
import zlib
from dataclasses import dataclass
from itertools import product

import numpy as np
import torch
from torch import Tensor

from attention_viz.inputs.media.shapes import COLOURS, COLUMNS, ROWS, SHAPES, SIDE, Shape, coverage, draw_shapes

__all__ = [
    "KINDS",
    "NAMES",
    "PATCHES",
    "WORDS",
    "Scene",
    "Turn",
    "caption",
    "covered",
    "draw",
    "held_out",
    "names",
    "pixels",
    "questions",
    "spoken",
]

PATCH = 8
PATCHES = (SIDE // PATCH) ** 2
MOST = 4
PLACES = list(product(ROWS, COLUMNS))
# What a patch must have of a shape to be one of its patches.
SHARE = 0.05
WORDS = [*COLOURS, *SHAPES, *ROWS, *COLUMNS, *"what colour is the where a nothing nowhere none caption ? , : .".split()]
_CONTENT = {*COLOURS, *SHAPES, *ROWS, *COLUMNS}
KINDS = ("colour", "shape", "place", "there", "caption")

# What each patch shows, by class; 0 is the ground.
NAMES = {"colour": tuple(COLOURS), "shape": SHAPES, "row": ROWS, "column": COLUMNS}


@dataclass(frozen=True)
class Turn:
    """A question with its answer.

    Attributes:
        about: the shape that it names; None if there is none.
    """

    kind: str
    question: str
    answer: str
    about: Shape | None = None


@dataclass(frozen=True)
class Scene:
    """Shapes in reading order, each in a place of its own, no two of the same colour and shape."""

    shapes: tuple[Shape, ...]

    @property
    def held_out(self) -> bool:
        """Whether it is of the eighth that is never trained on."""
        return zlib.crc32(caption(self).answer.encode()) % 8 == 0


def draw(chance: random.Random, *, unseen: bool, most: int = MOST) -> Scene:
    """Draw a scene, from those that are held out or from the others."""
    while True:
        count = chance.randint(1, most)
        places = sorted(chance.sample(range(len(PLACES)), count))
        looks = chance.sample(list(product(COLOURS, SHAPES)), count)
        scene = Scene(tuple(_varied(chance, *look, *PLACES[place]) for look, place in zip(looks, places, strict=True)))
        if scene.held_out == unseen:
            return scene


def _varied(chance: random.Random, colour: str, shape: str, row: str, column: str) -> Shape:
    shift = (chance.uniform(-1.5, 1.5), chance.uniform(-1.5, 1.5))
    return Shape(colour, shape, row, column, chance.uniform(7, 9), shift)


def held_out(count: int) -> list[Scene]:
    """Return scenes that were never trained on, the same each time."""
    chance = random.Random("held out: shapes")
    return [draw(chance, unseen=True) for _ in range(count)]


def caption(scene: Scene) -> Turn:
    """Return the caption: all shapes with their places."""
    return Turn("caption", "caption :", " , ".join(f"a {one.words} {one.place}" for one in scene.shapes) + " .")


def questions(scene: Scene) -> dict[str, list[Turn]]:
    """Return all questions with one right answer, by kind; some are about what isn't there."""
    found = dict[str, list[Turn]]()
    for shape in SHAPES:
        named = [one for one in scene.shapes if one.shape == shape]
        if len(named) < 2:
            about = named[0] if named else None
            found.setdefault("colour", []).append(
                Turn("colour", f"what colour is the {shape} ?", about.colour if about else "none", about)
            )
            found.setdefault("place", []).append(
                Turn("place", f"where is the {shape} ?", about.place if about else "nowhere", about)
            )
    for colour in COLOURS:
        named = [one for one in scene.shapes if one.colour == colour]
        if len(named) < 2:
            about = named[0] if named else None
            found.setdefault("shape", []).append(
                Turn("shape", f"what is {colour} ?", f"the {about.shape}" if about else "nothing", about)
            )
    for one in scene.shapes:
        found["place"].append(Turn("place", f"where is the {one.words} ?", one.place, one))
    taken = {one.place: one for one in scene.shapes}
    for row, column in PLACES:
        about = taken.get(f"{row} {column}")
        answer = f"a {about.words}" if about else "nothing"
        found.setdefault("there", []).append(Turn("there", f"what is {row} {column} ?", answer, about))
    return found


def pixels(scene: Scene) -> Tensor:
    """Return the image as the model reads it: (3, row, column), from −1 to 1."""
    return torch.tensor(draw_shapes(scene.shapes).pixels).permute(2, 0, 1).float() / 127.5 - 1


@functools.lru_cache(maxsize=1_000)
def covered(shape: Shape) -> Tensor:
    """Return the share of each patch that a shape covers, (patch,), row by row."""
    side = SIDE // PATCH
    return torch.from_numpy(coverage(shape).reshape(side, PATCH, side, PATCH).mean((1, 3))).flatten()


def spoken(scene: Scene, turn: Turn) -> list[Shape | None]:
    """Return for each word of an answer the shape whose colour, shape or place it is; None for the other words."""
    if turn.kind == "caption":
        owners = [one for one in scene.shapes for _ in range(6)]
    else:
        owners = [turn.about] * len(turn.answer.split())
    return [one if word in _CONTENT else None for word, one in zip(turn.answer.split(), owners, strict=True)]


def names(scene: Scene) -> Tensor:
    """Return what each patch shows, (patch, name): the classes of `NAMES`."""
    shares = torch.stack([covered(one) for one in scene.shapes])
    most, which = shares.max(0)
    classes = [[known.index(getattr(one, name)) + 1 for name, known in NAMES.items()] for one in scene.shapes]
    return torch.tensor(np.array(classes))[which] * (most >= SHARE)[:, None]
