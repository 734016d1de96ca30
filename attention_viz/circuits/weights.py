"""Describe heads from the weights alone: tokens that they write, and attention."""

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor

from attention_viz.circuits.matrices import Around, WordMatrices, matrices_around
from attention_viz.circuits.number import Proof, prove
from attention_viz.circuits.opened import open_run
from attention_viz.errors import ShapeError, UnsupportedModel, first_line
from attention_viz.operation.attention import without_autocast
from attention_viz.protocol.needing import need_trained
from attention_viz.recording.gradients import ModelRun
from attention_viz.recording.hooks import HOOKS
from attention_viz.recording.layout.probed_inputs import probe_ids
from attention_viz.trace.trace import Provenance
from attention_viz.trace.trace_data import behind

if TYPE_CHECKING:
    import pandas

    from attention_viz.models.model import AttentionModel

__all__ = ["Proven", "circuits", "circuits_of", "ov_fractions", "product_norm", "proven"]

_SIGNS = {"query": "W_Q", "key": "W_K", "value": "W_V", "output": "W_O"}


@dataclass(frozen=True, eq=False)
class Proven:
    """A stream's matrices, its attention layers' `numbers`, and a run's verdict."""

    name: str
    stream: str
    numbers: tuple[int, ...]
    layers: tuple[Around, ...]
    words: WordMatrices
    proof: Proof

    @property
    def heads(self) -> list[tuple[int, int]]:
        """Return every head's layer number and head, in order."""
        placed = zip(self.numbers, self.layers, strict=True)
        return [(number, head) for number, around in placed for head in range(around.heads)]

    @property
    def width(self) -> int:
        """Return d_model; at least one matrix must be known."""
        found = (getattr(one, name) for one in self.layers for name in ("value", "query", "key"))
        return next(matrix.shape[1] for matrix in found if matrix is not None)

    def lacking(self, *names: str) -> str | None:
        """Return why some layer's matrices are unknown; else None."""
        lost = [name for name in _SIGNS if name in names and any(getattr(one, name) is None for one in self.layers)]
        if not lost:
            return None
        phrase = " and ".join(_SIGNS[name] for name in lost)
        why = next((one.missing[name] for one in self.layers for name in lost if name in one.missing), "")
        is_none = f"{'is' if len(lost) == 1 else 'are'} not one matrix between stream and attention"
        return f"{phrase} of {self.name} {is_none}{why and f': {why}'}"

    def lacking_words(self) -> str | None:
        """Return why the heads' effect on logits is unknown; else None."""
        if self.words.unembedding is None:
            return self.words.missing
        if not self.proof.worded:
            return f"{self.name} does more to its heads' output than its matrices before the logits"
        return None


def proven(model: "AttentionModel", stream: str | None = None) -> Proven:
    """Compare a stream's matrices with a run of a few tokens."""
    need_trained(model)
    if not model.anatomy.layers:
        raise UnsupportedModel(
            f"{model.name} has no softmax attention, so it has no circuits from the weights alone; use av.decompose"
        )
    if stream in model.anatomy.mixers:
        raise ShapeError(
            f"the {stream} has no circuits from the weights alone, since what its layers carry depends on the text; "
            f"choose one of {', '.join(model.streams)}, or use av.decompose"
        )
    numbers = model.layer_numbers(stream)
    stream = stream or model.streams[0]
    model = _in_full(model)
    ids = probe_ids(model.hf_model, model.limit)
    trace = model.trace_ids(ids, decoder_input_ids=ids[:, :-1] if model.answers else None)
    run = behind(trace).run
    assert isinstance(run, ModelRun)
    layers, words = matrices_around(model, run, stream)
    opened = open_run(run)
    for number in run.anatomy.calls(stream):
        _ = opened.call(number, run.name)
    with opened.asking(), run.runner.door:
        proof = prove(opened, run.anatomy.calls(stream), layers, words)
    return Proven(model.name, stream, numbers, layers, words, proof)


def _in_full(model: "AttentionModel") -> "AttentionModel":
    """Return the model; a full-precision copy if it is in half, which hides gradients."""
    if model.hf_model.dtype in (torch.float32, torch.float64):
        return model
    try:
        with HOOKS:
            copied = copy.deepcopy(model.hf_model)
    except Exception as error:
        raise UnsupportedModel(
            f"can't copy {model.name}, which computes in half precision: {type(error).__name__}: {first_line(error)}"
        ) from error
    return type(model).of(copied.float(), model.tokenizer, Provenance(model=model.name))


@without_autocast()
def circuits(model: "AttentionModel", stream: str | None = None) -> "pandas.DataFrame":
    """Describe each head's OV and QK circuits from the weights alone, with norm gains folded in.

    The OV circuit, W_V W_O, is what a head writes for a token that it attends to; the QK circuit, W_Q W_Kᵀ, is where it
    attends. Through embedding and unembedding, each is a matrix of tokens × tokens. The fraction of its eigenvalues λ,
    Σ Re λ / Σ |λ|, is 1 if each token promotes itself and −1 if it suppresses itself. It is computed from a d_k × d_k
    matrix with the same eigenvalues. If positions rotate queries and keys, QK is the one for equal positions.

    The weights are checked against a run's gradients. A column that differs is NaN, and `attrs["missing"]` gives the
    reason. Layers without a softmax aren't listed. Copying within a text is another matter: in SmolLM2 these numbers
    don't find the heads that copy.

    Source: Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits", "Summarizing OV/QK matrices".

    Args:
        model: from `load` or `wrap`.
        stream: the heads' stream; None if the model has only one.

    Returns:
        Index (layer, head); columns ov and qk, the fractions from −1 to 1, and ov_norm and qk_norm, the Frobenius norms
        of W_V W_O and W_Q W_Kᵀ, before the scale.

    Raises:
        UnsupportedModel: the model is one of our own modules, or has none of these numbers.
        ShapeError: the stream doesn't exist, or it is missing and the model has several.
    """
    return circuits_of(proven(model, stream))


def circuits_of(known: Proven) -> "pandas.DataFrame":
    """Return the table of `circuits`."""
    import pandas

    circuits = {"ov": _ov(known), "qk": _qk(known), "ov_norm": _ov_norm(known), "qk_norm": _qk_norm(known)}
    missing = {name: one for name, one in circuits.items() if isinstance(one, str)}
    if len(missing) == len(circuits):
        raise UnsupportedModel(
            f"can't compute circuits of {known.name} from its parameters: {'; '.join(dict.fromkeys(missing.values()))}"
        )
    places = known.heads
    table = pandas.DataFrame(
        {
            name: [float("nan")] * len(places) if isinstance(one, str) else one.tolist()
            for name, one in circuits.items()
        },
        index=pandas.MultiIndex.from_tuples(places, names=["layer", "head"]),
    )
    table.attrs["missing"] = missing
    return table


def _ov(known: Proven) -> Tensor | str:
    lacking = known.lacking("value", "output") or known.lacking_words()
    if lacking is not None:
        return lacking
    lengths = [0 if one is None else len(one) for one in (known.words.embedding, known.words.unembedding)]
    if lengths[0] != lengths[1]:
        return f"{known.name} has {lengths[0]} input tokens but {lengths[1]} output tokens"
    if not known.proof.embedded:
        return f"{known.name} does more to a token's embedding than its matrices before heads read it"
    return ov_fractions(known)


def ov_fractions(known: Proven) -> Float[Tensor, " head"]:
    """Return heads' OV eigenvalue fractions between tokens, by layer.

    W_E W_V W_O W_U (words × words) has the eigenvalues of W_O (W_U W_E) W_V (d_v × d_v), else 0; the bracket is made
    once.
    """
    between, found = known.words.from_last_to_first, list[Tensor]()
    for one in known.layers:
        assert one.value is not None
        found.append(_fractions(one.each("output") @ one.shared(between @ one.value)))
    return torch.cat(found)


def _qk(known: Proven) -> Tensor | str:
    lacking = known.lacking("query", "key")
    if lacking is not None:
        return lacking
    if known.words.embedding is None or not known.proof.keyed:
        return f"{known.name} does more to a token's embedding than its matrices before its queries and keys"
    between, found = known.words.looked_up, list[Tensor]()
    for one in known.layers:
        assert one.key is not None
        found.append(_fractions(one.shared(between @ one.key).mT @ one.each("query")))
    return torch.cat(found)


def _ov_norm(known: Proven) -> Tensor | str:
    lacking = known.lacking("value", "output")
    if lacking is not None:
        return lacking
    return torch.cat([product_norm(one.each("value"), one.each("output")) for one in known.layers])


def _qk_norm(known: Proven) -> Tensor | str:
    lacking = known.lacking("query", "key")
    if lacking is not None:
        return lacking
    if any(one.lengths for one in known.layers):
        return f"{known.name} normalizes queries and keys, so W_Q W_Kᵀ doesn't determine their norms"
    return torch.cat([product_norm(one.each("query"), one.each("key").mT) for one in known.layers])


def _fractions(square: Tensor) -> Tensor:
    """Return Σ Re λ / Σ |λ| by head, (head, d_k, d_k) -> (head,); NaN if all are 0."""
    values = torch.linalg.eigvals(square.double())
    return values.real.sum(dim=-1) / values.abs().sum(dim=-1)


def product_norm(left: Tensor, right: Tensor) -> Tensor:
    """Return ‖left · right‖ by head via d_k; (head, d_model, d_k), (head, d_k, d_model)."""
    left, right = left.double(), right.double()
    return ((left.mT @ left) * (right @ right.mT)).sum(dim=(-2, -1)).clamp_min(0).sqrt()
