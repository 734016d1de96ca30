"""Streams whose queries or keys the model adds to its input, against the weights that the models hand out."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers import (
    Siglip2VisionConfig,
    Siglip2VisionModel,
    SiglipConfig,
    SiglipModel,
    SiglipVisionConfig,
    SiglipVisionModel,
)

import attention_viz as av
from attention_viz.trace.kind import Unit

SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
SIDES = {"image_size": 32, "patch_size": 8}
PIXELS = torch.rand(1, 3, 32, 32, generator=torch.Generator().manual_seed(1))
NEAR = {"atol": 1e-5, "rtol": 0}


def siglip() -> tuple[Any, dict[str, Tensor]]:
    """A tiny SigLIP's tower of 16 patches, which a learned query pools, by torch's own module."""
    torch.manual_seed(0)
    model = SiglipVisionModel(SiglipVisionConfig(**SIDES, **SMALL))
    return sharp(model), {"pixel_values": PIXELS}


def sharp(model: Any) -> Any:
    """The model with larger weights, so that no row of its attention is uniform."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim > 1 and "norm" not in name:
                parameter.mul_(6 if "probe" not in name else 3)
    return model.eval()


def torchs_weights(module: nn.MultiheadAttention, run: Any) -> Tensor:
    """The weights of each head that torch's module computes from what it is given, (head, query, key)."""
    given = list[Any]()
    handle = module.register_forward_pre_hook(
        lambda _module, args, named: given.append((args, named)), with_kwargs=True
    )
    run()
    handle.remove()
    (args, named) = given[-1]
    with torch.no_grad():
        _, weights = nn.MultiheadAttention.forward(
            module, *args, **{**named, "need_weights": True, "average_attn_weights": False}
        )
    return weights[0]


def test_a_pooling_head_has_the_weights_of_torchs_module() -> None:
    model, inputs = siglip()
    trace = av.wrap(model, inputs=inputs).trace(inputs)
    assert trace.streams == ("picture", "pooling")
    theirs = torchs_weights(model.head.attention, lambda: model(**inputs))
    assert float(theirs.max()) > 0.2  # not uniform
    torch.testing.assert_close(trace.attention(0, "pooling").weights, theirs, **NEAR)
    assert trace.fidelity.ok


def test_an_ablated_head_writes_what_its_columns_would() -> None:
    """Against a plain model whose W_O has no columns of that head."""
    torch.manual_seed(0)
    texts = {"vocab_size": 100, "max_position_embeddings": 16, "bos_token_id": 1, "eos_token_id": 2, **SMALL}
    model: Any = sharp(SiglipModel(SiglipConfig(text_config=texts, vision_config={**SMALL, **SIDES})))
    inputs = {"pixel_values": PIXELS, "input_ids": torch.arange(3, 11)[None]}
    wrapped = av.wrap(model, inputs=inputs)
    trace = wrapped.trace(inputs, edits=(av.Ablate(0, 2, stream="pooling"),))
    plain = wrapped.trace(inputs)
    with torch.no_grad():
        model.vision_model.head.attention.out_proj.weight[:, 16:24] = 0
        theirs = model(**inputs).logits_per_image
    torch.testing.assert_close(trace.output, theirs, **NEAR)
    assert not torch.allclose(plain.output, theirs, atol=1e-4)


def test_a_pooling_heads_axes_are_named() -> None:
    model, inputs = siglip()
    trace = av.wrap(model, inputs=inputs).trace(inputs)
    queries, keys = trace.query_tokens("pooling"), trace.key_tokens("pooling")
    assert (queries.labels, queries.unit, queries.slots) == (("latent 0",), Unit.LATENT, ("latent",))
    assert keys.place == trace.key_tokens("picture").place
    assert keys.patches[6] == (1, 2)


@pytest.mark.parametrize("place", [(0, 0), (1, 2), (3, 3)])
def test_a_pooled_patch_is_where_its_key_moves(place: tuple[int, int]) -> None:
    """With the tower's positions kept apart, changing a patch moves the key that has its name and no other."""
    model, inputs = siglip()
    wrapped = av.wrap(model, inputs=inputs)
    apart = (av.Allow(torch.eye(16, dtype=torch.bool), stream="picture"),)
    row, column = place
    other = PIXELS.clone()
    other[..., 8 * row : 8 * row + 8, 8 * column : 8 * column + 8] += 1
    before, after = (wrapped.trace({"pixel_values": one}, edits=apart) for one in (PIXELS, other))
    far = (after.attention(0, "pooling").key - before.attention(0, "pooling").key).abs().amax(dim=(0, 2))
    (moved,) = (far > 1e-4).nonzero()[:, 0].tolist()
    assert before.key_tokens("pooling").place[moved] == place


def test_a_padded_image_is_pooled_without_its_padding() -> None:
    torch.manual_seed(0)
    model: Any = sharp(Siglip2VisionModel(Siglip2VisionConfig(patch_size=8, num_patches=16, **SMALL)))
    inputs: Mapping[str, Tensor] = {
        "pixel_values": torch.rand(1, 16, 192),
        "pixel_attention_mask": torch.tensor([[1] * 12 + [0] * 4]),
        "spatial_shapes": torch.tensor([[3, 4]]),
    }
    trace = av.wrap(model, inputs=inputs).trace(inputs)
    theirs = torchs_weights(model.head.attention, lambda: model(**inputs))
    torch.testing.assert_close(trace.attention(0, "pooling").weights, theirs, **NEAR)
    assert float(trace.attention(0, "pooling").weights[..., 12:].abs().max()) == 0


def test_slots_are_kept_in_a_file_that_older_versions_refuse(tmp_path: Path) -> None:
    model, inputs = siglip()
    trace = av.wrap(model, inputs=inputs).trace(inputs)
    trace.save(tmp_path / "one.safetensors")
    found = av.Trace.load(tmp_path / "one.safetensors")
    assert found.query_tokens("pooling") == trace.query_tokens("pooling")
    assert b'\\"format\\": 7' in (tmp_path / "one.safetensors").read_bytes()[:20000]
