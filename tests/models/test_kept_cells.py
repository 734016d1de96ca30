"""A trace of some heads, or of the last rows, has their numbers under the model's own, and refuses all else by name."""

import copy
import pickle
from pathlib import Path

import pandas
import pytest
import torch

import attention_viz as av
from attention_viz.inputs import cost
from attention_viz.models.model import AttentionModel
from attention_viz.trace.trace import TracePart
from tests.models.families import build, ids, wrapped

COUNT = 12
# Query heads that share keys evenly, that don't, and that have keys of their own.
HEADS = {"llama": [[1], [0, 1], [0, 1, 2], [3, 0]], "bert": [[2], [0, 3]], "gpt_oss": [[0, 3]], "gemma2": [[1, 2]]}


@pytest.fixture(params=["llama", "bert", "gpt_oss", "gemma2"])
def family(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def part_of(trace: av.Trace) -> TracePart:
    assert isinstance(trace, TracePart)
    return trace


def test_what_is_kept_has_the_numbers_of_the_whole(family: str) -> None:
    model = wrapped(family)
    whole = model.trace_ids(ids(COUNT))
    for heads in HEADS[family]:
        for queries in (None, 1, 5, COUNT):
            part = part_of(model.trace_ids(ids(COUNT), heads=heads, queries=queries))
            rows = COUNT if queries is None else queries
            for layer in whole.layer_numbers():
                for head in heads:
                    torch.testing.assert_close(part.weights(layer, head), whole.weights(layer, head)[-rows:])
                    own = part.head_attention(layer, head)
                    torch.testing.assert_close(own.output, whole.attention(layer).head(head).output[-rows:])
            assert torch.equal(part.output, whole.output[-rows:])
            assert len(part.query_tokens()) == rows
            assert part.query_tokens().labels == whole.query_tokens().labels[-rows:]
            assert part.key_tokens().labels == whole.key_tokens().labels


def test_copies_are_the_trace_and_an_analysis_names_what_it_lacks() -> None:
    model = wrapped("llama")
    for trace in (model.trace_ids(ids(COUNT)), model.trace_ids(ids(COUNT), heads=[1])):
        assert copy.copy(trace) is copy.deepcopy(trace) is trace
        with pytest.raises(av.TraceError, match=r"can't be pickled; write it by save\(path\)"):
            pickle.dumps(trace)
    with pytest.raises(av.TraceError, match="needs all heads and rows, but this trace keeps only head 1"):
        av.logit_lens(model, trace)


def test_it_takes_less_memory_than_the_whole() -> None:
    model = wrapped("llama")
    whole, part = model.trace_ids(ids(COUNT)), part_of(model.trace_ids(ids(COUNT), heads=[1], queries=2))
    call, kept = whole.attention(0), part._whole.attention(0)
    assert kept.query.numel() == call.query[:1, -2:].numel() == kept.query.untyped_storage().nbytes() / 4
    assert kept.key.numel() == call.key[:1].numel() == kept.key.untyped_storage().nbytes() / 4
    assert part.nbytes < whole.nbytes / 2


def test_the_table_has_the_models_numbers() -> None:
    model = wrapped("llama")
    whole = model.trace_ids(ids(COUNT)).table()
    part = model.trace_ids(ids(COUNT), heads=[3, 1], queries=2, layers=[1])
    found = part.table()
    rows = whole[(whole.layer == 1) & whole["head"].isin([1, 3]) & (whole["query"] >= COUNT - 2)]
    pandas.testing.assert_frame_equal(found, rows.reset_index(drop=True))
    assert {*part.table(head=3)["head"]} == {3}


def test_a_file_keeps_the_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "LONG", 2)
    model = av.wrap(build("llama").bfloat16())
    part = part_of(model.trace_ids(ids(COUNT), heads=[0, 3], queries=4))
    part.save(path := tmp_path / "part.trace")
    again = part_of(av.Trace.load(path))
    assert again.part == part.part
    assert again.weights(1, 3).dtype == torch.bfloat16
    assert torch.equal(again.weights(1, 3), part.weights(1, 3))
    assert again.fidelity == part.fidelity
    assert str(again) == str(part)
    assert "only heads 0 and 3 and the last 4 rows" in repr(part)


def test_what_was_not_kept_is_refused_by_name() -> None:
    model = wrapped("llama")
    part = model.trace_ids(ids(COUNT), heads=[1], queries=3)
    with pytest.raises(av.TraceError, match="no head 0; this trace keeps only head 1 and the last 3 rows"):
        part.weights(0, 0)
    for question in (
        lambda: av.head_table(part),
        lambda: av.findings(part),
        lambda: av.rollout(part),
        lambda: av.explore(part).html(),
        lambda: part.attention(0),
        lambda: part.layers,
        lambda: av.norm_weighted(model, part, 0),
        lambda: list(model.extend(part)),
        lambda: av.merge_words(part),
    ):
        with pytest.raises(av.AttentionVizError, match="keeps only head 1 and the last 3 rows"):
            question()


def test_it_is_verified_by_a_run_that_keeps_all() -> None:
    fidelity = wrapped("llama").trace_ids(ids(COUNT), heads=[1], queries=2).fidelity
    assert fidelity.ok
    assert fidelity.weight_error is not None
    assert "measured in a second run, with all heads and rows" in fidelity.reference
    edited = wrapped("llama").trace_ids(ids(COUNT), heads=[1], edits=[av.Ablate(0, 2)]).fidelity
    assert edited.ok
    assert "before the edits" in edited.reference


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"heads": []}, "heads must be a list of one or more heads"),
        ({"heads": "1"}, "heads must be a list"),
        ({"heads": [9]}, "can't keep head 9; each layer has heads 0 to 5"),
        ({"heads": [1, 1]}, "name each head to keep once"),
        ({"queries": 0}, "queries must be a whole number, 1 or more"),
        ({"queries": True}, "queries must be a whole number, 1 or more"),
        ({"queries": 13}, "at most the text's 12; got 13"),
    ],
)
def test_impossible_parts_are_refused(asked: dict[str, object], message: str) -> None:
    with pytest.raises(av.ShapeError, match=message):
        wrapped("llama").trace_ids(ids(COUNT), **asked)  # pyright: ignore[reportArgumentType]


def test_a_changed_model_is_noticed() -> None:
    model: AttentionModel = av.wrap(build("llama"))
    part = model.trace_ids(ids(COUNT), heads=[1])
    model.hf_model.get_submodule("model.layers.0.self_attn.o_proj").weight.data *= 2
    with pytest.raises(av.TraceError, match="has changed since"):
        _ = part.fidelity


def test_models_of_other_kinds_refuse_by_name() -> None:
    with pytest.raises(av.UnsupportedModel, match="take an encoder or a decoder"):
        wrapped("t5").trace_ids(ids(COUNT), heads=[0])


def test_a_part_of_heads_has_the_texts_chances_and_one_of_rows_is_refused_by_name() -> None:
    model = av.load("induction")
    whole = model.chances(model.trace("moon cheese moon"))
    assert model.chances(model.trace("moon cheese moon", heads=[1])).equals(whole)
    with pytest.raises(av.errors.AttentionVizError):
        model.chances(model.trace("moon cheese moon", queries=2))
