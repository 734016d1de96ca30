"""Import the used parts of transformers in this one place.

Several threads can't enter its lazy modules at once: the second finds names missing. Python lets one thread import this
module while the others wait, so names taken from here are always there.

Names come from the modules that define them: a type checker would have to read all of transformers for the others.
"""

import importlib
import json
from pathlib import Path
from typing import Any

from transformers.configuration_utils import PreTrainedConfig
from transformers.generation.configuration_utils import GenerationConfig
from transformers.generation.utils import GenerationMixin
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS, AttentionMaskInterface
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS, AttentionInterface, PreTrainedModel
from transformers.models.auto.configuration_auto import AutoConfig
from transformers.models.auto.modeling_auto import AutoModel
from transformers.models.auto.tokenization_auto import AutoTokenizer
from transformers.tokenization_utils_base import BatchEncoding, PreTrainedTokenizerBase

# Whatever else it has, by name.
transformers: Any = importlib.import_module("transformers")
__all__ = [
    "ALL_ATTENTION_FUNCTIONS",
    "ALL_MASK_ATTENTION_FUNCTIONS",
    "AttentionInterface",
    "AttentionMaskInterface",
    "AutoConfig",
    "AutoModel",
    "AutoTokenizer",
    "BatchEncoding",
    "GenerationConfig",
    "GenerationMixin",
    "PreTrainedConfig",
    "PreTrainedModel",
    "PreTrainedTokenizerBase",
    "read_both",
    "read_processor",
    "sdpa_attention_forward",
    "transformers",
]


def read_processor(folder: Path) -> Any:
    """Load a folder's image processor or feature extractor, without foreign code."""
    config = json.loads((folder / "preprocessor_config.json").read_text(encoding="utf-8"))
    kind = transformers.AutoFeatureExtractor if "feature_extractor_type" in config else transformers.AutoImageProcessor
    return kind.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)


def read_both(folder: Path) -> Any:
    """Load a folder's processor for text beside images, without foreign code."""
    return transformers.AutoProcessor.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)
