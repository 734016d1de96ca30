from collections.abc import Callable
from typing import Any

import pytest
import torch

from attention_viz.models import CATALOGUE


@pytest.fixture(scope="session")
def eager_weights() -> Callable[[str], Any]:
    """The weights of every layer as plain transformers computes them, with nothing of ours involved."""
    from transformers import AutoModel, AutoTokenizer

    path = CATALOGUE["all-MiniLM-L6-v2"].path
    model = AutoModel.from_pretrained(path, attn_implementation="eager")
    tokenizer = AutoTokenizer.from_pretrained(path)

    def weights(text: str) -> Any:
        with torch.no_grad():
            return model(**tokenizer(text, return_tensors="pt"), output_attentions=True).attentions

    return weights
