"""Each head's role: the one leading above its threshold."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan, nan
from typing import TYPE_CHECKING

import numpy
import torch
from jaxtyping import Bool, Float, Float64, Int
from torch import Tensor

from attention_viz.analysis.head_table import together
from attention_viz.analysis.measured import RowWeights, looks_back, row_weights
from attention_viz.analysis.places import sample_of
from attention_viz.analysis.rows import QueryRows
from attention_viz.analysis.words import Words
from attention_viz.errors import TraceError
from attention_viz.trace.kind import Unit
from attention_viz.trace.provenance import renamed
from attention_viz.trace.trace import Trace

if TYPE_CHECKING:
    import pandas

__all__ = [
    "EVEN",
    "MEASURED",
    "ROLES",
    "SHARES",
    "Role",
    "RoleText",
    "role_of",
    "role_shares",
    "roles",
    "roles_for",
    "shares_of",
]

# Weights that are looked through at most; of a longer text a sample of its rows.
MOST_WEIGHTS = 2**26
# What a single query does isn't what a head mostly does.
_FEWEST = 2
# From this evenness on, rows are taken to be even.
EVEN = 0.98


@dataclass(frozen=True)
class Role:
    """What a head can mostly do.

    Attributes:
        label: its name on a page.
        meaning: what a head of this role does, in a sentence.
        threshold: the share from which on a head has this role; 0 of the one that needs none.
        job: whether it says at what a head looks: of these the one with the largest share is taken, and only where none
            reaches its threshold one of the others, in this order.
        of: what alone can have it, where not everything can: "word", or "patch" of a picture.
        otherwise: label and meaning where they are others, by what is read: "patch" of a picture, "frame" of a sound.
    """

    label: str
    meaning: str
    threshold: float
    job: bool = True
    of: str = ""
    otherwise: Mapping[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])

    told = renamed("told", "wording")

    def wording(self, unit: str) -> tuple[str, str]:
        """Its label and its meaning.

        Args:
            unit: what is read: "word", "patch" or "frame".
        """
        what = Unit(unit)
        # What nothing else is said of is told of patches and frames as of tokens.
        usual = (self.label, self.meaning.replace("token", what.token).replace("Tokens", what.tokens.capitalize()))
        return self.otherwise.get(what, usual)


ROLES: Mapping[str, Role] = {
    "previous": Role(
        "Word before",
        "Each token looks at the one before it.",
        0.25,
        otherwise={
            Unit.PATCH: ("Patch to the left", "Each patch looks at the one to its left."),
            Unit.FRAME: ("Frame before", "Each frame looks at the one before it."),
        },
    ),
    "next": Role(
        "Word after",
        "Each token looks at the one after it.",
        0.25,
        otherwise={
            Unit.PATCH: ("Patch to the right", "Each patch looks at the one to its right."),
            Unit.FRAME: ("Frame after", "Each frame looks at the one after it."),
        },
    ),
    "above": Role("Patch above", "Each patch of a picture looks at the one above it.", 0.25, of=Unit.PATCH),
    "itself": Role("Itself", "Each token looks at itself.", 0.25),
    "same token": Role("Same word", "Tokens that come again look back at where they came before.", 0.15, of=Unit.WORD),
    "induction": Role("Induction", "Tokens that come again look at what followed them last time.", 0.15, of=Unit.WORD),
    "punctuation": Role("Punctuation", "Tokens look at punctuation marks.", 0.25, of=Unit.WORD),
    "first": Role("At rest", "Tokens look at special ones, or where none looks ahead at the first.", 0.4, job=False),
    "broad": Role("Broad", "Tokens look at nearly everything alike.", 0.8, job=False),
    "mixed": Role("Mixed", "Nothing of all this often enough to reach a threshold.", 0.0, job=False),
}


def roles_for(unit: Unit) -> tuple[str, ...]:
    """Return possible role names in `ROLES` order."""
    return tuple(name for name, role in ROLES.items() if role.of in ("", unit))


def roles(traces: "Trace | Sequence[Trace]", stream: str | None = None) -> "pandas.DataFrame":
    """What each head mostly does.

    A share is a mean over the queries that count: not special, no padding, and where none looks ahead not the first,
    which can only look at itself. "previous" and "next" leave out neighbours at which heads rest; in a picture they
    are the patches to the left and to the right, and "above" is the one above. "same token" and
    "induction" are how much more than the other rows give to the same key on average: a head that looks at "the" from
    everywhere goes on with no pattern. "broad" is the entropy over its largest value, the logarithm of how many keys
    the query may look at; from 0.98 on a head has no job, since in a short text even rows give every key much.

    Source: Clark et al. 2019, "What Does BERT Look At?", section 3; Olsson et al. 2022, "In-context Learning and
    Induction Heads"; Xiao et al. 2024, "Efficient Streaming Language Models with Attention Sinks".

    Args:
        traces: one text's trace; or several texts' of one model, of whose shares the mean is taken over the texts that
            have what a role asks for, each text counting alike, before any is held against its threshold.
        stream: which attention; the only one there is, if none is named.

    Returns:
        One row a head, index (layer, head): role, a name in `ROLES`; score, the share of that role, and of "mixed" the
        largest of a job; then each role's share, by its name, NaN where fewer than two queries have what it asks for,
        as "induction" in a text without repetition. Of cross-attention only "punctuation", "first" and "broad" have
        any. Of a text with more than 2²⁶ weights the shares are those of a sample of its queries, spread over it.

    Raises:
        TraceError: no trace, or no such stream, or none named where there are several; or traces of different models
            or heads.
    """
    import pandas

    tables = [role_shares(trace, trace.stream(stream)) for trace in together(traces, "what heads do")]
    if any(table.keys() != tables[0].keys() for table in tables):
        sizes = sorted({len(table) for table in tables})
        raise TraceError(f"the roles of heads can't be told of traces of different heads; got {sizes} heads")
    shares = torch.stack([torch.stack(list(table.values())) for table in tables]).nanmean(dim=0)
    chosen = [role_of(dict(zip(SHARES, row, strict=True))) for row in shares.tolist()]
    index = pandas.MultiIndex.from_tuples(list(tables[0]), names=["layer", "head"])
    found = pandas.DataFrame(chosen, index=index, columns=["role", "score"])
    return found.join(pandas.DataFrame(shares.numpy(), index=index, columns=list(SHARES)))


def role_of(shares: Mapping[str, float]) -> tuple[str, float]:
    """Return a head's role and its share; NaN never leads."""
    jobs = [name for name in SHARES if ROLES[name].job and not isnan(shares[name])]
    # In a short text even rows give every key a large share: who looks at all alike does no job.
    even = shares["broad"] >= EVEN
    reached = [name for name in jobs if shares[name] >= ROLES[name].threshold and not even]
    if reached:
        best = max(reached, key=lambda name: shares[name])
        return best, shares[best]
    for name in SHARES:
        if not ROLES[name].job and shares[name] >= ROLES[name].threshold:
            return name, shares[name]
    return "mixed", max((shares[name] for name in jobs), default=nan)


@dataclass(frozen=True, eq=False)
class RoleText:
    """Token facts for role shares: counted queries, whether one may look at another sign, and sink keys."""

    rows: QueryRows
    signs: Bool[Tensor, "row key"]
    resting: Bool[Tensor, " key"]

    @classmethod
    def of(cls, trace: Trace, stream: str, words: Words | None = None) -> "RoleText":
        """Of one stream of a run."""
        queries, keys, back = trace.query_tokens(stream), trace.key_tokens(stream), looks_back(trace, stream)
        # In numpy, as `QueryRows` is, and handed over to torch at the end.
        real = ~numpy.array(keys.padding, dtype=bool)
        # Where none looks ahead, the first token is one on which heads rest.
        first = int(real.argmax()) if back and real.any() else -1
        resting = numpy.array(keys.special, dtype=bool) & real
        resting[first] |= first >= 0
        counted = [position for position in queries.counted if position != first]
        shapes = [trace.attention(layer, stream).shape for layer in trace.layer_numbers(stream)]
        room = MOST_WEIGHTS // max(1, sum(math.prod(shape) // max(1, shape[-2]) for shape in shapes))
        chosen = sample_of(counted, max(1, room))
        rows = QueryRows.of(queries, keys, alike=stream != "cross", positions=chosen)
        words = words or Words(keys)
        # A mark at which heads rest, since it is the first token, says nothing of marks.
        marks = ~words.carrying.numpy() & real & ~resting
        signs = numpy.broadcast_to(marks, (len(chosen), len(keys))).copy()
        if rows.alike:
            places, own = numpy.arange(len(keys)), numpy.array(chosen, dtype=numpy.int64)[:, None]
            signs &= places < own if back else places != own
        return cls(rows, torch.from_numpy(signs), torch.from_numpy(resting))


def _signs(some: RowWeights, text: RoleText) -> Float[Tensor, "head row"]:
    if not bool(text.signs.any()):
        return some.weights.new_full(some.weights.shape[:-1], nan)
    found = (some.weights * text.signs.to(some.weights.dtype)).sum(dim=-1)
    return found.masked_fill(~text.signs.any(dim=-1), nan)


def _evenness(some: RowWeights, text: RoleText) -> Float[Tensor, "head row"]:
    most = some.open.log()
    return (some.metric("entropy", text.rows) / most).masked_fill(most <= 0, nan)


def _neighbour(some: RowWeights, text: RoleText, name: str, keys: Int[Tensor, " row"]) -> Float[Tensor, "head row"]:
    return some.metric(name, text.rows).masked_fill((keys >= 0) & text.resting[keys], nan)


def _same_token(some: RowWeights, text: RoleText) -> Float[Tensor, "head row"]:
    rows = text.rows
    if not len(rows.duplicates):
        return some.weights.new_full(some.weights.shape[:-1], nan)
    return rows.over_duplicates(some.above_at(*rows.duplicates.T), torch.ones(len(rows.duplicates), dtype=torch.bool))


def _induction(some: RowWeights, text: RoleText) -> Float[Tensor, "head row"]:
    return text.rows.at(some.above_at, some.weights.shape, text.rows.following)


# Each row's share, NaN where it hasn't what is asked for.
_Share = Callable[[RowWeights, RoleText], Tensor]
SHARES: dict[str, _Share] = {
    "previous": lambda some, text: _neighbour(some, text, "previous", text.rows.before),
    "next": lambda some, text: _neighbour(some, text, "next", text.rows.after),
    "above": lambda some, text: _neighbour(some, text, "above", text.rows.above),
    "itself": lambda some, text: some.metric("self", text.rows),
    "same token": _same_token,
    "induction": _induction,
    "punctuation": _signs,
    "first": lambda some, text: some.weights.index_select(-1, text.resting.nonzero()[:, 0]).sum(dim=-1),
    "broad": _evenness,
}


# The metrics that shares are made of.
MEASURED = ("entropy", "previous", "next", "above", "self")


def role_shares(trace: Trace, stream: str) -> dict[tuple[int, int], Float[Tensor, " share"]]:
    """Return each head's role shares in `SHARES` order; NaN below two queries."""
    text, found = RoleText.of(trace, stream), dict[tuple[int, int], Tensor]()
    for some in row_weights(trace, stream, text.rows.positions.tolist()):
        found |= dict(zip(some.heads, shares_of(some, text), strict=True))
    return found


def shares_of(some: RowWeights, text: RoleText) -> Float64[Tensor, "head share"]:
    """Return some heads' shares, as `role_shares`."""
    rows = torch.stack([share(some, text).double() for share in SHARES.values()], dim=-1)
    wording = (~rows.isnan()).sum(dim=1) >= _FEWEST
    return torch.where(wording, rows.nanmean(dim=1), nan)
