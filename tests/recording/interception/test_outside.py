"""Attention that runs outside our function, however it is asked for: counted, and then refused or named."""

import math
import warnings
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.attention.flex_attention import flex_attention
from torch.nn.functional import scaled_dot_product_attention as by_another_name
from transformers import SiglipConfig, SiglipModel

import attention_viz as av
from attention_viz.errors import UnsupportedModel
from attention_viz.recording.as_written import plainly
from attention_viz.recording.interception.outside import FOLLOWED, OutsideCall, outside_calls
from attention_viz.ui.parts.badge import comparison_words
from tests.models.families import build, ids

Attend = Callable[[Tensor, Tensor, Tensor], Tensor]
SDPA = "torch's scaled_dot_product_attention"
SOFTMAX = "a softmax of products"
MANY = "torch's MultiheadAttention"


# The operation behind the function, which no mode of ours hears.
beneath: Any = torch.ops.aten.scaled_dot_product_attention.default


def soft(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Attention as everybody writes it."""
    return torch.softmax(torch.matmul(query, key.transpose(-1, -2)), dim=-1) @ value


with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    scripted = torch.jit.script(soft)


@torch.library.custom_op("attention_viz_tests::flash_attn_forward", mutates_args=())
def packaged(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """What a package of kernels registers."""
    return functional.scaled_dot_product_attention(query, key, value)


def by_heads(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """One head after the other, without axes for rows and heads."""
    heads = [(one @ other.T).softmax(-1) @ mixed for one, other, mixed in zip(query[0], key[0], value[0], strict=True)]
    return torch.stack(heads)[None]


def keys_first(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """The scores stand on their heads."""
    return (key @ query.mT).softmax(dim=-2).mT @ value


def written_out(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """A softmax that no function computes."""
    weights = (query @ key.mT / 7).exp()
    return weights / weights.sum(-1, keepdim=True) @ value


def in_chunks(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """The scores are written into a buffer, some queries at a time."""
    scores = query.new_empty(*query.shape[:-1], key.shape[-2])
    for at in range(0, query.shape[-2], 4):
        scores[:, :, at : at + 4] = query[:, :, at : at + 4] @ key.mT
    return scores.softmax(-1) @ value


def to_the_base(power: Callable[[Tensor], Tensor]) -> Attend:
    """A softmax to another base than e."""

    def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        weights = power(query @ key.mT / 7)
        return weights / weights.sum(-1, keepdim=True) @ value

    return attend


def by_distance(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Scores are distances."""
    return (-torch.cdist(query, key)).softmax(-1) @ value


def taken_twice(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """The weights take two halves of the values."""
    weights = torch.einsum("bhqd,bhkd->bhqk", query, key).softmax(-1)
    return torch.cat([weights @ half for half in value.chunk(2, dim=-1)], dim=-1)


def in_inference_mode(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Where torch hands over functions without taking them apart."""
    with torch.inference_mode():
        return functional.softmax(query @ key.mT, dim=-1) @ value


WAYS: dict[str, tuple[Attend, str]] = {
    "sdpa": (functional.scaled_dot_product_attention, SDPA),
    "sdpa, imported by its name": (by_another_name, SDPA),
    "sdpa, causal": (lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, is_causal=True), SDPA),
    "sdpa without a batch": (lambda q, k, v: by_another_name(q[0], k[0], v[0])[None], SDPA),
    "sdpa, an operation": (beneath, SDPA),
    "flex_attention": (flex_attention, "torch's flex_attention"),
    "softmax": (soft, SOFTMAX),
    "softmax by heads": (by_heads, SOFTMAX),
    "softmax, keys first": (keys_first, SOFTMAX),
    "softmax, written out": (written_out, SOFTMAX),
    "softmax, taken twice": (taken_twice, SOFTMAX),
    "softmax, in chunks": (in_chunks, SOFTMAX),
    "softmax to the base 2": (to_the_base(torch.exp2), SOFTMAX),
    "softmax to the base 3": (to_the_base(lambda scores: torch.pow(3.0, scores)), SOFTMAX),
    "softmax of distances": (by_distance, SOFTMAX),
    "softmax in inference mode": (in_inference_mode, SOFTMAX),
    "TorchScript": (scripted, SOFTMAX),
    "another package's kernel": (packaged, "the operation flash_attn_forward"),
}
# What our function could stand in for, but not in this model.
UNFIT = {
    "sdpa, causal": "attends ahead in only some layers",
    "sdpa without a batch": "computes a batch differently from its rows one by one",
}


class Own(nn.Module):
    """A layer's attention, its heads of 4 numbers, by another way."""

    def __init__(self, attend: Attend, width: int = 20) -> None:
        super().__init__()
        self.together, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.attend = attend

    def forward(self, hidden_states: Tensor, *_args: object, **_options: object) -> tuple[Tensor, None]:
        parts = self.together(hidden_states).chunk(3, -1)
        query, key, value = (part.unflatten(-1, (-1, 4)).transpose(1, 2) for part in parts)
        mixed = self.attend(query, key, value)
        return self.out(mixed.transpose(1, 2).flatten(2)), None


class Many(nn.Module):
    """A layer's attention by torch's module for it."""

    def __init__(self, **options: bool) -> None:
        super().__init__()
        self.inner = nn.MultiheadAttention(20, 4, batch_first=True)  # an odd number of heads has no fast path
        self.options = options

    def forward(self, hidden_states: Tensor, *_args: object, **_options: object) -> tuple[Tensor, None]:
        return self.inner(hidden_states, hidden_states, hidden_states, **self.options)[0], None


class Pooled(nn.Module):
    """A head in which one learned query attends to all positions."""

    def __init__(self, query: Tensor | None = None) -> None:
        super().__init__()
        self.query = nn.Parameter(torch.randn(1, 1, 20) if query is None else query)
        self.inner = nn.MultiheadAttention(20, 5, batch_first=True)

    def forward(self, hidden: Tensor) -> Tensor:
        return self.inner(self.query, hidden, hidden)[0][:, 0]


def patched(attention: nn.Module, *, layer: int = 1) -> Any:
    """A BERT one of whose three layers attends otherwise."""
    model: Any = build("bert")
    torch.manual_seed(3)
    model.encoder.layer[layer].attention.self = attention.eval()
    return model.eval()


def siglip() -> tuple[Any, dict[str, Tensor]]:
    """A tiny SigLIP, whose picture is pooled by attention, and what it reads."""
    torch.manual_seed(0)
    small = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    texts = {"vocab_size": 100, "max_position_embeddings": 16, "bos_token_id": 1, "eos_token_id": 2, **small}
    model = SiglipModel(SiglipConfig(text_config=texts, vision_config={"image_size": 32, "patch_size": 8, **small}))
    return model.eval(), {"pixel_values": torch.rand(1, 3, 32, 32), "input_ids": torch.arange(3, 11)[None]}


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("way", WAYS)
def test_a_layer_that_attends_by_any_other_way_is_never_left_out(way: str) -> None:
    attend, by = WAYS[way]
    model = patched(Own(attend))
    with plainly(), outside_calls(model) as found, torch.no_grad():
        model(ids(9))
    heard = [one for one in found if one.path == "encoder.layer.1.attention.self"]
    assert {one.by for one in heard} == {by}
    assert {one.shape for one in heard} <= {(9, 9), (4, 9), None}  # (4, 9): the first queries of some at a time
    try:
        wrapped = av.wrap(model)
    except UnsupportedModel as error:
        assert UNFIT.get(way, f"attends in encoder.layer.1.attention.self by {by}, outside") in str(error)
    else:  # what our function may stand in for is recorded
        assert by in FOLLOWED
        assert wrapped.trace_ids(ids(9)).layer_count() == 3
        assert wrapped.layers_without_attention == wrapped.left_out == ()


def causally(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return functional.scaled_dot_product_attention(query, key, value, is_causal=True, scale=0.3)


def masked(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    allowed = torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool).tril(2)
    return functional.scaled_dot_product_attention(query, key, value, allowed, scale=0.3)


def biased(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    distance = torch.arange(key.shape[-2]).float() / 7 - torch.arange(query.shape[-2]).float()[:, None] / 9
    return functional.scaled_dot_product_attention(query, key, value, distance.expand(1, 5, -1, -1), scale=0.3)


def shared_keys(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """All five heads have the keys and values of the first."""
    return functional.scaled_dot_product_attention(query, key[:, :1], value[:, :1], scale=0.3, enable_gqa=True)


@pytest.mark.parametrize("attend", [causally, masked, biased, shared_keys])
def test_weights_of_torchs_fused_attention_are_those_that_one_hot_values_read(attend: Attend) -> None:
    model: Any = build("bert")
    for layer in model.encoder.layer:
        layer.attention.self = Own(attend).eval()
    own = model.encoder.layer[1].attention.self
    trace = av.wrap(model).trace_ids(ids(9))
    heard = list[tuple[Tensor, Tensor]]()

    def listening(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        heard.append((query, key))
        return attend(query, key, value)

    own.attend = listening
    with torch.no_grad():
        model(ids(9))
    (query, key), places = heard[0], torch.eye(9).expand(1, 5, 9, 9)
    assert torch.allclose(trace.attention(1).weights, attend(query, key, places)[0], atol=1e-6)
    assert trace.provenance.route == "interception" and trace.fidelity.ok


@pytest.mark.parametrize("options", [{}, {"need_weights": False}])
def test_torchs_own_module_is_heard_on_its_fast_path(options: dict[str, bool]) -> None:
    model = patched(Many(**options))
    with outside_calls(model) as found, torch.no_grad():
        model(ids(9))
    assert ("encoder.layer.1.attention.self.inner", MANY) in {(one.path, one.by) for one in found}
    assert av.wrap(model).trace_ids(ids(9)).layer_count() == 3


def test_a_layer_of_torchs_own_is_heard_on_its_fast_path_and_beside_it() -> None:
    model: Any = build("bert")
    model.encoder.layer[2] = nn.TransformerEncoderLayer(20, 4, 37, batch_first=True).eval()
    forward = model.encoder.layer[2].forward

    def alone(hidden: Tensor, *_args: object, **_options: object) -> Tensor:
        return forward(hidden)

    model.encoder.layer[2].forward = alone
    with outside_calls(model) as found, torch.no_grad():
        model(ids(9))
    assert found[-1] == OutsideCall("encoder.layer.2", "torch's TransformerEncoderLayer", (9, 9))
    trace = av.wrap(model).trace_ids(ids(9))
    assert (trace.layer_numbers(), trace.head_count(2), trace.fidelity.ok) == ((0, 1, 2), 4, True)


def test_what_was_compiled_is_heard_too() -> None:
    model = patched(Own(torch.compile(functional.scaled_dot_product_attention, backend="eager")))
    with torch.no_grad():
        model(ids(9))  # compiled, and kept for later
    trace = av.wrap(model).trace_ids(ids(9))
    assert trace.layer_count() == 3 and trace.fidelity.ok


def test_all_layers_that_attend_otherwise_are_named_and_the_way_out_is_told() -> None:
    model: Any = build("bert")
    for layer in model.encoder.layer:
        layer.attention.self = Own(beneath)
    with pytest.raises(UnsupportedModel, match=r"layer\.0\..*layer\.1\..*layer\.2\..*outside transformers.*av\.record"):
        av.wrap(model)


def test_a_module_that_two_layers_share_is_refused_once() -> None:
    shared = Own(beneath)
    model = patched(shared, layer=0)
    model.encoder.layer[2].attention.self = shared
    with pytest.raises(UnsupportedModel, match=r"attends in encoder\.layer\.0\.attention\.self by"):
        av.wrap(model)


def test_a_layer_more_that_attends_between_the_tokens_is_refused() -> None:
    model: Any = build("bert with a head")
    inner = model.cls.forward
    model.more = Own(beneath).eval()

    def after_more(hidden: Tensor) -> Tensor:
        return inner(hidden + model.more(hidden)[0])

    model.cls.forward = after_more
    with pytest.raises(UnsupportedModel, match=r"attends in more by torch's scaled_dot_product_attention"):
        av.wrap(model)


def test_a_pooling_head_is_named_wherever_the_model_is_described(tmp_path: Path) -> None:
    model: Any = build("bert")
    model.pooler = Pooled().eval()
    wrapped = av.wrap(model)
    said = f"pooler.inner (by {MANY})"
    assert wrapped.left_out == (said,)
    assert f"left out: {said})" in repr(wrapped)
    trace = wrapped.trace_ids(ids(9))
    assert trace.fidelity.ok
    assert trace.provenance.notes == (f"Left out: {said}",)
    assert said in comparison_words(trace)
    assert escape(said) in trace._repr_html_()  # pyright: ignore[reportPrivateUsage]
    trace.save(tmp_path / "one.safetensors")
    assert av.Trace.load(tmp_path / "one.safetensors").provenance.left_out == (said,)


def test_siglips_pooling_head_is_a_stream() -> None:
    model, inputs = siglip()
    wrapped = av.wrap(model, inputs=inputs)
    trace = wrapped.trace(inputs)
    assert trace.provenance.left_out == wrapped.left_out == ()
    assert trace.streams == ("picture", "encoder", "pooling")


def test_a_tower_beside_the_streams_is_named_and_no_layer_of_it_is_said_to_be_without_attention() -> None:
    model, inputs = siglip()
    for layer in model.vision_model.encoder.layers:
        layer.self_attn = Own(beneath, 32).eval()
    wrapped = av.wrap(model, inputs=inputs)
    assert wrapped.streams == ("encoder", "pooling")
    assert wrapped.layers_without_attention == ()
    assert wrapped.left_out == (f"2 modules vision_model.encoder.layers.*.self_attn (by {SDPA})",)


def test_what_attends_in_a_longer_text_only_is_found_when_one_comes() -> None:
    model: Any = build("bert with a head")
    inner = model.cls.forward
    model.more = Own(beneath).eval()

    def forward(hidden: Tensor) -> Tensor:
        return inner(hidden + model.more(hidden)[0] if hidden.shape[1] > 20 else hidden)

    model.cls.forward = forward
    wrapped = av.wrap(model)
    assert wrapped.trace_ids(ids(19)).fidelity.ok
    for length in (21, 21, 30, 21):  # a refusal holds each time
        with pytest.raises(UnsupportedModel, match="attends in more by"):
            wrapped.trace_ids(ids(length))
    assert wrapped.trace_ids(ids(19)).fidelity.ok


def test_what_is_left_out_is_named_each_time() -> None:
    model, inputs = siglip()
    for layer in model.vision_model.encoder.layers:
        layer.self_attn = Own(beneath, 32).eval()
    wrapped = av.wrap(model, inputs=inputs)
    named = [wrapped.trace(inputs).provenance.left_out for _ in range(3)]
    assert named[0] and named == named[:1] * 3


@pytest.mark.parametrize("family", ["llama", "gpt2", "bert", "gpt_oss", "t5"])
def test_nothing_is_heard_where_our_function_computes_all(family: str) -> None:
    wrapped = av.wrap(build(family))
    assert wrapped.left_out == ()
    assert "left out" not in repr(wrapped)


class Routed(nn.Module):
    """What is no attention: a router, whose weights mix experts, a gate, and a norm over cosines."""

    def __init__(self) -> None:
        super().__init__()
        self.experts, self.router = nn.Parameter(torch.randn(4, 20, 20)), nn.Parameter(torch.randn(20, 4))

    def forward(self, hidden: Tensor) -> Tensor:
        shares = torch.softmax(hidden @ functional.normalize(self.router.double().float(), dim=0), dim=-1)
        mixed = torch.einsum("bne,bned->bnd", shares, torch.stack([hidden @ one for one in self.experts], dim=2))
        return mixed * torch.softmax(hidden.cumsum(1) / math.sqrt(20), dim=-1)


def test_a_router_over_experts_is_no_attention() -> None:
    model: Any = build("bert")
    model.routed = Routed().eval()
    forward = model.encoder.layer[1].output.forward

    def routed(hidden: Tensor, before: Tensor) -> Tensor:
        return forward(hidden, before) + model.routed(before)

    model.encoder.layer[1].output.forward = routed
    with outside_calls(model) as found, torch.no_grad():
        model.routed(torch.randn(1, 9, 20))
    assert found == []
    assert av.wrap(model).left_out == ()
