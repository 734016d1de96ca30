"""What is used of transformers, imported in this one place.

Its lazy modules can't be entered by several threads at once: the second finds names missing. Python lets one thread
import this module while the others wait, so whoever takes a name from here gets it, however many come at once.

Names are taken from the modules that define them: a type checker would have to read all of transformers for the others.
"""

import importlib
from typing import Any

from transformers.configuration_utils import PreTrainedConfig
from transformers.generation.configuration_utils import GenerationConfig
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS, AttentionMaskInterface
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS, AttentionInterface, PreTrainedModel
from transformers.models.auto.configuration_auto import AutoConfig
from transformers.models.auto.modeling_auto import AutoModel
from transformers.models.auto.tokenization_auto import AutoTokenizer
from transformers.tokenization_utils_base import PreTrainedTokenizerBase

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
    "GenerationConfig",
    "PreTrainedConfig",
    "PreTrainedModel",
    "PreTrainedTokenizerBase",
    "transformers",
]
