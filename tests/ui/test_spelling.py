"""Tokens as people read them, on every page and in what it gives out: none is written in a tokenizer's own letters."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import torch
from google.protobuf.json_format import MessageToDict
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

from attention_viz.serving import permissions
from attention_viz.serving.settings import Settings
from attention_viz.sources import CATALOGUE
from attention_viz.ui.parts import downloads, exports
from attention_viz.views.export import browsers
from tests.shipped import SMOLLM2
from tests.ui.screens import PAGES, Screen

# As the tokenizer of SmolLM2 writes a space, a line break, a tab and a carriage return.
RAW = re.compile("[ĠĊĉč]")
TEXT = "When Mary went\n\n\tto the store, John\twent\r\nto Mary and to the store"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A small decoder that reads and writes in SmolLM2's own tokens, in a folder that visitors may open."""
    folder = tmp_path_factory.mktemp("models") / "small-language-model"
    tokenizer = AutoTokenizer.from_pretrained(CATALOGUE[SMOLLM2].path)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(permissions, "SETTINGS", Settings(models=(folder.parent,)))
        yield str(folder)


def strings(found: Any) -> Iterator[str]:
    """Every text in what was read from JSON; what is JSON itself is read, too."""
    if isinstance(found, dict):
        # What a component writes in light marks itself, by the spelling beside it: its own tests read it on the screen.
        found = [one for name, one in found.items() if not (name == "labels" and "spelling" in found)]
    if isinstance(found, list):
        for one in found:
            yield from strings(one)
    elif isinstance(found, str):
        if found[:1] in ("{", "["):
            try:
                yield from strings(json.loads(found))
                return
            except ValueError:
                pass
        yield found


def said(screen: Screen) -> Iterator[str]:
    """What a page hands to the browser as text: words, labels, options of pickers, figures, what components show."""
    for element in screen.app.main:
        if getattr(element, "proto", None) is not None:
            yield from strings(MessageToDict(element.proto))


def files(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, str]]:
    """The label of each file that is a picture, with its text; where a browser draws it, the text that it is given."""
    run: list[str] = []

    def keep(picture: Any, forms: Any, *_: Any, **__: Any) -> dict[str, bytes]:
        run.append(picture if isinstance(picture, str) else "\n".join(strings(picture.to_plotly_json())))
        return dict.fromkeys(forms, b"")

    monkeypatch.setattr(exports, "printed", keep)
    monkeypatch.setattr(downloads, "printed", keep)
    for button in screen.all("download_button"):
        make = screen.files.get(button.proto.deferred_file_id)
        if make is None or not button.label.startswith(("Picture", "All heads")):
            continue
        run.clear()
        yield button.label, make().decode() + "".join(run)


@pytest.mark.parametrize("place", [one for one in PAGES if one != "/cross"])
def test_no_page_writes_a_token_in_its_tokenizer_s_letters(
    model: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = Screen().open(f"{place}?model={quote(model, safe='')}&text={quote(TEXT)}&more=2&layer=1&head=1")
    texts = list(said(screen))
    assert any("Mary" in one for one in texts)
    assert [one for one in texts if RAW.search(one)] == []
    pictures = list(files(screen, monkeypatch))
    assert [name for name, text in pictures if RAW.search(text)] == []


@pytest.mark.skipif(shutil.which("pdftotext") is None, reason="poppler reads the text of a PDF")
@pytest.mark.skipif(browsers.at_hand() is None, reason="a browser draws it")
def test_a_pdf_has_the_words_and_no_such_letters(model: str, tmp_path: Path) -> None:
    screen = Screen().open(f"/?model={quote(model, safe='')}&text={quote(TEXT)}")
    path = tmp_path / "picture.pdf"
    path.write_bytes(screen.download("Picture (PDF)"))
    text = subprocess.run(["pdftotext", path, "-"], capture_output=True, text=True, check=True).stdout
    assert "Mary" in text and not RAW.search(text)
