"""Words get their times by the heads that follow the speech, found by a measure that is worked out again here."""

import itertools
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import attention_viz as av
from attention_viz.analysis.word_times import _measure, _stretches
from attention_viz.trace.from_weights import attention_of
from attention_viz.trace.shown.seen import NO_TIMES, Seen

SAID = ("<|start|>", "ĠShe", "Ġop", "ened", "Ġit", ".", "<|end|>")
FRAMES, STEP, RATE = 30, 0.02, 1000
# At which frame each token after the first begins, and where the sound ends; behind that nothing is heard.
BEGINS = (0, 4, 8, 12, 18, 19, 20)


def spoken(*, told: tuple[str, ...] = ()) -> av.Trace:
    """A run in which head 1 follows the speech, head 0 looks at one frame and head 2 at all alike."""
    follows = torch.full((len(SAID), FRAMES), 1e-3)
    for row, (begin, end) in enumerate(itertools.pairwise(BEGINS), start=1):
        follows[row, begin:end] = 1
    follows[0, 0] = 1
    rests, broad = torch.full_like(follows, 1e-3), torch.ones_like(follows)
    rests[:, 3] = 1
    weights = torch.stack([one / one.sum(dim=1, keepdim=True) for one in (rests, follows, broad)])
    queries = av.Tokens(
        SAID, tuple(range(len(SAID))), special=(True, *[False] * 5, True), spelling=("byte-level",) * len(SAID)
    )
    places = tuple((frame * STEP,) for frame in range(FRAMES))
    keys = av.Tokens(tuple(map(str, range(FRAMES))), place=places)
    origin = av.Provenance(model="hears", told=told)
    seen = Seen(sound=torch.zeros(int(BEGINS[-1] * STEP * RATE)), rate=RATE)
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
    gain = np.random.default_rng(3).random((3, 7))
    bounds = _stretches(gain)
    inside = sum(gain[row, bounds[row] : bounds[row + 1]].sum() for row in range(3))
    every = [(0, first, second, 7) for first in range(1, 6) for second in range(first + 1, 7)]
    best = max(sum(gain[row, cut[row] : cut[row + 1]].sum() for row in range(3)) for cut in every)
    assert inside == pytest.approx(best)
    assert _measure(gain) == pytest.approx(best / 3)
    assert list(_stretches(np.eye(4))) == [0, 1, 2, 3, 4]


def test_where_nobody_speaks_no_word_has_a_time() -> None:
    table = av.word_times(model(), spoken(told=(f"It is silent: {NO_TIMES}",)))
    assert list(table.word) == ["She", "opened", "it."]
    assert table[["start", "end"]].isna().all(axis=None)
    assert table.attrs["heads"] == []


def test_what_has_no_times_is_said_by_name() -> None:
    trace = spoken()
    with pytest.raises(av.TraceError, match=r"a trace of hears was given"):
        av.word_times(SimpleNamespace(name="another"), trace)
    text = av.load("scratch").trace("the cat sat")
    with pytest.raises(av.TraceError, match="no sound that is written down"):
        av.word_times(SimpleNamespace(name="scratch"), text)
    nothing = replace(trace.query_tokens(), special=(True,) * len(SAID))
    with pytest.raises(av.TraceError, match="nothing is said"):
        av.word_times(model(), trace.derived(queries={"cross": nothing}))
