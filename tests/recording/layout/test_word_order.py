"""Words in their order, in models that somebody changed by hand."""

import functools
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import MethodType
from typing import Any, cast

import accelerate.hooks
import peft
import pytest
import torch
from torch import Tensor, nn
from transformers import (
    BertConfig,
    BertModel,
    GPT2Config,
    GPT2LMHeadModel,
    JambaConfig,
    JambaForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
)

import attention_viz as av
from attention_viz.errors import UnsupportedModel
from attention_viz.models.model import AttentionModel
from attention_viz.recording.layout.foreign import foreign_code
from attention_viz.recording.layout.origins import KeepApart
from attention_viz.recording.layout.word_order import WordOrder
from attention_viz.recording.outputs.breaking import TooLargeError
from attention_viz.recording.recorder import recording

SIZES: dict[str, Any] = {"vocab_size": 50, "num_hidden_layers": 2, "num_attention_heads": 2}
TEXT, TARGET = torch.tensor([[3, 4, 5, 9, 7, 8]]), torch.tensor([[0, 7, 8]])
MOVED = "can't match positions to words"


def random_model(model: Any) -> Any:
    chance = torch.Generator().manual_seed(0)
    for one in model.parameters():
        if one.ndim > 1:
            one.data = 0.3 * torch.randn(one.shape, generator=chance)
    return model.eval()


def gpt2(kind: type[Any] = GPT2LMHeadModel) -> Any:
    shape: dict[str, Any] = {"vocab_size": 50, "n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 64}
    return random_model(kind(GPT2Config(**shape, bos_token_id=1, eos_token_id=2)))


def bert() -> Any:
    shape: dict[str, Any] = {"hidden_size": 16, "intermediate_size": 16, "max_position_embeddings": 64}
    return random_model(BertModel(BertConfig(**SIZES, **shape)))


def t5() -> Any:
    shape: dict[str, Any] = {"vocab_size": 50, "d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 2, "num_heads": 2}
    return random_model(T5ForConditionalGeneration(cast("Any", T5Config)(**shape, decoder_start_token_id=0)))


BUILDERS: dict[str, Callable[[], Any]] = {"gpt2": gpt2, "bert": bert, "t5": t5}


def rolled(shift: Callable[[Tensor], int]) -> Callable[..., object]:
    """Return a hook that moves tokens by what their states say."""

    def hook(_module: nn.Module, _inputs: object, output: Any) -> Any:
        states = output[0] if isinstance(output, tuple) else output
        states = states.roll(shift(states), dims=1)
        return (states, *cast("tuple[Any, ...]", output)[1:]) if isinstance(output, tuple) else states

    return hook


def flip(_module: nn.Module, _inputs: object, output: Any) -> Any:
    states = output[0] if isinstance(output, tuple) else output
    return (states.flip(1), *cast("tuple[Any, ...]", output)[1:]) if isinstance(output, tuple) else states.flip(1)


def do_nothing(*_: object) -> None:
    """Leave a module's output as it is."""


def traced(model: Any, ids: Tensor = TEXT) -> av.Trace:
    wrapped = av.wrap(model)
    return wrapped.trace_ids(ids, decoder_input_ids=TARGET if wrapped.answers else None)


@contextmanager
def counted(model: nn.Module) -> Generator[list[int]]:
    """Count a model's runs by looks into its word embeddings, without code in the model."""
    table, found = next(one for one in model.modules() if isinstance(one, nn.Embedding)), [0]
    look_up = nn.functional.embedding

    def count(ids: Tensor, weight: Tensor, *given: Any) -> Tensor:
        found[0] += weight is table.weight
        return look_up(ids, weight, *given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("torch.nn.functional.embedding", count)
        yield found


@pytest.mark.parametrize(
    ("family", "path", "seen_at"),
    [
        ("gpt2", "transformer.drop", "query at position 0 of transformer.h.0.attn"),
        ("gpt2", "transformer.h.0", "query at position 0 of transformer.h.1.attn"),
        ("bert", "encoder.layer.0", "query at position 0 of encoder.layer.1.attention.self"),
        ("t5", "encoder.block.0", "query at position 0 of encoder.block.1.layer.0.SelfAttention"),
        ("t5", "decoder.block.0", "query at position 0 of decoder.block.1.layer.0.SelfAttention"),
        ("t5", "encoder.final_layer_norm", "key at position 0 of decoder.block.0.layer.1.EncDecAttention"),
    ],
)
def test_a_hook_that_flips_words_is_refused_by_name(family: str, path: str, seen_at: str) -> None:
    model = BUILDERS[family]()
    model.get_submodule(path).register_forward_hook(flip)
    with pytest.raises(UnsupportedModel, match=MOVED) as refusal:
        av.wrap(model)
    assert seen_at in str(refusal.value)
    assert f"the hook of {path} ({type(model.get_submodule(path)).__name__})" in str(refusal.value)


def test_a_replaced_forward_that_flips_words_is_refused() -> None:
    model = gpt2()
    block = model.transformer.h[0]
    forward = block.forward

    def flipped(*given: Any, **named: Any) -> Any:
        return flip(block, (), forward(*given, **named))

    block.forward = flipped
    with pytest.raises(UnsupportedModel, match=r"the function forward of transformer\.h\.0"):
        av.wrap(model)


def test_a_subclass_that_flips_its_ids_is_refused() -> None:
    class Flipping(GPT2LMHeadModel):
        def forward(self, input_ids: Any = None, **named: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
            return super().forward(input_ids=input_ids.flip(1), **named)

    with pytest.raises(UnsupportedModel, match=r"the class of its outermost module \(Flipping\)"):
        av.wrap(gpt2(Flipping))


@pytest.mark.parametrize(("family", "path"), [("gpt2", "transformer.h.0"), ("bert", "encoder.layer.0")])
def test_a_rotation_by_the_length_is_refused_for_the_texts_it_moves(family: str, path: str) -> None:
    model = BUILDERS[family]()
    model.get_submodule(path).register_forward_hook(rolled(lambda states: states.shape[1] // 12))
    wrapped = av.wrap(model)
    assert wrapped.trace_ids(TEXT).fidelity.ok
    with pytest.raises(UnsupportedModel, match=MOVED):
        wrapped.trace_ids(torch.arange(3, 27)[None])
    if family == "gpt2":
        ids = torch.arange(3, 14)[None]
        assert wrapped.trace_ids(ids).fidelity.ok


@pytest.mark.parametrize("ids", [[3, 4, 5, 6, 13, 8], [3, 13], [13, 3, 4], [13, 13, 13, 13]])
def test_a_rotation_by_a_word_is_refused_for_texts_with_it(ids: list[int]) -> None:
    model, turned = gpt2(), [False]

    def read(_module: nn.Module, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        found = named["input_ids"] if "input_ids" in named else given[0]
        turned[0] = bool((found == 13).any())

    model.register_forward_pre_hook(read, with_kwargs=True)
    model.transformer.h[0].register_forward_hook(rolled(lambda _states: int(turned[0])))
    wrapped = av.wrap(model)
    assert wrapped.trace_ids(TEXT).fidelity.ok
    with pytest.raises(UnsupportedModel, match=MOVED):
        wrapped.trace_ids(torch.tensor([ids]))


def test_a_hook_put_on_later_is_noticed() -> None:
    model = gpt2()
    wrapped = av.wrap(model)
    assert wrapped.trace_ids(TEXT).fidelity.ok
    handle = model.transformer.h[0].register_forward_hook(flip)
    with pytest.raises(UnsupportedModel, match=MOVED):
        wrapped.trace_ids(TEXT)
    handle.remove()
    assert wrapped.trace_ids(TEXT).fidelity.ok


@pytest.mark.parametrize("family", [*BUILDERS])
@pytest.mark.parametrize(
    "ids", [TEXT, torch.tensor([[7]]), torch.tensor([[7, 7, 7, 7]])], ids=["words", "one", "equal"]
)
def test_a_hook_that_moves_nothing_keeps_a_model_exact(family: str, ids: Tensor) -> None:
    model, plain = BUILDERS[family](), traced(BUILDERS[family](), ids)
    for module in model.modules():
        module.register_forward_hook(do_nothing)
    found = traced(model, ids)
    assert found.fidelity.ok
    for stream in plain.streams:
        for ours, own in zip(found.layers[stream], plain.layers[stream], strict=True):
            assert torch.equal(ours.attention.weights, own.attention.weights)


def test_padding_stays_where_it_is() -> None:
    model = bert()
    model.encoder.layer[0].register_forward_hook(do_nothing)
    for mask in ([[0, 0, 1, 1, 1, 1]], [[1, 1, 1, 1, 0, 0]]):
        assert av.wrap(model).trace_ids(TEXT, torch.tensor(mask)).fidelity.ok


def test_layers_without_a_softmax_do_not_hide_the_words() -> None:
    shape: dict[str, Any] = {
        "hidden_size": 16, "intermediate_size": 16, "num_key_value_heads": 1, "num_experts": 2, "mamba_d_state": 4,
        "attn_layer_period": 2, "attn_layer_offset": 1, "expert_layer_period": 2, "use_mamba_kernels": False,
    }  # fmt: skip
    for hook in (do_nothing, flip):
        model = random_model(JambaForCausalLM(JambaConfig(**SIZES | {"num_hidden_layers": 4}, **shape)))
        model.model.layers[2].register_forward_hook(hook)
        if hook is do_nothing:
            assert traced(model).fidelity.ok
        else:
            with pytest.raises(UnsupportedModel, match=MOVED):
                av.wrap(model)


@pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing:FutureWarning")  # peft asks for it
def test_adapters_and_placed_layers_are_not_foreign() -> None:
    model = gpt2()
    accelerate.hooks.add_hook_to_module(model.transformer.h[0], accelerate.hooks.AlignDevicesHook("cpu"))
    adapted = cast("Any", peft.get_peft_model)(model, peft.LoraConfig(target_modules=["c_attn"], fan_in_fan_out=True))
    for name, one in adapted.named_parameters():
        if "lora_B" in name:
            one.data.normal_(generator=torch.Generator().manual_seed(0))
    assert not [*foreign_code(adapted.modules())]
    assert traced(adapted.eval()).fidelity.ok
    accelerate.hooks.add_hook_to_module(model.transformer.h[1], type("Own", (accelerate.hooks.ModelHook,), {})())
    assert [one.kind for one in foreign_code(model.modules())] == ["the hook"]


@pytest.mark.parametrize("package", ["compressed_tensors.quantization", "gptqmodel.nn_modules", "hqq", "kernels.layer"])
def test_packages_that_quantize_or_speed_up_layers_are_not_foreign(package: str) -> None:
    model = gpt2()
    kind = type(model.transformer.h[0].mlp)
    model.transformer.h[0].mlp.__class__ = type("Quick", (kind,), {"__module__": package})
    assert not [*foreign_code(model.modules())]
    model.transformer.h[0].mlp.__class__ = type("Quick", (kind,), {"__module__": "somebody.layers"})
    assert [one.kind for one in foreign_code(model.modules())] == ["the class"]


def test_a_tower_of_timm_may_move_patches_but_no_words() -> None:
    tower = type("Tower", (nn.Linear,), {"__module__": "timm.models.swin_transformer"})(2, 2)
    assert [one.kind for one in foreign_code(tower.modules())] == ["the class"]
    assert not [*foreign_code(tower.modules(), images=False)]


class StopError(Exception):
    """Raised by a reader's own hook."""


def test_an_error_on_the_readers_own_words_is_not_blamed_on_others() -> None:
    def stop(_module: nn.Module, given: tuple[Tensor, ...]) -> None:
        if given[0].shape[1] == 5:
            raise StopError

    model = gpt2()
    model.transformer.wte.register_forward_pre_hook(stop)
    wrapped = av.wrap(model)
    with pytest.raises(UnsupportedModel, match=r"transformer\.wte \(Embedding\) fails") as refusal:
        wrapped.trace_ids(TEXT[:, :5])
    assert "other words" not in str(refusal.value)
    assert isinstance(refusal.value.__cause__, StopError)


def raising(model: Any, error: type[Exception], *, own: bool) -> Any:
    """Let the word embeddings fail in the proof of a text, on its own words or on others."""

    def fail(_module: nn.Module, given: tuple[Tensor, ...]) -> None:
        if given[0].shape[1] != 5 or torch.equal(given[0], TEXT[:, :5]) is not own:
            return
        if not own or isinstance(recording.get(), KeepApart):
            raise error

    model.transformer.wte.register_forward_pre_hook(fail)
    return av.wrap(model)


@pytest.mark.parametrize(("own", "trial"), [(False, "with other words"), (True, "with its positions kept apart")])
def test_an_error_in_a_proof_names_the_hook_and_the_trial(own: bool, trial: str) -> None:
    wrapped = raising(gpt2(), StopError, own=own)
    with pytest.raises(UnsupportedModel, match=rf"{trial}, it raised StopError; remove the hook of transformer\.wte"):
        wrapped.trace_ids(TEXT[:, :5])


@pytest.mark.parametrize("error", [MemoryError, torch.OutOfMemoryError])
def test_a_proof_that_takes_all_memory_blames_no_hook(error: type[Exception]) -> None:
    wrapped = raising(gpt2(), error, own=False)
    with pytest.raises(TooLargeError, match="takes more memory than there is"):
        wrapped.trace_ids(TEXT[:, :5])


def test_a_hook_that_drops_positions_of_other_words_is_refused_by_name() -> None:
    model = gpt2()

    def cut(_module: nn.Module, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
        ids = named["input_ids"]
        if ids.shape[1] != 5 or torch.equal(ids, TEXT[:, :5]):
            return None
        return given, named | {name: named[name][:, :4] for name in ("input_ids", "attention_mask")}

    model.register_forward_pre_hook(cut, with_kwargs=True)
    wrapped = av.wrap(model)
    with pytest.raises(UnsupportedModel, match=r"over other positions for other words; remove the hook"):
        wrapped.trace_ids(TEXT[:, :5])


def test_code_below_a_decorator_is_found() -> None:
    model = gpt2()
    block = model.transformer.h[0]

    @torch.no_grad()
    def forward(self: Any, *given: Any, **named: Any) -> Any:
        return type(self).forward(self, *given, **named)

    block.forward = MethodType(forward, block)
    model.transformer.h[1].register_forward_hook(functools.partial(torch.no_grad()(do_nothing)))
    assert [one.kind for one in foreign_code(model.modules())] == ["the function forward", "the hook"]


def test_only_foreign_code_costs_runs_and_once_per_text(monkeypatch: pytest.MonkeyPatch) -> None:
    def runs(model: Any, *texts: Tensor) -> list[int]:
        found = list[int]()
        with counted(model) as count:
            wrapped = av.wrap(model)
            found.append(count[0])
            for ids in texts:
                before = count[0]
                wrapped.trace_ids(ids)
                found.append(count[0] - before)
        return found

    hooked = gpt2()
    hooked.transformer.h[0].register_forward_hook(do_nothing)
    long = torch.arange(48)[None]
    plain, more = runs(gpt2(), TEXT, TEXT, long), runs(hooked, TEXT, TEXT, long)
    # Four runs of whole texts, and one for each digit of a number of words.
    assert [one - other for one, other in zip(more, plain, strict=True)] == [6, 6, 0, 7]
    monkeypatch.setattr(WordOrder, "check", do_nothing)
    assert runs(gpt2(), TEXT, TEXT, long) == plain


def test_each_text_of_a_batch_is_proven_as_it_is_padded(minilm: AttentionModel) -> None:
    layer = minilm.runner.model.get_submodule("encoder.layer.0")
    handle = layer.register_forward_hook(rolled(lambda states: states.shape[1] // 12))
    short, long = "the cat", "the cat sat on the mat, and the dog sat on the cat"
    try:
        assert len(minilm.trace_together([short, "a dog"])) == 2
        with pytest.raises(UnsupportedModel, match=MOVED):
            minilm.trace_together([short, long])
    finally:
        handle.remove()
    assert len(minilm.trace_together([short, long])) == 2
