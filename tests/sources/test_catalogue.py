"""The catalogue: a plain dictionary of what ships, and loading by name."""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import huggingface_hub
import pytest

import attention_viz as av
from attention_viz.models.loading.load_folder import load_folder
from attention_viz.models.model import AttentionModel
from tests.shipped import shipped


def test_the_catalogue_is_a_table_of_what_ships() -> None:
    table = av.catalogue()
    assert table.index.name == "name"
    assert list(table.index) == list(av.CATALOGUE)
    assert list(table.columns) == ["description", "layers", "heads", "bytes", "available", "source"]
    row = table.loc["all-MiniLM-L6-v2"]
    assert (row["layers"], row["heads"], row["bytes"], row["available"]) == (6, 12, 90_868_376, True)


def test_the_catalogue_says_of_a_model_what_the_model_is(minilm: AttentionModel) -> None:
    entry = av.CATALOGUE[minilm.name]
    trace = minilm.trace("hello")
    assert (trace.layer_count(), trace.head_count(0)) == (entry.layers, entry.heads)
    assert (entry.path / "model.safetensors").stat().st_size == entry.size


@pytest.mark.parametrize("name", [name for name in av.CATALOGUE if name != "scratch"])
def test_what_the_catalogue_says_a_model_can_is_what_it_can(name: str) -> None:
    entry, model = av.CATALOGUE[name], shipped(name)
    assert model.reads == entry.reads
    attending = entry.layers - len(entry.mixers)
    assert model.heads == {stream: (entry.heads,) * attending for stream in entry.streams}
    assert model.facts == entry.facts
    assert model.streams == entry.streams
    assert model.predicts == entry.predicts
    if entry.reads == "text":
        assert model.tokenizer is not None
        assert (model.tokenizer.num_special_tokens_to_add() > 0) == entry.marks
        assert bool(model.tokenizer.chat_template) == entry.chats


def test_the_catalogue_is_listed_without_torch_or_transformers() -> None:
    ask = "import sys, attention_viz as av; av.catalogue(); print(*({'torch', 'transformers'} & sys.modules.keys()))"
    told = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    assert told.stdout.split() == []


def test_our_own_module_is_loaded_by_name_like_any_other() -> None:
    assert av.load("scratch").trace("the cat sat").fidelity.ok


@pytest.mark.parametrize(
    "name", ["", "no-such-model", "a/b", "x" * 5000, "\x00", "model\n<script>", "all-minilm-l6-v2"]
)
def test_an_unknown_name_is_told_what_there_is(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    there_is = re.escape(", ".join(av.CATALOGUE))
    with pytest.raises(av.ModelNotFound, match=there_is):
        av.load(name)


@pytest.mark.parametrize("name", ["/nowhere/at/all", "./nowhere", "~/nowhere", "../../etc/nowhere", "C:\\nowhere"])
def test_of_a_path_it_is_said_first_that_no_such_folder_is_there(name: str) -> None:
    with pytest.raises(av.ModelNotFound) as told:
        av.load(name)
    assert repr(name) in str(told.value).partition(";")[0] and "folder" in str(told.value).partition(";")[0]


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"")
    with pytest.raises(av.ModelNotFound, match=r"model.safetensors' is a file"):
        av.load(str(tmp_path / "model.safetensors"))


def test_a_revision_of_what_has_only_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(av.UnsupportedModel, match=f"('main'.*{tmp_path}|{tmp_path}.*'main')"):
        av.load(str(tmp_path), revision="main")
    with pytest.raises(av.UnsupportedModel, match=r"('main'.*all-MiniLM-L6-v2|all-MiniLM-L6-v2.*'main')"):
        av.load("all-MiniLM-L6-v2", revision="main")


def test_a_model_whose_package_is_missing_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = replace(av.CATALOGUE["all-MiniLM-L6-v2"], package="a_package_that_is_not_there")
    monkeypatch.setitem(av.CATALOGUE, "absent", entry)
    assert not av.catalogue().loc["absent", "available"]
    with pytest.raises(av.ModelNotFound, match=r"not on this machine; .*attention-viz models --install"):
        av.load("absent")


def test_another_file_under_a_catalogue_name_is_refused(tmp_path: Path) -> None:
    entry = av.CATALOGUE["all-MiniLM-L6-v2"]
    (tmp_path / "config.json").write_bytes((entry.path / "config.json").read_bytes())
    (tmp_path / "model.safetensors").write_bytes((entry.path / "model.safetensors").read_bytes()[:-4] + b"\0\0\0\0")
    with pytest.raises(av.ModelNotFound, match="damaged"):
        load_folder(tmp_path, "all-MiniLM-L6-v2", sha256=entry.sha256)
