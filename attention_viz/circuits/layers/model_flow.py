"""Follow one token's vector through a whole model: each layer's additions, and the next words after each layer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from attention_viz.circuits.layers.layer_flow import layer_flow
from attention_viz.circuits.logit_lens import open_lens
from attention_viz.circuits.opened import run_of
from attention_viz.errors import UnsupportedModel
from attention_viz.inputs.labelling import label_ids
from attention_viz.operation.attention import without_autocast
from attention_viz.operation.numerics import REORDERED, close
from attention_viz.trace.trace import Trace

# The temperatures at which probabilities are known.
TEMPERATURES = (0.5, 1.0, 2.0)


@dataclass(frozen=True, eq=False)
class ModelFlow:
    """One position's residual stream, from its embedding to the last norm.

    A stop says how many layers run before the last norm: from 0 to all.

    Attributes:
        word: the token there, as figures write it.
        layers: the layers' numbers.
        streams: (stop, d_model), the vector after each number of layers; the last one enters the last norm.
        attention: (layer, d_model), the addition of each layer's attention.
        likeliest: by stop, the likeliest tokens as figures write them, likeliest first.
        logits: (stop, likeliest), from the last norm and the unembedding; the last are the model's own.
        sums: by temperature, (stop,): the logarithm of the sum of e to the power of each logit divided by it.
        vocabulary: the number of tokens that have a logit.
    """

    word: str
    layers: tuple[int, ...]
    streams: Float[Tensor, "stop d_model"]
    attention: Float[Tensor, "layer d_model"]
    likeliest: tuple[tuple[str, ...], ...]
    logits: Float[Tensor, "stop likeliest"]
    sums: Mapping[float, Float[Tensor, " stop"]]
    vocabulary: int

    @property
    def mlp(self) -> Float[Tensor, "layer d_model"]:
        """Return the addition of each layer's MLP."""
        return self.streams[1:] - self.streams[:-1] - self.attention

    def chances(self, stop: int, temperature: float = 1.0) -> list[float]:
        """Return the probabilities of `likeliest` at a temperature of `TEMPERATURES`."""
        return (self.logits[stop].double() / temperature - self.sums[temperature][stop]).exp().tolist()


@without_autocast()
def model_flow(trace: Trace, position: int = -1, count: int = 5) -> ModelFlow:
    """Return a position's residual stream through all layers, from one more run with the trace's edits.

    Args:
        trace: of a decoder whose layers each add an attention and then an MLP.
        position: its place, from 0; negative from the end.
        count: how many likeliest tokens per stop.

    Raises:
        TraceError: the trace comes from a file or from another trace, or the model has changed since.
        ShapeError: the position is missing.
        UnsupportedModel: the model isn't such a decoder, or predicts no words.
    """
    run, numbers = run_of(trace), tuple(trace.layer_numbers())
    if run.anatomy.no_words:
        raise UnsupportedModel(f"{run.name} predicts no words: {run.anatomy.no_words}; use a language model")
    at = trace.query_tokens().resolve(position)
    first, joined = layer_flow(trace, numbers[0]), [trace.layer(number).joined for number in numbers]
    lens = open_lens(run)
    known = [one[at] for one in joined if one is not None]
    if (
        [part.kind for part in first.parts] != ["attention", "MLP"]
        or first.order == "post-norm"
        or len(known) != len(lens.streams) - 1
        or not torch.equal(known[0], first.parts[0].added[at])
    ):
        raise UnsupportedModel(
            f"the layers of {run.name} don't each add an attention and an MLP to one stream; use a model such as "
            "SmolLM2-135M-Instruct"
        )
    streams = torch.stack([stream[at] for stream in lens.streams])
    logits = lens.logits_of(streams)
    if not close(logits[-1].cpu(), trace.output_at(at).detach().float().cpu(), REORDERED):
        raise UnsupportedModel(
            f"the unembedding of {run.name} doesn't read its last layer's output, so predictions would be wrong"
        )
    best = logits.topk(min(count, logits.shape[-1]), dim=-1)
    ids: Sequence[Sequence[int]] = best.indices.tolist()
    return ModelFlow(
        trace.query_tokens().numbered[at],
        numbers,
        streams.float().cpu(),
        torch.stack(known).detach().float().cpu(),
        tuple(label_ids(run.tokenizer, some).written for some in ids),
        best.values.cpu(),
        {one: (logits.double() / one).logsumexp(dim=-1).cpu() for one in TEMPERATURES},
        logits.shape[-1],
    )
