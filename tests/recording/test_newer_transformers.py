"""What a newer transformers might do differently, done on purpose: each time a refusal, never a wrong picture."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

import attention_viz as av
from attention_viz.errors import UnsupportedModel
from attention_viz.recording.implementation import IMPLEMENTATION
from attention_viz.recording.interface import OURS
from tests.models.families import build, ids

OUR_ATTENTION: Any = ALL_ATTENTION_FUNCTIONS[OURS]
OUR_MASK: Any = ALL_MASK_ATTENTION_FUNCTIONS[OURS]


def instead(change: Callable[..., Any]) -> Callable[[pytest.MonkeyPatch], None]:
    return lambda monkeypatch: monkeypatch.setitem(ALL_ATTENTION_FUNCTIONS, OURS, change)


def by_another_name(module: Any, *terms: Tensor, scaling: float, **options: Any) -> Any:
    return OUR_ATTENTION(module, *terms, scale_factor=scaling, **options)


def position_first(module: Any, query: Tensor, key: Tensor, value: Tensor, *rest: Any, **options: Any) -> Any:
    return OUR_ATTENTION(module, *(term.transpose(1, 2) for term in (query, key, value)), *rest, **options)


def without_scale(module: Any, *terms: Tensor, **options: Any) -> Any:
    return OUR_ATTENTION(module, *terms, **{**options, "scaling": 1.0})


def another_order(module: Any, query: Tensor, key: Tensor, value: Tensor, *rest: Any, **options: Any) -> Any:
    return OUR_ATTENTION(module, key, query, value, *rest, **options)


def ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AttentionInterface, "get_interface", lambda _self, _name, default: default)


def renamed(monkeypatch: pytest.MonkeyPatch) -> None:
    # What a model does that reads the name elsewhere: it goes on with its own attention.
    get = AttentionInterface.get_interface

    def get_own(self: AttentionInterface, name: str, default: Callable[..., Any]) -> Callable[..., Any]:
        return get(self, "sdpa" if name == OURS else name, default)

    monkeypatch.setattr(AttentionInterface, "get_interface", get_own)


def no_mask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ALL_MASK_ATTENTION_FUNCTIONS, OURS, lambda *_places, **_options: None)


def opposite_mask(monkeypatch: pytest.MonkeyPatch) -> None:
    def opposite(*places: Any, **options: Any) -> Any:
        mask = OUR_MASK(*places, **options)
        return None if mask is None else (mask == 0).logical_not()

    monkeypatch.setitem(ALL_MASK_ATTENTION_FUNCTIONS, OURS, opposite)


def no_weights_to_compare(monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers.models.llama import modeling_llama

    plain = modeling_llama.eager_attention_forward
    monkeypatch.setattr(
        modeling_llama, "eager_attention_forward", lambda *terms, **options: (plain(*terms, **options)[0], None)
    )


def no_softmax_to_follow(monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers.models.llama import modeling_llama

    monkeypatch.setattr(modeling_llama, "eager_attention_forward", sdpa_attention_forward)


BREAKS: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], str]] = {
    "a term has another name": (instead(by_another_name), "passes scale_factor to attention"),
    "tensors come position first": (instead(position_first), "allowed .*broadcast"),
    "query and key change places": (
        instead(another_order),
        r"runs, but not with our attention: .*self_attn .*fails: the 2 query heads must be a multiple",
    ),
    "a term means something else": (instead(without_scale), "another result"),
    "the mask gets lost": (no_mask, "another result|differs from softmax attention"),
    "true means blocked": (opposite_mask, "another result|differs from softmax attention"),
    "eager hands back no weights and has no softmax": (no_softmax_to_follow, "multiplies 0 of 0 softmaxes"),
}


@pytest.mark.parametrize("what", BREAKS)
def test_a_broken_assumption_is_a_refusal_by_name(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    breaks, message = BREAKS[what]
    model = build("llama")
    assert av.wrap(model).trace_ids(ids(7)).fidelity.ok
    breaks(monkeypatch)
    with pytest.raises(UnsupportedModel, match=rf"^(can't record )?llama \(LlamaForCausalLM\).*({message})"):
        av.wrap(model)


def test_where_the_field_that_chooses_is_another_torchs_function_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = av.wrap(build("llama")).trace_ids(ids(9))
    renamed(monkeypatch)
    trace = av.wrap(build("llama")).trace_ids(ids(9))
    assert trace.provenance.route == "interception" and trace.fidelity.ok
    for layer in range(2):
        torch.testing.assert_close(trace.attention(layer).weights, expected.attention(layer).weights)


def test_where_eager_hands_back_no_weights_its_softmaxes_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = av.wrap(build("llama")).trace_ids(ids(9))
    no_weights_to_compare(monkeypatch)
    trace = av.wrap(build("llama")).trace_ids(ids(9))
    assert trace.provenance.route == "interface"
    assert trace.fidelity.ok and trace.fidelity.weight_error is not None
    torch.testing.assert_close(trace.attention(1).weights, expected.attention(1).weights)


def test_the_model_is_left_as_it_was_after_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    model = build("llama")
    before = getattr(model.config, IMPLEMENTATION)
    no_mask(monkeypatch)
    with pytest.raises(UnsupportedModel):
        av.wrap(model)
    assert getattr(model.config, IMPLEMENTATION) == before
    with torch.no_grad():
        assert model(input_ids=ids(5)).logits.isfinite().all()


def test_where_the_interface_is_asked_no_more_the_models_own_code_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = av.wrap(build("llama")).trace_ids(ids(9))
    ignored(monkeypatch)
    trace = av.wrap(build("llama", attn_implementation="eager")).trace_ids(ids(9))
    assert (expected.provenance.route, trace.provenance.route) == ("interface", "interception")
    assert trace.fidelity.ok
    for layer in trace.layer_numbers():
        torch.testing.assert_close(trace.attention(layer).weights, expected.attention(layer).weights)
