"""Models that read more than a text, or attend over several sets of positions, agree with the weights they return."""

import copy
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

import attention_viz as av
from attention_viz.inputs.media.beside import mark_of, marks_in
from attention_viz.recording import interface
from scripts.seen.building import tiny_seen
from scripts.seen.reading import example_of
from scripts.texts import example_beside
from scripts.tiny import Family, scaled, tiny

LEFT, RIGHT = [0, 0, 1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1, 1, 0, 0]


def returned(model: Any, inputs: dict[str, Tensor], *names: str) -> list[Tensor]:
    """The weights that a copy of a model returns with eager attention, (head, query, key) each."""
    own = copy.deepcopy(model)
    own.set_attn_implementation("eager")
    with torch.no_grad():
        result = own(**inputs, output_attentions=True)
    return [layer[0] for name in names for layer in getattr(result, name)]


def assert_same(trace: av.Trace, theirs: list[Tensor], real: Tensor | None = None) -> None:
    """Each returned layer is one of the trace's, in rows that aren't padding; a shifted head isn't."""
    ours = [layer.attention.weights for stream in trace.attention_streams for layer in trace.layers[stream]]
    rows = slice(None) if real is None else real.bool()
    for one in theirs:
        alike = [other for other in ours if other.shape == one.shape]
        assert any(torch.allclose(one[:, rows], other[:, rows], atol=1e-5) for other in alike)
        assert not any(torch.allclose(one[:, rows].roll(1, -1), other[:, rows], atol=1e-3) for other in alike)


@pytest.mark.parametrize("mask", [LEFT, RIGHT, None])
def test_boxes_are_read_beside_a_text(mask: list[int] | None) -> None:
    model = tiny(Family("bros", "BrosModel"), scale=4)
    inputs = example_beside(model)
    wrapped = av.wrap(model, inputs=inputs)
    if mask is not None:
        inputs["attention_mask"] = torch.tensor([mask])
    trace = wrapped.trace_ids(**inputs)
    assert trace.fidelity.ok
    assert trace.query_tokens("encoder").padding == tuple(not one for one in mask or [1] * 9)
    assert_same(trace, returned(model, inputs, "attentions"), inputs["attention_mask"][0])
    moved = wrapped.trace_ids(**{**inputs, "bbox": inputs["bbox"].flip(1)})
    assert not torch.allclose(moved.weights(0, 0), trace.weights(0, 0), atol=1e-3)


def test_a_model_that_needs_boxes_says_how_to_pass_them() -> None:
    with pytest.raises(av.UnsupportedModel, match=r"it also needs bbox; pass an example .*\"bbox\": …"):
        av.wrap(tiny(Family("bros", "BrosModel")))


def test_codebooks_are_rows_of_one_input() -> None:
    model = tiny(Family("musicgen_decoder", "MusicgenModel"), scale=4)
    inputs = example_beside(model)
    trace = av.wrap(model, inputs=inputs).trace(inputs)
    assert trace.fidelity.ok and trace.streams == ("decoder",)
    assert_same(trace, returned(model, inputs, "attentions"))
    with pytest.raises(av.UnsupportedModel, match=r"one row, .*input_ids is \(3, 9\)"):
        av.wrap(model, inputs={"input_ids": inputs["input_ids"][:3]})


@pytest.mark.parametrize("mask", [LEFT, RIGHT, None])
def test_sinks_that_vary_by_query(mask: list[int] | None) -> None:
    model = tiny(Family("inkling2_text", "Inkling2ForCausalLM"), scale=4)
    ids = torch.tensor([[11, 22, 33, 44, 55, 66, 77, 18, 29]])
    real = torch.tensor([mask or [1] * 9])
    wrapped = av.wrap(model)
    assert any("attention_input" in one for one in wrapped.left_out)
    trace = wrapped.trace_ids(ids, real)
    assert trace.fidelity.ok
    assert float(trace.weights(0, 0, "decoder")[4].sum()) < 0.999
    assert_same(trace, returned(model, {"input_ids": ids, "attention_mask": real}, "attentions"), real[0])


def test_without_its_sinks_the_model_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    inside = ALL_ATTENTION_FUNCTIONS[interface.OURS]
    model = tiny(Family("inkling2_text", "Inkling2ForCausalLM"), scale=4)

    def careless(*inputs: Any, sinks: object = None, **named: Any) -> Any:
        return inside(*inputs, **named)

    monkeypatch.setitem(ALL_ATTENTION_FUNCTIONS, interface.OURS, careless)
    with pytest.raises(av.UnsupportedModel, match="gives another result with our attention"):
        av.wrap(model)


def test_each_set_of_positions_has_a_stream() -> None:
    model = scaled(next(tiny_seen(Family("segformer", "SegformerModel"))), 4)
    inputs = {"pixel_values": example_of(model)["pixel_values"].repeat(1, 1, 2, 2)}
    trace = av.wrap(model, inputs=inputs).trace(inputs)
    assert trace.fidelity.ok
    assert trace.streams == ("picture", "picture 2", "picture 3", "picture 4")
    assert {trace.attention(*at).shape[1:] for at in ((0, "picture"), (0, "picture 2"))} == {(256, 4), (64, 4)}
    assert_same(trace, returned(model, inputs, "attentions"))


def test_a_text_attends_to_an_image() -> None:
    model = scaled(next(tiny_seen(Family("idefics", "IdeficsForVisionText2Text"))), 2)
    inputs = example_of(model)
    wrapped = av.wrap(model, inputs=inputs)
    trace = wrapped.trace(inputs)
    assert not wrapped.answers
    assert trace.streams == ("picture", "decoder", "cross")
    assert trace.key_tokens("cross") == trace.key_tokens("picture")
    assert trace.query_tokens("cross") == trace.query_tokens("decoder")
    assert_same(trace, returned(model, inputs, "attentions"))


def test_a_placeholder_may_be_named_in_the_configuration_of_a_part() -> None:
    model = next(iter(tiny_seen(Family("colpali", "ColPaliForRetrieval"))))
    mark = model.config.vlm_config.image_token_index
    assert not hasattr(model.config, "image_token_index")
    assert mark_of(model) == mark and mark_of(model, "audio") is None
    assert marks_in(model, torch.tensor([[mark, 11, mark]])) == [0, 2]
