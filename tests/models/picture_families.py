"""Tiny models of many families that read a text beside images, with random weights and processors of their own."""

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from numpy.typing import NDArray
from PIL import Image
from tokenizers import Tokenizer, models, pre_tokenizers
from torch import Tensor
from transformers import AddedToken

from scripts.seen.building import seen_families, tiny_seen
from scripts.tiny import scaled

_ROWS = [f"<row_{row}_col_{column}>" for row in (1, 2, 3) for column in (1, 2, 3)]
_SPECIAL = [
    *"[PAD] [UNK] <s> </s> <image> <start> <end> <video> <fake_token_around_image> <end_of_utterance>".split(),
    *"<global-img> TILE _GLOBAL TILE_1 TILE_2 TILE_3 TILE_4".split(),
    "\n\n",
    "\n",
    *_ROWS,
]
WORDS = [*_SPECIAL, *"what is on this picture ? a cat dog mat of the red blue image user assistant :".split()]
IMAGE = WORDS.index("<image>")
_NAMED = {
    **dict.fromkeys(("image_token", "context_image_token"), "<image>"),
    **dict.fromkeys(("boi_token", "start_image_token", "image_start_token", "vision_start_token"), "<start>"),
    **dict.fromkeys(("eoi_token", "end_image_token", "image_end_token", "vision_end_token"), "<end>"),
    "video_token": "<video>",
}
_SIDE: dict[str, Any] = {"size": {"height": 32, "width": 32}}
_TILES: dict[str, Any] = {"image_grid_pinpoints": [[64, 64], [32, 64], [64, 32]]}
_T: Any = transformers
# A picture of 64 × 96 pixels, which packed families read in 8 × 12 patches, merged 2 × 2.
PIXELS = np.random.default_rng(0).integers(0, 256, (64, 96, 3), dtype=np.uint8)
TEMPLATE = (
    "{% for message in messages %}{{ message.role }} : {% for part in message.content %}"
    "{% if part.type == 'image' %}<image> {% else %}{{ part.text }} {% endif %}{% endfor %}{% endfor %}assistant :"
)


def tokenizer() -> Any:
    """Return a tokenizer of words between spaces; special tokens need none."""
    numbers = {word: at for at, word in enumerate(WORDS)}
    made: Any = Tokenizer(models.WordLevel(numbers, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    found = _T.PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="[PAD]", unk_token="[UNK]", bos_token="<s>", eos_token="</s>",
        extra_special_tokens=_NAMED,
    )  # fmt: skip
    found.add_tokens([AddedToken(one, special=True, normalized=False) for one in _SPECIAL[4:]], special_tokens=True)
    return found


def lenient(name: str) -> Any:
    """Return a processor's class that takes any parts: its own video processor needs torchvision."""

    def check(_self: object, _name: str, _given: object) -> None:
        """Take what is there."""

    return type(name, (getattr(_T, name),), {"check_argument_for_proper_class": check})


def _made(name: str, *given: Any, **settings: Any) -> Any:
    """Build a processor without its video processor."""
    return lenient(name)(*given, chat_template=TEMPLATE, **settings)


def _packed(name: str, pictures: str, frames: int) -> Any:
    size = {"shortest_edge": 32 * 32, "longest_edge": 128 * 128}
    made = getattr(_T, pictures)(patch_size=8, merge_size=2, temporal_patch_size=frames, size=size)
    return _made(name, made, tokenizer())


def _llava() -> Any:
    return _made(
        "LlavaProcessor", _T.CLIPImageProcessorPil(**_SIDE, do_center_crop=False), tokenizer(), patch_size=8,
        vision_feature_select_strategy="default", num_additional_image_tokens=1,
    )  # fmt: skip


def _paligemma() -> Any:
    pictures = _T.SiglipImageProcessorPil(**_SIDE)
    pictures.image_seq_length = 16
    return _made("PaliGemmaProcessor", pictures, tokenizer())


def _idefics(size: int) -> Any:
    pictures = _T.Idefics3ImageProcessorPil(
        size={"longest_edge": size}, max_image_size={"longest_edge": 32}, do_image_splitting=size > 32
    )
    return _made("Idefics3Processor", pictures, tokenizer(), image_seq_len=4)


def _hunyuan() -> Any:
    pictures = _T.HunYuanVLImageProcessorPil(
        patch_size=8, merge_size=2, temporal_patch_size=1, min_pixels=32 * 32, max_pixels=128 * 128
    )
    return _made("HunYuanVLProcessor", pictures, tokenizer())


def _llava_next() -> Any:
    cut = {"shortest_edge": 32}
    pictures = _T.LlavaNextImageProcessorPil(size=cut, crop_size={"height": 32, "width": 32}, **_TILES)
    return _made("LlavaNextProcessor", pictures, tokenizer(), patch_size=8, vision_feature_select_strategy="default",
                 num_additional_image_tokens=1)  # fmt: skip


def _onevision() -> Any:
    pictures = _T.LlavaOnevisionImageProcessorPil(**_SIDE, **_TILES)
    return _made("LlavaOnevisionProcessor", pictures, tokenizer(), num_image_tokens=16,
                 vision_feature_select_strategy="full")  # fmt: skip


def _internvl(tiles: int) -> Any:
    pictures = _T.GotOcr2ImageProcessorPil(**_SIDE, crop_to_patches=tiles > 1, min_patches=1, max_patches=tiles)
    return _made("InternVLProcessor", pictures, tokenizer(), image_seq_length=4)


def _aya(tiles: int) -> Any:
    pictures = _T.GotOcr2ImageProcessorPil(**_SIDE, crop_to_patches=tiles > 1, max_patches=tiles)
    return _made("AyaVisionProcessor", pictures, tokenizer(), patch_size=8, img_size=32, downsample_factor=2,
                 start_of_img_token="<start>", end_of_img_token="<end>", img_patch_token="<image>")  # fmt: skip


PROCESSORS: dict[str, Callable[[], Any]] = {
    "qwen2_vl": lambda: _packed("Qwen2VLProcessor", "Qwen2VLImageProcessorPil", 2),
    "qwen2_5_vl": lambda: _packed("Qwen2_5_VLProcessor", "Qwen2VLImageProcessorPil", 2),
    "qwen3_vl": lambda: _packed("Qwen3VLProcessor", "Qwen2VLImageProcessorPil", 2),
    "qwen3_5": lambda: _packed("Qwen3VLProcessor", "Qwen2VLImageProcessorPil", 2),
    "glm4v": lambda: _packed("Glm4vProcessor", "Glm4vImageProcessorPil", 2),
    "paddleocr_vl": lambda: _packed("PaddleOCRVLProcessor", "PaddleOCRVLImageProcessorPil", 1),
    "hunyuan_vl": _hunyuan,
    "llava": _llava,
    "vipllava": _llava,
    "paligemma": _paligemma,
    "gemma3": lambda: _made("Gemma3Processor", _T.Gemma3ImageProcessorPil(**_SIDE), tokenizer(), image_seq_length=16),
    "idefics3": lambda: _idefics(64),
    "internvl": lambda: _internvl(6),
    "llava_next": _llava_next,
    "llava_onevision": _onevision,
    "aya_vision": lambda: _aya(4),
}
# Those that read an image as one, and single tiles of those that cut it.
WHOLE: dict[str, Callable[[], Any]] = {
    **{name: made for name, made in PROCESSORS.items() if not name.startswith("llava_")},
    "idefics3": lambda: _idefics(32),
    "internvl": lambda: _internvl(1),
    "aya_vision": lambda: _aya(1),
    "qwen3_vl_moe": PROCESSORS["qwen3_vl"],
    "glm4v_moe": PROCESSORS["glm4v"],
}
# How a text names its image, if not by "<image>".
_PLACES = {"gemma3": "<start>", "hunyuan_vl": "<start><image><end>"}


def text_of(family: str, pictures: int = 1) -> str:
    """Return a question with a place for each image."""
    return f"what is {' the '.join([_PLACES.get(family, '<image>')] * pictures)} this ?"


@functools.cache
def tiny_of(family: str) -> Any:
    """Return a family's tiny model, whose heads are sharp."""
    found = {one.name: one for one in seen_families()}[family]
    model: Any = scaled(next(tiny_seen(found)), 8)
    for name in ("image_token_id", "image_token_index"):
        if hasattr(model.config, name):
            setattr(model.config, name, IMAGE)
    if hasattr(model.config, "image_grid_pinpoints"):
        model.config.image_grid_pinpoints = _TILES["image_grid_pinpoints"]
        model.config.text_config.max_position_embeddings = 128
    return model.eval()


def publish(family: str, folder: Path) -> Any:
    """Save a family's tiny model as published ones are saved; return its processor.

    A processor that reads videos, too, is named by its own class: without torchvision it can't be saved whole.
    """
    processor = PROCESSORS[family]()
    tiny_of(family).save_pretrained(folder)
    if getattr(processor, "video_processor", processor) is not None:
        processor.save_pretrained(folder)
        return processor
    processor.image_processor.save_pretrained(folder)
    processor.tokenizer.save_pretrained(folder)
    file = folder / "preprocessor_config.json"
    settings = json.loads(file.read_text())
    settings["image_processor_type"] = settings["image_processor_type"].removesuffix("Pil")
    file.write_text(json.dumps({**settings, "processor_class": type(processor).__name__}))
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    return processor


def tensors_of(processor: Any, text: str, pixels: "list[NDArray[np.uint8]]") -> dict[str, Tensor]:
    """Return a processor's tensors of a text beside images."""
    opened = [Image.fromarray(one) for one in pixels]
    made = processor(text=text, images=opened[0] if len(opened) == 1 else opened, return_tensors="pt")
    return {name: one for name, one in made.items() if isinstance(one, torch.Tensor) and name != "labels"}
