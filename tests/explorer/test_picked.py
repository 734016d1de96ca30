"""Keys that an indexer left out have a look, a legend and words of their own in the explorer."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from playwright.sync_api import Page, expect

import attention_viz as av
from attention_viz.trace.picking import Picking
from attention_viz.trace.trace import Trace
from tests.explorer.conftest import self_attention
from tests.explorer.test_in_browser import open_table, part
from tests.models.families import ids
from tests.recording.layout.test_spans import COUNT, SPANS, compressing

Show = Callable[..., Page]


@pytest.fixture
def picked() -> Trace:
    """Six words; the indexer picks the two highest of the keys before each query."""
    torch.manual_seed(1)
    before = torch.ones(6, 6).tril().bool()
    scores = torch.randn(1, 6, 6).masked_fill(~before, -torch.inf)
    chosen = torch.zeros(1, 6, 6).scatter(-1, scores.topk(2).indices, 1).bool() & before
    trace = self_attention(6, 1, allowed=chosen)
    (layer,) = trace.layers["encoder"]
    return trace.derived(layers={"encoder": (replace(layer, picking=Picking(scores, chosen)),)})


def test_keys_left_out_are_dotted_named_and_explained(show: Show, picked: Trace) -> None:
    page = show(picked)
    expect(part(page, "legend")).to_contain_text("available, not picked")
    layer = picked.layers["encoder"][0].picking
    assert layer is not None
    query, key = (int(place) for place in layer.left_out[0].nonzero()[-1])
    rows = open_table(page)
    below = -float(layer.margins[0, query, key])
    words_of = rows[query][key + 1]
    assert words_of.startswith("not picked, ") and words_of.endswith(" below the cut")
    assert float(words_of.split()[2]) == pytest.approx(below, rel=5e-3)
    assert rows[0][2] == "blocked"


def test_a_trace_without_an_indexer_has_no_such_entry(show: Show, picked: Trace) -> None:
    (layer,) = picked.layers["encoder"]
    page = show(picked.derived(layers={"encoder": (replace(layer, picking=None),)}))
    expect(part(page, "legend")).to_contain_text("blocked")
    expect(part(page, "legend")).not_to_contain_text("not picked")


def test_spans_left_out_are_dotted_and_named_by_their_tokens(show: Show) -> None:
    trace = av.wrap(compressing()).trace_ids(ids(COUNT))
    layer = trace.layers["decoder 3"][0]
    page = show(trace, stream="decoder 3", layer=2)
    expect(part(page, "legend")).to_contain_text("available, not picked")
    query, key = (int(place) for place in layer.picking.left_out[0].nonzero()[-1])
    rows = open_table(page)
    assert rows[query][key + 1].startswith("not picked, ")
    header = part(page, "table").locator("thead th").all_text_contents()
    assert header[-len(SPANS["decoder 3"]) :] == SPANS["decoder 3"]
