"""Models from the hub, against a stand-in on this machine: told, fetched, broken off, refused, and used offline."""

import hashlib
import json
import os
import pickle
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest

import attention_viz as av
from attention_viz.sources import download, plan
from attention_viz.sources.hub import check_id
from tests.hub import Hub, serving, stand_in
from tests.killed import die, killed_in
from tests.models.families import build
from tests.models.loading.test_load_folder import Trap, word_tokenizer

NAME = "somebody/tiny-bert"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """A tiny model as `save_pretrained` writes it, and what often lies beside."""
    folder = tmp_path_factory.mktemp("published")
    build("bert with a head").save_pretrained(folder)
    word_tokenizer().save_pretrained(folder)
    beside = {
        "pytorch_model.bin": b"pickle",
        "README.md": b"# tiny",
        "setup.py": b"raise SystemExit",
        "onnx/model.onnx": b"-",
    }
    return {path.name: path.read_bytes() for path in folder.iterdir()} | beside


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """The stand-in in the hub's place, and an empty cache."""
    with serving(Hub()) as hub:
        stand_in(hub, tmp_path / "cache", monkeypatch)
        yield hub


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    return lambda: monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)


def kept(tmp_path: Path) -> list[str]:
    """The files in the cache that have their name, which is what makes them look complete."""
    return sorted(path.name for path in (tmp_path / "cache").glob("models--*/snapshots/*/*"))


def changed(files: dict[str, bytes], name: str, **values: object) -> dict[str, bytes]:
    return files | {name: json.dumps(json.loads(files[name]) | values).encode()}


def test_a_model_is_loaded_by_its_id_and_says_which_version_it_is(hub: Hub, files: dict[str, bytes]) -> None:
    commit = hub.publish(NAME, files)
    model = av.load(NAME)
    trace = model.trace("the bank of the river")
    assert trace.fidelity.ok
    origin = trace.provenance
    assert (origin.model, origin.revision) == (NAME, commit)
    assert origin.sha256 == hashlib.sha256(files["model.safetensors"]).hexdigest()


def test_an_id_without_an_owner_will_do(hub: Hub, files: dict[str, bytes]) -> None:
    hub.publish("tiny", files)
    assert av.load("tiny").trace("the bank").fidelity.ok


def test_sizes_are_told_before_anything_is_downloaded(hub: Hub, files: dict[str, bytes], tmp_path: Path) -> None:
    commit = hub.publish(NAME, files)
    told = plan(NAME)
    names = ["config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"]
    names = [name for name in names if name in files]
    assert [file.name for file in told.files] == names
    assert told.bytes == told.missing == sum(len(files[name]) for name in names)
    assert (told.commit, told.complete, told.offline) == (commit, False, "")
    assert not (tmp_path / "cache").exists()
    assert set(hub.fetched()) == {"config.json", "tokenizer_config.json"}
    download(told)
    assert kept(tmp_path) == names
    assert (plan(NAME).missing, plan(NAME).complete) == (0, True)


def test_a_branch_a_tag_and_a_commit_can_be_chosen(hub: Hub, files: dict[str, bytes]) -> None:
    commit = hub.publish(NAME, files)
    other = hub.publish(NAME, files | {"README.md": b"# later"}, "refs/pr/1")
    assert (plan(NAME, "refs/pr/1").commit, plan(NAME, commit).commit) == (other, commit)
    assert av.load(NAME, revision="refs/pr/1").trace("the bank").provenance.revision == other
    with pytest.raises(av.ModelNotFound, match=f"{NAME} has no revision 'v9' on the hub"):
        av.load(NAME, revision="v9")


def test_progress_is_told_up_to_the_end(hub: Hub, files: dict[str, bytes]) -> None:
    hub.publish(NAME, files)
    told, seen = plan(NAME), list[tuple[int, int]]()
    download(told, progress=lambda come, total: seen.append((come, total)))
    assert len(seen) > len(told.files)
    assert seen == sorted(seen)
    assert seen[-1] == (told.bytes, told.bytes)


def test_a_cancelled_download_leaves_nothing_that_looks_complete(
    hub: Hub, files: dict[str, bytes], tmp_path: Path, offline: Callable[[], None]
) -> None:
    hub.publish(NAME, files)
    seen = list[int]()
    with pytest.raises(av.DownloadCancelled, match=f"the download of {NAME} was cancelled"):
        download(plan(NAME), progress=lambda come, _: seen.append(come), cancelled=lambda: len(seen) > 3)
    assert 0 < seen[-1] < len(files["model.safetensors"])
    assert not {"model.safetensors", "config.json"} & set(kept(tmp_path))
    assert not list((tmp_path / "cache").rglob("*.incomplete"))
    assert not plan(NAME).complete
    assert av.load(NAME).trace("the bank").fidelity.ok  # the next try goes on
    offline()
    assert plan(NAME).complete


def test_an_interrupted_download_is_none_offline(
    hub: Hub, files: dict[str, bytes], offline: Callable[[], None]
) -> None:
    hub.publish(NAME, files)

    def pull_the_plug(come: int, total: int) -> None:
        if come > total - 100:  # all but the end of the last file
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        download(plan(NAME), progress=pull_the_plug)
    offline()
    with pytest.raises(av.ModelNotFound, match=f"{NAME} at main isn't in the hub's cache"):
        plan(NAME)


def test_a_download_that_is_killed_is_none_and_the_next_one_is_whole(
    hub: Hub, files: dict[str, bytes], tmp_path: Path, offline: Callable[[], None]
) -> None:
    hub.publish(NAME, files)
    found = plan(NAME)
    killed_in(lambda: download(found, progress=lambda come, total: die() if come > total - 100 else None))
    assert not plan(NAME).complete
    assert av.load(NAME).trace("the bank").fidelity.ok
    assert plan(NAME).complete
    offline()
    assert plan(NAME).complete


def test_a_line_that_breaks_is_taken_up_where_it_broke(hub: Hub, files: dict[str, bytes]) -> None:
    hub.publish(NAME, files)
    hub.break_off_after = 16384
    assert av.load(NAME).trace("the bank").fidelity.ok


def test_a_line_that_stays_broken_is_told(
    hub: Hub, files: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.publish(NAME, files)
    hub.break_off_after = 0
    monkeypatch.setattr("time.sleep", lambda _: None)
    with pytest.raises(av.ModelNotFound, match=rf"the download of {NAME} stopped at model\.safetensors .*try again"):
        download(plan(NAME))
    assert kept(tmp_path) == []


def test_a_file_that_came_damaged_is_thrown_away(hub: Hub, files: dict[str, bytes], tmp_path: Path) -> None:
    hub.publish(NAME, files)
    hub.damage = True
    with pytest.raises(av.ModelNotFound, match=r"model\.safetensors of .* arrived damaged and was deleted"):
        av.load(NAME)
    assert "model.safetensors" not in kept(tmp_path)
    hub.damage = False
    assert av.load(NAME).trace("the bank").fidelity.ok


def test_what_came_once_is_there_without_a_network(
    hub: Hub, files: dict[str, bytes], offline: Callable[[], None]
) -> None:
    commit = hub.publish(NAME, files)
    av.load(NAME)
    hub.failing = True
    assert "the hub can't be reached (it answered 503)" in plan(NAME).offline
    asked = len(hub.asked)
    offline()
    assert av.load(NAME).trace("the bank").provenance.revision == commit
    assert av.load(NAME, revision=commit).trace("the bank").fidelity.ok
    assert len(hub.asked) == asked


def test_what_never_came_is_told_without_a_network(hub: Hub, offline: Callable[[], None], monkeypatch: Any) -> None:
    hub.failing = True
    with pytest.raises(av.ModelNotFound, match=r"can't be reached \(it answered 503\), and .* isn't in the hub's"):
        plan(NAME)
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", f"http://127.0.0.1:{nobody.getsockname()[1]}")
        with pytest.raises(
            av.ModelNotFound, match=r"can't be reached \(ConnectError\), and .* isn't in the hub's cache"
        ):
            plan(NAME)
    offline()
    with pytest.raises(av.ModelNotFound, match=r"switched off here \(HF_HUB_OFFLINE\), and .* at v1 isn't in the"):
        plan(NAME, "v1")


def test_pickles_are_refused_before_anything_is_downloaded(hub: Hub, files: dict[str, bytes], tmp_path: Path) -> None:
    pickled = {name: content for name, content in files.items() if name != "model.safetensors"}
    hub.publish(NAME, pickled | {"pytorch_model.bin": pickle.dumps(Trap(tmp_path / "sprung"))})
    with pytest.raises(av.UnsupportedModel, match=r"on the hub from pytorch_model\.bin, a format that can"):
        av.load(NAME)
    assert hub.fetched() == []
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("file", ["config.json", "tokenizer_config.json"])
def test_code_is_refused_before_anything_is_downloaded(
    hub: Hub, files: dict[str, bytes], tmp_path: Path, file: str
) -> None:
    brought = {"brought.py": f"open({str(tmp_path / 'sprung')!r}, 'w')".encode()}
    hub.publish(NAME, changed(files, file, auto_map={"AutoModel": "brought.Model"}) | brought)
    with pytest.raises(av.UnsupportedModel, match=rf"{NAME} runs its own code \(auto_map\)"):
        av.load(NAME)
    assert not {"model.safetensors", "brought.py"} & set(hub.fetched())
    assert not (tmp_path / "cache").exists()
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda files: {"config.json": files["config.json"]}, "has no model.safetensors"),
        (lambda files: {"model.safetensors": files["model.safetensors"]}, "has no config.json"),
        (lambda files: files | {"config.json": b"{"}, "can't read config.json"),
        (lambda files: files | {"model.safetensors": files["model.safetensors"][:-9]}, "broken or half-written"),
        (lambda files: changed(files, "config.json", intermediate_size=41), "have another shape, such as"),
    ],
)
def test_a_broken_repository_is_named_as_such(
    hub: Hub, files: dict[str, bytes], change: Callable[[dict[str, bytes]], dict[str, bytes]], message: str
) -> None:
    hub.publish(NAME, change(files))
    with pytest.raises(av.ModelNotFound, match=message) as caught:
        av.load(NAME)
    assert NAME in str(caught.value)
    assert "cache" not in str(caught.value)


def test_a_model_that_is_closed_or_not_there_is_told(hub: Hub, files: dict[str, bytes]) -> None:
    hub.publish("somebody/gated", files, gated=True)
    with pytest.raises(av.ModelNotFound, match=r"somebody/gated is gated; .*hf auth login"):
        av.load("somebody/gated")
    with pytest.raises(av.ModelNotFound, match="the hub has no model nobody/nothing, or it is private"):
        av.load("nobody/nothing")


def test_without_a_tokenizer_ids_only_are_read(hub: Hub, files: dict[str, bytes]) -> None:
    hub.publish(NAME, {name: files[name] for name in ("config.json", "model.safetensors")})
    with pytest.raises(av.UnusableText, match=f"{NAME} came without a tokenizer"):
        av.load(NAME).trace("the bank")


def test_weights_in_several_files_are_fetched_all(hub: Hub, files: dict[str, bytes], tmp_path: Path) -> None:
    build("bert with a head").save_pretrained(tmp_path / "shards", max_shard_size="8KB")
    hub.publish(NAME, tmp_path / "shards")
    assert av.load(NAME).layer_count == 3
    assert len([name for name in kept(tmp_path) if name.endswith(".safetensors")]) > 1
    lacking = {path.name: path.read_bytes() for path in (tmp_path / "shards").iterdir() if "-00002-" not in path.name}
    hub.publish(NAME, lacking, "lacking")
    with pytest.raises(av.ModelNotFound, match=f"{NAME} lacks model-00002-of"):
        av.load(NAME, revision="lacking")


@pytest.mark.parametrize(
    "name",
    ["../../etc/passwd", "a/../b", "a/b/c", "/etc/passwd", "a b", "a\x00b", "", "x" * 200, "ä/b", ".hidden/x", "a--b"],
)
def test_an_id_that_is_none_is_never_asked_for(hub: Hub, name: str) -> None:
    with pytest.raises(av.ModelNotFound, match=r"isn't a hub id; use a name or owner/name"):
        plan(name)
    assert hub.asked == []


@pytest.mark.parametrize("revision", ["../../refs", "a//b", "/main", "main/", "a b", "x" * 200, "-f", "main\n"])
def test_a_revision_that_is_none_is_never_asked_for(hub: Hub, revision: str) -> None:
    with pytest.raises(av.ModelNotFound, match=r"isn't a revision of .*; use a branch, a tag or a commit"):
        plan(NAME, revision)
    assert hub.asked == []


def test_ids_and_revisions_as_they_are_written_are_taken() -> None:
    for name in ("gpt2", "openai-community/gpt2", "a/b.c_d-1"):
        for revision in ("main", "v1.0", "refs/pr/12", "0" * 40):
            check_id(name, revision)


def test_a_disk_without_room_is_told_before_the_download(
    hub: Hub, files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.publish(NAME, files)
    usage = type("Usage", (), {"free": 10})
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage)
    with pytest.raises(av.ModelNotFound, match=r"needs [\d,]+ bytes in the hub's cache, whose disk has 10 free"):
        av.load(NAME)
    assert "model.safetensors" not in hub.fetched()


def test_the_hub_is_found_where_the_environment_says(hub: Hub, files: dict[str, bytes], tmp_path: Path) -> None:
    hub.publish(NAME, files)
    ask = f"from attention_viz.models import download, plan; print(download(plan({NAME!r})).name)"
    environment = os.environ | {"HF_ENDPOINT": hub.address, "HF_HOME": str(tmp_path / "home")}
    told = subprocess.run(
        [sys.executable, "-c", ask], env=environment, capture_output=True, text=True, check=True, timeout=120
    )
    assert told.stdout.strip() == hub.repositories[NAME].branches["main"]
