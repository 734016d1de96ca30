"""Find the matrices around each layer's heads, with the neighbouring norms' gains folded in.

The probe finds W_Q, W_K, W_V, W_O by the numbers that flow; the norm's output equals their input to the last bit.
Without its division a norm is linear (gains; LayerNorm subtracts the mean), so it is measured, not found by name.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jaxtyping import Float
from torch import Tensor, nn

from attention_viz.circuits.normed import Norm, norm_of, normed
from attention_viz.circuits.turns import ModuleEvent, Turns, listened, same
from attention_viz.inputs.text import vocabulary
from attention_viz.recording.gradients import ModelRun
from attention_viz.recording.weights.matrix import matrix_of, table_of
from attention_viz.trace.once import once

if TYPE_CHECKING:
    from attention_viz.models.model import AttentionModel


@dataclass(frozen=True, eq=False)
class Around:
    """One attention call's matrices; None if it does more than multiply.

    Attributes:
        lengths: by "query" and "key", each head's first norm factor in the run, (head,).
    """

    heads: int
    query: Float[Tensor, "head d_model d_k"] | None
    key: Float[Tensor, "key_head d_model d_k"] | None
    value: Float[Tensor, "key_head d_model d_v"] | None
    output: Float[Tensor, "head d_v d_model"] | None
    lengths: Mapping[str, Tensor] = field(default_factory=dict[str, Tensor])
    missing: Mapping[str, str] = field(default_factory=dict[str, str])

    def each(self, name: str) -> Tensor:
        """Return known matrices per query head, shared ones repeated."""
        return self.shared(getattr(self, name))

    def shared(self, found: Tensor) -> Tensor:
        """Repeat values of shared heads per query head."""
        return found.repeat_interleave(self.heads // len(found), dim=0)


@dataclass(frozen=True, eq=False)
class WordMatrices:
    """The embedding and unembedding matrices; None if the model has none.

    Attributes:
        unembedding: (word, d_model).
        norm: the linear part of the norm before it.
    """

    embedding: Tensor | None
    unembedding: Tensor | None
    norm: Norm | None = None
    missing: str = ""

    def towards(self, words: Tensor) -> Float[Tensor, "d_model word"]:
        """Return the stream's directions that raise each token's logit."""
        assert self.unembedding is not None
        return self._normed(self.unembedding[words].float().T)

    @once
    def mean(self) -> Float[Tensor, " d_model"]:
        """Return the mean direction, which raises all logits."""
        assert self.unembedding is not None
        return self._normed(self.unembedding.float().mean(dim=0)[:, None])[:, 0]

    @once
    def covariance(self) -> Float[Tensor, "d_model d_model"]:
        """Return the covariance: x writes logits with variance x · this · x."""
        assert self.unembedding is not None
        unembedding = self.unembedding.float()
        apart = unembedding - unembedding.mean(dim=0)
        return self._normed(self._normed(apart.T @ apart / len(apart)).T)

    @once
    def looked_up(self) -> Float[Tensor, "d_model d_model"]:
        """Return W_Eᵀ W_E."""
        assert self.embedding is not None
        embedding = self.embedding.float()
        return embedding.T @ embedding

    @once
    def from_last_to_first(self) -> Float[Tensor, "d_model d_model"]:
        """Return norm · W_U · W_E, from the last output to the embedding."""
        assert self.embedding is not None and self.unembedding is not None
        if self.unembedding.data_ptr() == self.embedding.data_ptr():
            return self._normed(self.looked_up)
        return self._normed(self.unembedding.float().T @ self.embedding.float())

    def _normed(self, matrix: Tensor) -> Tensor:
        return matrix if self.norm is None else self.norm.before(matrix)


def matrices_around(model: "AttentionModel", run: ModelRun, stream: str) -> tuple[tuple[Around, ...], WordMatrices]:
    """Return each call's and the tokens' matrices; a run of a few tokens shows the norms."""
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
    """Return a matrix's norm, and whether it reads anything but the stream.

    It does past the first layer if one module made its input since the call before, as for low-rank queries and keys.
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
    hf = model.hf_model
    head = hf.get_output_embeddings()
    embeddings = getattr(hf, "get_input_embeddings")()  # noqa: B009 -- its type is wrong of a Perceiver's

    table = table_of(embeddings, vocabulary(hf)) if isinstance(embeddings, nn.Module) else None
    embedding = table if isinstance(table, Tensor) and table.ndim == 2 else None
    turn = turns.of(head, calls)
    if head is None or turn is None:
        return WordMatrices(
            embedding, None, missing=f"{model.name} has no unembedding that is one matrix after its last layer"
        )
    entered = turn[1].entered
    matrix = matrix_of(head, entered.new_empty(0, entered.shape[-1]))
    if isinstance(matrix, str):
        return WordMatrices(embedding, None, missing=f"the unembedding of {model.name} is not one matrix: {matrix}")
    given = turns.giving(turn)
    norm = None if given is None else norm_of(given[1].module, matrix.weight)
    return WordMatrices(embedding, matrix.weight.T, norm)
