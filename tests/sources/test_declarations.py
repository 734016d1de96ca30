"""What a folder asks for besides weights is decided and named: kernels, quantization, adapters, other formats."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import attention_viz as av
from attention_viz.sources import hub
from attention_viz.sources.folders import check_folder
from tests.models.families import build
from tests.models.loading.test_load_folder import change, folder, saved, word_tokenizer  # noqa: F401


@pytest.mark.parametrize("key", ["attn_implementation", "_attn_implementation", "_attn_implementation_internal"])
@pytest.mark.parametrize(
    "asked",
    [
        "kernels-community/flash-attn",
        "somebody/kernel@main:attend",
        "paged|kernels-community/flash-attn3",
        "double",
        {"": "sdpa", "text_config": "somebody/kernel"},
        5,
    ],
)
def test_attention_code_from_elsewhere_is_refused_by_name(key: str, asked: Any, folder: Path) -> None:  # noqa: F811
    change(folder / "config.json", **{key: asked})
    with pytest.raises(av.UnsupportedModel, match="with the attention implementation") as refusal:
        check_folder(folder, "mine")
    named = next(iter([*asked.values()][1:])) if isinstance(asked, dict) else str(asked)
    assert named in str(refusal.value)
    with pytest.raises(av.UnsupportedModel, match="choose eager, sdpa, flex_attention"):
        av.load(str(folder))


@pytest.mark.parametrize("asked", ["eager", "sdpa", None])
def test_attention_that_transformers_has_itself_is_loaded(asked: str | None, folder: Path) -> None:  # noqa: F811
    change(folder / "config.json", attn_implementation=asked)
    assert av.load(str(folder)).trace("the bank").fidelity.ok


def test_a_part_of_a_configuration_is_read_like_the_whole(folder: Path) -> None:  # noqa: F811
    change(folder / "config.json", text_config={"inner": [{"_attn_implementation": "somebody/kernel"}]})
    with pytest.raises(av.UnsupportedModel, match="'somebody/kernel'"):
        check_folder(folder, "mine")
    change(folder / "config.json", text_config={"quantization_config": {"quant_method": "awq"}})
    with pytest.raises(av.UnsupportedModel, match=r"quantized \(awq, by quantization_config"):
        check_folder(folder, "mine")


@pytest.mark.parametrize("key", ["quantization_config", "compression_config"])
@pytest.mark.parametrize(
    ("asked", "method"),
    [
        ({"quant_method": "gptq", "bits": 4}, "gptq"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "bitsandbytes"),
        ({"quant_method": "torchao", "_type": "os.system"}, "torchao"),
        ({"load_in_8bit": True}, "a method without a name"),
        ({}, "a method without a name"),
        ("gptq", "a method without a name"),
    ],
)
def test_quantized_weights_are_refused_by_their_method(
    key: str,
    asked: Any,
    method: str,
    folder: Path,  # noqa: F811
) -> None:
    change(folder / "config.json", **{key: asked})
    with pytest.raises(
        av.UnsupportedModel, match=rf"which is quantized \({method}, by {key}.*load it with transformers"
    ):
        av.load(str(folder))


def test_an_adapter_beside_a_whole_model_is_named_and_never_applied(folder: Path) -> None:  # noqa: F811
    expected = av.load(str(folder)).trace("the bank")
    assert expected.provenance.notes == ()
    inside = {f"bert.encoder.layer.0.attention.self.query.lora_{one}.weight": torch.ones(8, 20) for one in "AB"}
    save_file(
        {f"base_model.model.{name}": tensor for name, tensor in inside.items()}, folder / "adapter_model.safetensors"
    )
    written = {"peft_type": "LORA", "r": 8, "target_modules": ["query"], "base_model_name_or_path": "/etc"}
    (folder / "adapter_config.json").write_text(json.dumps(written))
    trace = av.load(str(folder)).trace("the bank")
    assert trace.provenance.notes == (
        "The folder has a whole model and an adapter_config.json. The adapter isn't applied.",
    )
    torch.testing.assert_close(trace.output, expected.output, rtol=0, atol=0)


def test_broken_and_missing_gguf_files_are_named(folder: Path, tmp_path: Path) -> None:  # noqa: F811
    (folder / "model.safetensors").rename(folder / "model-Q4_K_M.gguf")
    with pytest.raises(av.UnsupportedModel, match=r"GGUF weights of mine \(model-Q4_K_M.gguf\).*av\.load"):
        check_folder(folder, "mine")
    for name in (folder, folder / "model-Q4_K_M.gguf"):
        with pytest.raises(av.ModelNotFound, match=r"can't read the GGUF file .*model-Q4_K_M.gguf"):
            av.load(name)
    shutil.copyfile(folder / "model-Q4_K_M.gguf", folder / "model-Q8_0.gguf")
    with pytest.raises(av.ModelNotFound, match=r"holds 2 GGUF files; give one of them, such as model-Q4_K_M\.gguf"):
        av.load(folder)
    for name in ("model.gguf", "MODEL.GGUF", "owner/model.gguf"):
        with pytest.raises(av.ModelNotFound, match=r"the GGUF file .* doesn't exist"):
            av.load(name)


def test_a_folder_with_nothing_of_these_says_what_it_needs(tmp_path: Path) -> None:
    with pytest.raises(av.ModelNotFound, match=r"has no config\.json; a model folder needs"):
        check_folder(tmp_path, "mine")


def test_the_app_names_an_adapter_for_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "adapter_config.json").write_text("{}")
    with pytest.raises(av.UnsupportedModel, match=r"mine is a PEFT adapter, not a whole model; .*merge_and"):
        check_folder(tmp_path, "mine")


# What PEFT writes, made here with PEFT itself.


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two folders beside each other: a base model, and an adapter around it as PEFT saves it."""
    import peft

    place = tmp_path_factory.mktemp("beside")
    base = build("bert with a head")
    base.save_pretrained(place / "base")
    word_tokenizer().save_pretrained(place / "base")
    config = peft.LoraConfig(init_lora_weights=False, target_modules=["query", "value"])
    model = peft.get_peft_model(base, config)
    model.save_pretrained(place / "adapter", save_embedding_layers=False)
    change(place / "adapter" / "adapter_config.json", base_model_name_or_path="base")
    return place


@pytest.fixture
def adapter(beside: Path, tmp_path: Path) -> Path:
    """A copy of them; the adapter's folder."""
    return Path(shutil.copytree(beside, tmp_path / "both")) / "adapter"


pytestmark = pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning")


@pytest.mark.parametrize("base", ["base", "./base"])
def test_an_adapters_folder_is_loaded_around_the_model_beside_it(base: str, adapter: Path) -> None:
    import peft
    import transformers

    change(adapter / "adapter_config.json", base_model_name_or_path=base)
    trace = av.load(str(adapter)).trace("the bank")
    plain = transformers.BertForMaskedLM.from_pretrained(adapter.parent / "base").eval()
    expected = peft.PeftModel.from_pretrained(plain, str(adapter)).eval()
    with torch.no_grad():
        output = expected(**word_tokenizer()("the bank", return_tensors="pt")).logits[0]
    torch.testing.assert_close(trace.output, output)
    assert trace.fidelity.ok
    (note,) = trace.provenance.notes
    assert all(word in note for word in ("LoRA", "adapter", "around base", "tokenizer"))
    without = av.load(str(adapter.parent / "base")).trace("the bank")
    assert not torch.allclose(trace.output, without.output, atol=1e-3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"base_model_name_or_path": "/etc"}, "'/etc'"),
        ({"base_model_name_or_path": "../base"}, "'../base'"),
        ({"base_model_name_or_path": "a/../../base"}, "'a/../../base'"),
        ({"base_model_name_or_path": "~/base"}, "'~/base'"),
        ({"base_model_name_or_path": "C:\\base"}, "'C:.*base'"),
        ({"base_model_name_or_path": "base\0"}, r"'base\\x00'"),
        ({"base_model_name_or_path": "."}, r"'\.'"),
        ({"base_model_name_or_path": ""}, "base_model_name_or_path"),
        ({"base_model_name_or_path": None}, "base_model_name_or_path"),
        ({"base_model_name_or_path": ["base"]}, "base_model_name_or_path"),
        ({"base_model_name_or_path": "adapter"}, "another adapter"),
        ({"base_model_name_or_path": "scratch"}, "scratch.* transformers model"),
        ({"base_model_name_or_path": "coreference"}, "base model"),
        ({"peft_type": "PREFIX_TUNING"}, "'PREFIX_TUNING'.*LORA"),
        ({"peft_type": None}, "'None'"),
        ({"megatron_config": {"a": 1}}, "megatron_config"),
        ({"layers_pattern": "(a+)+$"}, "layers_pattern"),
        ({"rank_pattern": {"(a+)+$": 8}}, "rank_pattern"),
        ({"target_modules": "(a+)+$"}, "target_modules.* list of names"),
        ({"target_modules": ["query"]}, "base model"),
        (
            {"target_modules": ["query", "value", "key"]},
            "bert.encoder.layer.0.attention.self.key",
        ),
        ({"init_lora_weights": "pissa"}, "init_lora_weights"),
        ({"r": 10**9}, "rank.* 1000000000.* 8"),
        ({"r": 0}, "r=0"),
        ({"r": "8"}, "r=8"),
        ({"auto_map": {"a": "b"}}, "auto_map"),
    ],
)
def test_a_strangers_adapter_leads_nowhere_and_is_refused_by_name(
    changes: dict[str, Any], message: str, adapter: Path
) -> None:
    change(adapter / "adapter_config.json", **changes)
    with pytest.raises(av.AttentionVizError, match=message):
        av.load(str(adapter))


@pytest.mark.parametrize("name", ["someone/elses", "elses"])
def test_an_adapters_base_on_the_hub_is_no_folder_of_the_server(
    name: str, adapter: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(adapter.parent / "base", tmp_path / "cwd" / name)
    monkeypatch.chdir(tmp_path / "cwd")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    change(adapter / "adapter_config.json", base_model_name_or_path=name)
    wanted = list[str]()

    def plan(found: str, *_: object) -> None:
        wanted.append(found)
        raise av.ModelNotFound("no network")

    monkeypatch.setattr(hub, "plan", plan)
    with pytest.raises(av.ModelNotFound, match="network"):
        av.load(str(adapter))
    assert wanted == [name]


def test_an_adapters_header_is_as_short_as_a_models(adapter: Path) -> None:
    weights = adapter / "adapter_model.safetensors"
    content = weights.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = content[8 : 8 + length].ljust(41_000_000)
    weights.write_bytes(len(header).to_bytes(8, "little") + header + content[8 + length :])
    with pytest.raises(av.UnsupportedModel, match=r"headers of .* have 41,000,000 bytes; at most 40,000,000"):
        av.load(str(adapter))


def test_an_adapters_weights_are_whole_and_safetensors(adapter: Path) -> None:
    weights = adapter / "adapter_model.safetensors"
    tensors = load_file(weights)
    first = next(iter(tensors))
    save_file({name: tensor for name, tensor in tensors.items() if name != first}, weights)
    with pytest.raises(av.ModelNotFound, match="base model"):
        av.load(str(adapter))
    save_file({**tensors, "base_model.model.bert.other.weight": torch.ones(2)}, weights)
    with pytest.raises(av.ModelNotFound, match=r"base model.*bert\.other"):
        av.load(str(adapter))
    weights.write_bytes(b"\x08")
    with pytest.raises(av.ModelNotFound, match=r"adapter_model.safetensors of .* is broken or half-written"):
        av.load(str(adapter))
    weights.rename(adapter / "adapter_model.bin")
    with pytest.raises(av.UnsupportedModel, match=r"adapter_model.bin, a format that can run code"):
        av.load(str(adapter))


def test_without_peft_an_adapter_names_it(adapter: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "peft" else find(name))
    with pytest.raises(av.UnsupportedModel, match=r"pip install attention-viz\[peft\]"):
        av.load(str(adapter))
