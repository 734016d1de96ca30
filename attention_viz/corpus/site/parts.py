"""What the pages of a site are made of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from attention_viz.corpus.site.rows import SiteRow

__all__ = ["Head", "Site", "SiteExample", "file_of"]


@dataclass(frozen=True)
class SiteExample:
    """One example on a page: what it is of, its row, and the words that the head makes likelier there.

    Attributes:
        explored: its place among the head's examples that the explorer draws; None where it draws none.
    """

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
    """What a page says of a head: its row in the table of heads, its examples, and its looks by kind.

    Of a scan that was studied, too: what becomes of the model without it, and the heads that are like it. The picture
    is of its queries and keys, as HTML.
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
    """What every page says: of which model and corpus, and how many texts."""

    model: str
    corpus: str
    texts: int
