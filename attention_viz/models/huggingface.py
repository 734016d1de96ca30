"""What is used of transformers, imported in this one place.

Its lazy modules can't be entered by several threads at once: the second finds names missing. Python lets one thread
import this module while the others wait, so whoever takes a name from here gets it, however many come at once.
"""

import transformers
from transformers import (
    AttentionInterface,
    AutoConfig,
    AutoModel,
    AutoTokenizer,
    GenerationConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.configuration_utils import PreTrainedConfig
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS, AttentionMaskInterface
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

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
