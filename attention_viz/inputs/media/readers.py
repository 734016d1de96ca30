"""Prepare an image or a sound with the model's own processor, and check the result."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import Tensor

from attention_viz.errors import UnsupportedModel, UnusablePicture, UnusableSound, first_line
from attention_viz.inputs.chats import Rendered
from attention_viz.inputs.media.arrays import check_finite, checked_numbers
from attention_viz.inputs.media.picture import Picture
from attention_viz.inputs.media.remade import PICTURE, Remade, tensors_in
from attention_viz.inputs.media.remade_sound import SPEECH, RemadeSound
from attention_viz.inputs.media.sound import Sound
from attention_viz.trace.kind import InputKind
from attention_viz.trace.seen import NO_TIMES, NOTHING, Seen

if TYPE_CHECKING:
    from transformers.modeling_utils import PreTrainedModel

# The ends of the names of tensors that say what rows of others make.
_SIZES = ("grid_thw", "grid_hw", "target_sizes", "spatial_shapes", "lengths", "merge_sizes")
# The classes for inputs other than text.
Medium = Picture | Sound
CLASSES: Mapping[InputKind, type[Medium]] = {InputKind.PICTURE: Picture, InputKind.SOUND: Sound}


@dataclass(frozen=True, eq=False)
class InputField:
    """One input of a model: the tensors of its forward, and the image or sound as the model gets it.

    Attributes:
        notes: changes made to it, in sentences.
        seconds: length of the sound, without padding.
        remade: how to make the images' or audio's tensors again, beside a text.
        chat: a chat as the template wrote it, if the processor got exactly that.
    """

    tensors: Mapping[str, Tensor]
    seen: Seen = NOTHING
    named: Mapping[InputKind, str] = field(default_factory=dict[InputKind, str])
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    remade: Remade | RemadeSound | None = None
    chat: Rendered | None = None

    def __post_init__(self) -> None:
        """Refuse NaN and infinity."""
        for name, tensor in self.tensors.items():
            check_finite(name, tensor)


class Reader(ABC):
    """Prepares inputs other than text; `main` names their tensor."""

    kind: InputKind
    main: str
    has_chat_template: bool = False

    @abstractmethod
    def read(self, thing: object) -> InputField:
        """Prepare an image, a sound or tensors."""

    @abstractmethod
    def example(self) -> InputField:
        """Return a smallest input whose numbers all differ."""


class PictureReader(Reader):
    """Reads images with an image processor of transformers."""

    kind = InputKind.PICTURE
    main = PICTURE

    def __init__(self, model: str, processor: Any) -> None:
        """Keep a processor."""
        self._model, self._processor = model, processor

    def read(self, thing: object) -> InputField:
        """Prepare an image."""
        if not isinstance(thing, Picture):
            raise UnusablePicture(f"{self._model} reads images, av.Picture(path); got {type(thing).__name__}")
        return self.of(thing, self._tensors(thing))

    def of(self, picture: Picture, tensors: dict[str, Tensor]) -> InputField:
        """Return the input of an image with known tensors."""
        seen = self.as_seen(tensors[PICTURE][0])
        notes = (*picture.notes, *self.cut(picture.pixels, seen))
        named = {InputKind.PICTURE: f"{picture.name}, {picture.size} pixels"}
        return InputField(tensors, Seen(picture=seen), named, notes)

    def example(self) -> InputField:
        """Return an image of random colours, always the same."""
        chance = np.random.default_rng(0)
        return self.read(Picture(chance.integers(0, 256, (96, 128, 3), dtype=np.uint8)))

    def _tensors(self, picture: Picture) -> dict[str, Tensor]:
        from PIL import Image

        try:
            made = self._processor(images=Image.fromarray(picture.pixels), return_tensors="pt")
        except Exception as error:
            raise UnusablePicture(
                f"{self._model}'s processor can't read {picture.name} ({picture.size}): {first_line(error)}"
            ) from error
        tensors = tensors_in(made)
        shape = tuple(tensors[PICTURE].shape) if PICTURE in tensors else ()
        if len(shape) != 4 or shape[0] != 1:
            raise UnsupportedModel(
                f"{self._model}'s processor cuts an image into tiles or patches of unknown places; it makes {PICTURE} "
                f"{shape}, not (1, colours, rows, columns)"
            )
        return tensors

    def as_seen(self, values: Tensor) -> Tensor:
        """Return the model's input numbers as colours."""
        own = self._processor
        values = values.double().movedim(0, -1)
        if getattr(own, "do_normalize", False):
            values = values * torch.tensor(own.image_std) + torch.tensor(own.image_mean)
        if getattr(own, "do_rescale", False):
            values = values / float(own.rescale_factor)
        return values.round().clamp(0, 255).to(torch.uint8).expand(-1, -1, 3).contiguous()

    def cut(self, pixels: "np.ndarray[Any, Any]", seen: Tensor, name: str = "") -> tuple[str, ...]:
        """Return a note if an image was cropped or resized; one of several has its name in it."""
        height, width, _ = seen.shape
        if pixels.shape[:2] == (height, width):
            return ()
        if getattr(self._processor, "do_center_crop", False):
            return (f"{f'Of {name}, the' if name else 'Its'} middle was read, at {width} × {height} pixels.",)
        return (f"{name or 'It'} was read at {width} × {height} pixels.",)


class SoundReader(Reader):
    """Reads sounds with a feature extractor of transformers."""

    kind = InputKind.SOUND

    def __init__(self, model: str, extractor: Any, main: str) -> None:
        """Keep an extractor."""
        self._model, self._extractor, self.main = model, extractor, main
        self.rate = int(getattr(extractor, "sampling_rate", 16_000))
        window = getattr(extractor, "n_samples", None)
        self.window = None if window is None else int(window) / self.rate
        self._most = 60.0 if self.window is None else self.window

    def read(self, thing: object) -> InputField:
        """Prepare a sound; cut it to the model's longest input."""
        if not isinstance(thing, Sound):
            raise UnusableSound(f"{self._model} reads audio, av.Sound(path); got {type(thing).__name__}")
        samples, notes = self.cut(thing)
        tensors = self._tensors(samples, thing)
        seen = Seen(sound=torch.tensor(samples), rate=self.rate)
        named = {InputKind.SOUND: f"{thing.name}, {thing.seconds:.2f} s"}
        return InputField(tensors, seen, named, notes, len(samples) / self.rate)

    def cut(self, thing: Sound) -> "tuple[np.ndarray[Any, np.dtype[np.float32]], tuple[str, ...]]":
        """Return a sound's samples at the model's rate, at most its longest input, and notes on the changes."""
        notes, samples = list(thing.notes), thing.at(self.rate)
        if thing.rate != self.rate:
            notes.append(f"It was resampled from {thing.rate:,} to {self.rate:,} samples per second.")
        most = round(self._most * self.rate)
        if len(samples) > most:
            notes.append(
                f"{self._model} reads {self._most:g} s at once: those from {thing.start:,.2f} s on were read, and the "
                "rest was cut. Choose others with av.Sound(…, start=…)."
            )
            samples = samples[:most]
        if thing.is_silent:
            notes.append(f"It is silent, so the model invents any words: {NO_TIMES}")
        return samples, tuple(notes)

    def example(self) -> InputField:
        """Return two seconds of noise, always the same."""
        chance = np.random.default_rng(0)
        return self.read(Sound(chance.normal(0, 0.1, 2 * self.rate).clip(-1, 1), self.rate))

    def _tensors(self, samples: "np.ndarray[Any, Any]", sound: Sound) -> dict[str, Tensor]:
        try:
            made = self._extractor(samples, sampling_rate=self.rate, return_tensors="pt")
        except Exception as error:
            raise UnusableSound(
                f"{self._model}'s feature extractor can't read {sound.name}, {sound.seconds:.2f} s: {first_line(error)}"
            ) from error
        if not isinstance(found := dict(made).get(self.main), Tensor) or found.shape[0] != 1:
            raise UnsupportedModel(
                f"{self._model} needs {self.main} in one window per sound; its feature extractor makes "
                f"{', '.join(dict(made))}, in one or several windows"
            )
        return {self.main: found}


class TensorReader(Reader):
    """Reads tensors as they are, with an example's names."""

    kind = InputKind.TENSORS

    def __init__(self, model: str, example: Mapping[str, Any], main: str, rows: int = 1) -> None:
        """Keep an example; `rows` is how many rows of ids or frames are one input."""
        self._model, self.main, self._rows = model, main, rows
        self._in_parts = "input_ids" in example or any(name.endswith(_SIZES) for name in example)
        self._example = self._checked(example)

    def read(self, thing: object) -> InputField:
        """Check the tensors."""
        if not isinstance(thing, Mapping):
            raise UnsupportedModel(
                f"{self._model} reads a dict of {', '.join(self._example)}, as in its example; got "
                f"{type(thing).__name__}"
            )
        named = cast("Mapping[str, Any]", thing)
        if set(named) != set(self._example):
            raise UnsupportedModel(
                f"{self._model} reads {', '.join(self._example)}, as in its example; got {', '.join(map(str, named))}"
            )
        return InputField(self._checked(named))

    def _checked(self, given: Mapping[str, Any]) -> dict[str, Tensor]:
        """Return tensors of one input; patches, images and sizes beside a text or a grid may have rows of their own."""
        return {name: _tensor(self._model, name, one, self._most_rows(name)) for name, one in given.items()}

    def _most_rows(self, name: str) -> int | None:
        """Return how many rows a tensor may have; None if that is free."""
        if name.endswith(("input_ids", "attention_mask", "inputs_embeds")):
            return self._rows if name == self.main else 1
        if name == self.main and not self._in_parts:
            return self._rows
        return None

    def example(self) -> InputField:
        """Return the example it was wrapped with."""
        return InputField(self._example)


def _tensor(model: str, name: str, value: object, rows: int | None) -> Tensor:
    least = 1 if rows is None else 2
    if not isinstance(value, Tensor) or value.ndim < least or (rows is not None and value.shape[0] not in (1, rows)):
        got = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
        raise UnsupportedModel(f"{model}'s inputs must be tensors of one row, (1, …); {name} is {got}")
    return checked_numbers(name, value)


def main_input(model: "PreTrainedModel") -> str:
    """Return the name of a model's main input: "input_ids" for text."""
    main = str(getattr(model, "main_input_name", "input_ids"))
    if main != "inputs":
        return main
    # Perceiver's classes share a name for texts and images.
    return next((one for one in ("input_ids", PICTURE) if one in inspect.signature(model.forward).parameters), main)


def reader_of(name: str, model: "PreTrainedModel", processor: Any) -> Reader:
    """Return the reader of an image or sound model."""
    main = main_input(model)
    pictures = getattr(processor, "image_processor", processor)
    sounds = getattr(processor, "feature_extractor", processor)
    if main == PICTURE and hasattr(pictures, "image_mean"):
        return PictureReader(name, pictures)
    if main in SPEECH and hasattr(sounds, "sampling_rate"):
        return SoundReader(name, sounds, main)
    raise UnsupportedModel(
        f"can't prepare {main} for {name} with {kind_of(processor)}; use an image processor for {PICTURE}, a feature "
        f"extractor for {' or '.join(SPEECH)}, or wrap it with inputs=, tensors of one row by name"
    )


def kind_of(processor: Any) -> str:
    """Return a processor's class name in transformers."""
    return str(getattr(processor, "kind", type(processor).__name__))


def example_reader(name: str, model: "PreTrainedModel", example: Mapping[str, Any]) -> Reader:
    """Return the reader of a model that takes tensors as they are."""
    wanted = main_input(model)
    main = wanted if wanted in example and wanted != "input_ids" else _seen_in(example) or next(iter(example), "")
    text = model.config.get_text_config()
    rows = getattr(text, "num_codebooks", 1) if main == "input_ids" else getattr(model.config, "num_frames", 1)
    return TensorReader(name, example, main, rows if isinstance(rows, int) else 1)


def _seen_in(example: Mapping[str, Any]) -> str | None:
    return next((one for one in example if one.startswith("pixel") or one in SPEECH), None)
