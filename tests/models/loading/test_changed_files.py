"""A model's files that somebody writes to: while it is open they are nobody's business, while it is read they are."""

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import attention_viz as av
from attention_viz.inputs import cost
from attention_viz.models import SNAPSHOTS
from attention_viz.models.loading import load_folder
from attention_viz.sources.folders import CheckedFolder
from tests.models.families import build
from tests.models.loading.test_load_folder import word_tokenizer

TEXT = "the bank of the river"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model as `save_pretrained` writes it, of a size at which the file's pages are what the numbers are read as."""
    build("bert with a head", vocab_size=120_000).save_pretrained(tmp_path / "model")
    word_tokenizer().save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def test_an_open_model_stays_as_it_was_read_whatever_becomes_of_its_files(folder: Path) -> None:
    model, weights = av.load(str(folder)), folder / "model.safetensors"
    before = model.trace(TEXT)
    # Where the file's pages are the model's memory, what follows would end this process.
    maps = Path("/proc/self/maps")
    assert not maps.exists() or str(weights) not in maps.read_text()
    with weights.open("r+b") as file:
        file.seek(weights.stat().st_size // 2)
        file.write(os.urandom(weights.stat().st_size // 2))
    assert torch.equal(model.trace(TEXT).output, before.output)
    os.truncate(weights, 100)
    after = model.trace(TEXT)
    assert torch.equal(after.output, before.output)
    assert after.fidelity.ok
    assert after.provenance.sha256 == before.provenance.sha256
    with pytest.raises(av.ModelNotFound):
        av.load(str(folder))
    shutil.rmtree(folder)
    assert torch.equal(model.trace(TEXT).output, before.output)


def written_to(folder: Path) -> None:
    with (folder / "model.safetensors").open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"?")


def replaced(folder: Path) -> None:
    shutil.copy(folder / "config.json", folder / "new")
    (folder / "new").replace(folder / "config.json")


@pytest.mark.parametrize("change", [written_to, replaced])
def test_files_that_change_while_they_are_read_are_refused(
    folder: Path, change: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    compare = CheckedFolder.sha256

    def meanwhile(self: CheckedFolder, check: Callable[[], None]) -> str:
        found = compare(self, check)
        change(folder)
        return found

    monkeypatch.setattr(CheckedFolder, "sha256", meanwhile)
    with pytest.raises(av.ModelNotFound, match="changed while"):
        av.load(str(folder))
    monkeypatch.undo()
    assert av.load(str(folder)).trace(TEXT).fidelity.ok


def test_a_configuration_that_changes_once_it_was_checked_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = load_folder.check_folder

    def then_changed(path: Path, name: str) -> CheckedFolder:
        checked = check(path, name)
        replaced(folder)
        return checked

    monkeypatch.setattr(load_folder, "check_folder", then_changed)
    with pytest.raises(av.ModelNotFound, match="changed while"):
        av.load(str(folder))


def test_weights_that_change_before_they_are_copied_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep = load_folder.keep_apart

    def written_before(model: torch.nn.Module) -> None:
        written_to(folder)
        keep(model)

    monkeypatch.setattr(load_folder, "keep_apart", written_before)
    with pytest.raises(av.ModelNotFound, match="changed while"):
        av.load(str(folder))


def test_a_log_that_is_written_meanwhile_is_no_change(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compare = CheckedFolder.sha256

    def logged(self: CheckedFolder, check: Callable[[], None]) -> str:
        (folder / "training.log").write_text("step 1")
        return compare(self, check)

    monkeypatch.setattr(CheckedFolder, "sha256", logged)
    assert av.load(str(folder)).trace(TEXT).fidelity.ok


def test_without_a_temporary_folder_a_long_text_runs_in_memory_and_a_moment_is_refused_in_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ids = {"input_ids": torch.zeros(1, 100_000, dtype=torch.long)}
    assert cost.file_for(ids) is not None
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere/at/all")
    assert cost.file_for(ids) is None
    name, steps = next(iter(SNAPSHOTS.items()))
    with pytest.raises(av.ModelNotFound, match=r"temporary folder has no room for its files.*TMPDIR"):
        av.load(name, revision=f"step-{min(steps)}")
