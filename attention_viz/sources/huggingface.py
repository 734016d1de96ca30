"""Import the used parts of transformers in this one place.

Several threads can't enter its lazy modules at once: the second finds names missing. Python lets one thread import this
module while the others wait, so names taken from here are always there.

Names come from the modules that define them: a type checker would have to read all of transformers for the others.
"""

import importlib
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
    "sdpa_attention_forward",
    "transformers",
]
