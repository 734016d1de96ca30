"""Sentences spoken by espeak-ng, with its own times of the words."""

import ctypes
from ctypes.util import find_library
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

__all__ = ["SENTENCES", "Spoken", "speak", "speaks"]

SENTENCES = (
    "She opened the window and looked at the river.",
    "The old man walked slowly to the market.",
    "We will meet tomorrow at the station.",
    "Birds were singing in the garden this morning.",
    "He forgot his keys on the kitchen table.",
    "The train to London leaves in ten minutes.",
    "My sister plays the piano every evening.",
    "Please close the door when you leave.",
    "The children ran across the green field.",
    "It was raining when we left the house.",
    "They found a small box under the stairs.",
    "I would like a cup of coffee with milk.",
    "The teacher wrote a long word on the board.",
    "Our neighbor painted his fence yesterday.",
    "The ship sailed over the calm sea.",
    "Nobody knew the answer to that question.",
    "She bought fresh bread and three apples.",
    "The sun goes down behind the mountains.",
    "He read the letter twice and smiled.",
    "The dog sleeps in front of the fire.",
)
# Values of espeak-ng's speak_lib.h: samples are handed out as they are made; a word begins; nothing follows.
_SYNCHRONOUS, _WORD, _END, _RATE_PARAMETER, _SPEED = 2, 1, 0, 1, 150


class _Event(ctypes.Structure):
    _fields_: ClassVar[Any] = [
        ("type", ctypes.c_int),
        ("unique", ctypes.c_uint),
        ("text_position", ctypes.c_int),
        ("length", ctypes.c_int),
        ("audio_position", ctypes.c_int),
        ("sample", ctypes.c_int),
        ("user", ctypes.c_void_p),
        ("id", ctypes.c_int * 2),
    ]


_Told = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.POINTER(_Event))


@dataclass(frozen=True, eq=False)
class Spoken:
    """A spoken sentence.

    Attributes:
        words: each reported word and its start in seconds.
    """

    samples: "np.ndarray[Any, np.dtype[np.float32]]"
    rate: int
    words: tuple[tuple[str, float], ...]

    @property
    def seconds(self) -> float:
        """Return its length in seconds."""
        return len(self.samples) / self.rate


def speaks() -> bool:
    """Return whether espeak-ng is on this machine."""
    return find_library("espeak-ng") is not None


def speak(sentences: tuple[str, ...]) -> list[Spoken]:
    """Return sentences spoken by espeak-ng, in its American English."""
    library = ctypes.CDLL(find_library("espeak-ng"))
    rate = library.espeak_Initialize(_SYNCHRONOUS, 0, None, 0)
    library.espeak_SetVoiceByName(b"en-us")
    library.espeak_SetParameter(_RATE_PARAMETER, _SPEED, 0)
    return [_speak(library, sentence, rate) for sentence in sentences]


def _speak(library: ctypes.CDLL, sentence: str, rate: int) -> Spoken:
    parts, words = list[Any](), list[tuple[str, float]]()

    def phrase(samples: Any, count: int, events: Any) -> int:
        if samples and count:
            parts.append(np.ctypeslib.as_array(samples, (count,)).copy())
        place = 0
        while events[place].type != _END:
            event = events[place]
            if event.type == _WORD:
                begin = event.text_position - 1
                words.append((sentence[begin : begin + event.length], event.audio_position / 1000))
            place += 1
        return 0

    callback, text = _Told(phrase), sentence.encode()
    library.espeak_SetSynthCallback(callback)
    library.espeak_Synth(text, len(text) + 1, 0, 0, 0, 0, None, None)
    library.espeak_Synchronize()
    samples = (np.concatenate(parts) / 32768).astype(np.float32)
    return Spoken(samples, rate, tuple(word for word in words if word[0].strip()))
