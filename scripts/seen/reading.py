"""Find an input that an image or audio model of any family reads."""

import copy
import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from transformers.configuration_utils import PreTrainedConfig
from transformers.modeling_utils import PreTrainedModel

from scripts.seen.inputs import MORE, READS, noise
from scripts.tiny import VOCABULARY, scaled

__all__ = ["PICTURES", "SOUNDS", "UnreadError", "depends", "example_of"]

# Where models take pictures and sounds, by the name of that in their forward.
PICTURES = ("pixel_values", "pixel_values_videos")
SOUNDS = ("input_features", "input_values")
# What says which frames of a sound are some.
_MASKS = ("input_features_mask", "feature_attention_mask")
# What some take beside the pixels.
_MORE_OF_A_PICTURE: dict[str, Callable[[int], Tensor]] = {
    "image_sizes": lambda side: torch.tensor([[side, side]]),
    "bbox": lambda _side: torch.zeros(1, 7, 4, dtype=torch.long),
    "pixel_mask": lambda side: torch.ones(1, side, side, dtype=torch.long),
}
# Ids of a text, different from each other and none of them special.
_IDS = (11, 22, 33, 44, 55, 66, 77)


class UnreadError(ValueError):
    """A model ran, but its output doesn't depend on the image or audio."""

    def __init__(self, inputs: dict[str, Tensor]) -> None:
        """Keep its inputs."""
        super().__init__("its output doesn't depend on the image or audio")
        self.inputs = inputs


def example_of(model: PreTrainedModel) -> dict[str, Tensor]:
    """Return the first candidate input with which a model runs."""
    errors = list[Exception]()
    for inputs in _candidates(model):
        for whole in _with_text(model, inputs):
            try:
                if _is_read(model, whole):
                    return whole
            except Exception as error:  # whatever a family's own code says to what it can't read
                errors.append(error)
            else:
                errors.append(UnreadError(whole))
    raise _telling(errors) if errors else ValueError("its forward takes neither an image nor audio")


def _telling(errors: list[Exception]) -> Exception:
    """Return the most informative of many errors: the first that isn't about a missing input."""
    unread = next((one for one in errors if isinstance(one, UnreadError)), None)
    return unread or next(
        (one for one in errors if "missing" not in str(one) and "NoneType" not in str(one)), errors[0]
    )


def _run(model: PreTrainedModel, inputs: dict[str, Tensor]) -> Any:
    with torch.no_grad():
        return model(**inputs)


def _is_read(model: PreTrainedModel, inputs: dict[str, Tensor]) -> bool:
    """Return whether a model's output depends on its image or audio.

    Try larger weights, too, since rounding may hide it at their usual size.
    """
    return any(depends(one, inputs) for one in (model, scaled(copy.deepcopy(model), 4)))


def depends(model: PreTrainedModel, inputs: dict[str, Tensor]) -> bool:
    """Return whether another image or audio changes the output."""
    other = {name: one.flip(-1) if name in (*PICTURES, *SOUNDS) else one for name, one in inputs.items()}
    outputs, again = (_tensors(_run(model, one)) for one in (inputs, other))
    return any(one.shape != two.shape or not torch.equal(one, two) for one, two in zip(outputs, again, strict=True))


def _tensors(found: Any) -> list[Tensor]:
    if isinstance(found, Tensor):
        return [found]
    values = found.values() if isinstance(found, dict) else found if isinstance(found, tuple | list) else ()
    return [one for part in values for one in _tensors(part)]


def _candidates(model: PreTrainedModel) -> Iterator[dict[str, Tensor]]:
    named = inspect.signature(model.forward).parameters
    if (reads := READS.get(model.config.model_type)) is not None:
        yield reads()
    sound, picture = ([one for one in names if one in named] for names in (SOUNDS, PICTURES))
    for name in sorted((*picture, *sound), key=lambda one: one != model.main_input_name):
        for inputs in _pictures(model, name) if name in PICTURES else _sounds(model, name):
            yield inputs
            if name == "input_features":
                long = torch.ones(1, max(inputs[name].shape[1:]), dtype=torch.long)
                yield from ({**inputs, mask: long} for mask in _MASKS if mask in named)


def _pictures(model: PreTrainedModel, name: str) -> Iterator[dict[str, Tensor]]:
    part, named = _part(model.config, "vision"), inspect.signature(model.forward).parameters
    colours = next((n for n in (getattr(part, one, None) for one in ("num_channels", "in_channels")) if n), 3)
    usual = getattr(part, "image_size", None)
    usual = usual[0] if isinstance(usual, list | tuple) else usual
    sides = [*dict.fromkeys(one for one in (usual, 32, 64, 224) if isinstance(one, int) and one <= 512)]
    frames = getattr(part, "num_frames", None) or getattr(part, "frames_per_clip", None) or 4
    grid = next((one for one in ("image_grid_thw", "grid_thw", "video_grid_thw") if one in named), None)
    if grid:
        yield from _in_patches(part, name, grid, colours)
    for side in sides:
        one, film = (1, colours, side, side), (1, frames, colours, side, side)
        moving = "video" in name or getattr(part, "num_frames", None) or getattr(part, "frames_per_clip", None)
        for shape in (film, one) if moving else (one, (1, 1, colours, side, side), film):
            yield {name: noise(*shape)}
            for more in _MORE_OF_A_PICTURE:
                if more in named:
                    yield {name: noise(*shape), more: _MORE_OF_A_PICTURE[more](side)}


def _in_patches(part: Any, name: str, grid: str, colours: int) -> Iterator[dict[str, Tensor]]:
    """Return patches for models that read images of any size: one patch per row, and their number."""
    size = getattr(part, "patch_size", 8)
    size = size if isinstance(size, int) else 8
    for times in (getattr(part, "temporal_patch_size", 2) or 1, 1):
        yield {name: noise(16, colours * times * size**2), grid: torch.tensor([[1, 4, 4]])}
    yield {name: noise(1, 16, colours * size**2), grid: torch.tensor([[1, 4, 4]])}
    yield {name: noise(16, colours, size, size), grid: torch.tensor([[1, 4, 4]])}


def _sounds(model: PreTrainedModel, name: str) -> Iterator[dict[str, Tensor]]:
    part = _part(model.config, "sound")
    sizes = ("num_mel_bins", "input_feat_per_channel", "feature_projection_input_dim", "feature_size", "input_dim")
    bins = next((size for one in sizes if isinstance(size := getattr(part, one, None), int)), 80)
    window = 2 * (getattr(part, "max_source_positions", None) or 32)
    length = getattr(part, "max_length", None)
    lengths = [*dict.fromkeys((window, length if isinstance(length, int) else 64, 64, 100))]
    spectra = [{name: noise(1, *shape)} for long in lengths for shape in ((bins, long), (long, bins))]
    waves = [{name: 0.1 * noise(*shape)} for long in (4000, 16_000) for shape in ((1, long), (1, 1, long))]
    yield from (waves + spectra if name == "input_values" else spectra + waves)


def _part(config: Any, kind: str) -> Any:
    """Return a configuration's image or audio part; the whole configuration if it has none."""
    names = ("vision_config", "backbone_config", "encoder") if kind == "vision" else ("audio_config", "encoder_config")
    found = next((part for name in names if isinstance(part := getattr(config, name, None), PreTrainedConfig)), None)
    inner = getattr(config, "thinker_config", None)
    return found or (_part(inner, kind) if inner is not None else config)


def _with_text(model: PreTrainedModel, inputs: dict[str, Tensor]) -> Iterator[dict[str, Tensor]]:
    """Yield inputs with a forward's other arguments: a text with placeholders, and the decoder's ids."""
    named = inspect.signature(model.forward).parameters
    inputs = {**inputs, **{name: one for name, one in MORE.items() if name in named}}
    needed = "input_ids" in named and named["input_ids"].default is inspect.Parameter.empty
    if "decoder_input_ids" in named and not needed:
        yield {**inputs, "decoder_input_ids": torch.tensor([[1, 7, 9, 12]])}
    if "input_ids" not in named:
        yield from () if "decoder_input_ids" in named else (inputs,)
        return
    counts = [*dict.fromkeys(_places_wanted(model, inputs))]
    for count in counts:
        ids = torch.tensor([[*_IDS[:3], *[_placeholder(model.config, inputs)] * count, *_IDS[3:]]]) % VOCABULARY
        whole = {**inputs, "input_ids": ids, "attention_mask": torch.ones_like(ids)}
        if "decoder_input_ids" in named:
            whole["decoder_input_ids"] = torch.tensor([[1, 7, 9, 12]])
        if "mm_token_type_ids" in named:
            whole["mm_token_type_ids"] = torch.isin(ids, _placeholder(model.config, inputs) or -1).long()
        yield {name: one for name, one in whole.items() if name in named}


def _places_wanted(model: PreTrainedModel, inputs: dict[str, Tensor]) -> Iterator[int]:
    """Yield the possible numbers of placeholders in the text: none, or the number that the model asks for."""
    token = _placeholder(model.config, inputs)
    if token is None:
        yield 0
        return
    ids = torch.tensor([[*_IDS[:3], *[token] * 3, *_IDS[3:]]])
    try:
        _run(model, {**inputs, "input_ids": ids, "attention_mask": torch.ones_like(ids)})
    except Exception as error:  # it says how many it has and how many it wants
        yield from (number for number in map(int, re.findall(r"\d+", str(error))) if 0 < number <= 512)
        width = getattr(model.config.get_text_config(), "hidden_size", 0) or 1
        yield from (number // width for number in map(int, re.findall(r"\d+", str(error))) if 0 < number // width < 512)
    else:
        yield 3
    yield 0


def _placeholder(config: Any, inputs: dict[str, Tensor]) -> int | None:
    """Return the placeholder id of an image or audio part."""
    kinds = ("video", "image") if "pixel_values_videos" in inputs else ("image",)
    kinds = ("audio", "speech") if {*SOUNDS} & {*inputs} else kinds
    names = [f"{kind}_token_{ending}" for kind in kinds for ending in ("id", "index")]
    inner = [getattr(config, name, None) for name in ("thinker_config", "vlm_config", "encoder")]
    return next(
        (
            found
            for one in (config, *inner)
            for name in names
            if isinstance(found := getattr(one, name, None), int) and not isinstance(found, bool)
        ),
        None,
    )
