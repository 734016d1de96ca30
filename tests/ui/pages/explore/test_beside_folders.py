"""Folders of models that read a text with an image: open with both, or with the reason by name."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import cast
from urllib.parse import urlencode

import numpy
import pytest

import attention_viz as av
from attention_viz.inputs.media.shipped import SAMPLES
from attention_viz.models.model import AttentionModel
from attention_viz.serving import permissions
from attention_viz.serving.settings import Settings
from tests.models import sound_families
from tests.models.loading.test_reading import saved
from tests.models.picture_families import publish
from tests.models.test_text_beside_picture import clip, git, wrapped
from tests.ui.screens import Screen

TEXT = "what is on this picture ?"
PAGES = ("", "heads", "steps", "masks", "compare", "why")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("beside")
    for family in ("qwen2_5_vl", "llava", "idefics3", "gemma3", "paligemma"):
        publish(family, place / family)
    publish("llava", place / "unknown processor")
    config = place / "unknown processor" / "processor_config.json"
    config.write_text(config.read_text().replace("CLIPImageProcessor", "UnknownImageProcessor"))
    saved(git, place / "git")
    sound_families.publish("qwen2_audio", place / "qwen2_audio")
    return place


@pytest.fixture
def address(folders: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """The address of a page with one of them, open to visitors."""
    monkeypatch.setattr(permissions, "SETTINGS", Settings(models=(folders,)))

    def write(page: str, model: str, **other: str) -> str:
        parts = {"model": str(folders / model), "text": TEXT, "layer": 1, "head": 2, "stream": "decoder", **other}
        return f"/{page}?{urlencode(parts)}"

    return write


@pytest.mark.parametrize("family", ["qwen2_5_vl", "llava"])
def test_it_opens_with_text_and_image_and_shows_its_own_weights(
    family: str, address: Callable[..., str], folders: Path
) -> None:
    screen = Screen().open(address("", family))
    assert screen.address["picture"] == "chelsea" and not screen.alerts
    model = av.load(str(folders / family))
    trace = model.trace(TEXT, picture=av.Picture(SAMPLES["chelsea"].path))
    wanted = trace.weights(1, 2, "decoder").numpy()
    assert numpy.abs(screen.weights() - wanted).max() < 1e-6
    assert numpy.abs(screen.weights() - trace.weights(1, 3, "decoder").numpy()).max() > 0.01
    packed = screen.packed()
    places = packed["axes"][packed["streams"][0]["keys"]]["place"]
    assert packed["seen"]["picture"]["rows"] > 0 and sum(one is not None for one in places) >= 16


@pytest.mark.parametrize("family", ["gemma3", "paligemma", "git"])
def test_a_model_whose_patches_attend_to_later_ones_continues_its_text(
    family: str, address: Callable[..., str], folders: Path
) -> None:
    screen = Screen().open(address("", family, stream="encoder", more="2"))
    assert not screen.alerts
    model = cast("AttentionModel", av.load(str(folders / family)))
    assert model.facts.streams == ("picture", "encoder") and model.facts.continues_text
    *_, last = model.generate(TEXT, 2, picture=av.Picture(SAMPLES["chelsea"].path))
    words, made = last.query_tokens("encoder"), last.provenance.generated
    assert made > 0
    axis = screen.packed()["axes"][-1]
    assert axis["labels"] == list(words.labels)
    assert axis["generated"] == list(range(len(words) - made, len(words)))
    likely = model.candidates(last, len(words) - 1, 1).token[0]
    assert "Next token" in screen.words and f"“{likely}”" in screen.words
    assert numpy.abs(screen.weights() - last.weights(1, 2, "encoder").numpy()).max() < 1e-6


def test_a_model_that_only_embeds_text_and_image_continues_nothing() -> None:
    model = wrapped(clip)[0]
    assert not model.facts.continues_text and not model.facts.generates


@pytest.mark.parametrize("page", PAGES)
def test_every_page_that_shows_it_has_nothing_amiss(page: str, address: Callable[..., str]) -> None:
    # Another image would be longer than this tiny model reads.
    screen = Screen().open(address(page, "qwen2_5_vl", other_picture="chelsea"))
    assert not screen.alerts
    assert any("[Verified" in one for one in screen.menus) and "chelsea.jpg · a cat" in screen.words


def test_tiles_open_with_their_image(address: Callable[..., str]) -> None:
    screen = Screen().open(address("", "idefics3"))
    assert screen.address["picture"] == "chelsea" and not screen.alerts


def test_where_it_can_not_read_an_image_the_reason_stands_in_its_place(address: Callable[..., str]) -> None:
    screen = Screen().open(address("", "unknown processor"))
    assert "Text alone" in screen.menus and "picture" not in screen.address
    assert re.search(r"text part is shown alone", screen.words)
    # A control: nobody expects an image of a model of text.
    assert "Text alone" not in Screen().open("/?model=induction").menus


@pytest.mark.parametrize("page", ["", "heads"])
def test_a_model_of_text_with_audio_opens_with_its_text_and_says_why(page: str, address: Callable[..., str]) -> None:
    screen = Screen().open(address(page, "qwen2_audio"))
    assert not screen.alerts and "Text alone" in screen.menus
    assert re.search(r"text part is shown alone.*pages don.t show audio beside a text", screen.words, re.DOTALL)
    assert not {"sound", "picture"} & {*screen.address}


def test_its_chat_template_is_a_switch(address: Callable[..., str], folders: Path) -> None:
    plain, chat = (Screen().open(address("", "llava", chat=one)) for one in ("off", "on"))
    assert plain.picker("Chat template").value is False
    trace = av.load(str(folders / "llava")).trace(TEXT, picture=av.Picture(SAMPLES["chelsea"].path), chat=True)
    labels = chat.packed()["axes"][-1]["labels"]
    assert labels == list(trace.query_tokens("decoder").labels)
    assert labels[0] == "user" and labels[-2:] == ["assistant", ":"] != plain.packed()["axes"][-1]["labels"][-2:]
