import numpy
import pytest
import torch

import attention_viz as av
from attention_viz.analysis.plane import queries_and_keys_plane
from attention_viz.views import queries_and_keys
from tests.shipped import shipped


def test_the_plane_is_that_of_the_covariance_and_moving_and_scaling_leaves_the_weights() -> None:
    trace = shipped("all-MiniLM-L6-v2").trace("The bank of the river was flooded")
    plane, one = queries_and_keys_plane(trace, 0, 4), trace.attention(0).head(4)
    query, key = (side.double().reshape(-1, side.shape[-1]).numpy() for side in (one.query, one.key))
    lengths = [numpy.linalg.norm(side - side.mean(axis=0), axis=1).mean() for side in (query, key)]
    factor = numpy.sqrt(lengths[1] / lengths[0])
    # As the docstring has it: multiplied and divided, and the keys moved until both have one centre.
    queries, keys = query * factor, key / factor
    keys = keys + queries.mean(axis=0) - keys.mean(axis=0)
    scores = torch.from_numpy(queries @ keys.T / numpy.sqrt(query.shape[1]))
    assert scores.softmax(dim=-1).numpy() == pytest.approx(trace.weights(0, 4).numpy(), abs=1e-5)
    together = numpy.concatenate([queries, keys])
    values, directions = numpy.linalg.eigh(numpy.cov(together.T))
    assert plane.share == pytest.approx(values[-2:].sum() / values.sum(), rel=1e-6)
    drawn = (together - together.mean(axis=0)) @ directions[:, :-3:-1]
    found = torch.cat([plane.queries, plane.keys]).numpy()
    assert numpy.abs(found) == pytest.approx(numpy.abs(drawn), abs=1e-6)


def test_its_picture_has_every_query_and_key_and_lines_for_the_strongest_links() -> None:
    trace = shipped("all-MiniLM-L6-v2").trace("The bank of the river was flooded")
    figure, plane = queries_and_keys(trace, 0, 4), queries_and_keys_plane(trace, 0, 4)
    *lines, queries, keys = figure.data
    assert list(queries.x) == pytest.approx(plane.queries[:, 0].tolist())
    assert list(keys.y) == pytest.approx(plane.keys[:, 1].tolist())
    best = trace.weights(0, 4).max(dim=-1).values.tolist()
    assert len(lines) == sum(weight >= 0.1 for weight in best)
    assert [line.line.width for line in lines] == sorted([line.line.width for line in lines], reverse=True)
    assert any(line.hovertext == "bank attends to river: 0.580" for line in lines)
    assert f"{plane.share:.0%} of their variance" in figure.layout.title.text
    table = plane.table(trace, "encoder")
    assert table["side"].tolist() == ["query"] * 9 + ["key"] * 9 and table["token"][2] == "bank"


def test_strange_tokens_stay_text_and_one_token_has_run() -> None:
    assert "&lt;" in queries_and_keys(av.scratch("<b> x"), 0, 0).data[-1].hovertext[0]
    one = queries_and_keys_plane(av.scratch("word", heads=1), 0, 0)
    assert one.share == 1 and one.queries.tolist() == one.keys.tolist() == [[0, 0]]
