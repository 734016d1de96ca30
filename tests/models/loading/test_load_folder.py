"""A model from a folder: what is whole is loaded as it is, what is broken is named, and nothing is ever executed."""

import hashlib
import json
import pickle
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing
from transformers import PreTrainedTokenizerFast

import attention_viz as av
from attention_viz.models.loading.load_folder import load_folder
from tests.models.families import build

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "bank", "of", "river"]


def word_tokenizer() -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    special = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model as `save_pretrained` writes it."""
    folder = tmp_path_factory.mktemp("saved")
    build("bert with a head").save_pretrained(folder)
    word_tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    """A copy of it to spoil."""
    return Path(shutil.copytree(saved, tmp_path / "model"))


def change(path: Path, **values: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def test_a_folder_is_loaded_with_its_head_and_its_tokenizer(saved: Path) -> None:
    model = av.load(str(saved))
    assert isinstance(model.hf_model, transformers.BertForMaskedLM)
    trace = model.trace("the bank of the river", "of the bank")
    assert trace.query_tokens().labels[:4] == ("[CLS]", "the", "bank", "of")
    assert trace.provenance.model == str(saved)
    assert len(trace.provenance.sha256) == 64
    with torch.no_grad():
        plain = build("bert with a head")(
            **model.tokenizer("the bank of the river", "of the bank", return_tensors="pt")
        )
    torch.testing.assert_close(trace.output, plain.logits[0])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_a_precision_can_be_chosen(saved: Path, dtype: str) -> None:
    trace = av.load(str(saved), dtype=dtype).trace("the bank of the river")
    assert trace.provenance.dtype == dtype
    assert trace.fidelity.ok


def test_on_a_cpu_the_precision_is_float32_whatever_was_saved(folder: Path) -> None:
    build("bert").half().save_pretrained(folder)
    assert av.load(str(folder), device="cpu").trace_ids(torch.tensor([[5, 6]])).provenance.dtype == "float32"


def test_a_folder_without_a_tokenizer_reads_ids_only(folder: Path) -> None:
    for path in folder.glob("tokenizer*"):
        path.unlink()
    model = av.load(str(folder))
    assert model.trace_ids(torch.tensor([[5, 6]])).fidelity.ok
    with pytest.raises(av.UnusableText, match=r"without a tokenizer.* tokenizer\.json .*trace_ids"):
        model.trace("the bank")


def test_weights_in_several_files_are_loaded(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    build("bert with a head").save_pretrained(folder, max_shard_size="8KB")
    assert len(list(folder.glob("model-*.safetensors"))) > 1
    assert av.load(str(folder)).trace("the bank").fidelity.ok
    next(folder.glob("model-00002*")).unlink()
    with pytest.raises(av.ModelNotFound, match=r"model-00002-of-\d+.safetensors"):
        av.load(str(folder))


def without_config(folder: Path) -> None:
    (folder / "config.json").unlink()


def garbled_config(folder: Path) -> None:
    (folder / "config.json").write_text('{"model_type": "bert", ')


def config_of_bytes(folder: Path) -> None:
    (folder / "config.json").write_bytes(b"\xff\xfe\x00{")


def config_that_is_a_list(folder: Path) -> None:
    (folder / "config.json").write_text("[]")


def config_without_a_type(folder: Path) -> None:
    (folder / "config.json").write_text('{"hidden_size": 20}')


def config_of_an_unknown_type(folder: Path) -> None:
    change(folder / "config.json", model_type="perceptron", architectures=["Perceptron"])


def config_of_another_size(folder: Path) -> None:
    change(folder / "config.json", intermediate_size=41)


def config_of_a_size_that_heads_do_not_divide(folder: Path) -> None:
    build("llama").save_pretrained(folder)
    change(folder / "config.json", hidden_size=128, num_attention_heads=6)


def config_of_fewer_layers(folder: Path) -> None:
    change(folder / "config.json", num_hidden_layers=1)


def without_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()


def half_written_weights(folder: Path) -> None:
    content = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(content[: len(content) // 2])


def weights_of_nothing(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"")


def weights_that_are_a_page(folder: Path) -> None:
    (folder / "model.safetensors").write_text("<html>Sign in to the network first</html>")


def weights_of_another_length(folder: Path) -> None:
    with (folder / "model.safetensors").open("ab") as file:
        file.write(b"more")


def weights_whose_header_lies(folder: Path) -> None:
    header = b'{"a": {"dtype": "F32", "shape": [1000, 1000], "data_offsets": [0, 4]}}'
    (folder / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + b"1234")


def weights_lacking_a_layer(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    kept = {name: tensor for name, tensor in tensors.items() if "layer.1" not in name}
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})


def garbled_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").write_text("{}")


def half_a_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()


def tokenizer_of_another_model(folder: Path) -> None:
    path = folder / "tokenizer.json"
    content = json.loads(path.read_text())
    content["model"]["vocab"] |= {f"word{number}": number for number in range(len(WORDS), 300)}
    path.write_text(json.dumps(content))


def index_of_nothing(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text('{"weight_map": {}}')


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (without_config, "config.json"),
        (garbled_config, r"config.json.*: Expecting"),
        (config_of_bytes, "config.json"),
        (config_that_is_a_list, "JSON object"),
        (config_without_a_type, "model_type"),
        (config_of_an_unknown_type, "perceptron"),
        (
            config_of_another_size,
            r"9 .*such as bert.*\(37,\).*\(41,\)",
        ),
        (
            config_of_a_size_that_heads_do_not_divide,
            r"as llama: .*: .*hidden size \(128\) is not a multiple of .* \(6\)",
        ),
        (config_of_fewer_layers, r"config.json.*bert.encoder.layer.1"),
        (without_weights, "model.safetensors"),
        (
            half_written_weights,
            r"[\d,]+ bytes.*header",
        ),
        (weights_of_nothing, "model.safetensors .*header"),
        (weights_that_are_a_page, "model.safetensors .*header"),
        (weights_of_another_length, r"[\d,]+ bytes.*header"),
        (weights_whose_header_lies, "model.safetensors .*header"),
        (weights_lacking_a_layer, r"16 .*bert.encoder.layer.1"),
        (garbled_tokenizer, "can't load the tokenizer of "),
        (half_a_tokenizer, "can't load the tokenizer of .*: tokenizer.json is missing, and without it, "),
        (
            tokenizer_of_another_model,
            "another model's; it has 300 tokens, but the model has only the ids 0 to",
        ),
        (index_of_nothing, "index"),
    ],
)
def test_a_broken_folder_is_named_as_such(folder: Path, spoil: Callable[[Path], None], message: str) -> None:
    spoil(folder)
    with pytest.raises(av.ModelNotFound, match=message) as caught:
        av.load(str(folder))
    assert str(folder) in str(caught.value)
    assert "\n" not in str(caught.value)


class Trap:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, sprung: Path) -> None:
        self.sprung = sprung

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.sprung,)


def test_a_token_beyond_the_model_is_named_when_a_text_has_it(folder: Path) -> None:
    tokenizer = word_tokenizer()
    tokenizer.add_tokens([f"extra{number}" for number in range(100)])
    tokenizer.save_pretrained(folder)
    model = av.load(str(folder))
    assert model.trace("the bank").fidelity.ok
    with pytest.raises(av.UnusableText, match=r"token 107, .*0 to 96.*resize_token_embeddings"):
        model.trace("the extra99")


def test_sha256_of_several_files_is_that_of_what_sha256sum_prints(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    build("bert with a head").save_pretrained(folder, max_shard_size="8KB")
    shards = sorted(folder.glob("model-*.safetensors"))
    lines = "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in shards)
    assert av.load(str(folder)).trace("the bank").provenance.sha256 == hashlib.sha256(lines.encode()).hexdigest()


def test_pickled_weights_are_refused_unopened(folder: Path, tmp_path: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Trap(tmp_path / "sprung")))
    with pytest.raises(av.UnsupportedModel, match=r"pytorch_model\.bin.*run code"):
        av.load(str(folder))
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("target", ["pytorch_model.bin", "../elsewhere.safetensors"])
def test_an_index_that_leads_elsewhere_is_refused(folder: Path, tmp_path: Path, target: str) -> None:
    (folder / "model.safetensors").rename(tmp_path / "elsewhere.safetensors")
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Trap(tmp_path / "sprung")))
    index = {"metadata": {}, "weight_map": {"bert.embeddings.word_embeddings.weight": target}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(av.UnsupportedModel, match=f"'{target}'"):
        av.load(str(folder))
    assert not (tmp_path / "sprung").exists()


def test_other_weights_than_those_that_are_checked_are_refused(folder: Path) -> None:
    """Whatever has transformers read other files is refused: they would never have been looked at."""
    shutil.copyfile(folder / "model.safetensors", folder / "shard-00001-model-00001-of-00001.safetensors")
    with pytest.raises(av.UnsupportedModel, match="distributed checkpoint"):
        av.load(str(folder))
    (folder / "shard-00001-model-00001-of-00001.safetensors").rename(folder / "other.safetensors")
    change(folder / "config.json", transformers_weights="other.safetensors")
    with pytest.raises(av.UnsupportedModel, match=r"transformers_weights"):
        av.load(str(folder))


@pytest.mark.parametrize("file", ["config.json", "tokenizer_config.json"])
def test_code_that_a_folder_brings_along_is_refused_unexecuted(folder: Path, tmp_path: Path, file: str) -> None:
    code = f"from pathlib import Path\nPath({str(tmp_path / 'sprung')!r}).touch()\n"
    (folder / "brought.py").write_text(code)
    change(folder / file, auto_map={"AutoModel": "brought.Model", "AutoTokenizer": ["brought.Slow", "brought.Fast"]})
    with pytest.raises(av.UnsupportedModel, match=r"code.*auto_map"):
        av.load(str(folder))
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("name", ["pipeline", "os", "Trainer", 7, None])
def test_an_architecture_that_is_no_model_is_not_called(folder: Path, name: object) -> None:
    change(folder / "config.json", architectures=[name])
    assert isinstance(av.load(str(folder)).hf_model, transformers.BertModel)


def test_weights_that_are_not_the_published_ones_are_refused(saved: Path) -> None:
    with pytest.raises(av.ModelNotFound, match=r"the weights of mine have sha256 [0-9a-f]{64}, not 00; the file"):
        load_folder(saved, "mine", sha256="00")


def test_a_device_that_is_not_there_and_a_precision_that_is_none_are_refused(saved: Path) -> None:
    with pytest.raises(av.UnsupportedModel, match="no device 'abacus'"):
        av.load(str(saved), device="abacus")
    with pytest.raises(av.UnsupportedModel, match="unknown dtype 'int8'; choose auto, float64, float32"):
        av.load(str(saved), dtype="int8")


def test_a_family_that_cannot_be_recorded_is_refused_from_a_folder_too(folder: Path) -> None:
    build("mra").save_pretrained(folder)
    with pytest.raises(av.UnsupportedModel, match=r"mra .*mra_cuda_kernel isn't loaded"):
        av.load(str(folder))


def test_loading_the_default_model_needs_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: object, **_options: object) -> None:
        raise AssertionError("the network was asked for")

    for name in ("create_connection", "getaddrinfo"):
        monkeypatch.setattr(socket, name, refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    assert av.load("all-MiniLM-L6-v2").trace("hello").fidelity.ok
