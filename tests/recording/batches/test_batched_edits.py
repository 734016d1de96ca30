"""Several changes in one batch give what each gives in a run of its own."""

from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from torch.testing import assert_close

import attention_viz as av
from attention_viz.edits.edit import Edit
from attention_viz.inputs.media.shipped import SAMPLES
from attention_viz.recording.batches import batch
from attention_viz.recording.batches import batched_edits as trying
from attention_viz.recording.batches.batched_edits import rows_at_once, try_each
from attention_viz.scratch.model import Scratch
from tests.shipped import shipped, shown

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
    with monkeypatch.context() as patch:
        patch.setattr(type(model), "trace", pytest.fail)  # a batch, or an error
        outputs = try_each(model, before, tries)
    for output, alone in zip(outputs, expected, strict=True):
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
        monkeypatch.setattr("attention_viz.models.texts.batch_outputs", batched)
        assert_close(try_each(model, before, tries), expected, rtol=0, atol=1e-4)
        assert_close(try_each(model, before, tries, 8), [one[8:9] for one in expected], rtol=0, atol=1e-4)
        assert_close(try_each(model, before, tries[:1]), expected[:1], rtol=0, atol=1e-4)


def test_what_does_not_fit_is_refused_in_a_batch_as_alone() -> None:
    model = shipped("induction")
    before = model.trace(TEXT)
    with pytest.raises(av.ShapeError, match="layer 9"):
        try_each(model, before, [(av.Ablate(9, 0),), (av.Ablate(0, 0),)])
    with pytest.raises(av.ShapeError, match="head 9"):
        try_each(model, before, [(av.Ablate(0, 9),), (av.Ablate(0, 0),)])


def test_ids_are_read_again_and_what_is_gone_is_refused(tmp_path: Path) -> None:
    model = shipped("induction")
    ids, edits = torch.tensor([[5, 6, 5, 6]]), (av.Ablate(0, 1),)
    before = model.trace_ids(ids)
    (found,) = try_each(model, before, [edits])
    assert torch.equal(found, model.trace_ids(ids, edits=edits).output)
    with pytest.raises(av.ShapeError, match="layer 9"):
        try_each(model, before, [(av.Ablate(9, 0),)])
    before.save(tmp_path / "ids")
    with pytest.raises(av.UnusableText, match="wasn't recorded here"):
        try_each(model, av.Trace.load(tmp_path / "ids"), [edits])


@pytest.mark.parametrize(
    ("name", "sample", "stream"), [("dinov2-small", "chelsea", None), ("whisper-tiny.en", "window", "cross")]
)
def test_a_picture_and_a_sound_are_read_again(name: str, sample: str, stream: str | None) -> None:
    model, before = shipped(name), shown(name, sample)
    edits = (av.Ablate(1, 2, stream=stream),)
    opened = av.Picture if stream is None else av.Sound
    alone = model.trace(opened(SAMPLES[sample].path), target=before.provenance.target, edits=edits)
    (found, row) = (try_each(model, before, [edits], only)[0] for only in (None, 3))
    assert float((found - alone.output).abs().max()) <= 1e-5 * float(alone.output.abs().max())
    assert torch.equal(row, found[3:4])
    assert float((found - before.output).abs().max()) > 1e-2


def test_a_sound_is_heard_once_for_all_changes_of_what_is_said() -> None:
    model, before = shipped("whisper-tiny.en"), shown("whisper-tiny.en", "window")
    heard = list[int]()
    encoder = model.runner.model.get_encoder()
    handle = encoder.register_forward_hook(lambda *_: heard.append(1))
    try:
        _ = try_each(model, before, [(av.Ablate(layer, 0, stream="cross"),) for layer in range(3)])
        assert len(heard) <= 1
        kept = len(heard)
        (inside,) = try_each(model, before, [(av.Ablate(0, 0, stream="encoder"),)])
        assert len(heard) == kept + 1
    finally:
        handle.remove()
    alone = model.trace(
        av.Sound(SAMPLES["window"].path),
        target=before.provenance.target,
        edits=[av.Ablate(0, 0, stream="encoder")],
    )
    assert torch.equal(inside, alone.output)


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
