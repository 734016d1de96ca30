"""Every question asked of a trace, on rows and columns that the model adds: latents, object queries, virtual tokens."""

import inspect
from collections.abc import Callable, Iterator
from functools import cache
from math import isnan
from pathlib import Path
from typing import Any

import pytest

import attention_viz as av
from attention_viz.analysis.findings.findings import none_because
from attention_viz.analysis.metrics import METRICS
from attention_viz.analysis.slides.found import link_slide
from attention_viz.errors import AttentionVizError
from attention_viz.explorer.packet import read_packet
from attention_viz.explorer.payload import pack
from attention_viz.steps.head import open_head
from attention_viz.steps.steps import step_tensors, steps_of
from attention_viz.trace.kind import SLOTS, Unit
from attention_viz.trace.trace import Trace
from attention_viz.views.registry import VIEWS
from tests.recording.layout.test_several_slots import sam, sam3
from tests.recording.layout.test_slot_families import IDS, detr, perceiver, tuned

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")
STREAMS = [
    *(("perceiver", stream) for stream in ("pooling", "slots", "readout")),
    *(("detr", stream) for stream in ("picture", "pooling", "slots")),
    ("prefix", "decoder"),
    ("prompt", "decoder"),
    *(("sam", stream) for stream in ("pooling", "slots", "readout")),
    *(("sam3", stream) for stream in ("cross", "pooling", "pooling 2")),
]
# Roles that need positions in an order, or ids.
TOKENS_ONLY = ("previous", "next", "same token", "induction", "above")
# What these streams truly can't have says so.
REFUSED = {"angles", "overlay", "spoken", "hull", "cache", "arrived", "alignment"}
# Views that need more than a trace and a head.
MORE = {"learned", "candidates", "logit_lens", "head_effects", "composition"}


@cache
def traced(name: str) -> Trace:
    """A trace of one of the models."""
    if name == "detr":
        model, inputs = detr()
        return av.wrap(model, inputs=inputs).trace(inputs)
    if name == "sam":
        model, inputs = sam()
        return av.wrap(model, inputs=inputs).trace(inputs)
    if name == "sam3":
        return sam3()[2]
    return av.wrap(perceiver() if name == "perceiver" else tuned(name)).trace_ids(IDS)


def views(trace: Trace, stream: str) -> Iterator[tuple[str, Callable[[], object]]]:
    """Every view of one head, with the arguments that it needs."""
    known: dict[str, object] = {"layer": trace.layer_numbers(stream)[0], "head": 0, "stream": stream}
    for name, view in VIEWS.items():
        wanted = inspect.signature(view).parameters
        if next(iter(wanted)) != "trace" or name in MORE:
            continue
        needed = [one for one, given in wanted.items() if given.default is inspect.Parameter.empty and one != "trace"]
        arguments = {one: known.get(one, 0) for one in {*needed, *(known.keys() & wanted.keys())}}
        yield name, lambda view=view, arguments=arguments: view(trace, **arguments)


@pytest.mark.parametrize(("name", "stream"), STREAMS)
def test_every_view_draws_it_or_says_why_not(name: str, stream: str) -> None:
    trace, refused = traced(name), set[str]()
    drawn = 0
    for view, draw in views(trace, stream):
        try:
            _ = draw()
            drawn += 1
        except AttentionVizError:
            refused.add(view)
    assert drawn > 10
    assert refused <= REFUSED | {"rollout", "flow", "paths"}


@pytest.mark.parametrize(("name", "stream"), STREAMS)
def test_tables_name_every_row_and_column(name: str, stream: str) -> None:
    trace = traced(name)
    layer = trace.layer_numbers(stream)[0]
    table = trace.table(layer, 0, stream)
    queries, keys = trace.query_tokens(stream), trace.key_tokens(stream)
    weights = trace.weights(layer, 0, stream)
    assert len(table) == weights.numel()
    for row in (0, len(table) // 2, len(table) - 1):
        one = table.iloc[row]
        assert (one["query_token"], one["key_token"]) == (queries.labels[one["query"]], keys.labels[one["key"]])
        assert one["weight"] == pytest.approx(float(weights[one["query"], one["key"]]))
    found = av.find_heads(trace, query=queries.written[0], key=keys.written[-1], stream=stream)
    assert len(found) == sum(trace.head_count(one, stream) for one in trace.layer_numbers(stream))
    assert len(av.compare(trace, trace, layer=layer, head=0, stream=stream).table()) > 0


@pytest.mark.parametrize(("name", "stream"), STREAMS)
def test_slots_have_no_roles_or_metrics_of_tokens(name: str, stream: str) -> None:
    trace = traced(name)
    queries = trace.query_tokens(stream)
    roles, metrics = av.roles(trace, stream), av.head_table(trace, stream)
    if queries.unit not in SLOTS:
        return
    assert not set(roles["role"]) & set(TOKENS_ONLY)
    assert all(roles[name].isna().all() for name in TOKENS_ONLY)
    assert all(isnan(one) for name in ("previous", "next", "distance") for one in metrics[name])
    assert set(METRICS) >= {*metrics.columns} - {one for one in metrics.columns if one not in METRICS}


def test_sentences_say_what_the_rows_are() -> None:
    found = [one for one in av.findings(traced("perceiver"), count=20) if one.stream == "pooling"]
    assert found
    assert all(one.text.startswith("Latent ") for one in found)
    found = [one for one in av.findings(traced("prefix"), count=20) if "virtual token" in one.text]
    assert found
    assert not any("Before" in one.text for one in found)  # as of words that a decoder writes
    slide = link_slide(traced("detr"), "pooling", 0, 1, 3, 5)
    assert "object query 3" in "".join(text for text, _ in slide.ask)


def test_a_trace_without_findings_isnt_said_to_have_words() -> None:
    assert "no position gives another" in none_because(traced("detr"))
    assert "no position gives another" in none_because(traced("perceiver"))


@pytest.mark.parametrize(("name", "stream"), STREAMS)
def test_the_explorer_gets_short_labels_and_whole_names(name: str, stream: str) -> None:
    trace = traced(name)
    header, _ = read_packet(pack(trace))
    (one,) = (packed for packed in header["streams"] if packed["name"] == stream)
    assert "written" not in one
    for side, tokens in (("queries", trace.query_tokens(stream)), ("keys", trace.key_tokens(stream))):
        axis: dict[str, Any] = header["axes"][one[side]]
        for at, slot in enumerate(tokens.slots):
            if slot is not None:
                assert axis["labels"][at] == tokens.written[at] == Unit(slot).shortened(tokens.labels[at])
                assert axis["named"][at] == tokens.labels[at]
    assert av.explore(trace).html()


@pytest.mark.parametrize(("name", "stream"), STREAMS)
def test_a_head_opens_step_by_step(name: str, stream: str) -> None:
    trace = traced(name)
    opened = open_head(trace, trace.layer_numbers(stream)[0], 0, stream)
    tensors = step_tensors(opened)
    assert tensors["weights"].shape == (len(trace.query_tokens(stream)), len(trace.key_tokens(stream)))
    assert "weights" in steps_of(opened)


@pytest.mark.parametrize("name", ["perceiver", "detr", "prefix", "prompt", "sam"])
def test_a_file_keeps_what_the_rows_are(name: str, tmp_path: Path) -> None:
    trace = traced(name)
    trace.save(tmp_path / "one.safetensors")
    found = av.Trace.load(tmp_path / "one.safetensors")
    for stream in trace.streams:
        assert found.query_tokens(stream) == trace.query_tokens(stream)
        assert found.key_tokens(stream) == trace.key_tokens(stream)
    merged = av.merge_words(trace)
    assert [merged.key_tokens(one).slots.count(None) for one in trace.streams] == [
        trace.key_tokens(one).slots.count(None) for one in trace.streams
    ]
