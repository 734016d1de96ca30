"""The learned matrices around each layer's heads, with the gains of the norms before and after folded in.

W_Q, W_K, W_V and W_O are those that the probe found by the numbers that flow through them. The norm in front of them is
found the same way: the module in whose output stands, to the last bit, what enters them. Of a norm everything but the
division by the vector's size is linear, a gain for each number and, in a LayerNorm, taking the mean away; it is
measured on numbers that are put through the norm, so that neither names nor classes are asked for.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attention_viz.errors import AttentionVizError, UnsupportedModel, first_line
from attention_viz.models.recording.gradients import Run
from attention_viz.models.recording.outputs import output_of
from attention_viz.models.recording.recorder import OURS, Recorder, recording
from attention_viz.models.recording.twin import Twin
from attention_viz.models.recording.wiring import entering, rows
from attention_viz.operation.projection import Projection
from attention_viz.trace.once import once

if TYPE_CHECKING:
    from attention_viz.models.model import AttentionModel

__all__ = ["Around", "Words", "matrices_around"]


@dataclass(frozen=True, eq=False)
class _Norm:
    """What of a norm is linear.

    Attributes:
        gain: (width,).
        centred: whether it takes the mean away.
    """

    gain: Tensor
    centred: bool

    def before(self, matrix: Tensor) -> Tensor:
        """The norm and then a matrix (width, out), as one matrix."""
        scaled = self.gain[:, None] * matrix
        return scaled - scaled.mean(dim=0) if self.centred else scaled

    def after(self, matrix: Tensor) -> Tensor:
        """A matrix (in, width) and then the norm, as one matrix."""
        return self.gain * (matrix - matrix.mean(dim=-1, keepdim=True) if self.centred else matrix)


@dataclass(frozen=True, eq=False)
class Around:
    """The matrices around one attention call, gains folded in; None where a model does more than multiply by one.

    Attributes:
        heads: how many query heads there are.
        query: (head, d_model, d_k).
        key: (key_head, d_model, d_k).
        value: (key_head, d_model, d_v).
        output: (head, d_v, d_model).
    """

    heads: int
    query: Float[Tensor, "head d_model d_k"] | None
    key: Float[Tensor, "key_head d_model d_k"] | None
    value: Float[Tensor, "key_head d_model d_v"] | None
    output: Float[Tensor, "head d_v d_model"] | None

    def each(self, name: str) -> Tensor:
        """Matrices that are known, one for each query head: a key or value head stands once for each that shares it."""
        return self.shared(getattr(self, name))

    def shared(self, found: Tensor) -> Tensor:
        """What is known of each key and value head, or of each head, once for each query head that shares it."""
        return found.repeat_interleave(self.heads // len(found), dim=0)


@dataclass(frozen=True, eq=False)
class Words:
    """How words enter the stream and leave it; None where a model has no such matrix.

    Attributes:
        embedding: (word, d_model).
        unembedding: (word, d_model), as the model keeps it.
        norm: what of the norm before the unembedding is linear.
    """

    embedding: Tensor | None
    unembedding: Tensor | None
    norm: _Norm | None = None

    def towards(self, words: Tensor) -> Float[Tensor, "d_model word"]:
        """What raises each word's logit, in the stream."""
        assert self.unembedding is not None
        return self._normed(self.unembedding[words].float().T)

    @once
    def mean(self) -> Float[Tensor, " d_model"]:
        """What raises all words' logits together: the mean of what raises each."""
        assert self.unembedding is not None
        return self._normed(self.unembedding.float().mean(dim=0)[:, None])[:, 0]

    @once
    def covariance(self) -> Float[Tensor, "d_model d_model"]:
        """How what raises words' logits spreads about its mean: what x writes to them has the variance x · this · x."""
        assert self.unembedding is not None
        unembedding = self.unembedding.float()
        apart = unembedding - unembedding.mean(dim=0)
        return self._normed(self._normed(apart.T @ apart / len(apart)).T)

    @once
    def looked_up(self) -> Float[Tensor, "d_model d_model"]:
        """W_Eᵀ W_E, how like each other the directions are in which words enter."""
        assert self.embedding is not None
        embedding = self.embedding.float()
        return embedding.T @ embedding

    @once
    def from_last_to_first(self) -> Float[Tensor, "d_model d_model"]:
        """Norm · W_U · W_E, from what is written in the end to how the words that it makes enter."""
        assert self.embedding is not None and self.unembedding is not None
        if self.unembedding.data_ptr() == self.embedding.data_ptr():
            return self._normed(self.looked_up)
        return self._normed(self.unembedding.float().T @ self.embedding.float())

    def _normed(self, matrix: Tensor) -> Tensor:
        return matrix if self.norm is None else self.norm.before(matrix)


@dataclass(frozen=True, eq=False)
class _Event:
    """One module's turn in a run: what entered and left it, and how many attention calls had been made by then."""

    module: nn.Module
    entered: Tensor
    left: Tensor
    calls: int


@dataclass(frozen=True, eq=False)
class _Turns:
    """Every module's turn of one run of a twin, in the order in which they ended."""

    events: Sequence[_Event]

    def giving(self, turn: tuple[int, _Event]) -> nn.Module | None:
        """The module that made what entered another: the first, before any that only handed it on."""
        place, event = turn
        return next((one.module for one in self.events[:place] if _same(one.left, event.entered)), None)

    def taking(self, turn: tuple[int, _Event]) -> Iterator[nn.Module]:
        """The modules that took what left another as it was."""
        place, event = turn
        return (one.module for one in self.events[place + 1 :] if _same(one.entered, event.left))

    def of(self, module: nn.Module | None, calls: int) -> tuple[int, _Event] | None:
        """A module's turn when so many calls had been made, and its place among all."""
        found = ((place, event) for place, event in enumerate(self.events) if event.calls == calls)
        return next(((place, event) for place, event in found if event.module is module), None)


def matrices_around(model: "AttentionModel", run: Run, stream: str) -> tuple[tuple[Around, ...], Words]:
    """The matrices around every call of a stream, and how words enter and leave.

    Args:
        model: the model.
        run: of a few tokens; what flows through the model in it tells which norm stands where.
        stream: whose layers.

    Raises:
        UnsupportedModel: the model can't be copied, or doesn't run so.
    """
    anatomy, turns = run.anatomy, _listened(run)
    numbers = [anatomy.call(stream, layer) for layer in range(anatomy.layers[stream])]
    layers = tuple(_around(model, run, turns, stream, layer, number) for layer, number in enumerate(numbers))
    return layers, _words_of(model, turns, len(anatomy.modules))


def _around(model: "AttentionModel", run: Run, turns: _Turns, stream: str, layer: int, number: int) -> Around:
    wiring, found = run.anatomy.wirings[number], model.projections(layer, stream)
    heads = run.anatomy.heads[number]
    attention = run.layers[number].attention
    sizes = {"query": heads, "key": attention.key.shape[0], "value": attention.value.shape[0]}
    read: dict[str, Tensor | None] = {}
    for name, count in sizes.items():
        source, projection = getattr(wiring, name), found.get(name)
        turn = None if source is None else turns.of(source.module, number)
        if projection is None or turn is None:
            read[name] = None
            continue
        norm = _norm(turns.giving(turn), projection.weight)
        read[name] = _heads(projection, norm, count)
    output = found.get("output")
    written = None if output is None else output.weight.float()
    turn = None if written is None else turns.of(wiring.output, number + 1)
    if written is None or turn is None or written.shape[0] % heads:
        return Around(heads, read["query"], read["key"], read["value"], None)
    norms = (_norm(module, written.T) for module in turns.taking(turn))
    norm = next((one for one in norms if one is not None), None)
    written = written if norm is None else norm.after(written)
    return Around(heads, read["query"], read["key"], read["value"], written.unflatten(0, (heads, -1)))


def _heads(projection: Projection, norm: _Norm | None, count: int) -> Tensor:
    weight = projection.weight.float()
    weight = weight if norm is None else norm.before(weight)
    return weight.unflatten(1, (count, -1)).transpose(0, 1)


def _words_of(model: "AttentionModel", turns: _Turns, calls: int) -> Words:
    """How words enter and leave, as far as each is one matrix."""
    hf = model.hf_model
    entering_by, leaving_by = hf.get_input_embeddings(), hf.get_output_embeddings()
    embedding = getattr(entering_by, "weight", None)
    embedding = embedding.detach() if isinstance(embedding, Tensor) and embedding.ndim == 2 else None
    unembedding = getattr(leaving_by, "weight", None)
    turn = turns.of(leaving_by, calls)
    if not isinstance(unembedding, Tensor) or unembedding.ndim != 2 or turn is None:
        return Words(embedding, None)
    unembedding = unembedding.detach()
    return Words(embedding, unembedding, _norm(turns.giving(turn), unembedding.T))


def _listened(run: Run) -> _Turns:
    """A run of a twin in which every module is listened to; no other run of the model notices."""
    twin: Twin = run.runner.twin(frozen=True)
    recorder, events, handles = Recorder(keep=frozenset()), list[_Event](), list[Any]()

    def hear(module: nn.Module, inputs: tuple[object, ...], named: dict[str, object], output: object) -> None:
        entered = entering(inputs, named)
        if entered is not None and isinstance(output, Tensor):
            own = twin.original[module]
            events.append(_Event(own, entered.detach().clone(), output.detach().clone(), recorder.count))

    handles = [
        module.register_forward_hook(hear, with_kwargs=True)
        for module in twin.model.modules()
        if next(module.children(), None) is None
    ]
    token = recording.set(recorder)
    try:
        with twin.door, torch.no_grad(), twin.turned(OURS):
            output_of(twin.model(**run.inputs, **twin.settings))
    except AttentionVizError:
        raise
    except Exception as error:
        raise UnsupportedModel(f"{run.name} can't be run: {type(error).__name__}: {first_line(error)}") from error
    finally:
        recording.reset(token)
        for handle in handles:
            handle.remove()
    return _Turns(events)


def _same(one: Tensor, other: Tensor) -> bool:
    """Whether two hold the same numbers, to the last bit, however their rows are arranged."""
    if one.numel() != other.numel() or one.dtype != other.dtype or not one.is_floating_point():
        return False
    count = other.shape[-2] if other.ndim > 1 else 1
    flat, expected = rows(one, count), rows(other, count)
    return flat is not None and expected is not None and torch.equal(flat, expected)


def _norm(module: nn.Module | None, matrix: Tensor) -> _Norm | None:
    """What of a module is linear, where it is a norm over as many numbers as a matrix (width, out) takes.

    Numbers are put through it: a norm makes of each vector its direction times a gain.
    """
    if module is None:
        return None
    width, generator = matrix.shape[0], torch.Generator().manual_seed(0)
    signs = torch.randint(0, 2, (1, width), generator=generator) * 2.0 - 1
    tried = torch.randn(3, width, generator=generator) * torch.tensor([[1.0], [9.0], [30.0]]) + 0.5
    like = next(module.parameters(recurse=False), matrix)
    given = torch.cat([torch.zeros(1, width), 30 * signs, tried]).to(like)
    try:
        with torch.no_grad():
            made = module(given[None])
    except (RuntimeError, TypeError, ValueError, IndexError):
        return None
    if not isinstance(made, Tensor) or made.shape != (1, *given.shape):
        return None
    given, made = given.float(), made[0].float()
    made = made - made[0]
    tolerance = 1e-3 if like.dtype in (torch.float32, torch.float64) else 3e-2
    for centred in (False, True):
        about = given - given.mean(dim=-1, keepdim=True) if centred else given
        direction = about * about.square().mean(dim=-1, keepdim=True).add(1e-20).rsqrt()
        gain = made[1] / direction[1]
        expected = gain * direction[2:]
        if torch.allclose(made[2:], expected, rtol=tolerance, atol=tolerance * float(expected.abs().max())):
            return _Norm(gain, centred)
    return None
