"""Who said what when: rows from queries and keys, and the frames divided among the words in order."""

import math
from functools import cache

import numpy as np

from attention_viz.analysis.speech import pauses
from attention_viz.analysis.word_times import aligning_heads
from attention_viz.lesson import Scene
from attention_viz.lesson.scene import RunText
from attention_viz.trace.trace import Trace
from tests.lesson.recomputed import by_hand

MODEL, SAMPLE, STREAM, PARTS, PER_SECOND = "whisper-tiny.en", "window", "cross", 6, 50


def _trace(run: RunText) -> Trace:
    return run(MODEL, SAMPLE)


@cache
def _weights(trace: Trace, layer: int, head: int) -> by_hand.Array:
    call = trace.attention(layer, STREAM)
    query, key = by_hand.array(call.query)[head], by_hand.array(call.key)[head]
    return by_hand.softmax(query @ key.T * float(call.scale if call.scale is not None else query.shape[-1] ** -0.5))


def _words(trace: Trace) -> list[tuple[str, list[int]]]:
    """Each word with its tokens' rows, and what ends the text."""
    tokens, found = trace.query_tokens(STREAM), list[tuple[str, list[int]]]()
    for at, piece in enumerate(tokens.written):
        if tokens.special[at]:
            continue
        if not found or piece.startswith("·"):
            found.append((piece.strip("·"), [at]))
        else:
            found[-1] = (found[-1][0] + piece.strip("‿"), [*found[-1][1], at])
    return found


def _seconds(trace: Trace) -> float:
    assert trace.seen.sound is not None
    return len(trace.seen.sound) / trace.seen.rate


@cache
def _times(trace: Trace) -> list[tuple[float, float]]:
    measured = aligning_heads(trace)
    heads = [at for at, one in measured.items() if one >= 0.9 * measured.max()]
    words = _words(trace)
    rows = [at for _, some in words for at in some] + [len(trace.query_tokens(STREAM)) - 1]
    starts = {some[0] for _, some in words} | {rows[-1]}
    assert trace.seen.sound is not None
    frames = math.ceil(_seconds(trace) * PER_SECOND - 1e-9)
    quiet = pauses(by_hand.array(trace.seen.sound), trace.seen.rate, np.arange(frames) / PER_SECOND)
    mean = np.mean([_weights(trace, *one)[rows][:, :frames] for one in heads], axis=0)
    return _divided(mean / mean.sum(axis=0), [row in starts for row in rows], quiet, words)


def _divided(
    gain: by_hand.Array, opens: list[bool], quiet: by_hand.Array, words: list[tuple[str, list[int]]]
) -> list[tuple[float, float]]:
    """Where each word begins and ends, by the best division up to each frame, token by token."""
    count, frames = gain.shape
    best = np.full((count + 1, frames + 1), -math.inf)
    before = np.zeros((count + 1, frames + 1), dtype=int)
    best[0, 0] = 0
    starts = dict[tuple[int, int], int]()
    for row in range(count):
        # Quiet frames may be left out before a word.
        free = best[row].copy()
        began = np.arange(frames + 1)
        if opens[row]:
            for frame in range(1, frames + 1):
                if quiet[frame - 1] and free[frame - 1] > free[frame]:
                    free[frame], began[frame] = free[frame - 1], began[frame - 1]
        sums = np.concatenate([[0], np.cumsum(np.where(quiet & (row < count - 1), -1e6, gain[row]))])
        lead, at = -math.inf, 0
        for frame in range(1, frames + 1):
            if free[frame - 1] - sums[frame - 1] > lead:
                lead, at = free[frame - 1] - sums[frame - 1], frame - 1
            best[row + 1, frame], before[row + 1, frame] = lead + sums[frame], began[at]
            starts[row + 1, frame] = at
    end = frames
    while quiet[end - 1] and best[count, end - 1] >= best[count, end]:
        end -= 1
    spans = list[tuple[int, int]]()
    for row in range(count, 0, -1):
        spans.insert(0, (starts[row, end], end))
        end = int(before[row, end])
    found, at = list[tuple[float, float]](), 0
    for _, some in words:
        found.append((spans[at][0] / PER_SECOND, spans[at + len(some) - 1][1] / PER_SECOND))
        at += len(some)
    return found


def _row(trace: Trace, place: tuple[int, int], word: int) -> by_hand.Array:
    return np.mean([_weights(trace, *place)[at] for at in _words(trace)[word][1]], axis=0)


@cache
def _place(trace: Trace) -> tuple[int, int]:
    """Of the heads that follow the speech, the one with most weight in the words' own times."""
    measured = aligning_heads(trace)
    heads = [at for at, one in measured.items() if one >= 0.9 * measured.max()]

    def own(place: tuple[int, int]) -> float:
        return sum(_between(_row(trace, place, word), *time) for word, time in enumerate(_times(trace)))

    return max(heads, key=own)


def _between(row: by_hand.Array, start: float, end: float) -> float:
    return sum(float(one) for at, one in enumerate(row) if start - 1e-9 <= at / PER_SECOND < end - 1e-9)


def _word(scene: Scene, trace: Trace) -> int:
    if scene.choice:
        return int(scene.choice)
    letters = [sum(one.isalpha() for one in word) for word, _ in _words(trace)]
    return max(at for at, count in enumerate(letters) if count == max(letters))


def facts(scene: Scene, run: RunText) -> dict[str, str]:
    trace = _trace(run)
    word, place = _word(scene, trace), _place(trace)
    row, (start, end) = _row(trace, place, word), _times(trace)[word]
    frames, seconds = len(row), _seconds(trace)
    return {
        "frames": str(frames),
        "inside": str(math.ceil(seconds * PER_SECOND - 1e-9)),
        "words": str(len(_words(trace))),
        "layer": str(place[0]),
        "head": str(place[1]),
        "share": by_hand.share(_between(row, start, end)),
        "rest": by_hand.share(_between(row, seconds, frames)),
        "seconds": by_hand.number(seconds),
        "rate": str(PER_SECOND),
        "start": by_hand.number(start),
        "end": by_hand.number(end),
    }


def values(scene: Scene, run: RunText) -> list[float]:
    trace = _trace(run)
    row, seconds = _row(trace, _place(trace), _word(scene, trace)), _seconds(trace)
    found = [_between(row, seconds * at / PARTS, seconds * (at + 1) / PARTS) for at in range(PARTS)]
    return [*found, 1 - sum(found)]


def numbers(scene: Scene, run: RunText) -> set[str]:
    trace = _trace(run)
    edges = {by_hand.number(_seconds(trace) * at / PARTS, 1) for at in range(PARTS + 1)}
    return {by_hand.share(max(values(scene, run))), str(_word(scene, trace) + 1), *edges}
