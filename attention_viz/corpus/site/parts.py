"""Parts of a site's pages."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import Any

from markupsafe import Markup

from attention_viz.analysis.roles import ROLES
from attention_viz.corpus.site.rows import SiteRow

# A weight smaller than this tints nothing.
_SEEN = 0.02


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

    @property
    def query_token(self) -> str:
        """The query's token."""
        return self.row.asking or self.row.tokens[self.query]

    @property
    def key_token(self) -> str:
        """The key's token."""
        return self.row.tokens[self.key]

    def marked(self) -> Iterator[tuple[Markup, str]]:
        """Yield each token's attributes and the token."""
        for place, (token, weight) in enumerate(zip(self.row.tokens, self.row.weights, strict=True)):
            marks = ("query",) * (place == self.query and not self.row.asking) + ("key",) * (place == self.key)
            kind = f' class="{" ".join(marks)}"' if marks else ""
            tint = f" style=--w:{weight:.2f}" if weight >= _SEEN else ""
            yield Markup(f"{kind}{tint} title={weight:.4f}"), token


@dataclass(frozen=True)
class Head:
    """One head's page: table row, examples, attention by kind.

    If studied also its ablation and similar heads.
    """

    row: Mapping[str, Any]
    examples: Sequence[SiteExample]
    kinds: Sequence[Mapping[str, Any]]
    silenced: Mapping[str, Any] | None = None
    alike: Sequence[Mapping[str, Any]] = ()
    picture: Markup | None = None

    @property
    def name(self) -> str:
        """Its name on the pages."""
        return f"{self.row['layer']}·{self.row['head']}"

    @property
    def file(self) -> str:
        """The name of its page."""
        return file_of(self.row["stream"], self.row["layer"], self.row["head"])

    @property
    def role(self) -> str:
        """Its role's name."""
        return str(self.row["role"])

    @property
    def role_index(self) -> int:
        """Its role's index, which sets its colour."""
        return list(ROLES).index(self.role)

    @property
    def score(self) -> float | None:
        """Its share of its role's job, None if unknown."""
        score = float(self.row["score"])
        return None if isnan(score) else score

    @property
    def share(self) -> float:
        """Its score from 0 to 1, 0 if unknown."""
        return min(1.0, max(0.0, self.score or 0.0))

    @property
    def stem(self) -> str:
        """Its page's name without the ending."""
        return Path(self.file).stem

    @property
    def metrics(self) -> list[str]:
        """The metrics of its examples, in order."""
        return list(dict.fromkeys(one.metric for one in self.examples))

    def listed(self, metric: str, kind: str) -> list[SiteExample]:
        """Return its examples of a metric, in order."""
        return [one for one in self.examples if one.metric == metric and one.kind == kind]


def file_of(stream: object, layer: object, head: object) -> str:
    """Return the name of a head's page."""
    return f"head-{stream}-{layer}-{head}.html"


@dataclass(frozen=True)
class Site:
    """Every page's model, corpus and number of texts."""

    model: str
    corpus: str
    texts: int
