"""Prepare a text beside audio with the processor of a model that reads both."""

import inspect
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attention_viz.errors import AttentionVizError, UnusableSound, UnusableText, first_line
from attention_viz.inputs.media.beside import IDS, Beside, BesideReader, mark_of
from attention_viz.inputs.media.processor_apart import arguments_of
from attention_viz.inputs.media.readers import SPEECH, InputField, SoundReader
from attention_viz.inputs.media.remade import tensors_in
from attention_viz.inputs.media.remade_sound import RemadeSound
from attention_viz.inputs.media.sound import Sound
from attention_viz.trace.kind import InputKind
from attention_viz.trace.seen import Seen

if TYPE_CHECKING:
    from transformers.modeling_utils import PreTrainedModel

__all__ = ["BesideSoundReader", "hears_both", "takes_sound"]


def hears_both(model: "PreTrainedModel", processor: Any) -> bool:
    """Return whether a model's forward takes text and audio, and its processor makes both of one call."""
    parts = (getattr(processor, name, None) for name in ("feature_extractor", "tokenizer"))
    if not takes_sound(model) or mark_of(model, "audio") is None or any(part is None for part in parts):
        return False
    return isinstance(getattr(processor, "audio_token", None), str) and "audio" in arguments_of(processor)


def takes_sound(model: "PreTrainedModel") -> bool:
    """Return whether a model's forward takes text and audio, and generates no other text."""
    named = inspect.signature(model.forward).parameters
    return IDS in named and "decoder_input_ids" not in named and any(name in named for name in SPEECH)


class BesideSoundReader(BesideReader):
    """Reads text beside audio with a processor that has a tokenizer and a feature extractor."""

    def __init__(self, name: str, model: "PreTrainedModel", processor: Any) -> None:
        """Keep a processor."""
        self._name, self._processor = name, processor
        self._mark = mark_of(model, "audio")
        self.main = next(one for one in SPEECH if one in inspect.signature(model.forward).parameters)
        self._sounds = SoundReader(name, processor.feature_extractor, self.main)
        self.has_chat_template = self._template() is not None
        self.why_no_video = f"{name} reads text with audio, not video; pass sound=av.Sound(path)"

    @property
    def window(self) -> float | None:
        """The seconds that the feature extractor fills audio up to; None if it doesn't."""
        return self._sounds.window

    def read(self, thing: object) -> InputField:
        """Prepare a text and its audio."""
        if not isinstance(thing, Beside) or thing.sound is None:
            got = "images" if isinstance(thing, Beside) and thing.pictures else "a text alone"
            raise UnusableText(
                f"{self._name} reads a text with audio, but got {got}. Use trace(text, sound=av.Sound(path)); for text "
                "alone, load it with alone=True or wrap its tokenizer"
            )
        if not thing.written.strip():
            raise UnusableText("the text with the audio is empty: type at least one word")
        text, notes = self._with_places(self._rendered(thing).text, self._processor.audio_token, 1, "audio")
        samples, own = self._sounds.cut(thing.sound)

        def process(sound: NDArray[np.float32]) -> Mapping[str, Tensor]:
            return self._heard(text, sound)

        try:
            tensors = process(samples)
        except AttentionVizError:
            raise
        except Exception as error:
            raise UnusableSound(
                f"{self._name}'s processor can't read this text with {thing.sound.name}, {thing.sound.seconds:.2f} s: "
                f"{first_line(error)}"
            ) from error
        rate, named = self._sounds.rate, {InputKind.SOUND: f"{thing.sound.name}, {thing.sound.seconds:.2f} s"}
        seen, remade = Seen(sound=torch.tensor(samples), rate=rate), RemadeSound(tensors, len(samples), rate, process)
        return InputField(tensors, seen, named, (*own, *notes), remade.seconds, remade)

    def of_tensors(self, tensors: Mapping[str, Tensor]) -> InputField:
        """Return the input of a processor's own tensors."""
        if self.main not in tensors:
            raise UnusableSound(
                f"{self._name} reads a text with audio; pass {self.main} with the ids, as its processor makes them"
            )
        self._check(tensors, self.main)
        return InputField(tensors)

    def example(self) -> InputField:
        """Return noise beside a short text, as long as the feature extractor fills audio up to, or two seconds."""
        seconds = min(2.0, self.window or 2.0)
        chance = np.random.default_rng(0)
        sound = Sound(chance.normal(0, 0.1, round(seconds * self._sounds.rate)).clip(-1, 1), self._sounds.rate)
        given = self.read(Beside("a sound of this", (), sound=sound))
        return replace(given, seconds=self.window or given.seconds)

    def _heard(self, text: str, samples: NDArray[np.float32]) -> dict[str, Tensor]:
        made = self._processor(text=text, audio=samples, sampling_rate=self._sounds.rate, return_tensors="pt")
        tensors = tensors_in(made)
        self._check(tensors, self.main)
        return tensors
