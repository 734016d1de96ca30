"""Tiny models that read a text beside a video, with processors that need no torchvision."""

import copy
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
import transformers
from numpy.typing import NDArray
from PIL import Image
from transformers.video_utils import VideoMetadata

from attention_viz.models.model import AttentionModel
from attention_viz.models.wrapping import wrap
from tests.models.picture_families import WORDS, lenient, tiny_of, tokenizer

_T: Any = transformers
VIDEO = WORDS.index("<video>")
# Five frames of 32 × 64 pixels: 4 × 8 patches, merged 2 × 2, and two frames at a time.
FRAMES = np.random.default_rng(0).integers(0, 256, (5, 32, 64, 3), dtype=np.uint8)
FAMILIES = {
    "qwen2_vl": "Qwen2VLProcessor",
    "qwen2_5_vl": "Qwen2_5_VLProcessor",
    "qwen3_vl": "Qwen3VLProcessor",
    "qwen3_vl_moe": "Qwen3VLProcessor",
    "qwen3_5": "Qwen3VLProcessor",
}
TEMPLATE = (
    "{% for message in messages %}{{ message.role }} : {% for part in message.content %}"
    "{% if part.type == 'video' %}<video> {% else %}{{ part.text }} {% endif %}{% endfor %}{% endfor %}assistant :"
)


class FrameProcessor:
    """What transformers' video processor of Qwen2-VL does, by its image processor: `frames` go into one patch."""

    merge_size, temporal_patch_size = 2, 2

    def __init__(self, pictures: Any) -> None:
        self._pictures = pictures

    def __call__(
        self, videos: Sequence[NDArray[np.uint8]], video_metadata: Sequence[dict[str, Any]], **_how: object
    ) -> dict[str, Any]:
        (frames,), together = videos, self.temporal_patch_size
        several = [*frames, *[frames[-1]] * (-len(frames) % together)]
        made = [self._pictures(images=Image.fromarray(one), return_tensors="pt") for one in several]
        rows = torch.stack([one["pixel_values"] for one in made])  # each frame stands in all places of its patches
        apart = rows.view(len(several) // together, together, rows.shape[1], 3, together, -1)
        patches = torch.stack([apart[:, at, :, :, at] for at in range(together)], dim=3)
        _, height, width = made[0]["image_grid_thw"][0].tolist()
        return {
            "pixel_values_videos": patches.reshape(-1, rows.shape[-1]),
            "video_grid_thw": torch.tensor([[len(apart), height, width]]),
            "video_metadata": [VideoMetadata(**one) for one in video_metadata],
        }


class StackedProcessor:
    """What transformers' video processors of the LLaVA families do, by their image processor: one row per frame."""

    def __init__(self, pictures: Any) -> None:
        self._pictures = pictures

    def __call__(
        self, videos: Sequence[NDArray[np.uint8]], video_metadata: Sequence[dict[str, Any]], **_how: object
    ) -> dict[str, Any]:
        (frames,) = videos
        made = [self._pictures(images=Image.fromarray(one), return_tensors="pt")["pixel_values"] for one in frames]
        return {
            "pixel_values_videos": torch.cat(made)[None],
            "video_metadata": [VideoMetadata(**one) for one in video_metadata],
        }


def _side() -> Any:
    return _T.CLIPImageProcessorPil(**_SIDE, do_center_crop=False)


def _llava(name: str, *parts: Any, **settings: Any) -> Any:
    return lenient(name)(*parts, chat_template=TEMPLATE, **settings)


def _glm() -> Any:
    size = {"shortest_edge": 32 * 32, "longest_edge": 128 * 128}
    made = _T.Glm4vImageProcessorPil(patch_size=8, merge_size=2, temporal_patch_size=2, size=size)
    words = tokenizer()
    words.add_tokens(MARKS, special_tokens=True)
    return lenient("Glm4vProcessor")(made, words, FrameProcessor(made), chat_template=TEMPLATE)


_SIDE: dict[str, Any] = {"size": {"height": 32, "width": 32}}
_TILES: dict[str, Any] = {"image_grid_pinpoints": [[64, 64], [32, 64], [64, 32]]}
# Marks of GLM-V around a video and around each of its frames.
MARKS = ["<|begin_of_video|>", "<|end_of_video|>", "<|begin_of_image|>", "<|end_of_image|>"]
_CUT: dict[str, Any] = {"vision_feature_select_strategy": "default", "patch_size": 8}
# Families with other placeholders per frame, and their processors.
OTHERS: dict[str, Callable[[], Any]] = {
    "glm4v": _glm,
    "video_llava": lambda: _llava(
        "VideoLlavaProcessor", _side(), StackedProcessor(_side()), tokenizer(), num_additional_image_tokens=1, **_CUT
    ),
    "llava_onevision": lambda: _llava(
        "LlavaOnevisionProcessor",
        _T.LlavaOnevisionImageProcessorPil(**_SIDE, **_TILES),
        tokenizer(),
        StackedProcessor(_side()),
        num_image_tokens=16,
        vision_feature_select_strategy="full",
    ),
    "llava_next_video": lambda: _llava(
        "LlavaNextVideoProcessor",
        StackedProcessor(_side()),
        _T.LlavaNextImageProcessorPil(size={"shortest_edge": 32}, crop_size=_SIDE["size"], **_TILES),
        tokenizer(),
        num_additional_image_tokens=1,
        **_CUT,
    ),
}


def pictures() -> Any:
    """Return the image processor of these families."""
    size = {"shortest_edge": 32 * 32, "longest_edge": 128 * 128}
    return _T.Qwen2VLImageProcessorPil(patch_size=8, merge_size=2, temporal_patch_size=2, size=size)


def processor(family: str) -> Any:
    """Return a family's processor of texts, images and videos."""
    if family in OTHERS:
        return OTHERS[family]()
    found = lenient(FAMILIES[family])
    return found(pictures(), tokenizer(), FrameProcessor(pictures()), chat_template=TEMPLATE)


def model_of(family: str) -> Any:
    """Return a family's tiny model with its video placeholder."""
    model = copy.deepcopy(tiny_of(family))
    model.config.video_token_id = VIDEO
    if family in OTHERS:
        model.config.video_token_index = VIDEO
        model.config.get_text_config().max_position_embeddings = 128
    if family == "glm4v":
        model.config.video_start_token_id, model.config.video_end_token_id = len(WORDS), len(WORDS) + 1
    return model


@functools.cache
def wrapped(family: str) -> AttentionModel:
    """Return it wrapped."""
    return wrap(model_of(family), processor(family))
