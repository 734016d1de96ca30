"""What is known of each model: by the catalogue, or since somebody loaded it here."""

from attention_viz.models import CATALOGUE
from attention_viz.scratch.facts import ModelFacts

__all__ = ["facts_of", "forget_facts", "remember"]

_known = {name: entry.facts for name, entry in CATALOGUE.items()}


def facts_of(name: str) -> ModelFacts:
    """What is known of a model; of one that nobody has loaded yet next to nothing."""
    return _known.get(name, ModelFacts({}))


def remember(name: str, facts: ModelFacts) -> None:
    """Note what a model turned out to be."""
    _known[name] = facts


def forget_facts(name: str) -> None:
    """Let go of what a model outside the catalogue turned out to be."""
    if name not in CATALOGUE:
        _known.pop(name, None)
