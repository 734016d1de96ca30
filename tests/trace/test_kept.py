"""A trace that keeps some layers: each has the number it has in its model, in everything that is made of the trace."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from pandas import DataFrame

from attention_viz.analysis.attribution import flow, rollout
from attention_viz.analysis.comparison.head_divergences import divergences
from attention_viz.analysis.head_table import head_table
from attention_viz.analysis.likeness import head_distances, similarity
from attention_viz.analysis.readings import read
from attention_viz.analysis.search import find_heads, rank_heads
from attention_viz.edits.change import Change, heads_of
from attention_viz.edits.changes import misfit
from attention_viz.edits.effects import moved_weight, weight_table
from attention_viz.errors import ShapeError, TraceError
from attention_viz.explorer.atlas_payload import pack_atlas
from attention_viz.trace.derived import merge_words
from attention_viz.trace.kept import KeptLayers, chosen_layers
from attention_viz.trace.trace import Trace
from attention_viz.views import changed_heads, compared_heads, head_effects, head_grid
from tests.trace.files.taken_apart import put_together, taken_apart
from tests.trace.test_trace import layer, tokens, trace

COUNT, KEPT = 4, (1, 3)
STREAMS = {"encoder": KeptLayers.first(2), "decoder": KeptLayers.first(4)}


def whole(seed: int = 0) -> Trace:
    """A decoder of four layers."""
    torch.manual_seed(seed)
    rows = {"decoder": tokens(COUNT)}
    layers = {"decoder": tuple(layer(COUNT, COUNT, label=str(number)) for number in range(4))}
    return trace(layers=layers, queries=rows, keys=rows, output=torch.randn(COUNT, 7))


def some(of: Trace, numbers: Sequence[int] = KEPT) -> Trace:
    """The same with some of its layers only."""
    layers = {"decoder": tuple(of.layers["decoder"][number] for number in numbers)}
    kept = {"decoder": KeptLayers(tuple(numbers), (0, 1, 2, 3))}
    return Trace(layers, of.queries, of.keys, of.output, of.provenance, of.fidelity, kept)


def test_a_layer_has_the_number_it_has_in_its_model() -> None:
    every = whole()
    kept = some(every)
    assert (kept.layer_numbers(), kept.layer_count()) == (KEPT, 2)
    for number in KEPT:
        assert kept.attention(number) is every.attention(number)
        assert kept.layer(number) is every.layer(number)
        assert kept.label(number) == str(number)
        assert kept.head_count(number) == every.head_count(number)
        assert torch.equal(kept.weights(number, 1), every.weights(number, 1))
    assert repr(kept).endswith("decoder: 2 of 4 layers (1, 3) × 2 heads × 4 × 4 tokens)")
    assert every.layer_numbers() == (0, 1, 2, 3)
    assert kept.nbytes < every.nbytes


@pytest.mark.parametrize("number", [0, 2, 4, -1, True])
def test_a_layer_that_is_not_kept_is_refused_with_those_that_are(number: int) -> None:
    kept = some(whole())
    for ask in (kept.attention, kept.layer, kept.label, kept.head_count, kept.table, lambda n: kept.weights(n, 0)):
        with pytest.raises(TraceError, match=f"no layer {number}; of the decoder .* keeps layers 1, 3"):
            ask(number)


def test_the_first_layers_alone_are_not_taken_for_all() -> None:
    first = some(whole(), (0, 1))
    assert first.layer_numbers() == (0, 1)
    with pytest.raises(TraceError, match="rollout needs every layer of the decoder, but this trace keeps layers 0, 1"):
        rollout(first)


@pytest.mark.parametrize(
    "kept",
    [
        {"decoder": KeptLayers((1,), (0, 1, 2, 3))},
        {"decoder": KeptLayers((3, 1), (0, 1, 2, 3))},
        {"decoder": KeptLayers((1, 1), (0, 1, 2, 3))},
        {"decoder": KeptLayers((-1, 1), (0, 1, 2, 3))},
        {"decoder": KeptLayers((1, 4), (0, 1, 2, 3))},
        {"encoder": KeptLayers((1, 3), (0, 1, 2, 3))},
        {},
    ],
)
def test_numbers_that_cannot_be_those_of_the_layers_are_refused(kept: dict[str, KeptLayers]) -> None:
    one = some(whole())
    with pytest.raises(TraceError, match="numbers"):
        Trace(one.layers, one.queries, one.keys, one.output, one.provenance, kept=kept)


@pytest.mark.parametrize(
    ("layers", "words"),
    [
        ([], "layers is empty"),
        ([4], "can't keep layer 4; the model has layers 0 to 3"),
        ([-1], "can't keep layer -1"),
        ([1, 1], r"each layer to keep once; got \[1, 1\]"),
        ([1.0], "can't keep layer 1.0"),
        ([True], "can't keep layer True"),
        (["1"], "can't keep layer '1'"),
        (1, "in a list or tuple; got int"),
        ("1", "in a list or tuple; got str"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_layers_that_cannot_be_kept_are_refused(layers: Any, words: str) -> None:
    with pytest.raises(ShapeError, match=words):
        chosen_layers(layers, STREAMS)


def test_numbers_are_kept_in_each_stream_that_has_them() -> None:
    assert chosen_layers([3, 1], STREAMS | {"cross": KeptLayers.first(1)}) == {
        "encoder": KeptLayers((1,), (0, 1)),
        "decoder": KeptLayers((1, 3), (0, 1, 2, 3)),
    }


def test_what_is_made_of_it_keeps_its_numbers() -> None:
    one = some(whole())
    for made in (one.only(), one.derived(output=one.output), one.derived(layers=one.layers), one.detached()):
        assert made.kept == one.kept
    merged = merge_words(one)
    assert merged.layer_numbers() == KEPT
    assert torch.allclose(merged.weights(3, 0), merge_words(whole()).weights(3, 0))
    with pytest.raises(TraceError, match="1 layers and needs as many rising numbers"):
        one.derived(layers={"decoder": one.layers["decoder"][:1]})


def test_a_file_of_it_has_the_same_numbers(tmp_path: Path) -> None:
    one = some(whole())
    one.save(tmp_path / "some")
    back = Trace.load(tmp_path / "some")
    assert back.kept == one.kept
    assert torch.equal(back.weights(3, 1), one.weights(3, 1))
    _, written, _ = taken_apart(tmp_path / "some")
    assert written["format"] == 2


def test_a_file_of_all_layers_is_what_it_was_before_some_could_be_kept(tmp_path: Path) -> None:
    whole().save(tmp_path / "all")
    _, written, _ = taken_apart(tmp_path / "all")
    assert written["format"] == 1
    assert set(written["streams"]["decoder"]) == {"queries", "keys", "layers"}


@pytest.mark.parametrize(
    "kept",
    [
        {"numbers": [1], "of": 4},
        {"numbers": [3, 1], "of": 4},
        {"numbers": [1, 3], "of": 2},
        {"numbers": [1, 3.0], "of": 4},
        {"numbers": [1, True], "of": 4},
        {"numbers": "13", "of": 4},
        {"numbers": [1, 3]},
        {},
        None,
    ],
)
def test_a_file_with_numbers_that_do_not_fit_is_refused(tmp_path: Path, kept: object) -> None:
    path = tmp_path / "some"
    some(whole()).save(path)
    outer, found, body = taken_apart(path)
    found["streams"]["decoder"]["kept"] = kept
    put_together(path, outer, body, found)
    with pytest.raises(TraceError, match="some is a broken trace"):
        Trace.load(path)


def test_tables_and_searches_give_the_numbers_of_the_whole_trace() -> None:
    every = whole()
    kept = some(every)
    table = head_table(kept)
    assert list(table.index) == [(1, 0), (1, 1), (3, 0), (3, 1)]
    assert table.equals(head_table(every).loc[list(KEPT)])
    cells = every.table()
    assert kept.table().equals(cells[cells["layer"].isin(KEPT)].reset_index(drop=True))
    assert rank_heads(kept, "decoder", 2, 1) == [one for one in rank_heads(every, "decoder", 2, 1) if one[0] in KEPT]
    found, among = find_heads(kept, "12", "11"), find_heads(every, "12", "11")
    columns = ["layer", "head", "weight", "query", "key"]
    assert found[columns].equals(among[among["layer"].isin(KEPT)][columns].reset_index(drop=True))
    pattern = torch.rand(COUNT, COUNT)
    assert torch.equal(similarity(kept, pattern), similarity(every, pattern)[list(KEPT)])
    places = [2, 3, 6, 7]
    assert torch.equal(head_distances(kept), head_distances(every)[places][:, places])


def test_several_texts_of_other_layers_have_no_mean() -> None:
    for mean in (head_table, lambda traces: find_heads(traces, "12", "11")):
        with pytest.raises(TraceError, match="the same heads"):
            mean([some(whole(), (0, 1)), some(whole(), (2, 3))])


def test_two_runs_that_keep_the_same_layers_are_compared() -> None:
    before, after = whole(), whole(1)
    one, other = some(before), some(after)
    assert torch.equal(moved_weight(one, other), moved_weight(before, after)[list(KEPT)])
    every = weight_table(before, after)
    assert weight_table(one, other).equals(every[every["layer"].isin(KEPT)].reset_index(drop=True))
    apart = divergences(one, other)
    assert torch.equal(apart, divergences(before, after)[list(KEPT)])
    for figure in (changed_heads(one, other), compared_heads(one, other, apart, chosen=(3, 1))):
        assert "layer 3, head 1" in figure.data[0].hovertext[1][1]
    assert compared_heads(one, other, apart, chosen=(3, 1)).layout.shapes[-1].y0 == 0.5
    shifted = some(after, (0, 1))
    for compare in (moved_weight, divergences):
        with pytest.raises(TraceError, match=r"the same layers; got layers 1, 3 of .* and layers 0, 1 of"):
            compare(one, shifted)


def test_pictures_of_heads_have_a_row_for_each_layer_that_is_kept() -> None:
    every = whole()
    kept = some(every)
    figure, other = head_grid(kept, "entropy", chosen=(3, 0)), head_grid(every, "entropy")
    assert [list(row) for row in figure.data[0].z] == [list(other.data[0].z[number]) for number in KEPT]
    assert [row[0].partition("<br>")[0] for row in figure.data[0].hovertext] == ["layer 1, head 0", "layer 3, head 0"]
    assert list(figure.layout.yaxis.ticktext) == ["1", "3"]
    assert figure.layout.shapes[-1].y0 == 0.5
    assert not head_grid(kept, "entropy", chosen=(0, 0)).layout.shapes
    with pytest.raises(ShapeError, match="must have the layers of the decoder: 1, 3"):
        head_grid(kept, "entropy", table=head_table(every))
    moved = head_table(every)["entropy"]
    assert list(head_effects(kept, moved.loc[[3]]).layout.yaxis.ticktext) == ["3"]
    with pytest.raises(ShapeError, match="the decoder, which has layers 1, 3 of 0 to 3"):
        head_effects(kept, moved.loc[[2]])


def test_what_needs_every_layer_is_refused_by_name() -> None:
    kept = some(whole())
    for what, ask in {
        "rollout": lambda: rollout(kept),
        "flow": lambda: flow(kept, layers=[1]),
        "the atlas": lambda: pack_atlas(kept, "decoder", head_table(kept), DataFrame()),
        "a change in all layers": lambda: heads_of(Change("zero"), kept),
    }.items():
        with pytest.raises(TraceError, match=f"{what} needs every layer of the decoder, .* keeps layers 1, 3"):
            ask()
    with pytest.raises(TraceError, match="rollout needs every layer"):
        read("rollout", kept)
    assert "keeps only some" in misfit(Change("zero", 1, 0), kept)
