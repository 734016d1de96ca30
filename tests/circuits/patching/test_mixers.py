"""Heads of layers without a softmax silenced and patched, against the same done to kernels of plain transformers."""

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest
import torch
from torch import Tensor

import attention_viz as av
from attention_viz.circuits.patching.patching import Patching
from attention_viz.errors import ShapeError
from attention_viz.recording.batches import batched_edits
from tests.models.test_hybrids import wrapped
from tests.recording.mixers.by_hand import Change, changed_kernel, own

TEXT, OTHER = "the cat sat on the mat", "the dog sat on the rug"
# The kernel of each, the layer with its mixer, and the axis of heads in what it returns; None for channels as a whole.
KERNELS = {
    "Qwen3-Next": ("torch_chunk_gated_delta_rule", 2, 2),
    "Falcon-H1": ("mamba2_chunk_scan", 1, 2),
    "Jamba": ("mamba_selective_scan", 2, None),
    "LFM2": ("causal_conv1d_fn", 1, None),
}


def plain_logit(name: str, text: str, token: int, change: Change) -> Tensor:
    """Run plain transformers with a change of the kernel in the chosen layer."""
    model, (kernel, layer, _) = wrapped(name), KERNELS[name]
    numbers = iter(model.trace(text).layer_numbers("mixer"))

    def here(run: Callable[..., Any], values: dict[str, Any]) -> Tensor:
        return change(run, values) if next(numbers) == layer else own(run())

    ids = torch.tensor([model.trace(text).query_tokens("decoder").ids])
    with changed_kernel(model.hf_model, kernel, here):
        return model.hf_model(input_ids=ids, use_cache=False)[0][0, -1, token]


def silence(name: str, head: int | None) -> Change:
    def change(run: Callable[..., Any], _: dict[str, Any]) -> Tensor:
        output, axis = own(run()).clone(), KERNELS[name][2]
        if axis is None:
            return torch.zeros_like(output)
        output.select(axis, head or 0).zero_()
        return output

    return change


@pytest.mark.parametrize("name", KERNELS)
def test_effects_silence_each_head_or_all_channels_in_batches(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, (_, layer, axis) = wrapped(name), KERNELS[name]
    trace = model.trace(TEXT)
    token = int(trace.output[-1].argmax())
    monkeypatch.setattr(batched_edits, "_alone", lambda *_: pytest.fail("a run of its own"))
    table = av.effects(model, TEXT, av.Logit(token))
    streams = set(table.index.get_level_values("stream"))
    assert streams == {"decoder", "mixer"} and "zero in layers without a softmax" in table.attrs["to"]
    for head in (None,) if axis is None else (0, 3):
        row = table.xs(("mixer", layer), level=("stream", "layer")).reset_index()
        found = row[row["head"].isna() if head is None else row["head"] == head]["number"]
        assert len(found) == 1
        expected = float(plain_logit(name, TEXT, token, silence(name, head)).detach())
        assert abs(expected - table.attrs["number"]) > 1e-4
        assert float(found.iloc[0]) == pytest.approx(expected, abs=1e-4)
    monkeypatch.undo()
    only = av.effects(model, trace, av.Logit(token), stream="mixer", heads=[(layer, None if axis is None else 0)])
    assert len(only) == 1 and only.index[0][:2] == ("mixer", layer)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("by", ["head", "position"])
def test_a_patch_puts_the_kernels_output_of_another_text(name: str, by: Any) -> None:
    model, (_, layer, axis) = wrapped(name), KERNELS[name]
    trace, other = model.trace(TEXT), model.trace(OTHER)
    token, head = int(trace.output[-1].argmax()), None if axis is None else 1
    position = None if by == "head" else len(trace.query_tokens("decoder")) - 2
    heard: list[Tensor] = []

    def listen(run: Callable[..., Any], _: dict[str, Any]) -> Tensor:
        heard.append(own(run()).detach().requires_grad_())
        return heard[-1].clone()

    def chosen(output: Tensor) -> Tensor:
        """Of (token, head, width), or (token, channel) of what has one matrix per channel."""
        rows, heads = (slice(None) if one is None else one for one in (position, head))
        return (output[0].mT if axis is None else output[0])[rows, heads]

    def put(run: Callable[..., Any], _: dict[str, Any]) -> Tensor:
        output = own(run()).detach().clone()
        chosen(output)[:] = chosen(heard[0])
        return output

    plain_logit(name, OTHER, token, listen)
    before = plain_logit(name, TEXT, token, listen)
    (slope,) = torch.autograd.grad(before, heard[1])
    estimate = float(((chosen(heard[0]) - chosen(heard[1])) * chosen(slope)).sum().detach())
    change = float((plain_logit(name, TEXT, token, put) - before).detach())
    made = Patching.begin(model, trace, other, av.Logit(token), by=by)
    there = [one for one in made.puts if (one.stream, one.layer) == ("mixer", layer)]
    (ours,) = (one for one in there if one.head == head and one.position == position)
    ((effect, _),) = (list(one.values()) for one in made.batches([ours, made.puts[0]]))
    assert abs(change) > 1e-5
    assert effect == pytest.approx(change, abs=1e-4)
    assert made.estimates[ours] == pytest.approx(estimate, rel=1e-3, abs=1e-5)


def test_the_table_of_patches_names_streams_and_has_no_head_where_channels_are_whole() -> None:
    table = av.patch(wrapped("Jamba"), TEXT, OTHER, av.Logit(5), confirm=0)
    assert list(table.index.names) == ["stream", "layer", "head"]
    assert {("mixer", 0), ("mixer", 2)} == {one[:2] for one in table.index if pd.isna(one[2])}


def test_heads_named_without_a_stream_are_those_of_the_only_layer_there() -> None:
    model = wrapped("Qwen3-Next")
    table: pd.DataFrame = av.effects(model, TEXT, av.Logit(5), heads=[(0, 1), (1, 2)])
    assert sorted(table.index) == [("decoder", 1, 2), ("mixer", 0, 1)]
    with pytest.raises(ShapeError, match="need a stream; choose decoder, mixer"):
        av.effects(wrapped("Falcon-H1"), TEXT, av.Logit(5), heads=[(0, 1)])
