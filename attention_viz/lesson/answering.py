"""A question about an image of shapes: a head's row over nine places, and the answer with a place blocked."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise, product
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from attention_viz.analysis.places import patch_grid, without_patches
from attention_viz.analysis.slides import ShownPicture, picture_shown
from attention_viz.inputs.media.shapes import COLOURS, COLUMNS, DRAWN, ROWS, Shape
from attention_viz.lesson.scene import Scene
from attention_viz.sources import CATALOGUE
from attention_viz.trace.once import once
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Trace

SHAPES_MODEL = "shapes"
# The head (layer, head) that was trained to attend to the shape that the next word names.
HEAD = (1, 0)
PLACES = tuple(" ".join(place) for place in product(ROWS, COLUMNS))
# The colours and "none": what it answers to a question for a colour.
ANSWERS = (*COLOURS, "none")
_STREAM = "decoder"
# The first patch of each third of an image; each place holds its shape's patches.
_THIRDS = (0, 3, 5, 8)


class PictureQuestion(NamedTuple):
    """A question about one shape of a sample."""

    sample: str
    shape: Shape
    text: str

    @property
    def others(self) -> tuple[Shape, ...]:
        """All shapes of the sample."""
        return DRAWN[self.sample]


def questions(sample: str, wording: str) -> tuple[PictureQuestion, ...]:
    """Return a sample's questions with one answer; `wording` has {} for the shape's name."""
    names = [one.shape for one in DRAWN[sample]]
    return tuple(
        PictureQuestion(sample, one, wording.format(one.shape)) for one in DRAWN[sample] if names.count(one.shape) < 2
    )


@dataclass(frozen=True, eq=False)
class PictureAnswer:
    """A question's run; `blocked` is a place that no word may attend to, in any layer or head of the decoder."""

    scene: Scene
    question: PictureQuestion
    blocked: int | None = None

    @once
    def trace(self) -> Trace:
        """The run."""
        if self.blocked is None:
            return self.scene.run(SHAPES_MODEL, self.question.text, picture=self.question.sample)
        tokens = PictureAnswer(self.scene, self.question).tokens
        edits = (without_patches(tokens, _positions(tokens, self.blocked), _STREAM),)
        return self.scene.run(SHAPES_MODEL, self.question.text, picture=self.question.sample, edits=edits)

    @property
    def tokens(self) -> Tokens:
        """The beginning token, the patches and the question's words."""
        return self.trace.key_tokens(_STREAM)

    @once
    def words(self) -> dict[int, str]:
        """The question's words by position."""
        return {at: self.tokens.labels[at] for at in range(max(self.tokens.patches) + 1, len(self.tokens))}

    @property
    def naming(self) -> int:
        """The position of the shape's name."""
        return next(at for at, word in self.words.items() if word == self.question.shape.shape)

    def row(self, position: int) -> Float[Tensor, " key"]:
        """Return a word's weights."""
        return self.trace.weights(*HEAD, _STREAM)[position].detach().double().cpu()

    def on_places(self, position: int) -> tuple[float, ...]:
        """Return a word's weight on each of nine places, and on no place: the beginning token and the words."""
        row = self.row(position)
        found = tuple(float(row[_positions(self.tokens, place)].sum()) for place in range(len(PLACES)))
        return (*found, max(0.0, 1 - sum(found)))

    def hits(self, position: int) -> bool:
        """Return whether a word's strongest patch is in the place of the question's shape."""
        row, patches = self.row(position), sorted(self.tokens.patches)
        strongest = patches[int(row[patches].argmax())]
        return strongest in _positions(self.tokens, PLACES.index(self.question.shape.place))

    @once
    def likely(self) -> dict[str, float]:
        """The probability of each answer."""
        shares = self.trace.output[-1].detach().double().softmax(dim=-1)
        return {word: float(shares[_vocabulary()[word]]) for word in ANSWERS}

    @property
    def answer(self) -> str:
        """The likeliest answer."""
        return max(self.likely, key=self.likely.__getitem__)

    def shown(self, position: int) -> ShownPicture | None:
        """Return the figure for a class, with a word's weights and framed places."""
        row = self.row(position)
        if self.blocked is not None:
            row[_positions(self.tokens, self.blocked)] = torch.nan
        shown = picture_shown(self.trace, self.tokens, row, None, None)
        return None if shown is None else replace(shown, boxes=tuple(map(_box, range(len(PLACES)))))


@cache
def _vocabulary() -> Mapping[str, int]:
    """Return each word's number among the outputs: a stream with patches has no ids of its own."""
    path = CATALOGUE[SHAPES_MODEL].path
    assert path is not None, "it ships with the package"
    return json.loads((path / "tokenizer.json").read_text("utf-8"))["model"]["vocab"]


def _box(place: int) -> tuple[int, int, int, int]:
    """Return the first row and column of a place's patches, and how many of each."""
    thirds = list(pairwise(_THIRDS))
    (top, bottom), (left, right) = (thirds[at] for at in divmod(place, len(COLUMNS)))
    return top, left, bottom - top, right - left


def _positions(tokens: Tokens, place: int) -> list[int]:
    top, left, rows, columns = _box(place)
    return patch_grid(tokens)[top : top + rows, left : left + columns].flatten().tolist()
