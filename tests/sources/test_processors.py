"""Processors of texts with images, loaded from folders as they are published."""

from pathlib import Path

import pytest
import torch

from attention_viz.sources import processors
from attention_viz.sources.huggingface import transformers
from tests.models.picture_families import PIXELS, publish, tensors_of, text_of

FAMILIES = ["qwen2_vl", "qwen2_5_vl", "qwen3_vl"]


@pytest.fixture(autouse=True)
def without_torchvision() -> None:
    if transformers.utils.is_torchvision_available():
        pytest.skip("with torchvision, transformers loads them whole")


@pytest.mark.parametrize("family", FAMILIES)
def test_one_that_reads_videos_too_reads_images_without_torchvision(family: str, tmp_path: Path) -> None:
    theirs = publish(family, tmp_path)
    with pytest.raises(ImportError, match="Torchvision"):
        transformers.AutoProcessor.from_pretrained(str(tmp_path), local_files_only=True)
    found = processors.read_both(tmp_path)
    assert type(found).__name__ == type(theirs).__name__ and found.video_processor is None
    wanted, made = (tensors_of(one, text_of(family), [PIXELS]) for one in (theirs, found))
    assert wanted.keys() == made.keys()
    assert all(torch.equal(wanted[name], made[name]) for name in wanted)
    assert found.chat_template == theirs.chat_template


def test_one_whose_class_no_file_names_is_not_taken_for_one_that_reads_both(tmp_path: Path) -> None:
    publish("qwen2_vl", tmp_path)
    file = tmp_path / "preprocessor_config.json"
    file.write_text(file.read_text().replace("Qwen2VLProcessor", "Path"))
    # Transformers then loads its tokenizer alone, which reads no image.
    assert getattr(processors.read_both(tmp_path), "image_processor", None) is None
