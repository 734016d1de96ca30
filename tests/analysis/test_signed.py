"""Layers without a softmax: every number against its definition, cell by cell, from the signed weights."""

import math
from collections.abc import Callable

import numpy
import pytest
import torch
from scipy.spatial.distance import jensenshannon

import attention_viz as av
from attention_viz.analysis.likeness import head_distances
from attention_viz.analysis.metrics import METRICS, metrics_in
from attention_viz.analysis.plane import queries_and_keys_plane
from attention_viz.analysis.readings import read
from attention_viz.analysis.search import rank_heads
from attention_viz.errors import ShapeError, TraceError
from attention_viz.trace.given.from_weights import mixer_of_weights
from attention_viz.trace.layers import MixerLayer
from attention_viz.trace.trace import Trace
from tests.analysis.mixed import KINDS, TOKENS, mixed_trace

COUNTED = range(1, TOKENS)


def signed(trace: Trace, head: int, layer: int = 0) -> numpy.ndarray:
    return trace.weights(layer, head, "mixer").double().numpy()


def shares(row: numpy.ndarray) -> numpy.ndarray:
    return numpy.array([abs(one) / sum(map(abs, row.tolist())) for one in row])


def naive(weights: numpy.ndarray, ids: tuple[int, ...]) -> dict[str, float]:
    """Every metric of a head, row by row."""
    found: dict[str, list[float]] = {name: [] for name in metrics_in("mixer")}
    for at in COUNTED:
        row, size = weights[at], float(numpy.abs(weights[at]).sum())
        share = shares(row)
        same = [key for key in range(at) if ids[key] == ids[at]]
        off = [key for key in range(TOKENS) if key != at]
        found["previous"].append(share[at - 1])
        found["next"] += [share[at + 1]] if at + 1 < TOKENS else []
        found["self"].append(share[at])
        found["first"].append(share[0])
        found["distance"].append(sum(share[key] * abs(at - key) for key in range(TOKENS)))
        found["duplicate"] += [sum(share[key] for key in same)] if same else []
        found["induction"] += [share[same[-1] + 1]] if same else []
        found["special"].append(share[0])
        found["confidence"].append(max(share))
        found["negative"].append(sum(-one for one in row if one < 0) / size)
        found["row_sum"].append(row.sum())
        found["row_size"].append(size)
        found["reach"].append(sum(abs(row[key]) * abs(at - key) for key in off) / sum(abs(row[key]) for key in off))
    return {name: float(numpy.mean(values)) for name, values in found.items()}


@pytest.mark.parametrize(("name", "at_once"), [*((name, 2**23) for name in KINDS), ("bamba", 5 * TOKENS), ("bamba", 1)])
def test_metrics_are_of_shares_of_size_and_of_signed_rows(
    name: str, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attention_viz.analysis.signed.AT_ONCE", at_once)
    trace = mixed_trace(name)
    table, ids = av.head_table(trace, stream="mixer"), trace.query_tokens().ids
    assert ids is not None and len(table) == trace.attention(0, "mixer").shape[0]
    for head in (0, 1, len(table) - 1):
        expected = naive(signed(trace, head), ids)
        assert table.loc[(0, head), list(expected)].to_dict() == pytest.approx(expected, abs=2e-5, rel=2e-5)
        assert 0.05 < expected["negative"] < 0.95 and expected["reach"] > 1
    assert (table["reach_n"] == len(COUNTED)).all() and not table["duplicate_n"].min() == 0


def test_what_makes_no_sense_for_signed_rows_is_missing_with_a_reason() -> None:
    trace = mixed_trace("bamba")
    table, roles = av.head_table(trace, stream="mixer"), av.roles(trace, stream="mixer")
    assert table.attrs["missing"].keys() == {"entropy", "above", "variance"}
    assert "isn't a distribution" in table.attrs["missing"]["entropy"] and "entropy" not in table
    assert roles.attrs["missing"].keys() == {"above", "induction", "punctuation"}
    assert roles[list(roles.attrs["missing"])].isna().all(axis=None)
    assert not set(metrics_in("mixer")) & set(table.attrs["missing"])
    assert not av.roles(trace).attrs["missing"] and "negative" not in av.head_table(trace)
    assert METRICS["previous"].in_mixers.label == "Previous token, share of size"
    assert METRICS["entropy"].in_mixers is METRICS["entropy"]


def evenness(row: numpy.ndarray, at: int) -> float:
    return -sum(one * math.log(one) for one in row if one > 0) / math.log(at + 1)


@pytest.mark.parametrize("name", KINDS)
def test_roles_have_shares_of_size_and_the_same_thresholds(name: str) -> None:
    trace = mixed_trace(name)
    table, ids = av.roles(trace, stream="mixer"), trace.query_tokens().ids
    assert ids is not None
    weights = [signed(trace, head) for head in range(len(table))]
    for head, one in enumerate(weights[:9]):
        rows = [shares(one[at]) for at in COUNTED]
        found = {
            "previous": numpy.mean([row[at - 1] for at, row in zip(COUNTED, rows, strict=True) if at > 1]),
            "itself": numpy.mean([row[at] for at, row in zip(COUNTED, rows, strict=True)]),
            "first": numpy.mean([row[0] for row in rows]),
            "broad": numpy.mean([evenness(row, at) for at, row in zip(COUNTED, rows, strict=True)]),
        }
        whole = numpy.sum(rows, axis=0)
        others = [max(1, sum(row[key] > 0 for row in rows) - 1) for key in range(TOKENS)]
        beyond = [
            sum(row[key] - (whole[key] - row[key]) / others[key] for key in range(at) if ids[key] == ids[at])
            for at, row in zip(COUNTED, rows, strict=True)
            if ids[at] in ids[:at] and any(ids[key] == ids[at] for key in range(at))
        ]
        found["same token"] = numpy.mean(beyond)
        assert table.loc[(0, head), list(found)].to_dict() == pytest.approx(found, abs=2e-5)
        jobs = {role: found[role] for role in ("previous", "itself", "same token")}
        reached = [role for role in jobs if jobs[role] >= av.ROLES[role].threshold and found["broad"] < 0.98]
        rest = [role for role in ("first", "broad") if found[role] >= av.ROLES[role].threshold]
        assert table.loc[(0, head), "role"] == (max(reached, key=jobs.__getitem__) if reached else [*rest, "mixed"][0])
    assert "attention sink" not in set(table["label"])


@pytest.mark.parametrize("name", KINDS)
def test_heads_are_searched_by_share_and_show_the_signed_weight(name: str) -> None:
    trace = mixed_trace(name)
    merged = av.merge_words(trace)
    query, key = merged.query_tokens().texts[3], merged.query_tokens().texts[1]
    pieces = trace.query_tokens().pieces
    table = av.find_heads(trace, query, key, "mixer").set_index("head")
    for head in range(min(5, len(table))):
        one = signed(trace, head)
        row, column = list(pieces[3]), list(pieces[1])
        assert table.loc[head, ["query", "key"]].tolist() == [row[0], column[0]]
        weight = one[row][:, column].sum(axis=1).mean()
        assert table.loc[head, "weight"] == pytest.approx(weight, abs=1e-6)
        assert table.loc[head, "share"] == pytest.approx(abs(weight) / numpy.abs(one[row]).sum(axis=1).mean(), abs=1e-6)
        assert merged.weights(0, head, "mixer")[3, 1].item() == pytest.approx(weight, abs=1e-6)
    assert table["share"].is_monotonic_decreasing
    ranked = rank_heads(trace, "mixer", 9, 4)
    by_share = sorted(range(len(table)), key=lambda head: -shares(signed(trace, head)[9])[4])
    assert [head for _, head, _ in ranked] == by_share and rank_heads(trace, "mixer", 4, 9) == []
    assert ranked[0][2] == pytest.approx(signed(trace, by_share[0])[9, 4], rel=1e-6)


def halves(row: numpy.ndarray) -> numpy.ndarray:
    return numpy.concatenate([numpy.maximum(row, 0), numpy.maximum(-row, 0)]) / numpy.abs(row).sum()


@pytest.mark.parametrize("name", KINDS)
def test_heads_are_compared_by_signed_shares_of_size(name: str) -> None:
    trace, other = mixed_trace(name), mixed_trace(name, 12)
    one, two = signed(trace, 1), signed(trace, 2)
    found = av.compare(trace, trace, 0, 1, other_head=2, stream="mixer")
    apart = [jensenshannon(halves(one[at]), halves(two[at]), base=2) ** 2 for at in range(TOKENS)]
    assert found.divergence.tolist() == pytest.approx(apart, abs=1e-6)
    assert torch.equal(found.difference, torch.from_numpy(two - one))
    assert found.one.blocked.equal(torch.ones(TOKENS, TOKENS, dtype=torch.bool).triu(1))
    chosen = [jensenshannon(halves(one[at]), halves(two[at]), base=2) ** 2 for at in COUNTED]
    assert float(head_distances(trace, "mixer")[1, 2]) == pytest.approx(numpy.mean(chosen) ** 0.5, abs=1e-5)
    pattern = torch.rand(TOKENS, TOKENS, generator=torch.Generator().manual_seed(1)).tril()
    wanted = (pattern / pattern.sum(dim=-1, keepdim=True)).double().numpy()
    alike = [1 - jensenshannon(shares(one[at]), wanted[at], base=2) ** 2 for at in range(TOKENS)]
    assert float(av.similarity(trace, pattern, "mixer")[0, 1]) == pytest.approx(numpy.mean(alike), abs=1e-5)
    # The rows before the token that differs can't differ.
    table = av.head_divergences(trace, other, stream="mixer")
    changed = signed(other, 1)
    rows = [jensenshannon(halves(one[at]), halves(changed[at]), base=2) ** 2 for at in range(12, TOKENS)]
    assert table.attrs["shared"] == 12
    assert table.loc[(0, 1), "divergence"] == pytest.approx(numpy.mean(rows), abs=1e-5)


def test_rows_that_differ_by_sign_are_not_alike_and_by_a_factor_are() -> None:
    trace = mixed_trace("bamba")
    weights = trace.attention(0, "mixer").weights[:1]
    made = torch.cat([weights, -weights, 5 * weights])
    layers = {"mixer": (MixerLayer(mixer_of_weights(made, "SSD", "head"), "0"),)}
    own = trace.derived(mixers=layers)
    assert av.compare(own, own, 0, 0, other_head=1, stream="mixer").mean == pytest.approx(1)
    assert av.compare(own, own, 0, 0, other_head=2, stream="mixer").mean == pytest.approx(0, abs=1e-6)


def test_rows_of_zeros_and_of_no_numbers_are_not_passed_over() -> None:
    trace = mixed_trace("bamba")
    made = trace.attention(0, "mixer").weights[:2].clone()
    made[0, 5] = 0
    made[1, 5, 2] = torch.nan
    own = trace.derived(mixers={"mixer": (MixerLayer(mixer_of_weights(made, "SSD", "head"), "0"),)})
    table = av.head_table(own, stream="mixer")
    assert table.loc[(0, 0), ["self_n", "negative_n", "row_sum_n"]].tolist() == [19, 19, 20]
    assert math.isnan(table.loc[(0, 1), "self"]) and math.isnan(table.loc[(0, 1), "row_sum"])
    assert own.attention(0, "mixer").shares[1, 5].isnan().any()
    with pytest.raises(ShapeError, match="only the weights are known here, not the values"):
        _ = own.attention(0, "mixer").contributions


@pytest.mark.parametrize("name", KINDS)
def test_words_merge_as_sums_over_keys_and_means_over_queries(name: str) -> None:
    trace = mixed_trace(name)
    merged, groups = av.merge_words(trace), trace.query_tokens().pieces
    for head in (0, trace.head_count(0, "mixer") - 1):
        one = signed(trace, head)
        words = [[numpy.mean([sum(one[i, j] for j in b) for i in a]) for b in groups] for a in groups]
        assert numpy.allclose(merged.weights(0, head, "mixer").numpy(), words, atol=1e-6)
    kept = merged.attention(0, "mixer")
    assert (kept.kind, kept.per) == (trace.attention(0, "mixer").kind, trace.attention(0, "mixer").per)
    # A causal layer stays one: the next token isn't open to it.
    assert av.roles(merged, "mixer")["next"].max() == 0


@pytest.mark.parametrize(
    "ask",
    [
        lambda trace: av.rollout(trace),
        lambda trace: av.flow(trace),
        lambda trace: read("norm", trace, None, "mixer"),
        lambda trace: queries_and_keys_plane(trace, 0, 0, "mixer"),
    ],
)
def test_what_needs_a_softmax_is_refused_by_name(ask: Callable[[Trace], object]) -> None:
    with pytest.raises(TraceError, match=r"needs a softmax(, whose rows sum to 1| in every layer; layer 0 of this)"):
        ask(mixed_trace("bamba"))


@pytest.mark.parametrize("name", KINDS)
def test_the_first_tokens_keep_the_weights_of_causal_layers(name: str) -> None:
    from attention_viz.trace.derived import beginning

    trace = mixed_trace(name)
    cut = beginning(trace, 9)
    assert torch.allclose(cut.weights(0, 1, "mixer"), trace.weights(0, 1, "mixer")[:9, :9], atol=1e-6)
