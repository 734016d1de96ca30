"""Words that a head makes likelier in its examples."""

from collections.abc import Iterable, Mapping
from typing import Any

from attention_viz.circuits.writing import writes
from attention_viz.models.model import AttentionModel
from attention_viz.trace.trace import Trace

# So many words are told; some of the strongest are one word with and without a space before it.
_TOLD, _ASKED = 3, 9


def words_written(model: AttentionModel, run: Trace, wanted: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a row per example with its likelier words; the model must choose words."""
    found = list[dict[str, Any]]()
    for one in wanted:
        table = writes(model, run, int(one["layer"]), int(one["head"]), int(one["query"]), _ASKED)
        best = table[table["logit"] > 0]["written"].tolist()[:_ASKED]
        words = [word for word in dict.fromkeys(str(word).strip("· ") for word in best) if word][:_TOLD]
        place = {name: one[name] for name in ("stream", "layer", "head", "text", "query")}
        found.append(place | {"words": " ".join(words)})
    return found
