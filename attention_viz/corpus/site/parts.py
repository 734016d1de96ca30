"""Parts of a site's pages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from attention_viz.corpus.site.rows import SiteRow

__all__ = ["Head", "Site", "SiteExample", "file_of"]


@dataclass(frozen=True)
class SiteExample:
    """An example's row and likelier words; `explored` is its explorer place, None if not drawn."""

    metric: str
    kind: str
    tenth: int
    query: int
    key: int
    weight: float
    row: SiteRow
    words: str = ""
    explored: int | None = None


@dataclass(frozen=True)
class Head:
    """One head's page: table row, examples, looks by kind.

    If studied also its ablation and similar heads. The picture is HTML.
    """

    row: Mapping[str, Any]
    examples: Sequence[SiteExample]
    kinds: Sequence[Mapping[str, Any]]
    silenced: Mapping[str, Any] | None = None
    alike: Sequence[Mapping[str, Any]] = ()
    picture: str = ""

    @property
    def name(self) -> str:
        """As it is called on the pages."""
        return f"{self.row['layer']}·{self.row['head']}"

    @property
    def file(self) -> str:
        """The name of its page."""
        return file_of(self.row["stream"], self.row["layer"], self.row["head"])

    @property
    def role(self) -> str:
        """Its role's name."""
        return str(self.row["role"])


def file_of(stream: object, layer: object, head: object) -> str:
    """The name of a head's page."""
    return f"head-{stream}-{layer}-{head}.html"


@dataclass(frozen=True)
class Site:
    """Every page's model, corpus and number of texts."""

    model: str
    corpus: str
    texts: int
