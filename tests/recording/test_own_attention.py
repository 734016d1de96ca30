"""The output is compared with the attention that the model runs, whatever it is, and no other run overrules that."""

import sys
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, CLIPConfig, CLIPModel, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import eager_mask, sdpa_mask
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.models.llama.modeling_llama import eager_attention_forward

import attention_viz as av
from attention_viz.operation import kernel
from attention_viz.recording.fidelity import compare
from attention_viz.recording.implementation import IMPLEMENTATION
from attention_viz.recording.runner import Runner
from attention_viz.recording.stepping import compare_steps
from tests.inputs.test_text import byte_tokenizer
from tests.models.families import build, ids

Attend = Callable[..., tuple[Tensor, Tensor | None]]
LATE = 20


def times(factor: Callable[[nn.Module, Tensor], float]) -> Attend:
    """Attention by torch's kernel, with queries that are multiplied by something first."""

    def attend(module: nn.Module, query: Tensor, *terms: Any, **named: Any) -> tuple[Tensor, Tensor | None]:
        return sdpa_attention_forward(module, query * factor(module, query), *terms, **named)

    return attend


def sees_all(*terms: Any, **named: Any) -> tuple[Tensor, Tensor | None]:
    return sdpa_attention_forward(*terms, **{**named, "is_causal": False})


def doubled(module: nn.Module, query: Tensor, key: Tensor, value: Tensor, *rest: Any, **named: Any) -> Any:
    return sdpa_attention_forward(module, query, key, value * 2, *rest, **named)


def hides_more(*places: Any, **named: Any) -> Tensor:
    """The mask of eager attention that hides the first key as well, except from its own query."""
    mask = eager_mask(*places, **named).clone()
    mask[..., 1:, 0] = torch.finfo(mask.dtype).min
    return mask


def broken(*_terms: Any, **_named: Any) -> Any:
    raise RuntimeError("needs another kind of card")


def _once(_module: nn.Module, _query: Tensor) -> float:
    return 1


def _twice(_module: nn.Module, _query: Tensor) -> float:
    return 2


def _in_one_layer(module: nn.Module, _query: Tensor) -> float:
    return 2 if getattr(module, "layer_idx", 0) == 1 else 1


def _in_one_object(module: nn.Module, _query: Tensor) -> float:
    return 2 if getattr(module, "chosen", None) is module else 1


def _if_long(_module: nn.Module, query: Tensor) -> float:
    return 2 if query.shape[-2] > LATE else 1


def _in_steps(_module: nn.Module, query: Tensor) -> float:
    return 2 if query.shape[-2] == 1 else 1


FUNCTIONS: dict[str, tuple[Attend, Callable[..., Any] | None]] = {
    "the same": (times(_once), sdpa_mask),
    "the same without masks": (times(_once), None),
    "sharp": (times(_twice), sdpa_mask),
    "sharp in one layer": (times(_in_one_layer), sdpa_mask),
    "sharp in one object": (times(_in_one_object), sdpa_mask),
    "sharp if long": (times(_if_long), sdpa_mask),
    "sharp in steps": (times(_in_steps), sdpa_mask),
    "doubled": (doubled, sdpa_mask),
    "sees all": (sees_all, sdpa_mask),
    "sees all, without masks": (sees_all, None),
    "hides more": (times(_once), hides_more),
    "broken": (broken, sdpa_mask),
}


@pytest.fixture(autouse=True, scope="module")
def registered() -> None:
    """They stay registered: nobody else asks for these names."""
    for name, (attend, mask) in FUNCTIONS.items():
        AttentionInterface.register(name, attend)
        if mask is not None:
            AttentionMaskInterface.register(name, mask)


def model(name: str, family: str = "llama", **changes: Any) -> PreTrainedModel:
    made = build(family, **changes)
    made.set_attn_implementation(name)
    return made


@pytest.mark.parametrize(
    "name",
    [
        "sharp",
        "sharp in one layer",
        "sharp in one object",
        "doubled",
        "sees all",
        "sees all, without masks",
        "hides more",
    ],
)
def test_a_model_whose_own_attention_gives_something_else_is_refused_by_its_name(name: str) -> None:
    made = model(name)
    module = made.model.layers[1].self_attn
    object.__setattr__(module, "chosen", module)
    with pytest.raises(av.UnsupportedModel) as refused:
        av.wrap(made)
    assert f"runs attention “{name}”, which differs from softmax attention" in str(refused.value)
    assert 'model.set_attn_implementation("sdpa")' in str(refused.value)
    assert ("No mask function is registered" in str(refused.value)) == ("without masks" in name)
    assert vars(made.config)[IMPLEMENTATION] == name


@pytest.mark.parametrize("name", ["the same", "the same without masks", "sdpa", "eager"])
@pytest.mark.parametrize("family", ["llama", "bert"])
def test_one_that_gives_the_same_is_verified_and_the_reference_names_it(name: str, family: str) -> None:
    wrapped = av.wrap(model(name, family))
    fidelity = wrapped.trace_ids(ids(25)).fidelity
    assert fidelity.ok and f"its own attention ({name})" in fidelity.reference


# Torch's compiler warns while it is loaded, and of flex attention that isn't compiled.
@pytest.mark.filterwarnings("ignore")
def test_flex_attention_is_verified_without_compiling_it_for_each_length() -> None:
    made = build("llama")
    vars(made.config)[IMPLEMENTATION] = "flex_attention"
    before, wrapped = compiled_frames(), av.wrap(made)
    for count in (9, 25):
        fidelity = wrapped.trace_ids(ids(count)).fidelity
        assert fidelity.ok and "its own attention (flex_attention, not compiled)" in fidelity.reference
    assert compiled_frames() == before


def compiled_frames() -> int:
    """How much this process has compiled: other tests may have."""
    compiler = sys.modules.get("torch._dynamo")
    return 0 if compiler is None else compiler.utils.counters["frames"]["total"]


def test_an_encoder_without_masks_is_wrong_for_padding_alone() -> None:
    wrapped = av.wrap(model("the same without masks", "bert"))
    padded = torch.ones(1, 11, dtype=torch.long)
    padded[0, :3] = 0
    assert not wrapped.trace_ids(ids(11), padded).fidelity.ok


@pytest.mark.parametrize("whole", [10, 128])
def test_one_that_differs_on_longer_texts_alone_is_not_verified_there(
    whole: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attention_viz.recording.fidelity.MOST_WHOLE", whole)
    made = model("sharp if long")
    wrapped = av.wrap(made)
    assert wrapped.trace_ids(ids(LATE)).fidelity.ok
    trace = wrapped.trace_ids(ids(LATE + 1))
    with torch.no_grad():
        own = made(ids(LATE + 1)).logits[0]
    off = float((trace.output - own).abs().max() / own.abs().max())
    assert off > 0.01 and trace.fidelity.output_error == pytest.approx(off)
    assert not trace.fidelity.ok and trace.fidelity.rule.startswith("not within 1e-05")
    assert "its own attention (sharp if long)" in trace.fidelity.reference


def test_of_a_short_text_the_rule_says_that_eager_attention_gives_something_else_too() -> None:
    fidelity = av.wrap(model("sharp if long")).trace_ids(ids(LATE + 1)).fidelity
    assert fidelity.eager_from_own == pytest.approx(fidelity.output_error, rel=1e-3)
    assert "eager attention's output" in fidelity.rule


def test_one_that_is_chosen_after_wrapping_is_what_the_output_is_compared_with() -> None:
    made = model("sdpa")
    wrapped = av.wrap(made)
    made.set_attn_implementation("doubled")
    fidelity = wrapped.trace_ids(ids(9)).fidelity
    assert not fidelity.ok and "its own attention (doubled)" in fidelity.reference


def test_a_run_with_edits_carries_what_was_found_of_the_run_without_them() -> None:
    made = model("sdpa")
    wrapped = av.wrap(made)
    made.set_attn_implementation("doubled")
    assert not wrapped.trace_ids(ids(9), edits=[av.Ablate(0, 0)]).fidelity.ok


def test_one_that_differs_in_the_steps_of_a_generation_alone_is_not_verified_there() -> None:
    made = model("sharp in steps", vocab_size=300, eos_token_id=None, bos_token_id=None)
    typed, *_, last = av.wrap(made, byte_tokenizer()).generate("the bank of", 3)
    assert typed.fidelity.ok and not last.fidelity.ok
    assert "a step of it from the same cache" in last.fidelity.reference


def test_a_generation_by_one_that_gives_the_same_is_verified() -> None:
    made = model("the same", vocab_size=300, eos_token_id=None, bos_token_id=None)
    *_, last = av.wrap(made, byte_tokenizer()).generate("the bank of", 3)
    assert last.fidelity.ok


def test_transformers_own_name_with_another_function_behind_it_is_no_built_in_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(ALL_ATTENTION_FUNCTIONS, "sdpa", doubled)
    with pytest.raises(av.UnsupportedModel, match="runs attention “sdpa”"):
        av.wrap(model("sdpa"))

    def also_doubled(module: nn.Module, query: Tensor, key: Tensor, value: Tensor, *rest: Any, **named: Any) -> Any:
        return eager_attention_forward(module, query, key, value * 2, *rest, **named)

    monkeypatch.setitem(ALL_ATTENTION_FUNCTIONS, "eager", also_doubled)
    with pytest.raises(av.UnsupportedModel, match="runs attention “eager”"):
        av.wrap(model("eager"))


def test_a_model_with_no_implementation_at_all_runs_without_masks_and_is_refused() -> None:
    made = build("llama")
    vars(made.config)[IMPLEMENTATION] = None
    with pytest.raises(av.UnsupportedModel, match="differs from softmax attention"):
        av.wrap(made)
    assert vars(made.config)[IMPLEMENTATION] is None


def test_one_that_cannot_run_here_is_refused() -> None:
    with pytest.raises(av.UnsupportedModel, match=r"“broken” can't run here.*needs another kind of card"):
        av.wrap(model("broken"))


def test_one_of_transformers_own_that_cannot_run_here_is_stood_in_for_and_the_reference_says_so() -> None:
    made = build("llama")
    vars(made.config)[IMPLEMENTATION] = "paged|eager"
    fidelity = av.wrap(made).trace_ids(ids(9)).fidelity
    assert fidelity.ok and "(its own, paged|eager, can't run here: ValueError" in fidelity.reference


@pytest.mark.parametrize(("name", "fine"), [("the same", True), ("doubled", False)])
@pytest.mark.parametrize("tower", ["vision_config", "text_config"])
def test_a_part_of_a_model_may_have_an_attention_of_its_own(tower: str, name: str, fine: bool) -> None:
    small = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    text = {"vocab_size": 60, "max_position_embeddings": 16, "eos_token_id": 59, **small}
    torch.manual_seed(0)
    made = CLIPModel(CLIPConfig(text_config=text, vision_config={"image_size": 16, "patch_size": 8, **small})).eval()
    for parameter in made.parameters():
        if parameter.ndim > 1:
            parameter.data *= 8
    made.set_attn_implementation({tower: name})
    inputs = {"pixel_values": torch.rand(1, 3, 16, 16), "input_ids": torch.arange(3, 11)[None]}
    if not fine:
        with pytest.raises(av.UnsupportedModel, match=f"runs attention “{name}”"):
            av.wrap(made, inputs=inputs)
        return
    fidelity = av.wrap(made, inputs=inputs).trace(inputs).fidelity
    assert fidelity.ok and "sdpa" in fidelity.reference and name in fidelity.reference


def test_implementations_that_differ_from_each_other_are_named_as_the_cause() -> None:
    """A layer that rounds coarsely: what eager and torch's kernel give it differs in the last digits."""
    made = build("llama")

    def round_coarsely(_module: nn.Module, _inputs: object, output: Tensor) -> Tensor:
        return (output * 1e6).round() % 2

    made.model.layers[0].mlp.register_forward_hook(round_coarsely)
    with pytest.raises(av.UnsupportedModel, match="with sdpa and eager attention, its outputs differ by"):
        av.wrap(made)


def test_in_half_precision_a_missed_bound_is_said_to_be_rounding_or_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = Runner.of(build("llama").bfloat16())
    inputs = runner.inputs({"input_ids": ids(25)})
    recorded = runner.record(inputs)
    within = compare(recorded, runner, inputs)
    assert within.rule == "within 5e-02" and within.output_from_exact is None is within.weight_from_exact
    monkeypatch.setitem(kernel.BOUNDS, torch.bfloat16, 2e-3)
    monkeypatch.setattr("attention_viz.trace.provenance.ROUNDED_BOUNDS", 250)
    rounding = compare(recorded, runner, inputs)
    assert rounding.ok and rounding.rule.startswith("rounding: at most twice as far from a run in float32")
    assert not rounding.is_fault
    output = recorded.output[:] + 0.4 * recorded.output[:].abs().max()
    fault = compare(replace(recorded, output=output), runner, inputs)
    assert (
        not fault.ok
        and fault.is_fault
        and fault.rule.startswith("a fault: not within 2e-03; more than twice as far from a run in")
    )
    assert {parameter.dtype for parameter in runner.model.parameters()} == {torch.bfloat16}


def test_numbers_that_were_not_measured_are_none_in_a_file_too(tmp_path: Path) -> None:
    fidelity = av.wrap(build("llama")).trace_ids(ids(9)).fidelity
    unmeasured = ("output_from_exact", "weight_from_exact", "eager_output_from_exact", "eager_weight_from_exact")
    assert all(getattr(fidelity, name) is None for name in unmeasured)
    given = av.Trace.from_weights(torch.eye(3))
    assert given.fidelity.output_error is None and given.fidelity.weight_error == 0 and not given.fidelity.ok
    given.save(tmp_path / "given")
    assert av.Trace.load(tmp_path / "given").fidelity == given.fidelity
    judged = replace(fidelity, output_error=2e-5, output_from_exact=1e-5, eager_output_from_exact=1e-5)
    trace = av.scratch("a cat")
    made = av.Trace(trace.layers, trace.queries, trace.keys, trace.output, trace.provenance, judged)
    made.save(tmp_path / "judged")
    assert av.Trace.load(tmp_path / "judged").fidelity == judged


def _by_id(module: nn.Module) -> int:
    return id(module)


def _itself(module: nn.Module) -> nn.Module:
    return module


KEYINGS: dict[str, tuple[Callable[[], Any], Callable[[nn.Module], Any]]] = {
    "a dict of modules": (dict, _itself),
    "a dict of identities": (dict, _by_id),
    "a weak dict of modules": (weakref.WeakKeyDictionary, _itself),
}


def steered(keying: str, least: int = 0) -> tuple[PreTrainedModel, Callable[[], None]]:
    """A model whose values are multiplied in one module, and what turns that on."""
    table_of, key_of = KEYINGS[keying]
    table = table_of()

    def attend(module: nn.Module, query: Tensor, key: Tensor, value: Tensor, *rest: Any, **named: Any) -> Any:
        factor = table.get(key_of(module), 1.0) if key.shape[2] > least else 1.0
        return sdpa_attention_forward(module, query, key, value * factor, *rest, **named)

    AttentionInterface.register("steered", attend)
    AttentionMaskInterface.register("steered", sdpa_mask)
    made = model("steered", vocab_size=300, eos_token_id=None, bos_token_id=None)
    return made, lambda: table.__setitem__(key_of(made.model.layers[1].self_attn), 3.0)


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("keying", KEYINGS)
def test_attention_that_knows_the_models_modules_is_not_verified(
    keying: str, precision: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("fidelity.MOST_WHOLE", "references.own_output.ROWS_AT_ONCE"):
        monkeypatch.setattr(f"attention_viz.recording.{name}", 20)
    made, steer = steered(keying)
    wrapped = av.wrap(made.to(precision))
    assert wrapped.trace_ids(ids(9)).fidelity.ok
    steer()
    for count in (9, 40):
        trace = wrapped.trace_ids(ids(count))
        with torch.no_grad():
            own = made(ids(count)).logits[0]
        off = float((trace.output - own).abs().max() / own.abs().max())
        assert off > 0.05 and trace.fidelity.output_error == pytest.approx(off, rel=1e-2)
        assert not trace.fidelity.ok
    with pytest.raises(av.UnsupportedModel, match="runs attention “steered”, which differs"):
        av.wrap(made)


@pytest.mark.parametrize("keying", KEYINGS)
def test_attention_that_knows_the_models_modules_in_long_texts_alone_is_not_verified(keying: str) -> None:
    made, steer = steered(keying, least=15)
    steer()
    wrapped = av.wrap(made)
    assert wrapped.trace_ids(ids(15)).fidelity.ok
    assert not wrapped.trace_ids(ids(16)).fidelity.ok
    assert not wrapped.trace_ids(ids(16), edits=[av.Ablate(0, 0)]).fidelity.ok


@pytest.mark.parametrize("keying", KEYINGS)
def test_steps_of_attention_that_knows_the_models_modules_are_not_verified(keying: str) -> None:
    made, steer = steered(keying, least=4)
    wrapped = av.wrap(made, byte_tokenizer())
    *_, last = wrapped.generate("the bank of", 3)
    assert last.fidelity.ok
    steer()
    typed, *_, last = wrapped.generate("the bank of", 3)
    assert typed.fidelity.ok and not last.fidelity.ok
    record = wrapped._parts.tracer.record_of(last)  # pyright: ignore[reportPrivateUsage] -- what a trace is compared by
    steps = compare_steps(record, wrapped.runner, torch.tensor([last.query_tokens().ids]), 3, range)
    assert not steps.ok and steps.output_error is not None and steps.output_error > 0.01


def test_eager_attention_that_somebody_replaced_is_run_by_the_model_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: dict[nn.Module, float] = {}

    def attend(module: nn.Module, query: Tensor, key: Tensor, value: Tensor, *rest: Any, **named: Any) -> Any:
        return eager_attention_forward(module, query, key, value * chosen.get(module, 1.0), *rest, **named)

    monkeypatch.setitem(ALL_ATTENTION_FUNCTIONS, "eager", attend)
    made = model("eager")
    wrapped = av.wrap(made)
    assert wrapped.trace_ids(ids(9)).fidelity.ok
    chosen[made.model.layers[1].self_attn] = 3.0
    assert not wrapped.trace_ids(ids(9)).fidelity.ok
