"""Words get their times by the heads that follow the speech, found by a measure that is worked out again here."""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import hypothesis
import numpy as np
import pytest
import torch
from hypothesis import strategies as st
from numpy.typing import NDArray

import attention_viz as av
from attention_viz.analysis.speech import divide, pauses
from attention_viz.trace.given.from_weights import attention_of
from attention_viz.trace.seen import NO_TIMES, Seen

SAID = ("<|start|>", "ĠShe", "Ġop", "ened", "Ġit", ".", "<|end|>")
FRAMES, STEP, RATE = 30, 0.02, 1000
# At which frame each token after the first begins, and where the sound ends; behind that nothing is heard.
BEGINS = (0, 4, 8, 12, 18, 19, 20)


def spoken(*, told: tuple[str, ...] = (), before: float = 0.0, within: float = 0.0, noise: float = 0.0) -> av.Trace:
    """A run in which head 1 follows the speech, head 0 looks at one frame and head 2 at all alike.

    With so many seconds of silence before the first word and before the second, in which head 1 looks as well.
    """
    silent = [round(before / STEP), round(within / STEP)]
    follows = torch.full((len(SAID), FRAMES + sum(silent)), 1e-3)
    for row, (begin, end) in enumerate(itertools.pairwise(BEGINS), start=1):
        shift = silent[0] * (row > 1) + silent[1] * (row > 2)
        after = silent[0] + silent[1] * (row > 1)
        follows[row, begin + shift : end + after] = 1
    follows[0, 0] = 1
    rests, broad = torch.full_like(follows, 1e-3), torch.ones_like(follows)
    rests[:, 3] = 1
    weights = torch.stack([one / one.sum(dim=1, keepdim=True) for one in (rests, follows, broad)])
    queries = av.Tokens(
        SAID, tuple(range(len(SAID))), special=(True, *[False] * 5, True), spelling=("byte-level",) * len(SAID)
    )
    frames = follows.shape[1]
    keys = av.Tokens(tuple(map(str, range(frames))), place=tuple((frame * STEP,) for frame in range(frames)))
    origin = av.Provenance(model="hears", notes=told)
    parts = torch.ones(BEGINS[-1] + 1).tensor_split([BEGINS[1]])
    frame_levels = torch.cat([torch.zeros(silent[0]), parts[0], torch.zeros(silent[1]), parts[1]])[:-1]
    waves = torch.arange(len(frame_levels) * int(STEP * RATE)).mul(0.9).sin()
    sound = frame_levels.repeat_interleave(int(STEP * RATE)) * waves
    sound += noise * torch.randn(len(sound), generator=torch.Generator().manual_seed(0))
    seen = Seen(sound=sound, rate=RATE)
    layer = av.Layer(attention_of(weights), "0")
    return av.Trace({"cross": (layer,)}, {"cross": queries}, {"cross": keys}, torch.zeros(7, 9), origin, seen=seen)


def model() -> Any:
    return SimpleNamespace(name="hears")


def test_each_word_gets_the_time_at_which_it_is_looked_at() -> None:
    table = av.word_times(model(), spoken())
    assert list(table.columns) == ["word", "start", "end"]
    assert list(table.word) == ["She", "opened", "it."]
    assert list(table.start) == pytest.approx([0.0, 0.08, 0.24])
    assert list(table.end) == pytest.approx([0.08, 0.24, 0.38])
    assert [(layer, head) for layer, head, _ in table.attrs["heads"]] == [(0, 1)]


def test_a_head_that_follows_is_told_from_one_that_rests_and_one_that_looks_everywhere() -> None:
    found = av.aligning_heads(spoken())
    assert found.index[0] == (0, 1)
    assert found[(0, 1)] > 0.9
    assert found[(0, 0)] < 0.3
    assert found[(0, 2)] < 0.3


def test_the_division_into_stretches_is_the_best_of_all() -> None:
    gain, loud = np.random.default_rng(3).random((3, 7)), np.zeros(7, dtype=bool)
    found = divide(gain, [True] * 3, loud)
    inside = sum(gain[row, first:after].sum() for row, (first, after) in enumerate(found))
    every = [(0, first, second, 7) for first in range(1, 6) for second in range(first + 1, 7)]
    best = max(sum(gain[row, cut[row] : cut[row + 1]].sum() for row in range(3)) for cut in every)
    assert inside == pytest.approx(best)
    assert divide(np.eye(4), [True] * 4, loud[:4]) == [(at, at + 1) for at in range(4)]


@hypothesis.given(st.data())
def test_no_word_has_a_pause_inside_and_no_frame_of_speech_is_left_out(data: st.DataObject) -> None:
    """Against every division of a short sound, tried one by one."""
    rows = data.draw(st.integers(1, 3))
    opens = [True, *data.draw(st.lists(st.booleans(), min_size=rows - 1, max_size=rows - 1))]
    quiet = np.array(data.draw(st.lists(st.booleans(), min_size=rows, max_size=7)))
    gain = np.random.default_rng(data.draw(st.integers(0, 99))).random((rows, len(quiet)))
    found = divide(gain, opens, quiet)
    assert all(first < after for first, after in found)
    possible = [cut for cut in cuts(rows, len(quiet)) if fits(cut, opens, quiet)]
    if possible:
        assert fits(found, opens, quiet)
        best = max(sum(gain[row, a:b].sum() for row, (a, b) in enumerate(cut)) for cut in possible)
        assert sum(gain[row, a:b].sum() for row, (a, b) in enumerate(found)) == pytest.approx(best)


def cuts(rows: int, frames: int) -> Iterator[list[tuple[int, int]]]:
    """Every way of giving each row a stretch of frames, in order, with or without frames between them."""
    for edges in itertools.combinations_with_replacement(range(frames + 1), 2 * rows):
        found = list(zip(edges[::2], edges[1::2], strict=True))
        if all(first < after for first, after in found):
            yield found


def fits(cut: list[tuple[int, int]], opens: list[bool], quiet: NDArray[np.bool_]) -> bool:
    """Whether words have no pause inside, pieces of one word nothing between them, and all speech is some word's."""
    last = len(cut) - 1
    taken = [set(range(first, after)) for first, after in cut]
    words = [one for row, one in enumerate(taken) if not (row == last and opens[row])]
    return (
        not any(quiet[frame] for one in words for frame in one)
        and all(opens[row] or cut[row - 1][1] == cut[row][0] for row in range(1, len(cut)))
        and all(quiet[frame] or any(frame in one for one in taken) for frame in range(len(quiet)))
    )


@pytest.mark.parametrize(("before", "within"), [(0.0, 0.0), (0.1, 0.0), (0.0, 0.08), (0.1, 0.08)])
@pytest.mark.parametrize("noise", [0.0, 0.03])
def test_a_pause_belongs_to_no_word(
    monkeypatch: pytest.MonkeyPatch, before: float, within: float, noise: float
) -> None:
    """The run of before with frames of silence put in: before the first word, and before the second."""
    monkeypatch.setattr("attention_viz.analysis.speech.FEWEST_SECONDS", 0.06)
    plain, told = (
        av.word_times(model(), spoken()),
        av.word_times(model(), spoken(before=before, within=within, noise=noise)),
    )
    shifts = [before, before + within, before + within]
    assert list(told.start) == pytest.approx([start + shift for start, shift in zip(plain.start, shifts, strict=True)])
    assert list(told.end) == pytest.approx([end + shift for end, shift in zip(plain.end, shifts, strict=True)])


def test_pauses_are_found_by_how_loud_a_sound_is_whatever_its_volume() -> None:
    chance, rate, begins = np.random.default_rng(0), 1000, np.arange(0, 4, 0.02)
    voice = np.where((np.arange(4 * rate) // 100) % 2, 1.0, 0.4) * np.sin(np.arange(4 * rate) * 0.9)
    silent = np.zeros(4 * rate, dtype=bool)
    silent[: rate // 2] = silent[2 * rate : 3 * rate] = True  # half a second, and a whole one
    silent[3500:3600] = True  # too short to be a pause
    expected = (begins < 0.5) | ((begins >= 2) & (begins < 3))
    for volume, noise in itertools.product((1.0, 0.01), (0.0, 1e-4, 0.05)):
        sound = volume * (np.where(silent, 0, voice) + noise * chance.standard_normal(4 * rate))
        assert (pauses(sound, rate, begins) == expected).all(), (volume, noise)
    assert not pauses(voice, rate, begins).any() and not pauses(np.ones(10), rate, np.array([0.0])).any()
    assert not pauses(voice + 0.5 * chance.standard_normal(4 * rate), rate, begins).any(), "noise as loud as speech"


def test_where_nobody_speaks_no_word_has_a_time() -> None:
    table = av.word_times(model(), spoken(told=(f"It is silent: {NO_TIMES}",)))
    assert list(table.word) == ["She", "opened", "it."]
    assert table[["start", "end"]].isna().all(axis=None)
    assert table.attrs["heads"] == []


def test_what_has_no_times_is_said_by_name() -> None:
    trace = spoken()
    with pytest.raises(av.TraceError, match=r"needs a trace of its own; got one of hears"):
        av.word_times(SimpleNamespace(name="another"), trace)
    text = av.load("scratch").trace("the cat sat")
    with pytest.raises(av.TraceError, match="need a transcription"):
        av.word_times(SimpleNamespace(name="scratch"), text)
    nothing = replace(trace.query_tokens(), special=(True,) * len(SAID))
    with pytest.raises(av.TraceError, match="need a transcribed word"):
        av.word_times(model(), trace.derived(queries={"cross": nothing}))
