"""The models that ship, each read once however many tests look at it: as ours, and as plain transformers knows it."""

from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from transformers import AutoModel, PreTrainedModel

import attention_viz as av
from attention_viz.inputs.media.shipped import SAMPLES
from attention_viz.models.loading.by_name import load
from attention_viz.models.model import AttentionModel
from attention_viz.trace.trace import Trace

if TYPE_CHECKING:
    import pandas

MINILM = "all-MiniLM-L6-v2"
SMOLLM2 = "SmolLM2-135M-Instruct"  # half a gigabyte in each process that asks for it: most tests do with a smaller one
_LOOKED_AT = frozenset(name for name, entry in av.CATALOGUE.items() if entry.path)


@cache
def shipped(name: str) -> AttentionModel:
    """A model of the catalogue, as anybody loads it; for tests that only look."""
    model = load(name)
    assert isinstance(model, AttentionModel)
    return model


@cache
def shown(name: str, sample: str) -> Trace:
    """What such a model makes of a picture or a sound that ships; for tests that only look."""
    opened = av.Picture if SAMPLES[sample].kind == "picture" else av.Sound
    return shipped(name).trace(opened(SAMPLES[sample].path))


@cache
def circuits(name: str) -> "pandas.DataFrame":
    """What such a model's weights alone tell of each head."""
    return av.circuits(shipped(name))


@cache
def load_once(name: str, **options: Any) -> Any:
    """In the place of `av.load` where many ask: a model that ships is the one that all tests look at."""
    # All others that ship read one thing only.
    alike = not options or (name != "shapes" and options.keys() == {"alone"})
    return shipped(name) if name in _LOOKED_AT and alike else load(name, **options)


@cache
def plain(name: str) -> PreTrainedModel:
    """The same weights read a second time, under transformers' eager attention: ours never touched this one."""
    path = av.CATALOGUE[name].path
    model = AutoModel.from_pretrained(path, attn_implementation="eager", dtype=torch.float32, local_files_only=True)
    return model.eval()


def plain_weights(name: str, ids: tuple[int, ...]) -> list[Tensor]:
    """The weights of every layer, (head, query, key), as plain transformers computes them."""
    with torch.no_grad():
        return [layer[0] for layer in plain(name)(input_ids=torch.tensor([ids]), output_attentions=True).attentions]
