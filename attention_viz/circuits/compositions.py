"""Find heads that read from earlier heads, from the weights alone."""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from attention_viz.circuits.matrices import Around
from attention_viz.circuits.weights import Proven, product_norm, proven
from attention_viz.errors import ShapeError, UnsupportedModel
from attention_viz.operation.attention import without_autocast
from attention_viz.trace.kept import KeptLayers, LayerIndex

if TYPE_CHECKING:
    import pandas

    from attention_viz.models.model import AttentionModel

__all__ = ["compositions", "compositions_of"]

# By what each column is read, and what comes after it in the later head.
_READERS = {"q": ("query", "key"), "k": ("key", "query"), "v": ("value", "output")}


@without_autocast()
def compositions(
    model: "AttentionModel", stream: str | None = None, *, into: Collection[tuple[int, int]] | None = None
) -> "pandas.DataFrame":
    """Measure from the weights alone how strongly each head reads each earlier head's output.

    The score is ‖W_A W_B‖ / (‖W_A‖ ‖W_B‖), from 0 to 1, with Frobenius norms. The earlier head writes W_A = W_V W_O.
    The later head reads through W_B: W_Q W_Kᵀ for the query, W_K W_Qᵀ for the key, W_V W_O for the value. The gains of
    the norms before each head are folded in. Random matrices give about 1 / √d_model. If positions rotate queries and
    keys, W_Q W_Kᵀ is the one for equal positions.

    The weights are checked against a run's gradients. A column that differs is NaN, and `attrs["missing"]` gives the
    reason.

    Source: Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits", "Q-, K-, and V-Composition".

    Args:
        model: from `load` or `wrap`.
        stream: the heads' stream; None if the model has only one.
        into: the later heads, as (layer, head); None for all, which takes seconds for hundreds of heads.

    Returns:
        Columns from_layer, from_head, to_layer, to_head, q, k and v; one row per pair of heads in different layers.
        `attrs["random"]` is 1 / √d_model.

    Raises:
        UnsupportedModel: the model is one of our own modules, or its later heads read earlier heads through more than
            their matrices.
        ShapeError: the stream or a head doesn't exist, or the stream is missing and the model has several.
    """
    return compositions_of(proven(model, stream), into)


def compositions_of(known: Proven, into: Collection[tuple[int, int]] | None) -> "pandas.DataFrame":
    """Return the table for later heads `into`, (layer, head); None for all."""
    import pandas

    missing = {name: why for name in _READERS if (why := _missing(known, name)) is not None}
    if len(missing) == len(_READERS):
        raise UnsupportedModel(f"can't compute compositions of {known.name} from its parameters: {missing['v']}")
    layers, numbers = known.layers, known.numbers
    later = _chosen(known, into)
    pairs = [
        (before, head, numbers[at], other)
        for at, others in later.items()
        for before, earlier in zip(numbers[:at], layers, strict=False)
        for head in range(earlier.heads)
        for other in others
    ]
    columns_by_reader = {name: _column(layers, later, name) for name in _READERS if name not in missing}
    columns: dict[str, object] = {
        name: [pair[place] for pair in pairs]
        for place, name in enumerate(("from_layer", "from_head", "to_layer", "to_head"))
    }
    columns |= {
        name: columns_by_reader[name].tolist() if name in columns_by_reader else float("nan") for name in _READERS
    }
    table = pandas.DataFrame(columns)
    table.attrs["missing"] = missing
    table.attrs["random"] = known.width**-0.5
    return table


def _missing(known: Proven, name: str) -> str | None:
    reader, after = _READERS[name]
    lacking = known.lacking("value", "output", reader, after)
    if lacking is None and reader not in known.proof.composed:
        return "its heads' output goes through more than a matrix and the norm before later heads read it"
    return lacking


def _chosen(known: Proven, into: Collection[tuple[int, int]] | None) -> dict[LayerIndex, list[int]]:
    for layer, head in into or ():
        if (layer, head) not in known.heads:
            raise ShapeError(f"no layer {layer}, head {head}; there are {_phrase(known)}")
    placed = enumerate(zip(known.numbers, known.layers, strict=True))
    chosen = {
        LayerIndex(at): [head for head in range(around.heads) if into is None or (number, head) in into]
        for at, (number, around) in placed
    }
    return {at: heads for at, heads in chosen.items() if heads}


def _phrase(known: Proven) -> str:
    heads = "/".join(map(str, sorted({around.heads for around in known.layers})))
    kept = KeptLayers.all_of(known.numbers)
    which = "" if kept.counts else f" ({kept})"
    return f"{len(known.layers)} layers{which} × {heads} heads"


def _column(layers: Sequence[Around], later: Mapping[LayerIndex, Sequence[int]], name: str) -> Tensor:
    """Return scores ordered by later layer, earlier head, later head.

    With W_V = Q R, W_S = Q′ S (Q, Q′ orthogonal), ‖W_V W_O · W_R W_Sᵀ‖ is ‖R W_O · W_R Sᵀ‖, without d_model × d_model.
    """
    reader, after = _READERS[name]
    written: list[Tensor] = []
    found: list[Tensor] = []
    for layer, around in enumerate(layers[: max(later, default=-1) + 1]):
        if layer in later:
            left, right = (around.each(one)[later[LayerIndex(layer)]] for one in (reader, after))
            right = right if after == "output" else right.mT
            read = (left @ _root(right.mT).mT) / _size(product_norm(left, right))
            found += [_norms(earlier, read).flatten() for earlier in written]
        value, output = around.each("value"), around.each("output")
        written.append((_root(value) @ output) / _size(product_norm(value, output)))
    return torch.cat(found) if found else torch.empty(0)


def _root(tall: Tensor) -> Tensor:
    """Return R of Q R, Q with orthogonal columns: (head, d_model, d_k) -> (head, d_k, d_k)."""
    return torch.linalg.qr(tall, mode="r").R


def _size(norms: Tensor) -> Tensor:
    return norms.float()[:, None, None]


def _norms(written: Tensor, read: Tensor) -> Tensor:
    """Return the products' norms: (head, d_v, d_model) and (other, d_model, d_k) -> (head, other)."""
    heads, width, _ = written.shape
    product = written.flatten(0, 1) @ read.transpose(0, 1).flatten(1)
    return product.unflatten(0, (heads, width)).unflatten(2, (len(read), -1)).square().sum(dim=(1, 3)).sqrt()
