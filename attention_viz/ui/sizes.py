"""How many layers and heads a model has, so far as it is known: of others than the catalogue's once they are loaded."""

from collections.abc import Mapping

from attention_viz.models import CATALOGUE

__all__ = ["UNKNOWN", "head_count", "layer_count", "learn"]

# Nobody has loaded it yet: any number that somebody asks for may turn out to be right.
UNKNOWN = 10_000

# By model, of each stream the heads of each layer.
_known: dict[str, Mapping[str, tuple[int, ...]]] = {}


def learn(model: str, heads: Mapping[str, tuple[int, ...]]) -> None:
    """Note what a model turned out to have: of each stream, the heads of each layer."""
    _known[model] = heads


def layer_count(model: str, stream: str | None) -> int:
    """How many layers there are to choose from."""
    if model in CATALOGUE:
        return CATALOGUE[model].layers
    heads = _heads(model, stream)
    return UNKNOWN if heads is None else len(heads)


def head_count(model: str, stream: str | None, layer: int) -> int:
    """How many heads there are to choose from in a layer."""
    if model in CATALOGUE:
        return CATALOGUE[model].heads
    heads = _heads(model, stream)
    return UNKNOWN if heads is None else heads[min(layer, len(heads) - 1)]


def _heads(model: str, stream: str | None) -> tuple[int, ...] | None:
    streams = _known.get(model)
    if not streams:
        return None
    return streams.get(stream or "") or next(iter(streams.values()))
