"""Several changes in one batch give what each gives in a run of its own."""

from collections.abc import Sequence

import pytest
import torch
from torch.testing import assert_close

import attention_viz as av
from attention_viz.edits.edit import Edit
from attention_viz.models.recording import batch
from attention_viz.models.recording import batched_edits as trying
from attention_viz.models.recording.batched_edits import rows_at_once, try_each
from attention_viz.scratch.model import Scratch
from tests.shipped import shipped

TEXT = "moon cheese frog ring moon cheese"


def ways(layers: int) -> list[Sequence[Edit]]:
    """One of each kind, in different layers, and two at once; the text has 7 tokens, with the one that begins it."""
    last = layers - 1
    return [
        (av.Ablate(0, 1),),
        (av.Ablate(last, 0, "mean"),),
        (av.Block(3, 1),),
        (av.Temperature(0.5, last), av.Ablate(0, 0)),
        (av.Replace(last, 1, torch.eye(7)),),
    ]


def test_each_row_of_a_batch_is_a_run_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    model = shipped("induction")
    before = model.trace(TEXT)
    kept = before.output.clone()
    tries = ways(model.layer_count)
    expected = [model.trace(TEXT, edits=edits).output for edits in tries]
    assert all(float((output - kept).abs().max()) > 1e-3 for output in expected)
    monkeypatch.setattr(trying, "_alone", None)  # a batch, or an error
    for output, alone in zip(try_each(model, before, tries), expected, strict=True):
        assert float((output - alone).abs().max()) <= 1e-5 * float(alone.abs().max())
    assert torch.equal(model.trace(TEXT).output, kept)


def test_what_a_decoder_went_on_by_is_read_again_in_a_batch_and_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    model = shipped("induction")
    *_, before = model.generate(TEXT, 3)
    tries = [(av.Ablate(0, 1),), (av.Ablate(1, 0),)]
    ids = torch.tensor([before.query_tokens().numbers])
    expected = [model.trace_ids(ids, edits=edits).output for edits in tries]
    kept = trying.batch_outputs
    for batched in (kept, lambda *_: None):
        monkeypatch.setattr("attention_viz.models.model.batch_outputs", batched)
        assert_close(try_each(model, before, tries), expected, rtol=0, atol=1e-4)
        assert_close(try_each(model, before, tries, 8), [one[8:9] for one in expected], rtol=0, atol=1e-4)
        assert_close(try_each(model, before, tries[:1]), expected[:1], rtol=0, atol=1e-4)


def test_what_does_not_fit_is_refused_in_a_batch_as_alone() -> None:
    model = shipped("induction")
    before = model.trace(TEXT)
    with pytest.raises(av.ShapeError, match="layer 9 was asked for"):
        try_each(model, before, [(av.Ablate(9, 0),), (av.Ablate(0, 0),)])
    with pytest.raises(av.ShapeError, match="head 9 was asked for"):
        try_each(model, before, [(av.Ablate(0, 9),), (av.Ablate(0, 0),)])
    with pytest.raises(av.UnusableText, match="needed: one of a text"):
        try_each(model, model.trace_ids(torch.tensor([[5, 6]])), [()])


def test_a_batch_that_comes_out_otherwise_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    model = shipped("induction")
    before = model.trace(TEXT)
    expected = model.trace(TEXT, edits=[av.Ablate(0, 1)]).output
    whole = batch.whole_output
    monkeypatch.setattr(batch, "whole_output", lambda heard: whole(heard) * 1.01)
    first, _ = try_each(model, before, [(av.Ablate(0, 1),), (av.Ablate(1, 1),)])
    assert torch.equal(first, expected)


@pytest.mark.parametrize("name", ["translation", "scratch"])
def test_where_no_batch_can_be_the_runs_come_one_after_the_other(name: str) -> None:
    model = Scratch() if name == "scratch" else av.load(name)
    text = "the small cat sees a dog"
    stream = "cross" if name == "translation" else None
    before = model.trace(text)
    tries = [(av.Ablate(0, head, stream=stream),) for head in range(2)]
    for output, edits in zip(try_each(model, before, tries), tries, strict=True):
        assert_close(output, model.trace(text, edits=edits).output, rtol=0, atol=0)


def test_a_batch_stays_small_for_long_texts() -> None:
    model = shipped("induction")
    assert rows_at_once(model.trace("moon")) == 24
    assert rows_at_once(model.trace(" ".join(["moon"] * 60))) == 512 // len(
        model.trace(" ".join(["moon"] * 60)).query_tokens()
    )
