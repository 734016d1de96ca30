"""Facts of each model, from the catalogue or an earlier load."""

from attention_viz.protocol.facts import ModelFacts
from attention_viz.sources import CATALOGUE

__all__ = ["facts_of", "forget_facts", "remember"]

_known = {name: entry.facts for name, entry in CATALOGUE.items()}


def facts_of(name: str) -> ModelFacts:
    """Return a model's facts; before its first load next to nothing."""
    return _known.get(name, ModelFacts({}))


def remember(name: str, facts: ModelFacts) -> None:
    """Note what a model turned out to be."""
    _known[name] = facts


def forget_facts(name: str) -> None:
    """Forget the facts of a model outside the catalogue."""
    if name not in CATALOGUE:
        _known.pop(name, None)
