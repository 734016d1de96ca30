"""Families of pictures and sound are recorded exactly: every weight and the output are those of eager attention."""

import pytest
import torch

import attention_viz as av
from tests.models.seen_families import FAMILIES, tiny

NO_GRID = {"videomae", "vivit"}


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_is_equal_to_its_eager_attention(name: str) -> None:
    model, inputs = tiny(name)
    trace = av.wrap(model, inputs=inputs).trace(inputs)
    assert trace.fidelity.ok
    assert max(trace.fidelity.output_error, trace.fidelity.weight_error) <= 1e-5
    weights = eager_weights(model, inputs)
    own = [layer.attention.weights for stream in trace.streams for layer in trace.layers[stream]]
    assert len(weights) == len(own)
    # The streams are in one order, the model's own lists in another: each of theirs is one of ours.
    assert all(any(a.shape == b.shape and torch.allclose(a, b, atol=1e-5) for b in own) for a in weights)


def eager_weights(model: "torch.nn.Module", inputs: dict[str, torch.Tensor]) -> list[torch.Tensor]:
    model.set_attn_implementation("eager")  # type: ignore[operator]
    with torch.no_grad():
        told = model(**inputs, output_attentions=True)
    names = ("attentions", "encoder_attentions", "decoder_attentions", "cross_attentions")
    return [one[0] for name in names for one in (getattr(told, name, None) or ())]


@pytest.mark.parametrize("name", [name for name, (_, _, make) in FAMILIES.items() if "pixel_values" in make()])
def test_patches_have_places_where_those_can_be_proved(name: str) -> None:
    model, inputs = tiny(name)
    tokens = av.wrap(model, inputs=inputs).trace(inputs).query_tokens()
    assert tokens.ids is None
    if name in NO_GRID:
        assert not tokens.placed
        return
    rows, columns = (side // 8 for side in inputs["pixel_values"].shape[-2:])
    places = [place for place in tokens.place if place is not None]
    assert places == [(row, column) for row in range(rows) for column in range(columns)]
    assert [special for special in tokens.special] == [place is None for place in tokens.place]


def test_registers_and_class_token_are_named() -> None:
    model, inputs = tiny("dinov2_with_registers")
    labels = av.wrap(model, inputs=inputs).trace(inputs).query_tokens().labels
    assert labels[:6] == ("[CLS]", "[REG1]", "[REG2]", "[REG3]", "[REG4]", "0,0")
