"""Predict the model's output as if it stopped after each layer."""

import copy
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attention_viz.circuits.opened import run_behind
from attention_viz.errors import ShapeError, UnsupportedModel
from attention_viz.inputs.labelling import label_ids
from attention_viz.inputs.vocabulary import token_of
from attention_viz.operation.attention import without_autocast
from attention_viz.operation.numerics import REORDERED, close
from attention_viz.recording.gradients import ModelRun
from attention_viz.recording.hooks import hooked
from attention_viz.recording.outputs.returned import output_of
from attention_viz.recording.recorder import Recorder
from attention_viz.recording.twin import Twin
from attention_viz.recording.wiring import entering
from attention_viz.trace.trace import Trace
from attention_viz.trace.trace_data import behind

if TYPE_CHECKING:
    import pandas

    from attention_viz.models.model import AttentionModel

__all__ = ["logit_lens"]

# How many numbers the head makes at a time: 16 MiB in float32.
_AT_ONCE = 2**22
# Between the end of the last layer and the last norm no more modules than these end.
_FEW = 8


@without_autocast()
def logit_lens(
    model: "AttentionModel", trace: Trace, token: int | str | None = None, count: int = 1
) -> "pandas.DataFrame":
    """Predict tokens after each layer by applying the last norm and unembedding to its stream.

    Both were trained for the last layer. On an earlier layer they show how much of the answer is already in its final
    form, so an early layer may know more than it shows. Source: nostalgebraist 2020, "interpreting GPT: the logit
    lens".

    Args:
        model: from `load` or `wrap`, a decoder or a masked language model.
        trace: from this model; an edited trace is read with its edits.
        token: id or text of the token whose probability you want; None for the likeliest at each position and layer.
        count: number of likeliest tokens per position and layer, if `token` is None.

    Returns:
        Columns position, layer, token, probability, written (the token as people read it), by position and layer,
        likeliest first. Layer -1 is the first layer's input. Layers are counted as the model counts them, including
        layers without attention.

    Raises:
        TraceError: the trace is another model's, comes from a file or from another trace, or the model has changed
            since.
        ShapeError: `count` is below 1, or the token id doesn't exist.
        UnusableText: the token's text isn't exactly one token.
        UnsupportedModel: the model is one of our own modules, has no unembedding, is an encoder–decoder, or its streams
            are missing or don't lead to its output.
    """
    import pandas

    if count < 1:
        raise ShapeError(f"count must be at least 1; got {count}")
    run = run_behind(model, trace)
    if run.anatomy.no_words:
        raise UnsupportedModel(f"the logit lens needs an unembedding, which {run.name} lacks: {run.anatomy.no_words}")
    if len(trace.attention_streams) > 1:
        raise UnsupportedModel(
            f"{run.name} has {len(trace.attention_streams)} attention types; use a decoder or a masked language model"
        )
    wanted = None if token is None else token_of(run.name, run.tokenizer, trace.output_at(-1).float(), token)
    lens = open_lens(run)
    _check(run, lens, trace)
    found = [lens.read(layer, wanted, count) for layer in range(len(lens.streams))]
    ids = torch.stack([one for one, _ in found], dim=1)
    positions, layers, width = ids.shape
    tokens = label_ids(run.tokenizer, ids.flatten().tolist())
    place = torch.cartesian_prod(torch.arange(positions), torch.arange(-1, layers - 1)).repeat_interleave(width, dim=0)
    return pandas.DataFrame(
        {
            "position": place[:, 0].numpy(),
            "layer": place[:, 1].numpy(),
            "token": tokens.labels,
            "probability": torch.stack([one for _, one in found], dim=1).flatten().numpy(),
            "written": tokens.written,
        }
    )


@dataclass(frozen=True, eq=False)
class _LensTurn:
    """A module without submodules whose output is as large as its input."""

    module: nn.Module
    entered: Tensor
    left: Tensor


@dataclass(frozen=True, eq=False)
class LensRun:
    """A run's streams, (position, d_model) before the first layer, then after each; and their norm and head."""

    twin: Twin
    run: ModelRun
    body: nn.Module
    answered: Any
    streams: Sequence[Tensor]
    norm: nn.Module | None
    words: int

    def logits(self, layer: int) -> Iterator[Float[Tensor, "position token"]]:
        """Yield the head's logits of a stream, some positions at a time."""
        stream = self.streams[layer]
        size = max(1, _AT_ONCE // self.words)
        for some in stream.split(size):
            yield self.logits_of(some)

    def logits_of(self, vectors: Float[Tensor, "row d_model"]) -> Float[Tensor, "row token"]:
        """Return the logits of some vectors of a stream."""
        with self.twin.door, torch.no_grad():
            normed = vectors if self.norm is None else self.norm(vectors[None])[0]
            return self._head(normed).float()

    def _head(self, hidden: Tensor) -> Tensor:
        answer = copy.copy(self.answered)
        answer.last_hidden_state = hidden[None]
        # The twin is ours alone: of no other run the body is changed.
        self.body.forward = lambda *_args, **_named: answer
        try:
            return output_of(self.twin.model(**self.run.inputs, **self.twin.settings))
        finally:
            del self.body.forward

    def read(self, layer: int, wanted: int | None, count: int) -> tuple[Tensor, Tensor]:
        """Return ids and probabilities, (position, count) each."""
        ids, shares = list[Tensor](), list[Tensor]()
        for logits in self.logits(layer):
            likely = logits.softmax(dim=-1)
            if wanted is None:
                best = likely.topk(min(count, likely.shape[-1]), dim=-1)
                ids.append(best.indices)
                shares.append(best.values)
            else:
                shares.append(likely[:, wanted, None])
                ids.append(torch.full_like(shares[-1], wanted, dtype=torch.long))
        return torch.cat(ids).cpu(), torch.cat(shares).cpu()


def open_lens(run: ModelRun) -> LensRun:
    """Run a model once more, and keep each layer's output."""
    twin = run.runner.twin(frozen=True)
    # The last few alone: of a long text all would fill the memory.
    left, turns, bodies = deque[Tensor](maxlen=_FEW), deque[_LensTurn](maxlen=_FEW), list[tuple[nn.Module, Any]]()

    def hear(module: nn.Module, inputs: tuple[object, ...], named: dict[str, object], output: object) -> None:
        if isinstance(getattr(output, "last_hidden_state", None), Tensor):
            bodies.append((module, output))
        first = output[0] if isinstance(output, tuple) and output else output
        entered = entering(inputs, named)
        if not isinstance(first, Tensor):
            return
        whole = entered is not None and any(one is entered for one in left)
        if whole and entered is not None and entered.shape == first.shape and next(module.children(), None) is None:
            turns.append(_LensTurn(module, entered, first))
        left.append(first)

    recorder = Recorder(run.edits, run.anatomy.places, frozenset())
    with (
        hooked(twin.model.modules(), hear),
        twin.recorded(recorder, run.name, "doesn't return its layers' outputs"),
    ):
        answered = twin.model(**run.inputs, **{**twin.settings, "output_hidden_states": True})
    states: Sequence[Tensor] = getattr(answered, "hidden_states", None) or ()
    if len(states) < 2 or any(state.shape != states[0].shape or len(state) != 1 for state in states):
        raise UnsupportedModel(f"{run.name} doesn't return each layer's output as one vector per token")
    # A model may be a body inside another.
    body = next((one for one in bodies if torch.equal(one[1].last_hidden_state, states[-1])), None)
    if body is None:
        raise UnsupportedModel(
            f"no module of {run.name} outputs the input of its unembedding, so its layers have no predictions"
        )
    last = next((one for one in turns if torch.equal(one.left, states[-1])), None)
    end = states[-1] if last is None else last.entered
    streams = [*(state[0] for state in states[:-1]), end[0]]
    return LensRun(twin, run, *body, streams, None if last is None else last.module, output_of(answered).shape[-1])


def _check(run: ModelRun, lens: LensRun, trace: Trace) -> None:
    there = trace.output.detach().cpu().float()
    start = 0
    for logits in lens.logits(len(lens.streams) - 1):
        some = there[start : start + len(logits)]
        start += len(logits)
        if not close(logits.cpu(), some, REORDERED):
            behind(trace).confirm()
            raise UnsupportedModel(
                f"the unembedding of {run.name} doesn't read its last layer's output, so predictions would be wrong"
            )
