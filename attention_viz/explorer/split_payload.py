"""The scores that no head wrote, split by word and place, for the Why page."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

    from attention_viz.circuits.asked import Score
    from attention_viz.circuits.first_layer import SplitScores
    from attention_viz.trace.trace import Trace


def split_header(trace: "Trace", of: "Score", found: "SplitScores | str", no_words: str) -> dict[str, Any]:
    """Return the split as JSON; `found` may be the reason for none, `no_words` that for no other words at the key."""
    stream = trace.attention_stream(of.stream)
    header: dict[str, Any] = {"layer": of.layer, "head": of.head, "query": of.query, "key": of.key}
    header["fixed"] = no_words
    if isinstance(found, str):
        return header | {"refused": found}
    keys = list(found.keys)
    weights = trace.weights(of.layer, of.head, stream)[of.query].detach().float().cpu()[keys]
    return header | {
        "names": found.parts,
        "keys": keys,
        # Of each key, the query's parts times the key's.
        "pairs": _numbers(found.pairs.flatten(0, 1).T),
        "scores": _numbers(found.scores),
        "beside": None if found.beside is None else _numbers(found.beside),
        "together": None if found.together is None else _numbers(found.together),
        "shared": _numbers(found.shared),
        "weights": _numbers(weights),
        "places": found.places,
        "softcap": trace.attention(of.layer, stream).softcap is not None,
    }


def _numbers(values: "Tensor") -> list[Any]:
    return values.double().mul(1e6).round().div(1e6).tolist()
