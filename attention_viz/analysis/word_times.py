"""Times of a sound's words, from cross-attention to its frames."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float
from numpy.typing import NDArray

from attention_viz.analysis.places import after_the_sound
from attention_viz.analysis.speech import divide, pauses
from attention_viz.errors import TraceError
from attention_viz.trace.once import once_for_each
from attention_viz.trace.seen import NO_TIMES
from attention_viz.trace.spelling import CONTINUES, SPACE
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Trace

if TYPE_CHECKING:
    import pandas

__all__ = ["aligning_heads", "said_words", "times_of", "word_times"]

_STREAM = "cross"
# A head aligns if its measure is this share of the best one's.
_NEAR = 0.9
# Of a head that aligns, at least this share of the weight lies in order.
_IN_ORDER = 0.25


@runtime_checkable
class _Named(Protocol):
    @property
    def name(self) -> str: ...


def word_times(model: _Named, trace: Trace) -> "pandas.DataFrame":
    """Return when each word was spoken, using the cross-attention heads that follow the speech.

    The frames are divided among the tokens in order: each token gets one stretch of at least one frame, and the
    division with the largest sum wins. To measure a head, its weights count in standard deviations above each frame's
    mean over the tokens. The measure is the sum's mean over the frames, as a share of the largest possible: nearly 0
    for a head that looks at one position, 1 for one that follows the speech. It is lowered if less than a quarter of
    the head's weight is in order. The weights of the heads with at least 0.9 of the best measure are averaged. To time
    the words, a token counts with its share of each frame's average weight.

    A pause belongs to no word: frames of a pause of 0.3 s or more (see `pauses`) go to no token, and no word contains a
    pause. The first word starts when it is spoken.

    Source: Sakoe and Chiba 1978, "Dynamic programming algorithm optimization for spoken word recognition", for the
    division; the measure and the pauses are ours.

    Args:
        model: the model of the trace.
        trace: the trace of an audio.

    Returns:
        One row per word: word, start and end in seconds from the start of the audio that the model read. NaN if the
        audio has no speech to align; `trace.provenance.notes` says so. `attrs["heads"]` has the (layer, head) used,
        with their measure, best first; `attrs["all"]` has those of all heads.

    Raises:
        TraceError: the trace is another model's, or isn't a transcription of audio.
    """
    import pandas

    if trace.provenance.model != model.name:
        raise TraceError(f"{model.name} needs a trace of its own; got one of {trace.provenance.model}")
    timed = _timed(trace)
    rows = [(word, *time) for word, time in zip(timed.words, timed.times, strict=True)]
    table = pandas.DataFrame(rows, columns=["word", "start", "end"])
    table.attrs["heads"] = [(*at, share) for at, share in timed.best]
    table.attrs["all"] = [(*at, share) for at, share in timed.every]
    return table


class _Timed(NamedTuple):
    """Words with start and end; the heads that time them, and all heads, with their measure, best first."""

    words: tuple[str, ...]
    times: tuple[tuple[float, float], ...]
    best: tuple[tuple[tuple[int, int], float], ...]
    every: tuple[tuple[tuple[int, int], float], ...]


@once_for_each
def _timed(trace: Trace) -> _Timed:
    heads, rows, seconds = _phrase(trace)
    words = _words(trace.query_tokens(_STREAM), rows)
    measured = sorted(_measured(trace, heads, rows, seconds), key=lambda found: (-found[0], found[1]))
    every, names = tuple((at, share) for share, at in measured), tuple(word for word, _, _ in words)
    if any(line.endswith(NO_TIMES) for line in trace.provenance.notes):
        return _Timed(names, ((float("nan"), float("nan")),) * len(words), (), every)
    best = tuple((at, share) for at, share in every if share >= _NEAR * every[0][1])
    frames = divide(_shares([heads[at] for at, _ in best]), _opens(trace, rows), _quiet(trace, seconds))
    ends = np.append(seconds, 2 * seconds[-1] - seconds[-2])
    times = tuple((float(ends[frames[first][0]]), float(ends[frames[after - 1][1]])) for _, first, after in words)
    return _Timed(names, times, best, every)


def times_of(trace: Trace) -> tuple[tuple[float, float], ...]:
    """Return each spoken word's start and end in seconds, as `word_times`; NaN without speech."""
    return _timed(trace).times


def said_words(trace: Trace) -> list[tuple[str, tuple[int, ...]]]:
    """Return each spoken word with its pieces' positions, in `word_times` order."""
    rows, _ = _said(trace)
    words = _words(trace.query_tokens(_STREAM), rows)
    return [(word, tuple(rows[first:after])) for word, first, after in words]


def aligning_heads(trace: Trace) -> "pandas.Series":
    """Return each cross-attention head's alignment by the measure of `word_times`, best first.

    Raises:
        TraceError: the trace isn't a transcription of audio.
    """
    import pandas

    heads, rows, seconds = _phrase(trace)
    found = pandas.Series({at: share for share, at in _measured(trace, heads, rows, seconds)}, name="aligns")
    return found.rename_axis(["layer", "head"]).sort_values(ascending=False, kind="stable")


def _phrase(trace: Trace) -> tuple[dict[tuple[int, int], NDArray[np.float64]], list[int], NDArray[np.float64]]:
    rows, seconds = _said(trace)
    layers = {layer: trace.attention(layer, _STREAM).rows(rows) for layer in trace.layer_numbers(_STREAM)}
    heads = {
        (layer, head): one.head(head).weights[:, : len(seconds)].detach().double().cpu().numpy()
        for layer, one in layers.items()
        for head in range(trace.head_count(layer, _STREAM))
    }
    return heads, rows, seconds


def _measured(
    trace: Trace, heads: dict[tuple[int, int], NDArray[np.float64]], rows: list[int], seconds: NDArray[np.float64]
) -> list[tuple[float, tuple[int, int]]]:
    opens, quiet = _opens(trace, rows), _quiet(trace, seconds)
    return [(_measure(one, opens, quiet), at) for at, one in heads.items()]


def _opens(trace: Trace, rows: list[int]) -> list[bool]:
    said = trace.query_tokens(_STREAM)
    firsts = {first for _, first, _ in _words(said, rows)}
    return [number in firsts or said.special[row] for number, row in enumerate(rows)]


def _quiet(trace: Trace, seconds: NDArray[np.float64]) -> Bool[np.ndarray, " frame"]:
    sound = trace.seen.sound
    assert sound is not None  # `_said` has refused a trace without one
    return pauses(sound.detach().double().cpu().numpy(), trace.seen.rate, seconds)


def _said(trace: Trace) -> tuple[list[int], NDArray[np.float64]]:
    if _STREAM not in trace.attention_streams or trace.seen.sound is None or not trace.key_tokens(_STREAM).placed:
        raise TraceError(
            'word times need a transcription; trace av.Sound with an encoder–decoder such as "whisper-tiny.en"'
        )
    said, heard = trace.query_tokens(_STREAM), trace.key_tokens(_STREAM)
    seconds = np.array([place[0] for place in heard.place if place is not None])
    frames = max(2, len(seconds) - sum(after_the_sound(trace.seen, heard)))
    first = next((row for row, special in enumerate(said.special) if not special), None)
    if first is None:
        raise TraceError("word times need a transcribed word; this trace has none")
    # What ends the text looks at where the last word ends.
    rows = [row for row in range(first, len(said)) if not said.special[row] or row == len(said) - 1]
    if len(rows) > frames:
        raise TraceError(f"word times need a frame per token; got {len(rows)} tokens for {frames} frames")
    return rows, seconds[:frames]


def _words(said: Tokens, rows: list[int]) -> list[tuple[str, int, int]]:
    found = list[tuple[str, int, int]]()
    for number, row in enumerate(rows):
        if said.special[row]:
            continue
        piece = said.written[row]
        goes_on = found and not piece.startswith(SPACE)
        if goes_on:
            text, first, _ = found[-1]
            found[-1] = (text + piece.removeprefix(CONTINUES), first, number + 1)
        else:
            found.append((piece.removeprefix(SPACE), number, number + 1))
    return found


def _measure(weights: Float[np.ndarray, "row frame"], opens: list[bool], quiet: Bool[np.ndarray, " frame"]) -> float:
    """From 0 to 1."""
    gain, rows = _sharpened(weights), len(weights)
    stretches = divide(gain, opens, quiet)
    frames = sum(after - first for first, after in stretches)
    # A column that is one token's alone is so many standard deviations above its mean there.
    most = frames * max(rows - 1, 1) ** 0.5
    follows = sum(gain[row, first:after].sum() for row, (first, after) in enumerate(stretches)) / most
    inside = (
        sum(weights[row, first:after].sum() for row, (first, after) in enumerate(divide(weights, opens, quiet))) / rows
    )
    return max(0.0, float(follows)) * min(1.0, float(inside) / _IN_ORDER)


def _sharpened(weights: Float[np.ndarray, "row frame"]) -> Float[np.ndarray, "row frame"]:
    mean, spread = weights.mean(axis=0), weights.std(axis=0)
    return (weights - mean) / (spread + 1e-9)


def _shares(heads: Sequence[Float[np.ndarray, "row frame"]]) -> Float[np.ndarray, "row frame"]:
    """Return each token's share of each frame's weight; 0 for a frame without weight."""
    mean = np.mean(heads, axis=0)
    return mean / np.maximum(mean.sum(axis=0), 1e-12)
