"""Load a folder's processor of images, audio, or texts with images, without foreign code."""

import json
from pathlib import Path
from typing import Any

from attention_viz.sources.huggingface import AutoTokenizer, transformers

__all__ = ["read_both", "read_processor"]

_LOCAL: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
# Files that may name the processor's class, in the order in which transformers reads them.
_NAMING = ("processor_config.json", "preprocessor_config.json", "tokenizer_config.json")
_VIDEO = "video_processor"


def read_processor(folder: Path) -> Any:
    """Load a folder's image processor or feature extractor."""
    config = _settings(folder / "preprocessor_config.json")
    kind = transformers.AutoFeatureExtractor if "feature_extractor_type" in config else transformers.AutoImageProcessor
    return kind.from_pretrained(str(folder), **_LOCAL)


def read_both(folder: Path) -> Any:
    """Load a folder's processor of texts with images; without torchvision, it leaves out the part that reads videos."""
    try:
        return transformers.AutoProcessor.from_pretrained(str(folder), **_LOCAL)
    except ImportError:
        kind = _class_of(folder)
        attributes: list[str] = [] if kind is None else kind.get_attributes()
        if _VIDEO not in attributes or transformers.utils.is_torchvision_available():
            raise
        return _without_video(folder, kind, attributes)


def _without_video(folder: Path, kind: Any, attributes: list[str]) -> Any:
    """Build a processor from its other parts, whose answers for texts and images don't depend on that one."""
    loaders = {"tokenizer": AutoTokenizer, "image_processor": transformers.AutoImageProcessor}
    parts = [None if one == _VIDEO else loaders[one].from_pretrained(str(folder), **_LOCAL) for one in attributes]
    settings, _ = kind.get_processor_dict(str(folder), **_LOCAL)

    def check(self: object, name: str, given: object) -> object:
        return None if given is None else kind.check_argument_for_proper_class(self, name, given)

    lenient: Any = type(kind.__name__, (kind,), {"check_argument_for_proper_class": check})
    return lenient.from_args_and_dict(parts, settings)


def _class_of(folder: Path) -> Any:
    """Return the class of a folder's processor; None if its files name none."""
    named = (_settings(folder / file).get("processor_class") for file in _NAMING)
    found = getattr(transformers, str(next(filter(None, named), "")), None)
    return found if isinstance(found, type) and issubclass(found, transformers.ProcessorMixin) else None


def _settings(file: Path) -> dict[str, Any]:
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
