"""Several images beside one text in the app: added, removed, carried by the address, each in its own place."""

from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import pytest
from PIL import Image

import attention_viz as av
from attention_viz.inputs.media.shipped import SAMPLES
from attention_viz.serving import permissions
from attention_viz.serving.settings import Settings
from attention_viz.serving.uploads import names_of, upload_of
from attention_viz.ui.parts.markdown import plain
from tests.models.picture_families import publish
from tests.ui.screens import Screen

TEXT = "what is <image> the <image> this ?"
TWO = "chelsea,astronaut"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("several") / "llava"
    publish("llava", place)
    return place


@pytest.fixture
def address(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    monkeypatch.setattr(permissions, "SETTINGS", Settings(models=(folder.parent,)))

    def write(page: str = "", **other: str) -> str:
        parts = {"model": str(folder), "text": TEXT, "layer": 1, "head": 2, "stream": "decoder", "picture": TWO}
        return f"/{page}?{urlencode({**parts, **other})}"

    return write


def test_two_images_run_in_their_order(address: Callable[..., str], folder: Path) -> None:
    screen = Screen().open(address())
    assert not screen.alerts and screen.address["picture"] == TWO
    model = av.load(str(folder))
    pictures = [av.Picture(SAMPLES[name].path) for name in TWO.split(",")]
    wanted, turned = (
        model.trace(TEXT, pictures=several).weights(1, 2, "decoder").numpy() for several in (pictures, pictures[::-1])
    )
    assert np.abs(screen.weights() - wanted).max() < 1e-6 < 0.01 < np.abs(screen.weights() - turned).max()
    packed = screen.packed()
    assert [one["name"] for one in packed["seen"]["picture"]["sheet"]["panels"]] == ["image 1", "image 2"]
    axis = packed["axes"][packed["streams"][-1]["keys"]]
    assert "patch 0, 0 in image 2" in axis["named"] and "2 images · a cat" in screen.words
    assert "“Changes the answer” blocks a region of one image" in screen.words


@pytest.mark.parametrize("page", ["heads", "steps", "masks", "compare"])
def test_other_pages_read_them(page: str, address: Callable[..., str]) -> None:
    screen = Screen().open(address(page, **({"text": "what is this ?"} if page == "compare" else {})))
    assert not screen.alerts and any("[Verified" in one for one in screen.menus)
    assert ("one image per side" in screen.words) is (page == "compare")


def test_a_tower_that_reads_them_in_one_turn_is_refused_by_name(address: Callable[..., str]) -> None:
    screen = Screen().open(address("why"))
    assert any("several images, tiles or windows in one call; trace one image" in one for one in screen.alerts)


def test_an_image_is_added_and_removed(address: Callable[..., str], tmp_path: Path) -> None:
    file = tmp_path / "mine.png"
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (40, 40, 3), dtype=np.uint8)).save(file)
    screen = Screen().open(address(text="what is this ?", picture="chelsea"))
    next(one for one in screen.app.toggle if one.label == "Add image").set_value(True)
    screen.run().upload("Upload image", file)
    shown = screen.app.session_state["visit"].selection.shared.shown
    first, own = names_of(shown)
    assert first == "chelsea" and upload_of(own) is not None and "picture" not in screen.address
    assert not screen.alerts and "2 images · chelsea.jpg, mine.png" in screen.words
    assert [one.value for one in screen.app.toggle if one.label == "Add image"] == [False]
    screen.press(plain("Remove image 2 · mine.png"))
    assert screen.address["picture"] == "chelsea" and "sheet" not in screen.packed()["seen"]["picture"]
    assert not screen.app.session_state["visit"].brought


def test_a_wrong_address_is_explained(address: Callable[..., str]) -> None:
    screen = Screen().open(address(text="what is this ?", picture="chelsea,nobody"))
    assert screen.address["picture"] == "chelsea" and "“nobody”; it was left out" in screen.words
    screen = Screen().open(address(text="what is this ?", picture=",".join(["chelsea"] * 5)))
    assert screen.address["picture"] == ",".join(["chelsea"] * 4)
    assert "Allowed here: 1 to 4 images" in screen.words
    # More places than images: the problem and its fix, with nothing lost.
    screen = Screen().open(address(picture="chelsea"))
    assert "2 places for an image" in screen.words and screen.address["picture"] == "chelsea"
