"""Build any image or audio family of transformers as a tiny model with random weights."""

import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

import torch
from transformers.configuration_utils import PreTrainedConfig
from transformers.modeling_utils import PreTrainedModel
from transformers.models.auto import modeling_auto
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from attention_viz.recording.outputs.breaking import failing
from scripts.seen.changes import CHANGES, merged
from scripts.seen.reading import PICTURES, SOUNDS
from scripts.tiny import Family, part_of, small_changes

__all__ = ["seen_families", "tiny_seen", "why_not"]

# Of these tasks the first whose class a family has is the one that is tried; one that writes words before one that
# doesn't.
_TASKS = ("MODEL_FOR_SPEECH_SEQ_2_SEQ", "MODEL_FOR_IMAGE_TEXT_TO_TEXT", "MODEL", "MODEL_FOR_BACKBONE")
# Parameters of the largest model that is made, where a family's configuration can't be made small.
_LARGEST = 100_000_000
_SIZES: dict[str, Any] = {
    "image_size": 32,
    "patch_size": 8,
    "num_frames": 4,
    "frames_per_clip": 4,
    "crop_size": 32,
    "num_mel_bins": 16,
    "max_length": 64,
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 4,
    "num_position_embeddings": 64,
    "input_feat_per_channel": 16,
    "conv_channels": 16,
    "num_queries": 5,
    "num_detection_tokens": 5,
    "frequency_stride": 8,
    "time_stride": 8,
}
_LISTS: dict[str, Any] = {"image_size": [32, 32], "patch_size": [8, 8], "tubelet_size": [2, 8, 8]}
# Instead of a backbone of another package one of transformers itself.
_WITHOUT_TIMM: dict[str, Any] = {
    "backbone_config": {"model_type": "resnet", "embedding_size": 8, "hidden_sizes": [8, 8, 16, 16],
                        "depths": [1, 1, 1, 1], "out_features": ["stage2", "stage3", "stage4"]},
}  # fmt: skip
# Codebooks, by the names of their buffers.
_CODES = ("embed", "embed_sum")
# Packages that can't be installed by their name, with the reason.
_PACKAGES = {
    "detectron2": "which PyPI doesn't have",
    "natten": "which PyPI has only as a source to compile",
}
_SHARING = (
    "its configuration requires that all layers take their keys and values from others, and its layers refuse that"
)
_CONTRADICTIONS = {"gemma4_assistant": _SHARING, "gemma4_unified_assistant": _SHARING}
# Those that no other backbone fits.
_ONLY_WITH_TIMM = ("edgetam_vision_model", "omdet-turbo", "timm_backbone")


def seen_families() -> Iterator[Family]:
    """List every family of the installed transformers whose forward takes an image or audio, with one class each."""
    for name in sorted(CONFIG_MAPPING):
        found = (getattr(modeling_auto, f"{task}_MAPPING_NAMES", {}).get(name) for task in _TASKS)
        named = next((one for one in found if one), None) or part_of(name)
        chosen = named[0] if isinstance(named, tuple | list) else named
        if chosen and _reads(chosen):
            yield Family(name, chosen)


def _reads(model_class: str) -> bool:
    try:
        named = inspect.signature(getattr(importlib.import_module("transformers"), model_class).forward).parameters
    except (AttributeError, ImportError):
        return False
    return bool({*PICTURES, *SOUNDS} & {*named})


def tiny_seen(family: Family, *, seed: int = 7) -> Iterator[PreTrainedModel]:
    """Yield a family's models to try, with the same weights every time: a tiny one, and the default."""
    model_class = getattr(importlib.import_module("transformers"), family.model_class)
    errors, made = list[Exception](), 0
    config_class = CONFIG_MAPPING[family.name]  # one class may serve several families, such as TimmWrapperModel
    for changes in _ways(config_class()):
        try:
            config = config_class(**changes)
            with torch.device("meta"):
                size = sum(one.numel() for one in model_class(config).parameters())
            if size > _LARGEST:
                raise ValueError(f"it has {size / 1e6:.0f} million parameters, and the most that is tried is 100")
            torch.manual_seed(seed)
            model = _filled(model_class(config).float().eval())
        except Exception as error:  # whatever a family's own code says to sizes that don't fit
            errors.append(error)
        else:
            made += 1
            yield model
    if not made:
        raise errors[0]


def why_not(family: Family, error: BaseException) -> str:
    """Return why a family can't be built here."""
    if package := re.search(r"requires the (\S+) library", str(error)):
        missing = _PACKAGES.get(package[1], "which isn't installed")
        return f"needs the package {package[1]}, {missing}"
    if family.name in _CONTRADICTIONS:
        return f"transformers itself can't build it: {_CONTRADICTIONS[family.name]}"
    if (own := _broken(family)) is not None:
        return f"transformers itself can't build it from its own default configuration: {failing(own)}"
    return f"no input was found that it reads: {failing(error)}"


def _broken(family: Family) -> Exception | None:
    """Return the error of a family's class with its own default configuration; None if it can be built."""
    model_class = getattr(importlib.import_module("transformers"), family.model_class)
    try:
        with torch.device("meta"):
            model_class(CONFIG_MAPPING[family.name]())
    except Exception as error:  # whatever a family's own code says
        return error
    return None


def _filled(model: PreTrainedModel) -> PreTrainedModel:
    """Replace a model's matrices and codebooks of zeros, which would block the input."""
    with torch.no_grad():
        for weights in model.parameters():
            if weights.ndim > 1 and weights.numel() and not bool(weights.any()):
                weights.normal_(0, 0.02)
        for name, codes in model.named_buffers():
            if name.rpartition(".")[2] in _CODES and not bool(codes.any()):
                codes.normal_()
    return model


def _ways(usual: PreTrainedConfig) -> Iterator[dict[str, Any]]:
    """Return replacements for a configuration's own values."""
    backbone = getattr(usual, "backbone_config", None)
    other = getattr(backbone, "model_type", "").startswith("timm") and usual.model_type not in _ONLY_WITH_TIMM
    own = _WITHOUT_TIMM if other else {}
    changes = merged({**_changes(usual), **own}, CHANGES.get(usual.model_type, {}))
    if "decoder" in changes and isinstance(changes["decoder"], dict):
        changes["decoder"] |= {"is_decoder": True, "add_cross_attention": True}
    yield changes
    yield own


def _changes(usual: PreTrainedConfig) -> dict[str, Any]:
    """Shrink a configuration as for text, with image and audio sizes, nested parts included."""
    changes = small_changes(usual)
    config = usual.to_dict()
    for name, size in _SIZES.items():
        if isinstance(config.get(name), int) and not isinstance(config[name], bool):
            changes[name] = size
    for name, sizes in _LISTS.items():
        if isinstance(config.get(name), list | tuple) and len(config[name]) == len(sizes):
            changes[name] = sizes
    for name in usual.sub_configs:
        if isinstance(part := getattr(usual, name, None), PreTrainedConfig):
            changes[name] = {"model_type": part.model_type, **_changes(part)}
    return changes
