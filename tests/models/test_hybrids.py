"""Hybrids: a layer has the model's own number everywhere, and layers without softmax attention are named."""

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor
from transformers import PreTrainedModel
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

import attention_viz as av
from attention_viz.cli import main
from attention_viz.cli.exits import REFUSED
from attention_viz.edits.change import Change
from attention_viz.edits.changes import misfit
from attention_viz.models.model import AttentionModel
from attention_viz.trace.export import trace_in_html
from tests.inputs.test_text import byte_tokenizer
from tests.models import families
from tests.models.families import ids
from tests.trace.files.taken_apart import put_together, taken_apart

SIZES: dict[str, object] = {
    "vocab_size": 300,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "eos_token_id": None,
    "bos_token_id": None,
}
LAYERS = ["linear_attention", "full_attention"] * 2
# One for each way of mixing tokens without a softmax: Mamba, Mamba 2, a gated delta rule, a short convolution; and one
# that does both in every layer.
HYBRIDS: Mapping[str, tuple[str, dict[str, object], tuple[int, ...]]] = {
    "Jamba": ("Jamba", {"attn_layer_period": 2, "attn_layer_offset": 1, "num_experts": 2}, (1, 3)),
    "Bamba": (
        "Bamba",
        {"attn_layer_indices": [1, 3], "mamba_n_heads": 8, "mamba_d_head": 8, "mamba_n_groups": 1, "mamba_d_state": 16},
        (1, 3),
    ),
    "Qwen3-Next": (
        "Qwen3Next",
        {
            "layer_types": LAYERS,
            "head_dim": 8,
            "linear_key_head_dim": 8,
            "linear_value_head_dim": 8,
            "linear_num_key_heads": 2,
            "linear_num_value_heads": 4,
            "num_experts": 4,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 48,
            "shared_expert_intermediate_size": 48,
        },
        (1, 3),
    ),
    "LFM2": ("Lfm2", {"layer_types": ["full_attention", "conv", "conv", "full_attention"]}, (0, 3)),
    "Falcon-H1": (
        "FalconH1",
        {"mamba_d_ssm": 64, "mamba_n_heads": 8, "mamba_d_head": 8, "mamba_n_groups": 1, "mamba_d_state": 16},
        (0, 1, 2, 3),
    ),
}


def build(name: str) -> PreTrainedModel:
    """A tiny model with random weights, scaled up, so that its attention isn't uniform."""
    family, sizes, _ = HYBRIDS[name]
    torch.manual_seed(3)
    config = getattr(transformers, f"{family}Config")(**SIZES | sizes)
    model = getattr(transformers, f"{family}ForCausalLM")(config).eval()
    with torch.no_grad():
        for weights in model.parameters():
            if weights.ndim > 1:
                weights.mul_(4)
    return model


@functools.cache
def wrapped(name: str) -> AttentionModel:
    return av.wrap(build(name), byte_tokenizer())


def own_weights(hf: PreTrainedModel, layer: int, read: Tensor) -> Tensor:
    """What the attention module of the model's own layer gives in a plain eager run: (head, query, key)."""
    found = list[Tensor]()
    body = hf.get_submodule("model.layers")
    attention = next(part for part in body[layer].modules() if type(part).__name__.endswith("Attention"))
    handle = attention.register_forward_hook(lambda _module, _inputs, output: found.append(output[1][0]))
    before = hf.config._attn_implementation
    hf.set_attn_implementation("eager")
    try:
        with torch.no_grad():
            hf(input_ids=read)
    finally:
        handle.remove()
        hf.set_attn_implementation(before)
    (weights,) = found
    return weights


@pytest.mark.parametrize("name", HYBRIDS)
def test_a_layer_has_the_number_of_the_module_that_computes_it(name: str) -> None:
    model, hf, (_, _, attending) = wrapped(name), build(name), HYBRIDS[name]
    read = ids(9)
    trace = model.trace_ids(read)
    assert model.layer_numbers() == trace.layer_numbers() == attending
    for layer in attending:
        call = trace.attention(layer, stream="decoder")
        torch.testing.assert_close(call.weights, own_weights(hf, layer, read), atol=2e-5, rtol=0)
        assert trace.label(layer, "decoder") == str(layer)
    table = trace.table()
    assert sorted(set(table.loc[table["stream"] == "decoder", "layer"])) == list(attending)


@pytest.mark.parametrize("name", ["Jamba", "Bamba", "Qwen3-Next", "LFM2"])
def test_layers_without_attention_are_named_wherever_layers_are_listed(name: str) -> None:
    model, (_, _, attending) = wrapped(name), HYBRIDS[name]
    without = [layer for layer in range(4) if layer not in attending]
    trace = model.trace("the bank")
    told = f"layers {without[0]} and {without[1]} have no softmax attention"
    for words in (repr(model), repr(trace), trace_in_html(trace)):
        assert told in words
    assert model.layers_without_attention == tuple(map(str, without))
    there = f"attends in layers {attending[0]} and {attending[1]}"
    empty = without[0]
    asked: list[Callable[[], object]] = [
        lambda: trace.weights(empty, 0, stream="decoder"),
        lambda: model.trace("the bank", edits=[av.Ablate(empty, 0, stream="decoder")]),
        lambda: model.projections(empty),
        lambda: trace.table(empty, stream="decoder"),
    ]
    for ask in asked:
        with pytest.raises((av.TraceError, av.ShapeError), match=f"layer {empty} has no softmax attention.*{there}"):
            ask()
    with pytest.raises(av.ShapeError, match=f"layer 7.*{there}"):
        model.trace("the bank", edits=[av.Ablate(7, 0)])
    assert misfit(Change("zero", empty, 0), trace) == (f"layer {empty} has no softmax attention: this model {there}")
    assert misfit(Change("zero", attending[1], 0), trace) == ""


def test_a_model_of_attention_alone_says_nothing_of_the_kind() -> None:
    for words in (repr(wrapped("Falcon-H1")), repr(wrapped("Falcon-H1").trace("the bank"))):
        assert "4 layers ×" in words and "softmax" not in words


def test_an_edit_changes_the_layer_that_it_names() -> None:
    model, hf = wrapped("Jamba"), build("Jamba")
    trace, edited = model.trace("the bank of"), model.trace("the bank of", edits=[av.Ablate(3, 1)])
    assert torch.equal(trace.attention(1).value, edited.attention(1).value)
    assert edited.provenance.edits == ("ablate: the output becomes 0 in layer 3, head 1",)
    # By hand: the head's slice of what layer 3's W_O reads is zero.
    projection: Any = hf.get_submodule("model.layers.3.self_attn.o_proj")
    width = projection.in_features // 4

    def silence(_module: object, inputs: tuple[Tensor, ...]) -> tuple[Tensor]:
        (joined,) = inputs
        joined = joined.clone()
        joined[..., width : 2 * width] = 0
        return (joined,)

    handle = projection.register_forward_pre_hook(silence)
    with torch.no_grad():
        expected = hf(input_ids=torch.tensor([trace.query_tokens().numbers])).logits[0]
    handle.remove()
    torch.testing.assert_close(edited.output, expected, atol=1e-4, rtol=1e-4)


def test_every_question_answers_with_the_models_own_numbers() -> None:
    model = wrapped("Jamba")
    text, number = "the bank of the river", av.Logit(5, -1)
    trace = model.trace(text)
    heads = [(layer, head) for layer in (1, 3) for head in range(4)]
    assert list(av.head_table(trace).index) == heads
    assert {(one.layer, one.head) for one in av.findings(trace) if one.stream == "decoder"} <= set(heads)
    assert set(av.find_heads(trace, query="bank", key="the")["layer"]) <= {1, 3}
    assert list(av.roles(trace).index) == heads
    assert sorted(av.effects(model, trace, number, stream="decoder").droplevel("stream").index) == heads
    assert sorted(av.circuits(model).index) == heads
    pairs = av.compositions(model)
    assert set(zip(pairs["from_layer"], pairs["to_layer"], strict=True)) == {(1, 3)}
    assert len(av.compositions(model, into=[(3, 2)])) == 4
    with pytest.raises(av.ShapeError, match=r"layer 0, head 0.* 2 layers \(layers 1 and 3\)"):
        av.compositions(model, into=[(0, 0)])
    patches = av.patch(model, text, "the river of the bank", number)
    assert sorted(patches.loc["decoder"].index) == heads and list(patches.loc["mixer"].reset_index()["layer"]) == [0, 2]
    assert set(av.attention_sinks(model, trace).index.get_level_values("layer")) == {1, 3}
    assert av.norm_weighted(model, trace, 3).shape == av.gradient(model, trace, layer=3).shape == (4, 5, 5)
    assert av.gradient(model, trace).shape[0] == 2
    assert torch.equal(av.gradient(model, trace)[1], av.gradient(model, trace, layer=3))
    for read in (av.rollout, av.flow):
        with pytest.raises(
            av.TraceError, match="needs a softmax in every layer; layers 0 and 2 of this trace have none"
        ):
            read(trace)
    writes = av.writes(model, trace, 3, 0, count=3)
    assert len(writes) == 6
    assert sorted(set(av.logit_lens(model, trace)["layer"])) == [-1, 0, 1, 2, 3]
    kept = model.trace(text, layers=[3])
    assert kept.layer_numbers() == (3,) and torch.equal(kept.weights(3, 2), trace.weights(3, 2))
    assert "1 of 2 layers (3; layers 0 and 2 have no softmax attention)" in repr(kept)


@pytest.mark.parametrize("name", ["Jamba", "LFM2", "Bamba", "Qwen3-Next"])
def test_what_wrote_a_number_has_its_layer_also_where_there_is_no_attention(name: str) -> None:
    model = wrapped(name)
    trace = model.trace("the bank of")
    found = av.decompose(model, trace, av.Logit(5, -1))
    table = found.table
    assert table["contribution"].sum() == pytest.approx(found.total, rel=1e-4, abs=1e-4)
    assert set(table.loc[table["kind"] == "mlp", "layer"].dropna()) == {0, 1, 2, 3}
    assert set(table.loc[table["kind"] == "head", "layer"]) <= set(HYBRIDS[name][2])
    without = {layer for layer in range(4) if layer not in HYBRIDS[name][2]}
    assert "other" not in set(table["kind"])
    assert set(table.loc[table["kind"] == "mixer", "layer"]) == without


def test_files_have_the_models_own_numbers(tmp_path: Path) -> None:
    model = wrapped("Jamba")
    trace = model.trace("the bank of")
    for layers, numbers in ((None, (1, 3)), ([3], (3,))):
        path = tmp_path / f"{numbers}"
        trace.save(path, layers=layers)
        back = av.Trace.load(path)
        assert back.layer_numbers() == numbers and torch.equal(back.weights(3, 2), trace.weights(3, 2))
        assert back.kept["decoder"].every == (1, 3) and "layers 0 and 2 have no softmax attention" in repr(back)
        again = tmp_path / f"again {numbers}"
        back.save(again)
        assert av.Trace.load(again).kept == back.kept
    _, written, _ = taken_apart(tmp_path / "(3,)")
    # Version 1.0.0 reads these places and nothing else of it.
    assert written["format"] == 2
    assert written["streams"]["decoder"]["kept"] == {"numbers": [1], "of": 2, "every": [1, 3], "without": [0, 2]}


@pytest.mark.parametrize(("layers", "numbers"), [(None, (1, 3)), ([3], (3,))])
def test_files_of_version_1_0_0_are_read_by_their_labels(
    tmp_path: Path, layers: list[int] | None, numbers: tuple[int, ...]
) -> None:
    trace, path = wrapped("Jamba").trace("the bank of"), tmp_path / "old"
    trace.save(path, layers=layers)
    outer, header, body = taken_apart(path)
    stream = header["streams"]["decoder"]
    # It wrote the places of the layers that are kept, and nothing where all are.
    stream["kept"] = {name: stream["kept"][name] for name in ("numbers", "of")}
    if layers is None:
        del stream["kept"]
    put_together(path, outer, body, header)
    back = av.Trace.load(path)
    assert back.layer_numbers() == numbers and torch.equal(back.weights(3, 2), trace.weights(3, 2))
    assert back.kept["decoder"].whole == (layers is None)
    if layers is not None:
        with pytest.raises(av.TraceError, match=r"layer 1.*layer 3 of 2"):
            back.weights(1, 0)


def test_the_command_line_has_the_models_own_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "jamba"
    build("Jamba").save_pretrained(folder)
    byte_tokenizer().save_pretrained(folder)
    named = ["--model", str(folder), "--format", "csv"]
    asked = {
        "heads": ["the bank of", *named],
        "find": ["bank", "the", *named, "--text", "the bank of"],
        "circuits": named,
        "effects": ["the bank of", *named, "--token", "the", "--stream", "decoder"],
    }
    for command, arguments in asked.items():
        assert main([command, *arguments]) == 0
        printed = capsys.readouterr()
        head, *rows = printed.out.splitlines()
        place = head.split(",").index("layer")
        assert {row.split(",")[place] for row in rows} <= {"1", "3"}, command
        assert "layers 0 and 2 have no softmax attention" in printed.err, command
    assert main(["trace", "the bank", "--model", str(folder), "--layer", "3", "--out", str(tmp_path / "one.csv")]) == 0
    rows = (tmp_path / "one.csv").read_text().splitlines()[1:]
    assert {row.split(",")[1] for row in rows} == {"3"}
    assert (
        main(["trace", "the bank", "--model", str(folder), "--layer", "9", "--out", str(tmp_path / "two.csv")])
        == REFUSED
    )
    assert "the decoder attends in layers 1 and 3" in capsys.readouterr().err


def test_a_module_that_is_shared_has_another_number_each_time() -> None:
    config_class: Any = transformers.ZambaConfig
    config = config_class(
        vocab_size=97,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=4,
        layers_block_type=["mamba", "hybrid", "mamba", "hybrid"],
        n_mamba_heads=2,
        mamba_d_state=16,
        eos_token_id=None,
        bos_token_id=None,
    )
    torch.manual_seed(3)
    model = av.wrap(transformers.ZambaForCausalLM(config).eval())
    assert model.layer_numbers() == (1, 3) and model.layers_without_attention == ("0", "2")


def test_a_layer_that_attends_head_by_head_is_said_to_shift_the_numbers() -> None:
    """Each head of one layer is a call of its own, so later layers can't have the model's numbers."""
    made = families.build("llama")
    attention = made.model.layers[1].self_attn

    def by_heads(hidden_states: Tensor, position_embeddings: Any, *_args: object, **_options: object) -> Any:
        split = (hidden_states.shape[1], -1, attention.head_dim)
        query, key, value = (
            part(hidden_states).view(len(hidden_states), *split).transpose(1, 2)
            for part in (attention.q_proj, attention.k_proj, attention.v_proj)
        )
        query, key = apply_rotary_pos_emb(query, key, *position_embeddings)
        groups = query.shape[1] // key.shape[1]
        hidden = torch.full((split[0],) * 2, -torch.inf).triu(1)
        heads = [
            (query[:, at] @ key[:, at // groups].mT * attention.scaling + hidden).softmax(-1) @ value[:, at // groups]
            for at in range(query.shape[1])
        ]
        return attention.o_proj(torch.cat(heads, dim=-1)), None

    attention.forward = by_heads
    trace = av.wrap(made).trace_ids([5, 17, 33, 42])
    assert any("Layers are counted by attention calls" in note for note in trace.provenance.notes)


def test_a_model_whose_layers_attend_once_each_says_nothing_of_numbers() -> None:
    for family in ("llama", "albert", "t5"):
        assert not any("counted" in note for note in av.wrap(families.build(family)).origin.notes)
