"""The table of all heads, some rows at a time and from a sample of rows, is what all rows together say."""

import math
from dataclasses import replace

import numpy
import pytest
import torch

import attention_viz as av
from attention_viz.analysis.head_table import head_table
from attention_viz.analysis.metrics import metrics_in
from attention_viz.errors import ShapeError
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Fidelity, Layer, Provenance, Trace
from tests.analysis.test_metrics import naive
from tests.shipped import shipped

SOFTMAX = metrics_in("softmax")


def long_trace(length: int = 300, *, blind: bool = False) -> Trace:
    """A decoder's layers with masks that differ: one sees everything before it, one a few tokens, two skip some."""
    random = torch.Generator().manual_seed(4)
    causal = av.masks.causal(length)
    gaps = causal & (torch.rand(length, length, generator=random) < 0.7)
    gaps[7] = gaps[7] & (not blind)
    masks = [causal, av.masks.combine(causal, av.masks.sliding_window(length, 9)), gaps, gaps]
    layers = tuple(
        Layer(
            av.attend(*(torch.randn(heads, length, 8, generator=random) for heads in (4, 2, 2)), mask[None], scale=1.0),
            str(number),
        )
        for number, mask in enumerate(masks)
    )
    ids = torch.randint(0, 90, (length,), generator=random).tolist()
    tokens = Tokens(tuple(f"t{one}" for one in ids), tuple(ids), special=(True, *(False,) * (length - 1)))
    fidelity = Fidelity(0.0, 0.0, 1e-5, "nothing")
    output = torch.zeros(length, 1)
    return Trace({"decoder": layers}, {"decoder": tokens}, {"decoder": tokens}, output, Provenance("made"), fidelity)


@pytest.mark.parametrize("at_once", [1, 4 * 30 * 7, 10**9])
def test_a_few_rows_at_a_time_give_the_numbers_of_all(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attention_viz.analysis.measured.WEIGHTS_AT_A_TIME", at_once)
    trace = long_trace(30, blind=True)
    tokens, table = trace.query_tokens(), head_table(trace, rows="all")
    for (layer, head), row in table.iterrows():
        weights = trace.weights(layer, head).numpy()
        kept = [position for position in tokens.counted if weights[position].any()]
        assert row[[*SOFTMAX]].to_dict() == pytest.approx(naive(weights, tokens, kept), abs=2e-5, nan_ok=True)
    assert (table.attrs["rows"], table.attrs["queries"]) == (29, 29)
    assert table.attrs["missing"].keys() == {"above"}


def test_a_sample_of_rows_comes_with_its_error_and_is_the_same_each_time() -> None:
    trace = long_trace()
    whole, some = head_table(trace, rows="all"), head_table(trace, rows=60)
    counts = [f"{name}_n" for name in SOFTMAX]
    assert list(whole.columns) == [*SOFTMAX, *counts]
    assert list(some.columns) == [*SOFTMAX, *(f"{name}_error" for name in SOFTMAX), *counts]
    assert (some.attrs["rows"], some.attrs["queries"]) == (60, 299)
    assert some.equals(head_table(trace, rows=60))
    names = ["entropy", "distance", "confidence", "variance"]  # of the others a few queries make up nearly all
    errors = some[[f"{name}_error" for name in names]].to_numpy()
    off = numpy.abs(some[names].to_numpy() - whole[names].to_numpy())
    assert (off <= 4 * errors + 1e-9).all()  # hardly ever further than three
    assert (off > 0.1 * errors)[errors > 0].mean() > 0.5  # and no error is told that is far larger than it is
    assert (errors[:, 0] > 0).all()


def test_the_error_of_a_sample_is_what_many_samples_are_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    trace, random = long_trace(100), numpy.random.default_rng(3)
    monkeypatch.setattr(
        "attention_viz.analysis.measured.sample_of",
        lambda positions, count: tuple(sorted(random.choice(positions, count, replace=False).tolist())),
    )
    tables = [head_table(trace, rows=40) for _ in range(24)]
    for name in ("entropy", "distance", "self", "first"):
        apart = numpy.stack([table[name] for table in tables]).var(axis=0, ddof=1)
        told = (numpy.stack([table[f"{name}_error"] for table in tables]) ** 2).mean(axis=0)
        assert told.mean() == pytest.approx(apart.mean(), rel=0.4)


def test_only_a_long_text_is_measured_by_a_sample_unless_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = long_trace()
    assert head_table(trace).attrs["rows"] == 299
    monkeypatch.setattr("attention_viz.analysis.measured.MANY_WEIGHTS", 3 * 4 * 300 * 300 - 1)
    monkeypatch.setattr("attention_viz.analysis.measured.SAMPLED_ROWS", 20)
    assert head_table(trace).attrs["rows"] == 20
    assert head_table(trace, rows="all").attrs["rows"] == head_table(trace, rows=5000).attrs["rows"] == 299
    for wrong in (0, -1, True):
        with pytest.raises(ShapeError, match="rows must be"):
            head_table(trace, rows=wrong)


def test_over_several_texts_errors_add_up_and_the_mean_of_whole_texts_has_none() -> None:
    traces = [long_trace(), long_trace(200)]
    whole, some = head_table(traces, rows="all"), head_table(traces, rows=40)
    assert "entropy_error" not in whole and (whole.attrs["rows"], whole.attrs["queries"]) == (498, 498)
    single = [head_table(trace, rows=40)["entropy_error"] for trace in traces]
    assert some["entropy_error"].to_numpy() == pytest.approx(((single[0] ** 2 + single[1] ** 2) ** 0.5 / 2).to_numpy())
    assert (some.attrs["rows"], some.attrs["queries"]) == (80, 498)


def test_work_is_told_of_as_it_is_done_and_can_be_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attention_viz.analysis.measured.WEIGHTS_AT_A_TIME", 4 * 300 * 100)
    told: list[float] = []
    head_table([long_trace(), long_trace()], rows="all", progress=told.append)
    assert told == sorted(told) and told[-1] == 1 and len(told) > 10

    class Stopped(Exception):
        pass

    def stop(share: float) -> None:
        if share > 0.2:
            raise Stopped

    with pytest.raises(Stopped):
        head_table(long_trace(), progress=stop)


def test_a_weight_that_is_not_a_number_is_never_passed_over() -> None:
    trace = long_trace(40)
    query = trace.attention(1).query.clone()
    query[2, 30] = math.nan
    layers = list(trace.layers["decoder"])
    layers[1] = Layer(replace(layers[1].attention, query=query), "1")
    spoilt = Trace({"decoder": tuple(layers)}, trace.queries, trace.keys, trace.output, trace.provenance)
    table = head_table(spoilt)[[*SOFTMAX]]
    assert table.loc[(1, 2)].drop("special").isna().all()
    assert table.drop((1, 2)).drop(columns=["special", "above"]).notna().all().all()


def test_each_mean_comes_with_the_number_of_queries_behind_it() -> None:
    model = shipped("induction")
    one, other = model.trace("moon cheese frog ring moon cheese"), model.trace("moon cheese frog")
    table, tables = av.head_table(one), [av.head_table(trace) for trace in (one, other)]
    # "moon" and "cheese" stand there twice; every word has one before it, or the sign at the beginning.
    assert set(table["induction_n"]) == set(table["duplicate_n"]) == {2}
    assert set(table["previous_n"]) == set(table["entropy_n"]) == {6}
    assert set(tables[1]["induction_n"]) == {0} and tables[1]["induction"].isna().all()
    both = av.head_table([one, other])
    assert set(both["induction_n"]) == {2} and set(both["previous_n"]) == {9}
    assert (both[[f"{name}_n" for name in SOFTMAX]].dtypes == "int64").all()
