"""What stands around an attention call is found by what flows, however a family stores its heads."""

import threading
from typing import Any

import peft
import pytest
import torch
import transformers
from torch.testing import assert_close

import attention_viz as av
from attention_viz.operation.shapes import apart, side_by_side
from tests.models.families import build

_SIZES = {
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 28,
    "vocab_size": 90,
    "max_position_embeddings": 40,
}
_GPT2 = {"n_embd": 24, "n_layer": 2, "n_head": 4, "vocab_size": 90, "bos_token_id": 1, "eos_token_id": 2}
_OPT = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4, "ffn_dim": 28, "vocab_size": 90}

# Model, sizes, whether positions are turned into query and key, and which matrices stand right before the call.
_ALL = {"query", "key", "value", "output"}
_FAMILIES: dict[str, tuple[str, str, dict[str, int], bool, set[str]]] = {
    "apart": ("BertModel", "BertConfig", _SIZES, False, _ALL),
    "fused, side by side": ("GPT2LMHeadModel", "GPT2Config", _GPT2, False, _ALL),
    "fused, head by head": ("GPTNeoXForCausalLM", "GPTNeoXConfig", _SIZES, True, _ALL),
    "grouped": ("LlamaForCausalLM", "LlamaConfig", {**_SIZES, "num_key_value_heads": 2}, True, _ALL),
    "turned in part": ("PhiForCausalLM", "PhiConfig", {**_SIZES, "hidden_size": 32}, True, _ALL),
    "scaled early": ("OPTForCausalLM", "OPTConfig", {**_OPT, "word_embed_proj_dim": 24}, False, _ALL),
    "one module for all layers": ("AlbertModel", "AlbertConfig", {**_SIZES, "embedding_size": 10}, False, _ALL),
    "turned and stretched": (
        "GptOssForCausalLM",
        "GptOssConfig",
        {**_SIZES, "num_key_value_heads": 2, "head_dim": 8, "num_local_experts": 4, "intermediate_size": 32},
        True,
        _ALL,
    ),
    "normed before turning": (
        "Qwen3ForCausalLM",
        "Qwen3Config",
        {**_SIZES, "num_key_value_heads": 2, "head_dim": 6},
        True,
        {"value", "output"},
    ),
}


def wrapped(model: str, config: str, sizes: dict[str, int]) -> av.AttentionModel:
    torch.manual_seed(4)
    hf_model: Any = getattr(transformers, model)(getattr(transformers, config)(**sizes)).eval()
    for parameter in hf_model.parameters():
        parameter.data.add_(0.02 * torch.randn_like(parameter)).mul_(3)
    return av.wrap(hf_model)


@pytest.fixture(params=sorted(_FAMILIES), scope="module")
def family(request: pytest.FixtureRequest) -> tuple[av.AttentionModel, av.Trace, bool, set[str]]:
    model, config, sizes, rotates, known = _FAMILIES[request.param]
    ours = wrapped(model, config, sizes)
    return ours, ours.trace_ids(torch.arange(5, 18)[None]), rotates, known


Family = tuple[av.AttentionModel, av.Trace, bool, set[str]]


def test_what_enters_times_the_matrices_gives_query_key_and_value(family: Family) -> None:
    model, trace, rotates, known = family
    for number in range(model.layer_count):
        layer, projections = trace.layer(number), model.projections(number)
        assert set(projections) == known
        assert layer.embeddings is not None
        before = {"query": layer.unrotated_query, "key": layer.unrotated_key} if rotates else {}
        for name in known - {"output"}:
            target = before.get(name, getattr(layer.attention, name))
            made = layer.embeddings @ projections[name].weight
            if projections[name].bias is not None:
                made = made + projections[name].bias
            assert_close(apart(made, target.shape[0]), target, rtol=1e-4, atol=1e-4)


def test_the_heads_joined_by_the_last_matrix_give_what_leaves_the_layer(family: Family) -> None:
    model, trace, _, _ = family
    for number in range(model.layer_count):
        layer, output = trace.layer(number), model.projections(number)["output"]
        made = side_by_side(layer.attention.output) @ output.weight
        assert layer.joined is not None
        assert_close(made if output.bias is None else made + output.bias, layer.joined, rtol=1e-4, atol=1e-4)


def test_turning_moves_every_position_but_the_first_and_keeps_lengths(family: Family) -> None:
    _, trace, rotates, _ = family
    layer = trace.layer(1)
    for before, after in (
        (layer.unrotated_query, layer.attention.query),
        (layer.unrotated_key, layer.attention.key),
    ):
        if not rotates:
            assert before is None
            continue
        assert before is not None
        assert before[:, 0].equal(after[:, 0])
        assert (before[:, 1:] - after[:, 1:]).abs().amax(-1).min() > 1e-4
        assert_close(before.norm(dim=-1), after.norm(dim=-1), rtol=1e-4, atol=1e-4)


def test_no_hook_stays_behind(family: Family) -> None:
    model = family[0]
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.hf_model.modules())


def test_a_layer_that_is_not_there_has_no_matrices(family: Family) -> None:
    with pytest.raises(av.ShapeError, match="layer 2"):
        family[0].projections(2)


def test_threads_on_one_model_hear_only_their_own_pass() -> None:
    model = wrapped(*_FAMILIES["one module for all layers"][:3])
    inputs = [torch.arange(start, start + 9)[None] for start in (3, 20, 40)]
    alone = [model.trace_ids(ids) for ids in inputs]
    wrong: list[str] = []

    def work(number: int) -> None:
        for _ in range(25):
            trace = model.trace_ids(inputs[number])
            _ = trace.fidelity
            for layer, expected in zip(
                trace.whole_layers["encoder"], alone[number].whole_layers["encoder"], strict=True
            ):
                for name in ("embeddings", "joined"):
                    if not getattr(layer, name).equal(getattr(expected, name)):
                        wrong.append(f"{name} of text {number}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(inputs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert not any(thread.is_alive() for thread in threads)
    assert wrong == []


def test_a_saved_trace_keeps_what_stood_around_the_call(tmp_path: Any) -> None:
    model = wrapped(*_FAMILIES["grouped"][:3])
    trace = model.trace_ids(torch.arange(3, 12)[None])
    trace.save(tmp_path / "trace")
    again = av.Trace.load(tmp_path / "trace").layer(1)
    for name in ("embeddings", "joined", "unrotated_query", "unrotated_key"):
        assert getattr(again, name).equal(getattr(trace.layer(1), name))


def test_a_model_that_has_changed_since_tells_nothing_of_a_trace_taken_before() -> None:
    model = wrapped(*_FAMILIES["apart"][:3])
    trace = model.trace_ids(torch.arange(3, 12)[None])
    for parameter in model.hf_model.parameters():
        parameter.data.mul_(2)
    with pytest.raises(av.TraceError, match="has changed since this trace was made"):
        trace.layer(1)
    assert trace.attention(1).weights.isfinite().all()


@pytest.mark.filterwarnings("ignore::FutureWarning")  # peft asks a module for what transformers renamed
def test_an_adapter_that_changes_what_a_module_takes_is_in_its_matrix() -> None:
    """OFT turns what enters the module inside it, and hands on that module's output as it is."""
    torch.manual_seed(0)
    wanted = {"target_modules": ["q_proj", "v_proj", "o_proj"], "oft_block_size": 6}
    adapted = peft.get_peft_model(build("llama"), peft.OFTConfig(**wanted)).eval()
    with torch.no_grad():
        for parameter in adapted.parameters():
            if parameter.requires_grad:
                parameter.add_(torch.randn_like(parameter) * 0.3)
    model = av.wrap(adapted)
    layer, found = model.trace_ids([5, 17, 33, 42]).layer(0), model.projections(0)
    assert layer.embeddings is not None
    for name, there in (("query", layer.unrotated_query), ("value", layer.attention.value)):
        assert there is not None
        assert_close(layer.embeddings @ found[name].weight, there.transpose(0, 1).flatten(1), rtol=1e-4, atol=1e-5)


def test_modules_one_after_the_other_are_one_matrix() -> None:
    torch.manual_seed(0)
    changed = build("llama")
    attention: Any = changed.get_submodule("model.layers.0.self_attn")
    before, after = torch.randn_like(attention.v_proj.weight[:1].T @ attention.v_proj.weight[:1]), attention.v_proj
    first = torch.nn.Linear(*before.shape, bias=False)
    first.weight.data = before / len(before) ** 0.5
    attention.v_proj = torch.nn.Sequential(first, after)
    found = av.wrap(changed.eval()).projections(0)["value"].weight
    assert_close(found, first.weight.T @ after.weight.T, rtol=1e-4, atol=1e-6)
