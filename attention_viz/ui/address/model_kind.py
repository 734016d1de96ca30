"""The URL's model: one that a visitor may request."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from attention_viz.serving import permissions
from attention_viz.sources import CATALOGUE
from attention_viz.ui.address.kinds import ParameterKind, notice

__all__ = ["ModelName"]


@dataclass(frozen=True)
class ModelName(ParameterKind):
    """A model that a visitor may request."""

    def read(self, name: str, text: str, instead: Any, allowed: Collection[Any] | None) -> tuple[Any, list[str]]:
        """Return the model's one name, or why it isn't available."""
        reason = permissions.refusal(text)
        if reason is None:
            return permissions.canonical_name(text), []
        refusal = notice(name, text, ", ".join((*CATALOGUE, *permissions.other_sources())), instead)
        return instead, [f"{refusal} Why: {reason}."]
