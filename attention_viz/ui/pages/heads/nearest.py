"""An embedder's similarity to a dozen sentences, before and after a change."""

import threading

import torch
from jaxtyping import Float
from torch import Tensor

from attention_viz.serving.runs import Run, ask
from attention_viz.trace.trace import Trace
from attention_viz.ui.address import State

__all__ = ["SENTENCES", "compares", "nearness"]

# About different things, some of them near the sentences that the app opens on.
SENTENCES = (
    "Heavy rain made the water rise over the fields.",
    "She opened a savings account in the city.",
    "The kitten slept since it had played all day.",
    "The trophy was too large for the bag.",
    "He poured himself a glass of cold water.",
    "Paris is a town that many people visit.",
    "The children walked home from school.",
    "A mechanic repaired the engine of the car.",
    "Bread and butter stood on the table.",
    "The orchestra played until midnight.",
    "Careful, the path by the cliff is slippery.",
    "Two friends met in a small shop.",
)

# Of the last few models.
_MOST = 4
_read = dict[object, Float[Tensor, "sentence width"]]()
_reading = threading.Lock()


def compares(run: Run, state: State) -> bool:
    """Return whether the model is a trained encoder without predictions."""
    encodes = state.facts.streams == ("encoder",) and not state.facts.predicts and not state.own
    return encodes and run.trace.provenance.text is not None


def nearness(before: Run, after: Run, state: State) -> tuple[list[float], list[float]]:
    """Return cosines with `SENTENCES`, before and after; the unchanged model reads these."""
    sentences = _sentences(before, state)
    found = [torch.cosine_similarity(_mean(one.trace)[None], sentences).tolist() for one in (before, after)]
    return found[0], found[1]


def _sentences(run: Run, state: State) -> Float[Tensor, "sentence width"]:
    origin = run.trace.provenance
    of = (origin.model, origin.sha256, origin.dtype)
    with _reading:
        known = _read.get(of)
    if known is not None:
        return known
    made = torch.stack(ask(state.request, lambda model: [_mean(model.trace(one)) for one in SENTENCES]))
    with _reading:
        while len(_read) >= _MOST:
            del _read[next(iter(_read))]
        _read[of] = made
    return made


def _mean(trace: Trace) -> Float[Tensor, " width"]:
    """Average over tokens, without padding."""
    real = ~torch.tensor(trace.query_tokens().padding)
    return trace.output.detach().double().cpu()[real].mean(dim=0)
