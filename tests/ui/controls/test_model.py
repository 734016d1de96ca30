"""Models from a folder and from the hub, as a visitor chooses them on a page; what is closed stays closed."""

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from streamlit.testing.v1 import local_script_runner
from streamlit.testing.v1.element_tree import Selectbox

from attention_viz.serving import jobs, permissions
from attention_viz.serving.permissions import FOLDER, HUB
from attention_viz.serving.settings import Settings
from tests.hub import Hub, serving, stand_in
from tests.ui.screens import Screen
from tests.ui.served import LARGE, NAME, save_large

TEXT = "the bank of the river"


@pytest.fixture
def hub(models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """Put a stand-in in the hub's place, open to visitors as the operator's folder is, with a small model."""
    monkeypatch.setattr(permissions, "SETTINGS", Settings(models=(models,), hub=True))
    with serving(Hub()) as hub:
        stand_in(hub, tmp_path / "cache", monkeypatch)
        hub.publish(NAME, models / "tiny-bert")
        yield hub


def link(model: str, path: str = "/", **more: object) -> str:
    told = "".join(f"&{name}={value}" for name, value in more.items())
    return f"{path}?model={quote(model, safe='')}&text={quote(TEXT)}{told}"


def until(holds: Callable[[], object]) -> None:
    """Wait for what a download does, for a minute at most."""
    for _ in range(1200):
        if holds():
            return
        time.sleep(0.05)
    pytest.fail("it takes too long")


def over(name: str) -> bool:
    """Return whether a model's download has ended."""
    download = jobs.download_of(name)
    return download is not None and download.over


def progress(screen: Screen) -> str:
    (bar,) = screen.all("progress")
    return re.sub(r"\\(.)", r"\1", bar.proto.text)


def buttons(screen: Screen) -> list[str]:
    return [one.label for one in screen.all("button")]


def typed_into(screen: Screen, label: str, text: str, patch: pytest.MonkeyPatch) -> None:
    """Type what isn't among a picker's options: as it is typed it is sent."""
    formatted = Selectbox.format_func
    as_typed = property(lambda box: str if box.label == label else formatted.fget(box))
    patch.setattr(Selectbox, "format_func", as_typed)
    screen.picker(label).options.append(text)
    screen.pick(label, text)
    patch.setattr(Selectbox, "format_func", formatted)


@pytest.mark.usefixtures("hub")
def test_a_path_typed_into_the_picker_is_refused_as_well(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen().open("/").pick("Model", FOLDER)
    typed_into(screen, "Folder", str(models.parent / "outside" / "secret-bert"), monkeypatch)
    assert any(one.startswith("This model can't be opened: no folder") for one in screen.alerts)
    assert "the folders named in ATTENTION_VIZ_MODELS" in screen.words
    # What to do about it is told with the path that was typed.
    assert f"ATTENTION_VIZ_MODELS={models.parent}/outside/secret-bert " in screen.words
    assert screen.address["model"] == "all-MiniLM-L6-v2"


def test_a_model_on_the_hub_tells_its_size_and_comes_at_a_word(hub: Hub) -> None:
    screen = Screen().open("/?text=" + quote(TEXT)).pick("Model", HUB).pick("Hub id", NAME)
    assert re.search(rf"{NAME} at main \([0-9a-f]{{7}}\) is on the hub: \d files, 0\.1 MB", screen.words)
    assert "model.safetensors" not in hub.fetched()
    screen.press("Download 0.1 MB")
    until(lambda: over(NAME) or jobs.download_of(NAME) is None)
    assert "Verified" in screen.run().words
    assert "model.safetensors" in hub.fetched()
    assert screen.address["model"] == NAME


def test_a_download_shows_how_far_it_is_and_is_cancelled(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[float] = []
    parse = local_script_runner.parse_tree_from_messages

    def noted(messages: Any) -> Any:
        runs.extend(one.auto_rerun.interval for one in messages if one.WhichOneof("type") == "auto_rerun")
        return parse(messages)

    monkeypatch.setattr(local_script_runner, "parse_tree_from_messages", noted)
    save_large(tmp_path / "large")
    hub.publish(LARGE, tmp_path / "large")
    hub.bytes_a_second = 4e6
    screen = Screen().open(link(LARGE))
    (offered,) = [one for one in buttons(screen) if one.startswith("Download 3")]
    screen.press(offered)
    download = jobs.download_of(LARGE)
    assert download is not None
    until(lambda: download.received > 2e6)
    shown = float(re.findall(rf"Downloading {LARGE}: ([0-9.]+) MB of", progress(screen.run()))[0])
    assert 2 <= shown < download.plan.missing / 1e6
    # The page asks to be run again by itself, every second.
    assert set(runs) == {1.0}
    screen.press("Cancel")
    until(lambda: download.over)
    assert any("download of somebody/large-bert was cancelled" in one for one in screen.run().alerts)
    assert offered in buttons(screen)
    hub.bytes_a_second = None
    screen.press(offered)
    until(lambda: over(LARGE) or jobs.download_of(LARGE) is None)
    assert "Verified" in screen.run().words


@pytest.mark.usefixtures("hub")
def test_an_id_that_is_not_there_is_told_and_another_can_be_typed() -> None:
    screen = Screen().open(link("nobody/nothing@v9"))
    assert "The hub has no model nobody/nothing, or it is private" in screen.words
    assert (screen.picker("Hub id").value, screen.picker("Revision").value) == ("nobody/nothing", "v9")
    assert screen.address["model"] == "nobody/nothing@v9"
