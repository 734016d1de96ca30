"""Which reader a model needs, by what its forward takes first and what its processor is."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attention_viz.errors import UnsupportedModel
from attention_viz.inputs.media.readers import PICTURE, SPEECH, PictureReader, Reader, SoundReader, TensorReader

if TYPE_CHECKING:
    from transformers.modeling_utils import PreTrainedModel

__all__ = ["example_reader", "kind_of", "main_input", "reader_of"]


def main_input(model: "PreTrainedModel") -> str:
    """What a model's forward takes first, by its name there: "input_ids" of one that reads text."""
    return str(getattr(model, "main_input_name", "input_ids"))


def reader_of(name: str, model: "PreTrainedModel", processor: Any) -> Reader:
    """The reader of a model of pictures or sounds."""
    main = main_input(model)
    pictures = getattr(processor, "image_processor", processor)
    sounds = getattr(processor, "feature_extractor", processor)
    if main == PICTURE and hasattr(pictures, "image_mean"):
        return PictureReader(name, pictures)
    if main in SPEECH and hasattr(sounds, "sampling_rate"):
        return SoundReader(name, sounds, main)
    raise UnsupportedModel(
        f"{name} takes {main}, and its processor is {kind_of(processor)}: read are pictures ({PICTURE}, an image "
        f"processor) and sounds ({' or '.join(SPEECH)}, a feature extractor); others can be wrapped with "
        "inputs=, tensors of one row by name"
    )


def kind_of(processor: Any) -> str:
    """Return what a processor is, by the name of its class in transformers."""
    return str(getattr(processor, "kind", type(processor).__name__))


def example_reader(name: str, model: "PreTrainedModel", example: Mapping[str, Any]) -> Reader:
    """The reader of a model that is given tensors as they are."""
    wanted = main_input(model)
    main = wanted if wanted in example and wanted != "input_ids" else _seen_in(example) or next(iter(example), "")
    return TensorReader(name, example, main)


def _seen_in(example: Mapping[str, Any]) -> str | None:
    return next((one for one in example if one.startswith("pixel") or one in SPEECH), None)
