"""When each word of a sound was spoken: the words that a model says, against the frames that it looks at meanwhile."""

from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import NDArray

from attention_viz.analysis.places import after_the_sound
from attention_viz.errors import TraceError
from attention_viz.trace.shown.seen import NO_TIMES
from attention_viz.trace.spelling import CONTINUES, SPACE
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Trace

if TYPE_CHECKING:
    import pandas

__all__ = ["aligning_heads", "said_words", "word_times"]

_STREAM = "cross"
# A head aligns where it has this share of what the best one has, and there are so many at most.
_NEAR, _MOST = 0.7, 8

_Heads = Float[np.ndarray, "head row frame"]


@runtime_checkable
class _Named(Protocol):
    """A model that knows what it is called."""

    @property
    def name(self) -> str: ...


def word_times(model: _Named, trace: Trace) -> "pandas.DataFrame":
    """When each word that a model says was spoken, by the heads of its cross-attention that align.

    How well a head aligns is the share of its weight that lies in order: the frames of the sound are divided among the
    tokens, one stretch after the other and none without a frame, so that as much as possible of each token's weight
    falls into its own stretch; the mean of these shares, over the tokens, is the head's measure. A head that looks at
    one place all the time has nearly none, one that follows the speech nearly all. The heads with at least 0.7 of the
    best one's are taken, 8 at most. Of each the weights of a frame are taken by how far above the frame's mean they
    are, in standard deviations; the mean over the heads is divided in the same way once more: dynamic time warping in
    which each step goes to the next frame, of the same token or of the next.

    Source: Sakoe and Chiba 1978, "Dynamic programming algorithm optimization for spoken word recognition", for the
    warping; the measure is ours.

    Args:
        model: whose trace it is.
        trace: of a sound.

    Returns:
        A row a word: word, start and end in seconds from the beginning of what was read. NaN where nobody speaks, so
        that nothing can be aligned; `trace.provenance.told` says so. `attrs["heads"]` has the (layer, head) that were
        taken, with their measure, best first.

    Raises:
        TraceError: the trace is another model's, or of no sound that is written down.
    """
    import pandas

    if trace.provenance.model != model.name:
        raise TraceError(f"a trace of {trace.provenance.model} was given; {model.name} knows only its own")
    heads, rows, seconds = _told(trace)
    words = _words(trace.query_tokens(_STREAM), rows)
    measured = sorted(((_measure(one), at) for at, one in heads.items()), key=lambda found: (-found[0], found[1]))
    best = [(at, share) for share, at in measured if share >= _NEAR * measured[0][0]][:_MOST]
    silent = any(line.endswith(NO_TIMES) for line in trace.provenance.told)
    if silent:
        times = [(float("nan"), float("nan"))] * len(words)
    else:
        bounds = _stretches(_sharpened(np.stack([heads[at] for at, _ in best])))
        ends = np.append(seconds, 2 * seconds[-1] - seconds[-2])
        times = [(float(ends[bounds[first]]), float(ends[bounds[after]])) for _, first, after in words]
    table = pandas.DataFrame(
        [(word, *time) for (word, _, _), time in zip(words, times, strict=True)], columns=["word", "start", "end"]
    )
    table.attrs["heads"] = [] if silent else [(*at, share) for at, share in best]
    return table


def said_words(trace: Trace) -> list[tuple[str, tuple[int, ...]]]:
    """Each word that is said of a sound, with the positions of its pieces; in the order of `word_times`.

    Raises:
        TraceError: the trace is of no sound that is written down.
    """
    rows, _ = _said(trace)
    words = _words(trace.query_tokens(_STREAM), rows)
    return [(word, tuple(rows[first:after])) for word, first, after in words]


def aligning_heads(trace: Trace) -> "pandas.Series":
    """How well each head of the cross-attention aligns, best first; the measure of `word_times`.

    Raises:
        TraceError: the trace is of no sound that is written down.
    """
    import pandas

    heads, _, _ = _told(trace)
    found = pandas.Series({at: _measure(one) for at, one in heads.items()}, name="aligns")
    return found.rename_axis(["layer", "head"]).sort_values(ascending=False, kind="stable")


def _told(trace: Trace) -> tuple[dict[tuple[int, int], NDArray[np.float64]], list[int], NDArray[np.float64]]:
    """Each head's weights of what is said on the frames of the sound; which rows those are; when each frame begins."""
    rows, seconds = _said(trace)
    layers = {layer: trace.attention(layer, _STREAM).rows(rows) for layer in trace.layer_numbers(_STREAM)}
    heads = {
        (layer, head): one.head(head).weights[:, : len(seconds)].detach().double().cpu().numpy()
        for layer, one in layers.items()
        for head in range(trace.head_count(layer, _STREAM))
    }
    return heads, rows, seconds


def _said(trace: Trace) -> tuple[list[int], NDArray[np.float64]]:
    """Which rows of the cross-attention are of what is said, and when each frame of the sound begins."""
    if _STREAM not in trace.streams or trace.seen.sound is None or not trace.key_tokens(_STREAM).placed:
        raise TraceError(
            "the times of words were asked for of a trace that is of no sound that is written down; needed: one of "
            'av.Sound by an encoder–decoder, such as "whisper-tiny.en"'
        )
    said, heard = trace.query_tokens(_STREAM), trace.key_tokens(_STREAM)
    seconds = np.array([place[0] for place in heard.place if place is not None])
    frames = max(2, len(seconds) - sum(after_the_sound(trace.seen, heard)))
    first = next((row for row, special in enumerate(said.special) if not special), None)
    if first is None:
        raise TraceError("the times of words were asked for, and nothing is said in this trace")
    # What ends the text looks at where the last word ends.
    rows = [row for row in range(first, len(said)) if not said.special[row] or row == len(said) - 1]
    if len(rows) > frames:
        raise TraceError(f"{len(rows)} tokens are said in {frames} frames, so that not each of them has one")
    return rows, seconds[:frames]


def _words(said: Tokens, rows: list[int]) -> list[tuple[str, int, int]]:
    """Each word that is said: its text, and which of the rows its first piece is, and the one after its last."""
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


def _measure(weights: Float[np.ndarray, "row frame"]) -> float:
    """The mean share of a token's weight that lies in its own stretch, of the best division into stretches."""
    bounds = _stretches(weights)
    inside = [weights[row, bounds[row] : bounds[row + 1]].sum() for row in range(len(weights))]
    return float(np.mean(inside))


def _stretches(gain: Float[np.ndarray, "row frame"]) -> Int[np.ndarray, " bound"]:
    """At which frame each row's stretch begins, so that what lies in the stretches is as much as can be."""
    rows, frames = gain.shape
    best, steps = np.full(rows, -np.inf), np.zeros((frames, rows), dtype=bool)
    best[0] = gain[0, 0]
    for frame in range(1, frames):
        before = np.concatenate([[-np.inf], best[:-1]])
        steps[frame] = before > best
        best = np.maximum(best, before) + gain[:, frame]
    bounds, row = np.zeros(rows + 1, dtype=np.int64), rows - 1
    bounds[rows] = frames
    for frame in range(frames - 1, 0, -1):
        # Each row before this one needs a frame of its own.
        if row and (steps[frame, row] or frame == row):
            bounds[row], row = frame, row - 1
    return bounds


def _sharpened(heads: _Heads) -> Float[np.ndarray, "row frame"]:
    """The mean of some heads, each frame by how far above its own mean over the tokens it is."""
    mean, spread = heads.mean(axis=1, keepdims=True), heads.std(axis=1, keepdims=True)
    return ((heads - mean) / (spread + 1e-9)).mean(axis=0)
