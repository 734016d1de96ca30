"""A mixer's pair, step by step, against a state that is carried token by token in float64."""

from itertools import pairwise
from typing import Any

import pytest
import torch

import attention_viz as av
from attention_viz.operation.terms import Term, map_terms
from attention_viz.operation.token_mixer import TokenMixer
from attention_viz.steps.mixer_rows import reached, stages_of
from attention_viz.steps.mixer_steps import mixer_steps_of, mixer_tensors, open_mixer_cell
from attention_viz.steps.mixing import MixerHead, open_mixer
from attention_viz.steps.pair import erasers, open_pair, pair_steps
from attention_viz.trace.layers import MixerLayer
from tests.operation.test_token_mixer import ALL
from tests.recording.mixers.hybrids import build

TOKENS = 12
IDS = (torch.arange(TOKENS)[None] * 7) % 97
CALLS = {make().kind: make for make in ALL}
KINDS = tuple(CALLS)


def cut(term: Term, value: Any) -> Any:
    """Take the first tokens only."""
    names = term.axes.names
    if len(names) != 2 or names[0] == "one":
        return value
    return value[..., :TOKENS, :TOKENS] if names == ("query", "key") else value[..., :TOKENS, :]


def opened_of(kind: str, head: int = 1) -> MixerHead:
    words = [f"w{at}" for at in range(TOKENS)]
    base = av.Trace.from_weights(torch.full((1, 1, TOKENS, TOKENS), 1 / TOKENS), words)
    layer = MixerLayer(map_terms(CALLS[kind](), cut), "3")
    trace = av.Trace(base.layers, base.queries, base.keys, base.output, base.provenance, mixers={"mixer": (layer,)})
    return open_mixer(trace, 3, head)


def by_tokens(call: TokenMixer, spares: int | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """Carry the state of all keys forward: what each query reads of each key's write, and the state's own keys."""
    keys, count, width = call.key, *call.key.shape
    state, rows, kept = keys.new_zeros(width, count), [], []
    for t in range(count):
        if call.decay is not None:
            state = call.decay.expand(count, -1)[t].exp()[:, None] * state
        strength = 1.0 if call.write is None else float(call.write.expand(count, 1)[t, 0])
        if call.erases and t != spares:
            state = state - strength * torch.outer(keys[t], keys[t] @ state)
        state = state + strength * torch.outer(keys[t], torch.eye(count, dtype=keys.dtype)[t])
        rows.append(call.scale * call.query[t] @ state)
        kept.append(torch.einsum("sd,ds->s", keys, state))
    return torch.stack(rows), torch.stack(kept)


def after_state(call: TokenMixer, rows: torch.Tensor) -> torch.Tensor:
    if call.floor is not None:
        rows = rows / (torch.maximum(rows.sum(-1, keepdim=True).abs(), call.floor) + call.epsilon)
    rows = rows if call.skip is None else rows + torch.eye(len(rows), dtype=rows.dtype) * call.skip
    return rows if call.gate is None else rows * call.gate


@pytest.mark.parametrize("kind", KINDS)
def test_each_cell_is_the_product_of_its_steps(kind: str) -> None:
    opened = opened_of(kind)
    call = opened.exact
    assert call.kind == kind
    if opened.mixer.keeps_state:
        expected = after_state(call, by_tokens(call)[0])
    else:
        expected = call.weights
    largest = float(expected.abs().max())
    for query, key in ((0, 0), (9, 2), (11, 10), (7, 7), (3, 8)):
        pair = open_pair(opened, query, key)
        assert abs(pair.weight - float(expected[query, key])) <= 1e-11 * largest
        assert abs(pair.weight - float(opened.weights[query, key])) <= 1e-5 * largest
        for found in pair_steps(pair).values():
            assert found.computed == pytest.approx(found.total, rel=1e-9, abs=1e-12 * largest)


@pytest.mark.parametrize("kind", KINDS)
def test_the_stages_of_rows_lead_to_their_weights(kind: str) -> None:
    opened, queries = opened_of(kind), [9, 0, 7, 11]
    call, stages, there = opened.exact, stages_of(opened, queries), reached(opened, queries)
    expected = after_state(call, by_tokens(call)[0]) if opened.mixer.keeps_state else call.weights
    last = stages[-1].values
    torch.testing.assert_close(last[there], expected[queries][there], atol=1e-12, rtol=1e-10)
    assert bool(there.all()) == (not call.is_causal) and bool((expected[queries][~there] == 0).all())
    # Control: no earlier stage is the weight already.
    assert all(not torch.allclose(one.values[there], last[there], rtol=1e-4) for one in stages[:-1])
    change = {"×": torch.mul, "÷": torch.div, "+": torch.add}
    for before, one in pairwise(stages):
        if one.factor is not None:
            made = change[one.sign](before.values, one.factor)
            torch.testing.assert_close(made[there], one.values[there], atol=1e-12, rtol=1e-10)
    # One pair, opened by itself, has the same numbers.
    steps = pair_steps(open_pair(opened, 9, 2))
    for one in stages:
        name = {"erased": "kept"}.get(one.name, one.name)
        if name in ("read", "decayed", "kept", "collision", "tap", "wave", "decay"):
            assert float(one.values[0, 2]) == pytest.approx(steps[name].total, rel=1e-9, abs=1e-13), name


@pytest.mark.parametrize("kind", KINDS)
def test_every_matrix_has_the_numbers_its_cells_open_to(kind: str) -> None:
    opened = opened_of(kind)
    names = mixer_steps_of(opened)
    assert ("kept" in names, "read" in names) == (
        opened.mixer.keeps_state,
        kind not in ("RG-LRU", "convolution", "Fourier"),
    )
    for name, step in names.items():
        matrix = step.function(opened)
        assert matrix is not None and matrix.ndim == 2
        row, column = min(8, matrix.shape[0] - 1), min(3, matrix.shape[1] - 1)
        found, largest = open_mixer_cell(opened, name, row, column), float(matrix.abs().max())
        for number in (found.total, found.computed):
            assert number == pytest.approx(float(matrix[row, column]), rel=1e-4, abs=1e-5 * largest), name
    tensors = mixer_tensors(opened)
    torch.testing.assert_close(tensors["weights"] @ tensors["value"], tensors["output"], atol=1e-3, rtol=1e-4)


@pytest.mark.parametrize("kind", ("gated delta", "Kimi delta"))
def test_erasers_are_those_without_which_the_cell_is_another(kind: str) -> None:
    opened = opened_of(kind)
    pair = open_pair(opened, 10, 4)
    found = erasers(pair)
    assert {one.position for one in found} == set(range(5, 11))
    for one in found:
        other = float(by_tokens(opened.exact, spares=one.position)[0][10, 4])
        assert one.without == pytest.approx(other, rel=1e-10, abs=1e-14)
        assert one.change == pytest.approx(other - pair.weight, rel=1e-8, abs=1e-14)
    assert [abs(one.change) for one in found] == sorted((abs(one.change) for one in found), reverse=True)
    assert sum(one.erased for one in found) == pytest.approx(pair.walk.decayed - pair.reading, rel=1e-10)
    assert erasers(open_pair(opened, 4, 10)) == erasers(open_pair(opened_of("SSD"), 10, 4)) == []


@pytest.mark.parametrize("kind", ("gated delta", "Kimi delta", "SSD", "selective scan", "lightning", "RG-LRU", "mLSTM"))
def test_kept_is_what_the_own_key_would_still_read(kind: str) -> None:
    opened = opened_of(kind)
    call, (_, read) = opened.exact, by_tokens(opened.exact)
    assert opened.kept is not None
    write = torch.ones(TOKENS, 1, dtype=torch.float64) if call.write is None else call.write.expand(TOKENS, 1)
    sizes = call.key.square().sum(-1)
    # In RG-LRU and the like, a token may write almost nothing.
    sure = (write[:, 0] * sizes).abs() > 1e-6
    torch.testing.assert_close((opened.kept * write[:, 0] * sizes)[:, sure], read[:, sure], atol=1e-9, rtol=1e-9)
    torch.testing.assert_close(opened.kept.diagonal()[sure], torch.ones(int(sure.sum()), dtype=torch.float64))


def test_a_softmax_layer_or_a_missing_cell_is_refused() -> None:
    trace: Any = av.wrap(build("qwen3_next")).trace_ids(IDS)
    with pytest.raises(av.errors.ShapeError, match="softmax"):
        open_mixer(trace, 1, 0, "decoder")
    with pytest.raises(av.errors.ShapeError, match="choose 0 to 3"):
        open_mixer(trace, 0, 4)
    with pytest.raises(av.errors.ShapeError, match="12 × 12"):
        open_pair(open_mixer(trace, 0, 0), 12, 0)
    with pytest.raises(av.errors.ShapeError, match="unknown step 'scores'"):
        open_mixer_cell(open_mixer(trace, 0, 0), "scores", 0, 0)
