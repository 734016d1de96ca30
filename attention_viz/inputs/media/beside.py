"""Prepare a text beside an image with the processor of a model that reads both."""

import inspect
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from attention_viz.errors import UnsupportedModel, UnusablePicture, UnusableText, first_line
from attention_viz.inputs.media.picture import Picture
from attention_viz.inputs.media.readers import PICTURE, InputField, PictureReader, Reader
from attention_viz.trace.kind import InputKind
from attention_viz.trace.tokens import check_text

if TYPE_CHECKING:
    from transformers.modeling_utils import PreTrainedModel

# The name of the words in a model's forward.
IDS = "input_ids"


@dataclass(frozen=True, eq=False)
class Beside:
    """A text and the image beside it."""

    text: str
    picture: Picture

    @classmethod
    def of(cls, text: object, picture: object) -> "Beside":
        """Check a user's text and image."""
        check_text(text, "a text with an image")
        if not isinstance(picture, Picture):
            raise UnusablePicture(f"picture= takes av.Picture(path); got {type(picture).__name__}")
        return cls(str(text), picture)


def reads_both(model: "PreTrainedModel", processor: Any) -> bool:
    """Return whether a model's forward takes text and image, and its processor makes both."""
    parts = (getattr(processor, name, None) for name in ("image_processor", "tokenizer"))
    return takes_both(model) and all(part is not None for part in parts)


def takes_both(model: "PreTrainedModel") -> bool:
    """Return whether a model's forward takes text and image."""
    return {PICTURE, IDS} <= _named(model)


class BesideReader(Reader):
    """Reads text beside an image with a processor that has a tokenizer and an image processor."""

    kind = InputKind.BESIDE
    main = PICTURE

    def __init__(self, name: str, model: "PreTrainedModel", processor: Any) -> None:
        """Keep a processor."""
        if "decoder_input_ids" in _named(model):
            raise UnsupportedModel(
                f"can't assign positions of {name}, which reads a text with an image and generates another text. "
                "Use a model of one text, or pass tensors by name with inputs="
            )
        self._name, self._processor = name, processor
        self._pictures = PictureReader(name, processor.image_processor)
        self._mark = getattr(model.config, "image_token_id", None)

    def read(self, thing: object) -> InputField:
        """Prepare a text and its image."""
        if not isinstance(thing, Beside):
            raise UnusableText(
                f"{self._name} reads a text with an image, but got {_what(thing)} alone. Use "
                "trace(text, picture=av.Picture(path)); for text alone, load it with alone=True or wrap its tokenizer"
            )
        if not thing.text.strip():
            raise UnusableText("the text with the image is empty: type at least one word")
        text, notes = self._with_place(thing.text)
        given = self._pictures.of(thing.picture, self._tensors(text, thing.picture))
        return replace(given, notes=(*given.notes, *notes))

    def example(self) -> InputField:
        """Return an image of random colours beside a short text."""
        chance = np.random.default_rng(0)
        picture = Picture(chance.integers(0, 256, (96, 128, 3), dtype=np.uint8))
        return self.read(Beside("a picture of this", picture))

    def _with_place(self, text: str) -> tuple[str, tuple[str, ...]]:
        """Return the text with an image placeholder if the model needs one, and notes on the change."""
        place = getattr(self._processor, "image_token", None) if self._mark is not None else None
        if place is None or (count := text.count(place)) == 1:
            return text, ()
        if count:
            raise UnusableText(f"the text has {count} places for an image ({place}), but got one image; keep one")
        return f"{place}{text}", (f"The text has no place for the image, so {place} was put before it.",)

    def _tensors(self, text: str, picture: Picture) -> dict[str, Tensor]:
        from PIL import Image

        try:
            made = self._processor(text=text, images=Image.fromarray(picture.pixels), return_tensors="pt")
        except Exception as error:
            raise UnusablePicture(
                f"{self._name}'s processor can't read this text with {picture.name} ({picture.size}): "
                f"{first_line(error)}"
            ) from error
        tensors = {name: one for name, one in dict(made).items() if isinstance(one, Tensor)}
        shapes: dict[str, tuple[int, ...]]
        shapes = {name: tuple(tensors[name].shape) if name in tensors else () for name in (IDS, PICTURE)}
        if (len(shapes[IDS]), len(shapes[PICTURE])) != (2, 4) or shapes[IDS][:1] + shapes[PICTURE][:1] != (1, 1):
            raise UnsupportedModel(
                f"{self._name}'s processor cuts the image into tiles or patches of unknown places; it makes {IDS} "
                f"{shapes[IDS]} and {PICTURE} {shapes[PICTURE]}, not (1, tokens) and (1, colours, rows, columns)"
            )
        return tensors


def _named(model: "PreTrainedModel") -> frozenset[str]:
    return frozenset(inspect.signature(model.forward).parameters)


def _what(thing: object) -> str:
    return "a text" if isinstance(thing, str) else "an image" if isinstance(thing, Picture) else type(thing).__name__
