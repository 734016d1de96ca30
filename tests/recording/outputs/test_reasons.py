"""A refusal says what the model does and what it needs; another library's error is its cause, not its text."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import attention_viz as av
from attention_viz.errors import UnsupportedModel
from tests.models.families import PLAIN, build, built
from tests.models.own_code import Within, with_layers

QUERYING: dict[str, Any] = {name: size for name, size in PLAIN.items() if name != "vocab_size"}
QUERYING["encoder_hidden_size"] = 20
PIXELS = {"pixel_values": torch.randn(1, 3, 32, 32, generator=torch.Generator().manual_seed(1))}


def refusal(model: Any, inputs: dict[str, Tensor] | None = None) -> UnsupportedModel:
    """The reason for which a model is refused, without the general advice."""
    with pytest.raises(UnsupportedModel) as refused:
        av.wrap(model, inputs=inputs)
    reason = refused.value.__cause__
    assert isinstance(reason, UnsupportedModel)
    return reason


def test_an_input_that_is_missing_is_named_with_an_example() -> None:
    sizes: dict[str, Any] = {name: size for name, size in PLAIN.items() if name != "vocab_size"} | {
        "encoder_hidden_size": 20
    }
    model = built("Blip2QFormerModel", "Blip2QFormerConfig", sizes)
    queries = {"query_embeds": torch.randn(1, 4, 20)}
    reason = refusal(model, queries)
    assert str(reason) == (
        "blip_2_qformer (Blip2QFormerModel) doesn't run on query_embeds: it also needs encoder_hidden_states; pass an "
        'example input, av.wrap(model, inputs={"query_embeds": …, "encoder_hidden_states": …})'
    )
    assert isinstance(reason.__cause__, ValueError)
    model(**queries, encoder_hidden_states=torch.randn(1, 6, 20))  # and that is all that it needs


def test_attention_over_other_positions_than_tokens_is_refused_with_both_numbers() -> None:
    sizes: dict[str, Any] = {name: size for name, size in PLAIN.items() if name != "vocab_size"} | {
        "encoder_hidden_size": 20
    }
    model = built("Blip2QFormerModel", "Blip2QFormerConfig", sizes)
    inputs = {"query_embeds": torch.randn(1, 4, 20), "encoder_hidden_states": torch.randn(1, 6, 20)}
    said = "attends from 4 positions to 4, but it reads no text here, so some positions aren't tokens"
    assert said in str(refusal(model, inputs))


def test_a_model_without_attention_is_refused_with_what_it_has_instead() -> None:
    sizes: dict[str, Any] = {"embedding_size": 8, "hidden_sizes": [8, 8], "depths": [1, 1], "layer_type": "basic"}
    assert str(refusal(built("ResNetModel", "ResNetConfig", sizes), PIXELS)) == (
        "can't record resnet (ResNetModel): it has convolutions and pooling, but computes no attention, softmax(QKᵀ)V; "
        "use a model that does"
    )


def test_a_model_that_picks_its_patches_at_random_is_refused_for_that() -> None:
    sizes: dict[str, Any] = PLAIN | {"image_size": 32, "patch_size": 8}
    ids = torch.tensor([[5, 16, 27]])
    reason = refusal(built("ViltModel", "ViltConfig", sizes), PIXELS | {"input_ids": ids})
    assert str(reason) == (
        "vilt (ViltModel) gives another output each time that it reads the same input, since it draws random numbers "
        "in embeddings (ViltEmbeddings); use a model or configuration that draws none"
    )
    assert isinstance(reason.__cause__, UnsupportedModel)


def test_a_model_that_breaks_isnt_said_to_draw_random_numbers() -> None:
    model: Any = build("bert")

    def broken(_module: nn.Module, _inputs: object) -> None:
        torch.randn(1)
        raise ValueError("out of order")

    model.encoder.layer[1].register_forward_pre_hook(broken)
    assert "encoder.layer.1 (BertLayer) fails" in str(refusal(model))


def capped(scores: Tensor) -> Tensor:
    return 5 * torch.tanh(scores / 5)


def overflowing(scores: Tensor) -> Tensor:
    return scores * float("inf")


@pytest.mark.parametrize(
    ("bent", "reason"),
    [
        (capped, "changes query · key by more than a factor and a sum"),
        (overflowing, "has attention scores that overflow, to infinity or NaN"),
    ],
)
def test_scores_that_are_no_scaled_products_are_refused_with_what_happens_to_them(bent: Any, reason: str) -> None:
    model: Any = with_layers(lambda scores, _value: bent(scores).softmax(dim=-1))
    assert isinstance(model.encoder.layer[0].attention.self, Within)
    assert f"Within {reason}" in str(refusal(model))
