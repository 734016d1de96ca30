"""A processor in a process of its own makes of pictures and sounds what it makes in this one, within bounds."""

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from PIL import Image

import attention_viz as av
from attention_viz.inputs.media import processor_apart
from attention_viz.inputs.media.processor_apart import IsolatedProcessor
from attention_viz.inputs.media.readers import PictureReader, SoundReader
from attention_viz.sources.bounded.limits import Limits
from tests.models.test_text_beside_picture import PICTURE, llava

# From which folders are tried, so that the tests start no other.
IMAGE = "attention_viz.models.loading.dry_run"
SOUND = av.Sound(np.random.default_rng(1).normal(0, 0.1, 16_000).clip(-1, 1), 16_000)


def same(one: Any, other: Any) -> None:
    assert list(one) == list(other)
    for name in one:
        assert one[name].dtype == other[name].dtype and torch.equal(one[name], other[name]), name


def test_it_makes_the_same_of_a_picture(tmp_path: Path) -> None:
    here = transformers.CLIPImageProcessor(size={"height": 32, "width": 32}, do_center_crop=False)
    here.save_pretrained(tmp_path)
    apart = IsolatedProcessor.load(tmp_path, "one", image=IMAGE)
    one, other = (PictureReader("one", processor).read(PICTURE) for processor in (here, apart))
    same(one.tensors, other.tensors)
    assert one.notes == other.notes and torch.equal(one.seen.picture, other.seen.picture)  # pyright: ignore


def test_it_makes_the_same_of_a_sound(tmp_path: Path) -> None:
    here = transformers.WhisperFeatureExtractor(feature_size=8, chunk_length=2)
    here.save_pretrained(tmp_path)
    apart = IsolatedProcessor.load(tmp_path, "one", image=IMAGE)
    one, other = (SoundReader("one", processor, "input_features") for processor in (here, apart))
    assert one.window == other.window == 2.0
    same(one.read(SOUND).tensors, other.read(SOUND).tensors)


def test_it_makes_the_same_of_a_text_beside_a_picture(tmp_path: Path) -> None:
    here = llava()[1]
    here.save_pretrained(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llava"}))
    apart = IsolatedProcessor.load(tmp_path, "one", both=True, image=IMAGE)
    assert apart.kind == "LlavaProcessor" and apart.tokenizer and apart.image_token == here.image_token
    assert list(apart.image_processor.image_mean) == list(here.image_processor.image_mean)
    picture = Image.fromarray(PICTURE.pixels)
    text = "what is <image> this ?"
    same(dict(here(text=text, images=picture, return_tensors="pt")), apart(text=text, images=picture))


def test_one_that_enlarges_a_picture_without_bounds_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = Limits(memory=200_000_000, seconds=5, processor=5, answer=20_000_000)
    monkeypatch.setattr(processor_apart, "LIMITS", limits)
    transformers.CLIPImageProcessor(size={"height": 30_000, "width": 30_000}).save_pretrained(tmp_path)
    apart = IsolatedProcessor.load(tmp_path, "one", image=IMAGE)
    begun = time.monotonic()
    with pytest.raises(av.UnusablePicture, match=r"one's processor (takes (more|longer) than|failed on)"):
        PictureReader("one", apart).read(PICTURE)
    assert time.monotonic() - begun < 20


def test_one_that_makes_more_numbers_than_are_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor_apart, "LIMITS", Limits(memory=500_000_000, answer=1_000_000))
    transformers.CLIPImageProcessor(size={"height": 400, "width": 400}, do_center_crop=False).save_pretrained(tmp_path)
    with pytest.raises(av.UnusablePicture, match=r"one's processor gives an answer of more than 1 MB"):
        PictureReader("one", IsolatedProcessor.load(tmp_path, "one", image=IMAGE)).read(PICTURE)


@pytest.mark.parametrize("shape", [[2**32, 2**32], [-1], [1.5], ["2"], [True], [0, 2**62]])
def test_a_shape_that_is_none_is_refused(shape: list[Any]) -> None:
    with pytest.raises(
        av.UnusableText, match=r"the processor makes (pixels of unsupported type|too few numbers for pixels)"
    ):
        processor_apart._tensors([("pixels", "<f4", shape)], bytes(8))  # pyright: ignore[reportPrivateUsage]
