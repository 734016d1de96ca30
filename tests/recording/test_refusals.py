"""What can't be recorded exactly is refused, with the family's name and a reason, before anything is drawn."""

import functools
import types
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.models.bert.modeling_bert import BertSelfAttention
from transformers.models.llama import modeling_llama
from transformers.models.llama.modeling_llama import eager_attention_forward

import attention_viz as av
from attention_viz.errors import UnsupportedModel
from attention_viz.recording import recorder
from attention_viz.recording.interface import OURS
from tests.models.families import PLAIN, build, built, ids


def test_a_family_whose_attention_is_not_there_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedModel, match=r"^can't record mra .*mra_cuda_kernel isn't loaded.*returns zeros"):
        av.wrap(build("mra"))


def test_a_model_of_pictures_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedModel, match=r"^vit .*a model that reads text.*av\.record"):
        av.wrap(build("vit"))


def test_something_that_is_no_model_is_refused() -> None:
    with pytest.raises(UnsupportedModel, match=r"not Linear.*av\.record.*from_qkv.*from_weights"):
        av.wrap(nn.Linear(3, 5))


def test_a_term_that_is_not_known_is_refused_by_its_name() -> None:
    model = build("bert")
    attention = model.encoder.layer[1].attention.self
    attention.forward = functools.partial(attention.forward, tilt=0.3)
    with pytest.raises(UnsupportedModel, match=r"bert \(BertModel\): BertSelfAttention passes tilt to attention"):
        av.wrap(model)


def test_a_model_that_draws_numbers_at_random_is_refused_for_that() -> None:
    model = build("bert")
    forward = model.encoder.layer[0].forward

    def noisy(hidden: Tensor, *args: Any, **named: Any) -> Any:
        return forward(hidden + torch.randn_like(hidden), *args, **named)

    model.encoder.layer[0].forward = noisy
    with pytest.raises(UnsupportedModel, match=r"draws random numbers in encoder\.layer\.0 \(BertLayer\); use"):
        av.wrap(model)


def test_a_layer_that_attends_outside_the_interface_is_heard_by_what_it_computes() -> None:
    model = build("llama", attn_implementation="eager")
    attention = model.model.layers[1].self_attn
    # What is no configuration of transformers' own is not switched: this layer stays eager, and gives right numbers.
    attention.config = types.SimpleNamespace(_attn_implementation="eager")
    trace = av.wrap(model).trace_ids(ids(9))
    assert trace.fidelity.ok
    plain = av.wrap(build("llama")).trace_ids(ids(9))
    for layer in trace.layer_numbers():
        torch.testing.assert_close(trace.attention(layer).weights, plain.attention(layer).weights)


def test_a_layer_that_gets_no_mask_from_the_rest_of_its_model_is_not_recorded_as_if_it_had_one() -> None:
    model = build("llama")  # hands on no mask, as torch's kernel needs none
    model.model.layers[1].self_attn.config = types.SimpleNamespace(_attn_implementation="eager")
    with torch.no_grad():
        one, other = model(ids(9)).logits[0], model(torch.cat([ids(9)[:, :-1], ids(1)], dim=1)).logits[0]
    assert not torch.allclose(one[:-1], other[:-1], atol=1e-3)  # it looks ahead
    with pytest.raises(UnsupportedModel, match="runs attention “sdpa”, which differs"):
        av.wrap(model)


class Uncalled(nn.Module):
    """Attention in code of its own, in the place of a layer's; its weights are thirds of three softmaxes."""

    def forward(self, hidden_states: Tensor, *_args: object, **_options: object) -> tuple[Tensor, Tensor]:
        scores = hidden_states @ hidden_states.mT
        weights = sum((scores * factor).softmax(dim=-1) for factor in (0.5, 1.0, 2.0)) / 3
        return weights @ hidden_states, weights[:, None].expand(-1, 5, -1, -1)


def test_a_layer_with_attention_of_another_kind_is_refused_too() -> None:
    model = build("bert")
    model.encoder.layer[2].attention.self = Uncalled()
    with pytest.raises(UnsupportedModel, match=r"attends in encoder\.layer\.2\.attention\.self by a softmax"):
        av.wrap(model)


@pytest.mark.parametrize(
    ("family", "term"),
    [("gemma2", "softcap"), ("gpt_oss", "s_aux"), ("t5 encoder", "position_bias"), ("gpt2", "scaling")],
)
def test_numbers_other_than_eager_are_refused(family: str, term: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = ALL_ATTENTION_FUNCTIONS[OURS]

    def without(*args: Tensor, **options: object) -> tuple[Tensor, None]:
        options[term] = 0.123 if term == "scaling" else None
        return ours(*args, **options)

    monkeypatch.setitem(ALL_ATTENTION_FUNCTIONS, OURS, without)
    with pytest.raises(UnsupportedModel, match=r"another result with our attention: output off by \d.*adds a term"):
        av.wrap(build(family))


def test_a_model_in_half_precision_that_is_too_far_off_is_asked_for_in_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = ALL_ATTENTION_FUNCTIONS[OURS]

    def without(*args: Tensor, **options: object) -> tuple[Tensor, None]:
        return ours(*args, **{**options, "scaling": 40.0})

    monkeypatch.setitem(ALL_ATTENTION_FUNCTIONS, OURS, without)
    with pytest.raises(UnsupportedModel, match=r"allowed 5e-02\. .*; convert the model to float32, which rounds"):
        av.wrap(build("gpt2").bfloat16())


def test_a_mask_that_gets_lost_on_the_way_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ALL_MASK_ATTENTION_FUNCTIONS, OURS, lambda *_args, **_options: None)
    with pytest.raises(UnsupportedModel, match=r"another result|differs from softmax attention"):
        av.wrap(build("llama"))


def test_numbers_that_are_not_numbers_are_refused() -> None:
    model = build("bert")
    with torch.no_grad():
        model.encoder.layer[1].output.dense.bias[3] = torch.nan
    with pytest.raises(UnsupportedModel, match=r"finite \(1 of 20 numbers in encoder\.layer\.1\.output"):
        av.wrap(model)


def test_a_model_that_breaks_while_it_runs_is_refused_with_the_module_that_does() -> None:
    model = build("bert")

    def broken(*_args: object, **_options: object) -> None:
        raise RuntimeError("out of order\nadvice for somebody else")

    model.encoder.layer[1].forward = broken
    said = r"bert \(BertModel\) doesn't run on text alone: encoder\.layer\.1 \(BertLayer\) fails; its own error is this"
    with pytest.raises(UnsupportedModel, match=said) as refused:
        av.wrap(model)
    assert refused.value.__cause__ and "out of order" in str(refused.value.__cause__.__cause__)


def test_a_model_that_makes_two_rows_of_one_is_refused() -> None:
    model = build("bert")
    forward = model.encoder.forward
    model.encoder.forward = lambda hidden, *args, **options: forward(torch.cat([hidden, hidden]), *args, **options)
    with pytest.raises(UnsupportedModel, match="splits one text into 2 rows"):
        av.wrap(model)


def test_a_text_that_takes_another_way_than_the_probe_is_refused() -> None:
    plain = build("bert")
    model = av.wrap(plain)
    plain.encoder.layer = plain.encoder.layer[:2]
    with pytest.raises(UnsupportedModel, match="made 2 attention calls for this text, but 3 when probed"):
        model.trace_ids(ids(5))


class Closed(BertSelfAttention):
    """An encoder's layer that may not look ahead."""

    def forward(self, hidden_states: Tensor, attention_mask: Tensor | None = None, **options: object) -> object:
        count = hidden_states.shape[1]
        ahead = torch.full((1, 1, count, count), torch.finfo(torch.float32).min).triu(1)
        return super().forward(hidden_states, attention_mask=ahead, **options)


def test_a_mixture_of_layers_that_look_ahead_and_layers_that_do_not_is_refused() -> None:
    model = build("bert")
    model.encoder.layer[1].attention.self.__class__ = Closed
    with pytest.raises(UnsupportedModel, match="attends ahead in only some layers"):
        av.wrap(model)


def test_our_function_drops_nothing_at_random_even_in_training_mode() -> None:
    model = build("bert", attention_probs_dropout_prob=0.5, hidden_dropout_prob=0.5).train()
    assert av.wrap(model).trace_ids(ids(7)).fidelity.ok
    assert recorder.recording.get() is None


def test_a_block_sparse_model_reads_whole_blocks() -> None:
    sizes = {"block_size": 4, "num_random_blocks": 1, "max_position_embeddings": 67}
    model = av.wrap(built("BigBirdModel", "BigBirdConfig", PLAIN | sizes))
    assert model.limit == 64
    with pytest.raises(av.TextTooLong, match="64"):
        model.trace_ids(ids(65))
    whole = av.wrap(built("BigBirdModel", "BigBirdConfig", PLAIN | sizes | {"attention_type": "original_full"}))
    assert whole.limit == 67
    few = av.wrap(built("BigBirdModel", "BigBirdConfig", PLAIN | sizes | {"max_position_embeddings": 27}))
    assert few.limit == 27


Hook = Callable[[nn.Module, object, Tensor], Tensor]


def _scales(chosen: Callable[[nn.Module], bool]) -> Hook:
    """A hook that multiplies what the chosen modules return."""

    def hook(found: nn.Module, _inputs: object, output: Tensor) -> Tensor:
        return output * (1.5 if chosen(found) else 1.0)

    return hook


def _in_dict(module: nn.Module) -> Hook:
    chosen = {module: True}
    return _scales(lambda found: chosen.get(found, False))


def _in_list(module: nn.Module) -> Hook:
    chosen = [module]
    return _scales(lambda found: found in chosen)


def _by_identity(module: nn.Module) -> Hook:
    chosen = {id(module)}
    return _scales(lambda found: id(found) in chosen)


def _in_default(module: nn.Module) -> Hook:
    def is_chosen(found: nn.Module, chosen: tuple[nn.Module, ...] = (module,), *, also: nn.Module = module) -> bool:
        return found in chosen and found is also

    return _scales(is_chosen)


@pytest.mark.parametrize("hook_for", [_in_dict, _in_list, _by_identity, _in_default])
def test_hooks_that_look_modules_up_are_copied_with_the_model(hook_for: Callable[[nn.Module], Hook]) -> None:
    model = build("llama")
    layers = [layer.mlp for layer in model.model.layers]
    hook = hook_for(layers[0])
    for layer in layers:
        layer.register_forward_hook(hook)
    trace = av.wrap(model).trace_ids(ids(9))
    with torch.no_grad():
        assert torch.allclose(trace.output, model(ids(9)).logits[0])
    assert trace.fidelity.ok


def _calling(
    kind: str, module: nn.Module, number: int, by_module: dict[nn.Module, Any], in_order: list[Any]
) -> Callable[..., Any]:
    """A forward that looks up the one it replaces."""

    def from_dict(*args: Any, **named: Any) -> Any:
        return by_module[module](*args, **named)

    def from_list(*args: Any, **named: Any) -> Any:
        return in_order[number](*args, **named)

    def from_default(*args: Any, _forward: Any = module.forward, **named: Any) -> Any:
        return _forward(*args, **named)

    def from_list_in_default(*args: Any, _one: Any = (module.forward,), **named: Any) -> Any:
        return _one[0](*args, **named)

    return {"dict": from_dict, "list": from_list, "default": from_default}.get(kind, from_list_in_default)


@pytest.mark.parametrize("kind", ["dict", "default", "list in a default", "list"])
def test_replaced_methods_in_containers_are_copied_with_the_model(kind: str) -> None:
    model = build("llama")
    modules = [layer.self_attn for layer in model.model.layers]
    by_module, in_order = {one: one.forward for one in modules}, [one.forward for one in modules]
    for number, module in enumerate(modules):
        module.forward = _calling(kind, module, number, by_module, in_order)
    assert av.wrap(model).trace_ids(ids(9)).fidelity.ok


def test_a_hook_that_knows_the_original_modules_alone_is_named_as_the_cause() -> None:
    model = build("llama")
    chosen = [[model.model.layers[0].mlp]]
    for layer in model.model.layers:
        layer.mlp.register_forward_hook(_scales(lambda found: found in chosen[0]))
    with pytest.raises(UnsupportedModel, match="a hook or function of yours refers to the original modules"):
        av.wrap(model)


def test_finite_weights_whose_numbers_overflow_are_not_blamed() -> None:
    model = build("llama").half()
    with torch.no_grad():
        for layer in model.model.layers:
            layer.mlp.up_proj.weight.fill_(8000)
    said = "its weights are all finite, because it overflows in float16; convert the model to float32 or bfloat16"
    with pytest.raises(UnsupportedModel, match=said):
        av.wrap(model)


def test_weights_that_are_off_where_the_output_is_not_are_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eager attention that hands back other weights than those it computes with."""

    def other(*args: Any, **named: Any) -> tuple[Tensor, Tensor]:
        output, weights = eager_attention_forward(*args, **named)
        return output, weights.roll(1, -1)

    monkeypatch.setattr(modeling_llama, "eager_attention_forward", other)
    said = r"its output is the same, but its weights differ from .* eager attention: output off by 0"
    with pytest.raises(UnsupportedModel, match=said) as refused:
        av.wrap(build("llama").bfloat16())
    assert "perhaps by rounding" in str(refused.value) and "convert the model to float32" in str(refused.value)
    assert "adds a term" not in str(refused.value)
