"""Moments of training that ship: each is loaded as what it is, and checked as everything that is loaded."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import attention_viz as av
from attention_viz.analysis.metrics import METRICS
from attention_viz.models import SNAPSHOTS, moments
from attention_viz.models.loading.snapshots import revision_of
from attention_viz.models.model import AttentionModel
from attention_viz.sources import CATALOGUE
from attention_viz.sources.folders import sha256_of

FOLDER = (CATALOGUE["induction"].path or Path()) / "snapshots"
TEXT = CATALOGUE["induction"].examples[0]


def test_every_file_of_a_moment_is_known_and_is_the_one_that_is_known() -> None:
    kept = {int(path.stem): sha256_of(path) for path in FOLDER.glob("*.safetensors")}
    assert kept == SNAPSHOTS["induction"]
    assert len(kept) == 12


def test_the_table_says_what_was_measured_at_each_step() -> None:
    table = moments("induction")
    written = json.loads((FOLDER / "snapshots.json").read_text("utf-8"))
    assert list(table.index) == [one["step"] for one in written] == list(SNAPSHOTS["induction"])
    assert table.loc[400, "accuracy"] == next(one["accuracy"] for one in written if one["step"] == 400)


@pytest.mark.parametrize("step", [0, 400])
def test_a_moment_has_the_weights_of_its_file_and_says_which_it_is(step: int) -> None:
    model = av.load("induction", revision=revision_of(step))
    assert isinstance(model, AttentionModel)
    weights = load_file(FOLDER / f"{step}.safetensors")
    loaded = model.hf_model.state_dict()
    assert all(torch.equal(loaded[name], tensor.float()) for name, tensor in weights.items())
    trace = model.trace(TEXT)
    origin = trace.provenance
    assert (origin.model, origin.revision) == ("induction", f"step-{step}")
    assert origin.sha256 == SNAPSHOTS["induction"][step]
    assert trace.fidelity.ok


def test_the_last_moment_is_the_model_that_ships_and_the_first_knows_nothing_yet() -> None:
    last, now = av.load("induction", revision="step-1200").trace(TEXT), av.load("induction").trace(TEXT)
    assert torch.equal(last.weights(1, 1), now.weights(1, 1))
    first = av.load("induction", revision="step-0").trace(TEXT)
    looked = [av.head_table(trace).loc[(1, 1), "induction"] for trace in (first, last)]
    assert looked[0] < 0.2 < 0.8 < looked[1]
    assert "induction" in METRICS


@pytest.mark.parametrize("revision", ["step-1", "main", "step-0400", "../0"])
def test_a_moment_that_was_not_kept_is_refused_with_those_that_were(revision: str) -> None:
    with pytest.raises(av.UnsupportedModel, match=rf"no revision '{revision}'; choose step-0, step-275, .*step-1200"):
        av.load("induction", revision=revision)


def test_moments_of_another_model_are_refused_by_name() -> None:
    with pytest.raises(av.UnsupportedModel, match="lists has no training checkpoints; choose induction"):
        moments("lists")
    with pytest.raises(av.UnsupportedModel, match="lists has no revision 'step-0'; only models on the hub"):
        av.load("lists", revision="step-0")


def test_a_damaged_moment_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SNAPSHOTS["induction"], 0, "0" * 64)
    with pytest.raises(av.ModelNotFound, match="the file is damaged"):
        av.load("induction", revision="step-0")
    monkeypatch.setitem(SNAPSHOTS["induction"], 7, "0" * 64)
    with pytest.raises(av.ModelNotFound, match=r"7\.safetensors, the weights of induction at step-7, is missing"):
        av.load("induction", revision="step-7")
    with pytest.raises(av.ModelNotFound, match=r"has the steps \[.*; its checkpoints are \["):
        moments("induction")
