"""Heads that link two words over several texts, and what a detector looks for."""

import numpy
import pytest

from attention_viz.analysis.head_table import head_table, mean_table
from attention_viz.analysis.metrics import METRICS
from attention_viz.analysis.search import DETECTORS, find_heads
from attention_viz.errors import TraceError
from attention_viz.trace.trace import Trace
from tests.shipped import shipped

TEXTS = ("The cat sat because it was tired.", "Nothing here.", "A cat ran and it fell over the mat.")


@pytest.fixture(scope="module")
def traces() -> list[Trace]:
    model = shipped("all-MiniLM-L6-v2")
    return [model.trace(text) for text in TEXTS]


def test_over_several_texts_weights_and_ranks_are_means_of_those_that_have_both_words(traces: list[Trace]) -> None:
    found = find_heads(traces, "it", "cat")
    assert list(found.columns) == ["layer", "head", "weight", "spread", "mean_rank", "texts", "rank"]
    assert len(found) == 72 and (found["texts"] == 2).all()
    alone = [find_heads(traces[place], "it", "cat").set_index(["layer", "head"]) for place in (0, 2)]
    for row in found.itertuples():
        weights = [float(one.loc[(row.layer, row.head), "weight"]) for one in alone]
        ranks = [int(one.loc[(row.layer, row.head), "rank"]) for one in alone]
        assert row.weight == pytest.approx(numpy.mean(weights))
        assert row.spread == pytest.approx(numpy.std(weights))
        assert row.mean_rank == numpy.mean(ranks)
    assert found["mean_rank"].is_monotonic_increasing
    assert found["rank"].tolist() == list(range(1, 73))


def test_words_that_no_text_has_are_refused_with_how_many_were_read(traces: list[Trace]) -> None:
    with pytest.raises(TraceError, match="none of 3 texts has both “dog” and “cat”"):
        find_heads(traces, "dog", "cat")
    with pytest.raises(TraceError, match="none of 0 texts"):
        find_heads([], "it", "cat")
    other = shipped("induction").trace("moon cheese moon cheese")
    minilm, text = shipped("all-MiniLM-L6-v2"), "moon cheese"
    with pytest.raises(TraceError, match="one model; got all-MiniLM-L6-v2 and induction"):
        find_heads([minilm.trace(text), other], "moon", "cheese")
    with pytest.raises(TraceError, match=r"same heads; got \[24, 72\]"):
        find_heads([minilm.trace(text), minilm.trace(text, layers=[0, 5])], "moon", "cheese")


def test_a_detector_is_a_metric_in_plain_words() -> None:
    for name, detector in DETECTORS.items():
        assert detector.metric in METRICS, name
        assert detector.finds.endswith(".") and detector.label
    assert len({detector.metric for detector in DETECTORS.values()}) == len(DETECTORS)
    table = head_table(shipped("induction").trace("moon cheese frog ring boat moon cheese frog ring boat"))
    assert table[DETECTORS["induction"].metric].idxmax() == (1, 1)


def test_tables_that_are_at_hand_are_averaged_as_their_traces_are(traces: list[Trace]) -> None:
    tables = [head_table(trace) for trace in traces]
    assert mean_table(tables).equals(head_table(traces))
    with pytest.raises(TraceError, match="one or more tables"):
        mean_table([])
