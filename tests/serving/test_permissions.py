"""What visitors may ask for: only what lies inside the allowed folders, and only the ways that are open."""

import shutil
from pathlib import Path

import pytest

from attention_viz.errors import ModelNotFound
from attention_viz.serving import permissions as allowed
from attention_viz.serving.permissions import FOLDER, HUB
from attention_viz.serving.settings import Settings
from attention_viz.ui.address import State, read_address


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An allowed folder with models in it, and things beside it that nobody may read."""
    root, outside = tmp_path / "allowed", tmp_path / "outside"
    for folder in (root / "tiny", root / "group" / "deep", outside / "secret"):
        folder.mkdir(parents=True)
        (folder / "config.json").write_text("{}")
    monkeypatch.setattr(allowed, "SETTINGS", Settings(models=(root,)))
    monkeypatch.chdir(outside)
    return root


def test_folders_inside_are_found_and_named_from_the_allowed_one(root: Path) -> None:
    assert allowed.folders() == [str(root / "group/deep"), str(root / "tiny")]
    assert [allowed.display_name(name) for name in allowed.folders()] == ["group/deep", "tiny"]


@pytest.mark.parametrize("name", ["tiny", "group/deep", "./tiny", "group/../tiny"])
def test_a_folder_inside_may_be_named_from_the_allowed_one_or_wholly(root: Path, name: str) -> None:
    assert allowed.refusal(name) is None
    assert allowed.canonical_name(name) == str((root / name).resolve())
    assert allowed.folder(str(root / name)) == (root / name).resolve()


@pytest.mark.parametrize(
    "name",
    [
        "../outside/secret",
        "tiny/../../outside/secret",
        "/etc",
        "../../etc/passwd",
        "~",
        "..",
        "/",
        "secret/../../x",
        "a\\b",
    ],
)
def test_what_lies_outside_is_refused_as_if_it_were_not_there(root: Path, name: str) -> None:
    reason = allowed.refusal(name)
    assert reason == f"no folder “{name}” in the allowed folders; check the name"
    assert reason.replace(name, "").find(str(root.parent)) == -1


def test_a_whole_path_outside_is_refused_whether_it_exists_or_not(root: Path) -> None:
    for name in (root.parent / "outside/secret", root.parent / "outside/nothing", root.parent / "allowed-not"):
        assert "in the allowed folders" in (allowed.refusal(str(name)) or "")


def test_a_link_that_leads_out_is_refused_and_one_inside_is_followed(root: Path) -> None:
    (root / "out").symlink_to(root.parent / "outside/secret")
    (root / "alias").symlink_to(root / "tiny")
    (root / "circle").symlink_to(root / "circle")
    assert allowed.refusal("out") == "“out” leads out of the allowed folders; choose one inside"
    assert allowed.folder("alias") == root / "tiny"
    assert str(root / "out") not in allowed.folders()
    with pytest.raises(ModelNotFound, match=r"no folder .* in the allowed folders"):
        allowed.folder("circle")


@pytest.mark.parametrize("where", ["config.json", "inner/weights"])
def test_a_file_in_a_folder_that_leads_out_is_refused_by_name(root: Path, where: str) -> None:
    link = root / "tiny" / where
    link.unlink(missing_ok=True)
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(root.parent / "outside/secret/config.json")
    reason = allowed.refusal("tiny") or ""
    assert reason == f"“tiny” holds {link.name}, a link out of the allowed folders; remove it"


def test_an_allowed_folder_that_is_a_link_itself_serves(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alias = root.parent / "alias"
    alias.symlink_to(root)
    monkeypatch.setattr(allowed, "SETTINGS", Settings(models=(alias,)))
    assert allowed.folder("tiny") == root / "tiny"
    assert allowed.folder(str(root / "tiny")) == root / "tiny"
    assert allowed.refusal(str(root.parent / "outside/secret")) is not None


@pytest.mark.parametrize("name", ["x" * 5000, "a\x00b", "tiny\x00", "", "a b", "a/b@../../x", "-x/y"])
def test_what_is_no_name_at_all_is_refused(root: Path, name: str) -> None:
    assert "isn't a " in (allowed.refusal(name) or "")


def test_an_id_is_taken_with_its_revision(root: Path) -> None:
    assert allowed.kind("owner/name@v1.0") == "hub"
    assert allowed.refusal("owner/name@refs/pr/1") is None
    assert allowed.canonical_name("owner/name@main") == "owner/name"
    assert allowed.split("owner/name@v1.0") == ("owner/name", "v1.0")
    assert allowed.hub_name("owner/name", "v1.0") == "owner/name@v1.0"


def test_either_way_can_be_switched_off(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert allowed.other_sources() == (FOLDER, HUB)
    monkeypatch.setattr(allowed, "SETTINGS", Settings(models=(), hub=False))
    assert allowed.other_sources() == ()
    assert allowed.folders() == []
    for name, words in ((str(root / "tiny"), "folders on this machine"), ("owner/name", "hub ids")):
        state, notices = read_address({"model": name})
        assert state == State()
        assert f"the operator switched off {words}" in notices[0]
    assert read_address({"model": "scratch"})[1] == []


def test_a_folder_goes_before_an_id_of_the_same_name(root: Path) -> None:
    assert allowed.kind("tiny") == "folder"
    shutil.rmtree(root / "tiny")
    assert allowed.kind("tiny") == "hub"
