"""Spectrograms are those that a model of speech reads, and word times become subtitles."""

import numpy as np
import pandas
import pytest

from attention_viz.analysis.speech import BANDS, STEP, spectrogram, to_webvtt


def test_a_spectrogram_is_what_whispers_own_feature_extractor_makes() -> None:
    from transformers import WhisperFeatureExtractor

    chance = np.random.default_rng(1)
    samples = (np.sin(np.arange(16_000) / 7) * 0.3 + chance.normal(0, 0.05, 16_000)).astype(np.float32)
    theirs = WhisperFeatureExtractor()(samples, sampling_rate=16_000, return_tensors="np")["input_features"][0]
    # They map the loudest and what is 80 dB below it to other numbers.
    theirs = (theirs - theirs.max()) / 2 + 1
    ours = spectrogram(samples, 16_000)
    assert ours.shape == (16_000 // STEP, BANDS)
    # The last column of theirs hears the silence that fills the window up.
    assert np.abs(ours[:-2] - theirs.T[: len(ours) - 2]).max() < 1e-3


@pytest.mark.parametrize("count", [1, 100, 399, 401])
def test_a_sound_shorter_than_a_window_has_a_column(count: int) -> None:
    found = spectrogram(np.full(count, 0.5, np.float32), 16_000)
    assert len(found) >= 1 and np.isfinite(found).all()


def test_subtitles_have_a_cue_for_each_word_that_has_a_time_and_no_markup() -> None:
    times = pandas.DataFrame(
        [("She", 0.0, 0.16), ("<b>\n--> &", 3661.5, 3662.25), ("lost", float("nan"), float("nan"))],
        columns=["word", "start", "end"],
    )
    assert to_webvtt(times) == (
        "WEBVTT\n\n00:00:00.000 --> 00:00:00.160\nShe\n\n01:01:01.500 --> 01:01:02.250\n&lt;b&gt; --&gt; &amp;\n"
    )
