"""Sounds are opened with care: what is wrong with one is said by name, and what is done to it is told."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

import attention_viz as av
from attention_viz.inputs.media.shipped import SAMPLES

RATE = 16_000
TONE = (0.5 * np.sin(2 * np.pi * 440 * np.arange(RATE) / RATE)).astype(np.float32)


def as_bytes(samples: Any, rate: int = RATE, kind: str = "WAV") -> bytes:
    held = io.BytesIO()
    soundfile.write(held, samples, rate, format=kind)
    return held.getvalue()


@pytest.mark.parametrize("kind", ["WAV", "FLAC", "OGG", "MP3", "AIFF"])
def test_the_usual_formats_are_read(kind: str) -> None:
    found = av.Sound(as_bytes(TONE, kind=kind))
    assert found.rate == RATE
    assert found.seconds == pytest.approx(1, abs=0.15)  # MP3 pads
    assert 0.4 < np.abs(found.samples).max() < 0.6


def test_a_path_and_an_array_give_the_same(tmp_path: Path) -> None:
    (tmp_path / "tone.wav").write_bytes(as_bytes(np.round(TONE * 32767).astype(np.int16)))
    whole = np.round(TONE * 32767).astype(np.int16)
    assert av.Sound(tmp_path / "tone.wav").samples == pytest.approx(av.Sound(whole, RATE).samples, abs=1e-4)
    assert av.Sound(tmp_path / "tone.wav").name == "tone.wav"


def test_the_mean_of_channels_is_taken_and_told() -> None:
    found = av.Sound(np.stack([TONE, np.zeros_like(TONE)], axis=1), RATE)
    assert found.samples == pytest.approx(TONE / 2)
    assert "2 channels" in " ".join(found.notes)


@pytest.mark.parametrize("rate", [8_000, 44_100, 96_000])
def test_another_rate_keeps_the_tone(rate: int) -> None:
    sound = av.Sound(np.sin(2 * np.pi * 440 * np.arange(rate) / rate), rate)
    spectrum = np.abs(np.fft.rfft(sound.at(RATE)))
    assert spectrum.argmax() == 440
    assert sound.at(rate) is sound.samples


def test_of_a_long_sound_the_part_that_is_chosen_is_read_and_told() -> None:
    hour = np.zeros((3600 * 1000,), np.float32)
    hour[2000 * 1000 :] = 0.5
    found = av.Sound(hour, 1000, start=2000)
    assert found.seconds == 600
    assert found.samples.min() == 0.5
    assert "Seconds 2,000.00 to 2,600.00 of 3,600.00" in " ".join(found.notes)
    late = av.Sound(as_bytes(np.concatenate([TONE * 0, TONE])), start=1.0)
    assert np.abs(late.samples).max() > 0.4
    assert late.seconds == 1


def test_silence_is_told_from_sound() -> None:
    assert av.Sound(np.zeros(RATE), RATE).is_silent
    assert av.Sound(np.full(RATE, 0.2), RATE).is_silent
    assert not av.Sound(TONE, RATE).is_silent


@pytest.mark.parametrize(
    ("source", "rate", "says"),
    [
        (np.zeros(0), RATE, "0 s long"),
        (as_bytes(TONE[:0]), None, "0 s long"),
        (TONE, None, "needs rate=, a whole number of samples per second; got None"),
        (TONE, 5, "5 samples per second"),
        (np.full(RATE, np.nan), RATE, "finite numbers"),
        (TONE * 1000, RATE, "up to 500"),
        (np.zeros((2, 2, 2)), RATE, "(2, 2, 2)"),
        (np.zeros(10, complex), RATE, "complex"),
        (b"", None, "empty"),
        (b"nothing that sounds", None, "can't be read"),
        (as_bytes(TONE, kind="FLAC")[:60], None, "can't be read"),
        (b"\0\0\0\x18ftypmp42" + bytes(100), None, "video"),
        (as_bytes(TONE), RATE, "leave out rate=16000"),
        ("/nowhere/words.wav", None, "'/nowhere/words.wav'"),
        (7, RATE, "got int"),
    ],
)
def test_what_can_not_be_read_is_said_by_name(source: Any, rate: int | None, says: str) -> None:
    with pytest.raises(av.UnusableSound) as told:
        av.Sound(source, rate)
    assert says in str(told.value)


def test_a_beginning_behind_the_end_is_refused() -> None:
    with pytest.raises(av.UnusableSound, match=r"is 1\.00 s long; use a start before that, not 5 s"):
        av.Sound(TONE, RATE, start=5)
    with pytest.raises(av.UnusableSound, match="0 or more; got -1"):
        av.Sound(TONE, RATE, start=-1)


@pytest.mark.parametrize("name", [name for name, one in SAMPLES.items() if one.kind == "sound"])
def test_the_samples_are_sounds_that_say_whose_they_are(name: str) -> None:
    sample = SAMPLES[name]
    assert not av.Sound(sample.path).is_silent
    assert f"`{sample.file}`" in sample.path.with_name("README.md").read_text("utf-8")
