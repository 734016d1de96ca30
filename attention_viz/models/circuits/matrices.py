"""The learned matrices around each layer's heads, with the gains of the norms before and after folded in.

W_Q, W_K, W_V and W_O are those that the probe found by the numbers that flow through them. The norm in front of them is
found the same way: the module in whose output stands, to the last bit, what enters them. Of a norm everything but the
division by the vector's size is linear, a gain for each number and, in a LayerNorm, taking the mean away; it is
measured on numbers that are put through the norm, so that neither names nor classes are asked for.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jaxtyping import Float
from torch import Tensor

from attention_viz.models.circuits.normed import normed
from attention_viz.models.circuits.norms import Norm, norm_of
from attention_viz.models.circuits.turns import ModuleEvent, Turns, listened, same
from attention_viz.models.inputs.text import vocabulary
from attention_viz.models.recording.gradients import ModelRun
from attention_viz.models.recording.weights.matrix import matrix_of, table_of
from attention_viz.trace.once import once

if TYPE_CHECKING:
    from attention_viz.models.model import AttentionModel

__all__ = ["Around", "WordMatrices", "matrices_around"]


@dataclass(frozen=True, eq=False)
class Around:
    """The matrices around one attention call, gains folded in; None where a model does more than multiply by one.

    Attributes:
        heads: how many query heads there are.
        lengths: of queries and keys that go through a norm of their own, by "query" and "key": what each head's first
            one was multiplied by in the run, (head,), which isn't in the matrix.
        missing: why the model's modules are no matrices, by name, as parts of sentences.
    """

    heads: int
    query: Float[Tensor, "head d_model d_k"] | None
    key: Float[Tensor, "key_head d_model d_k"] | None
    value: Float[Tensor, "key_head d_model d_v"] | None
    output: Float[Tensor, "head d_v d_model"] | None
    lengths: Mapping[str, Tensor] = field(default_factory=dict[str, Tensor])
    missing: Mapping[str, str] = field(default_factory=dict[str, str])

    def each(self, name: str) -> Tensor:
        """Matrices that are known, one for each query head: a key or value head stands once for each that shares it."""
        return self.shared(getattr(self, name))

    def shared(self, found: Tensor) -> Tensor:
        """What is known of each key and value head, or of each head, once for each query head that shares it."""
        return found.repeat_interleave(self.heads // len(found), dim=0)


@dataclass(frozen=True, eq=False)
class WordMatrices:
    """How words enter the stream and leave it; None where a model has no such matrix.

    Attributes:
        unembedding: (word, d_model), as the model keeps it.
        norm: what of the norm before the unembedding is linear.
        missing: why there is no unembedding, as a sentence about the model; empty if there is one.
    """

    embedding: Tensor | None
    unembedding: Tensor | None
    norm: Norm | None = None
    missing: str = ""

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


def matrices_around(model: "AttentionModel", run: ModelRun, stream: str) -> tuple[tuple[Around, ...], WordMatrices]:
    """The matrices around every call of a stream, and how words enter and leave.

    Args:
        run: of a few tokens; what flows through the model in it tells which norm stands where.
    """
    anatomy, turns = run.anatomy, listened(run)
    calls = anatomy.calls(stream)
    layers = tuple(_around(run, turns, number, first=number == calls[0]) for number in calls)
    return layers, _words_of(model, turns, len(anatomy.modules))


def _around(run: ModelRun, turns: Turns, number: int, *, first: bool) -> Around:
    wiring = run.anatomy.wirings[number]
    found = wiring.projections()
    missing, heads = found.missing, run.anatomy.heads[number]
    attention = run.layers[number].attention
    sizes = {"query": heads, "key": attention.key.shape[0], "value": attention.value.shape[0]}
    read, lengths = dict[str, Tensor | None](), dict[str, Tensor]()
    for name, count in sizes.items():
        source, projection = getattr(wiring, name), found.get(name)
        turn = None if source is None else turns.of(source.module, number)
        weight = None if projection is None else projection.weight
        if source is not None and weight is None and name != "value":
            behind = normed(turns, source, number, count)
            if behind is not None:
                turn, weight, lengths[name] = behind.turn, behind.weight, behind.lengths
        if weight is None or turn is None:
            read[name] = None
            continue
        norm, aside = _before(turns, turn, weight)
        read[name] = None if aside and not first else _heads(weight, norm, count)
    output = found.get("output")
    written = None if output is None else output.weight.float()
    turn = None if written is None else turns.of(wiring.output, number + 1)
    if written is None or turn is None or written.shape[0] % heads:
        return Around(heads, read["query"], read["key"], read["value"], None, lengths, missing)
    norms = (norm_of(module, written.T) for module in turns.taking(turn))
    norm = next((one for one in norms if one is not None), None)
    written = written if norm is None else norm.after(written)
    # What is read of something narrower or wider than the stream isn't read of the stream.
    read = {name: one if one is None or one.shape[1] == written.shape[1] else None for name, one in read.items()}
    return Around(heads, read["query"], read["key"], read["value"], written.unflatten(0, (heads, -1)), lengths, missing)


def _before(turns: Turns, turn: tuple[int, ModuleEvent], matrix: Tensor) -> tuple[Norm | None, bool]:
    """The norm before a matrix that reads, and whether the matrix reads something else than the stream.

    Past the first layer it does where a module made all of what enters it, or its norm, since the call before, such as
    queries and keys of few numbers that are made of the stream first: the stream itself is a sum there.
    """
    given = turns.giving(turn)
    norm = None if given is None else norm_of(given[1].module, matrix)
    maker = given if norm is None or given is None else turns.giving(given)
    if maker is None:
        return norm, False
    made = not same(maker[1].left, maker[1].entered)
    return norm, made and maker[1].calls == turn[1].calls


def _heads(weight: Tensor, norm: Norm | None, count: int) -> Tensor:
    weight = weight.float()
    weight = weight if norm is None else norm.before(weight)
    return weight.unflatten(1, (count, -1)).transpose(0, 1)


def _words_of(model: "AttentionModel", turns: Turns, calls: int) -> WordMatrices:
    """How words enter and leave, as far as each is one matrix."""
    hf = model.hf_model
    head = hf.get_output_embeddings()
    table = table_of(hf.get_input_embeddings(), vocabulary(hf))
    embedding = table if isinstance(table, Tensor) and table.ndim == 2 else None
    turn = turns.of(head, calls)
    if head is None or turn is None:
        return WordMatrices(
            embedding, None, missing=f"{model.name} has no head that makes words of its last layer by one matrix"
        )
    entered = turn[1].entered
    matrix = matrix_of(head, entered.new_empty(0, entered.shape[-1]))
    if isinstance(matrix, str):
        return WordMatrices(
            embedding, None, missing=f"the head of {model.name} that makes words is not one matrix: {matrix}"
        )
    given = turns.giving(turn)
    norm = None if given is None else norm_of(given[1].module, matrix.weight)
    return WordMatrices(embedding, matrix.weight.T, norm)
