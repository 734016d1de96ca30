"""Tiny models that read a text beside audio, with random weights and processors of their own."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from torch import Tensor
from transformers import AddedToken

from attention_viz.models.model import AttentionModel
from attention_viz.models.wrapping import wrap
from scripts.seen.building import tiny_seen
from scripts.tiny import Family, scaled
from tests.models.picture_families import WORDS, tokenizer

_T: Any = transformers
RATE = 16_000
SOUND = len(WORDS)
# One second of noise; the feature extractor fills it up to 1.28 s, 128 frames of 10 ms.
WINDOW = 1.28
SAMPLES = np.random.default_rng(3).normal(0, 0.1, RATE).clip(-1, 1).astype(np.float32)
TEMPLATE = (
    "{% for message in messages %}{{ message.role }} : {% for part in message.content %}"
    "{% if part.type == 'audio' %}<sound> {% else %}{{ part.text }} {% endif %}{% endfor %}{% endfor %}assistant :"
)


def words() -> Any:
    """Return a tokenizer of words with a placeholder for audio."""
    found = tokenizer()
    found.add_tokens([AddedToken("<sound>", special=True, normalized=False)], special_tokens=True)
    found.audio_token = "<sound>"
    return found


def _made(name: str) -> Callable[[], Any]:
    def make() -> Any:
        sounds = _T.WhisperFeatureExtractor(feature_size=16, chunk_length=WINDOW, sampling_rate=RATE)
        sounds.n_samples, sounds.nb_max_frames = round(WINDOW * RATE), 128
        return getattr(_T, name)(sounds, words(), audio_token="<sound>", chat_template=TEMPLATE)

    return make


# By name: the model's class, and its processor.
FAMILIES: dict[str, tuple[str, Callable[[], Any]]] = {
    "qwen2_audio": ("Qwen2AudioForConditionalGeneration", _made("Qwen2AudioProcessor")),
    "audioflamingo3": ("AudioFlamingo3ForConditionalGeneration", _made("AudioFlamingo3Processor")),
    "musicflamingo": ("MusicFlamingoForConditionalGeneration", _made("MusicFlamingoProcessor")),
    "glmasr": ("GlmAsrForConditionalGeneration", _made("GlmAsrProcessor")),
}


@functools.cache
def model_of(family: str) -> Any:
    """Return a family's tiny model, whose heads are sharp."""
    model: Any = scaled(next(tiny_seen(Family(family, FAMILIES[family][0]))), 8)
    model.config.audio_token_id = SOUND
    return model.eval()


@functools.cache
def wrapped(family: str) -> AttentionModel:
    """Return it wrapped with its processor."""
    return wrap(model_of(family), FAMILIES[family][1]())


def publish(family: str, folder: Path) -> Any:
    """Save a family's tiny model as published ones are saved; return its processor.

    Its feature extractor fills audio up to one second, 128 frames: transformers counts samples in whole seconds only.
    """
    processor = FAMILIES[family][1]()
    processor.feature_extractor = _T.WhisperFeatureExtractor(feature_size=16, chunk_length=1, hop_length=RATE // 128)
    model_of(family).save_pretrained(folder)
    processor.save_pretrained(folder)
    return processor


def tensors_of(family: str, text: str, samples: Any = SAMPLES) -> dict[str, Tensor]:
    """Return a processor's tensors of a text beside audio."""
    made = FAMILIES[family][1]()(text=text, audio=samples, sampling_rate=RATE, return_tensors="pt")
    return {name: one for name, one in made.items() if isinstance(one, torch.Tensor) and name != "labels"}
