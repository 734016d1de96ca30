"""Folders of models that read a text beside a picture, saved by transformers itself."""

import json
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from PIL import Image

import attention_viz as av
from attention_viz.errors import LoadCancelled
from attention_viz.inputs.media.processor_apart import IsolatedProcessor
from attention_viz.models.loading import reading
from attention_viz.models.model import AttentionModel
from attention_viz.sources.bounded import process
from attention_viz.sources.folders import check_folder
from tests.models import sound_families
from tests.models.test_text_beside_picture import PICTURE, PLACES, clip, git, llava

SOUND = av.Sound(sound_families.SAMPLES, sound_families.RATE)


def saved(make: Any, folder: Path) -> tuple[Any, Any]:
    torch.manual_seed(5)
    model, processor = make()
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return model.eval(), processor


def opened(folder: Path, **how: Any) -> AttentionModel:
    return cast("AttentionModel", av.load(str(folder), **how))


@pytest.mark.parametrize(("make", "text"), [(clip, "a cat"), (git, "a cat"), (llava, "what is <image> this ?")])
def test_a_folder_with_a_processor_reads_a_text_beside_a_picture(make: Any, text: str, tmp_path: Path) -> None:
    hf_model, processor = saved(make, tmp_path)
    trace = opened(tmp_path).trace(text, picture=PICTURE)
    assert trace.fidelity.ok
    assert [place for place in trace.query_tokens("picture").place if place is not None] == PLACES
    tensors = processor(text=text, images=Image.fromarray(PICTURE.pixels), return_tensors="pt")
    with torch.no_grad():
        told = hf_model(**tensors)
    if make is not clip:
        assert torch.allclose(trace.output, told.logits[0], atol=1e-5)


def test_it_reads_text_alone_where_that_is_asked_for(tmp_path: Path) -> None:
    saved(llava, tmp_path)
    alone = opened(tmp_path, alone=True)
    assert alone.reads == "text"
    assert alone.trace("a cat").fidelity.ok
    with pytest.raises(av.UnusablePicture, match="reads only text, but got an image"):
        alone.trace("a cat", picture=PICTURE)
    with pytest.raises(av.UnusableText, match=r"alone=True"):
        opened(tmp_path).trace("a cat")


@pytest.mark.parametrize("family", ["qwen2_audio", "glmasr"])
def test_a_folder_with_a_processor_reads_a_text_beside_audio(family: str, tmp_path: Path) -> None:
    processor = sound_families.publish(family, tmp_path)
    model, text = opened(tmp_path), "what is <sound> this ?"
    assert isinstance(cast("Any", model.reader)._processor, IsolatedProcessor)
    trace = model.trace(text, sound=SOUND)
    assert trace.fidelity.ok and trace.streams == ("sound", "decoder")
    wrapped = av.wrap(sound_families.model_of(family), processor).trace(text, sound=SOUND)
    assert torch.equal(trace.output, wrapped.output)
    assert trace.query_tokens("decoder") == wrapped.query_tokens("decoder")
    # A control: other audio is other numbers.
    other = model.trace(text, sound=av.Sound(sound_families.SAMPLES[::-1].copy(), sound_families.RATE))
    assert not torch.equal(other.output, trace.output)
    alone = opened(tmp_path, alone=True)
    assert alone.trace("a cat").fidelity.ok
    with pytest.raises(av.UnusableText, match=r"a text alone.*alone=True"):
        model.trace("a cat")


def test_where_its_audio_cannot_be_prepared_it_reads_text_and_says_so_of_audio(tmp_path: Path) -> None:
    sound_families.publish("qwen2_audio", tmp_path)
    path = tmp_path / "processor_config.json"
    told = json.loads(path.read_text())
    told["feature_extractor"]["feature_extractor_type"] = "NowhereFeatureExtractor"
    path.write_text(json.dumps(told))
    model = opened(tmp_path)
    assert model.trace("a cat").fidelity.ok
    with pytest.raises(av.UnusableSound, match=r"no text with audio here; can't load the processor .* and audio: \S"):
        model.trace("a cat", sound=SOUND)


def broken(folder: Path) -> None:
    """A processor that is of another package."""
    for file in ("processor_config.json", "preprocessor_config.json"):
        if (path := folder / file).is_file():
            told = json.loads(path.read_text())
            told.get("image_processor", told)["image_processor_type"] = "NowhereImageProcessor"
            path.write_text(json.dumps(told))


def test_where_its_processor_cannot_be_loaded_it_says_so_of_a_picture(tmp_path: Path) -> None:
    saved(llava, tmp_path)
    broken(tmp_path)
    model = opened(tmp_path)
    assert model.trace("a cat").fidelity.ok
    with pytest.raises(av.UnusablePicture, match=r"; can't load the processor of .* for texts and images: \S"):
        model.trace("a cat", picture=PICTURE)


def test_what_cannot_read_text_alone_is_refused_with_both_reasons(tmp_path: Path) -> None:
    saved(clip, tmp_path)
    broken(tmp_path)
    with pytest.raises(av.UnsupportedModel, match=r"text alone.* beside an image fails, too: can't load the processor"):
        opened(tmp_path)


def test_a_picture_is_processed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved(git, tmp_path)
    model = opened(tmp_path)
    processor = cast("Any", model.reader)._processor
    calls, own = list[object](), type(processor.image_processor).__call__

    def counted(self: Any, *images: Any, **how: Any) -> Any:
        calls.append(images)
        return own(self, *images, **how)

    monkeypatch.setattr(type(processor.image_processor), "__call__", counted)
    trace = model.trace("a cat", picture=PICTURE)
    assert len(calls) == 1
    seen = trace.seen.picture
    assert seen is not None
    assert np.asarray(seen).shape == (32, 32, 3)


@pytest.mark.parametrize("way", [reading.own_reader, reading.reader_of_both])
def test_a_load_that_nobody_waits_for_ends_while_its_processor_is_loaded(
    way: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved(llava, tmp_path)
    monkeypatch.setattr(reading, "main_input", lambda _: "pixel_values")
    monkeypatch.setattr(process.Process, "ask", lambda _, request, check: check())

    def stop() -> None:
        raise LoadCancelled("nobody waits for it")

    with pytest.raises(LoadCancelled):
        way(check_folder(tmp_path, "one"), None, stop, apart=True)
