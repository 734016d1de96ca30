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
from attention_viz.trace.files.arrow import PLACES, Column, described
from attention_viz.trace.kind import SLOTS, Unit
from attention_viz.trace.provenance import renamed
from attention_viz.trace.slots import are_alike
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
# The wording for layers without a softmax, whose shares are of size: |A| over the row's Σ|A|.
_MIXER = "mixer"


@dataclass(frozen=True)
class Role:
    """A role of a head.

    Attributes:
        label: its name on a page.
        meaning: its meaning, in a sentence.
        threshold: the smallest share of a head with this role; 0 for "mixed".
        job: True if the role names a target. The job with the largest share at its threshold wins; without one, the
            other roles follow in this order.
        of: the only unit that can have it: "word", or "patch" of an image; empty for all.
        otherwise: label and meaning by unit, if they differ: "patch" of an image, "frame" of an audio; by "mixer" those
            in layers without a softmax.
        missing: why layers without a softmax don't have it; empty if they do.
        ordered: whether it needs positions in an order, which latents don't have.
    """

    label: str
    meaning: str
    threshold: float
    job: bool = True
    of: str = ""
    otherwise: Mapping[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    missing: str = ""
    ordered: bool = False

    told = renamed("told", "wording")

    def wording(self, unit: str) -> tuple[str, str]:
        """Return its label and meaning.

        Args:
            unit: the input's unit: "word", "patch" or "frame"; or "mixer" for a layer without a softmax.
        """
        if unit == _MIXER:
            return self.otherwise.get(_MIXER, (self.label, self.meaning))
        what = Unit(unit)
        # Without their own entry, patches and frames use the tokens' words.
        usual = (self.label, self.meaning.replace("token", what.token).replace("Tokens", what.tokens.capitalize()))
        return self.otherwise.get(what, usual)

    def head(self, unit: str = "word") -> str:
        """Return the name of a head with this role, such as "previous-token head" or "left-patch head".

        Args:
            unit: the input's unit: "word", "patch" or "frame"; or "mixer" for a layer without a softmax.
        """
        label = self.wording(unit)[0].lower()
        return label if label.endswith("sink") else f"{label.replace(' ', '-')} head"


ROLES: Mapping[str, Role] = {
    "previous": Role(
        "Previous token",
        "Each token attends to the one before it.",
        0.25,
        ordered=True,
        otherwise={
            Unit.PATCH: ("Left patch", "Each patch attends to the one to its left."),
            Unit.FRAME: ("Previous frame", "Each frame attends to the one before it."),
            _MIXER: (
                "Previous token",
                "Each token takes a quarter or more of its row’s size from the one before it.",
            ),
        },
    ),
    "next": Role(
        "Next token",
        "Each token attends to the one after it.",
        0.25,
        ordered=True,
        otherwise={
            Unit.PATCH: ("Right patch", "Each patch attends to the one to its right."),
            Unit.FRAME: ("Next frame", "Each frame attends to the one after it."),
            _MIXER: ("Next token", "Each token takes a quarter or more of its row’s size from the one after it."),
        },
    ),
    "above": Role(
        "Patch above",
        "Each image patch attends to the one above it.",
        0.25,
        of=Unit.PATCH,
        missing="its input has no image patches",
    ),
    "itself": Role(
        "Self",
        "Each token attends to itself.",
        0.25,
        otherwise={
            _MIXER: ("Self", "Each token keeps much of its own: a quarter or more of its row’s size, skip included.")
        },
    ),
    "same token": Role(
        "Duplicate token",
        "Repeated tokens attend to their earlier occurrences.",
        0.15,
        of=Unit.WORD,
        otherwise={
            _MIXER: ("Duplicate token", "Repeated tokens take more from earlier ones: 0.15 more of their row’s size.")
        },
    ),
    "induction": Role(
        "Induction",
        "Repeated tokens attend to the token that followed last time.",
        0.15,
        of=Unit.WORD,
        missing="a convolution before the layer mixes neighbouring values, so it carries several tokens at once; the "
        "metric “induction” has the share of size",
    ),
    "punctuation": Role(
        "Punctuation",
        "Tokens attend to punctuation marks.",
        0.25,
        of=Unit.WORD,
        missing="its threshold is known only for weights that sum to 1",
    ),
    "first": Role(
        "Attention sink",
        "Tokens attend to special ones or, in a decoder, to the first.",
        0.4,
        job=False,
        otherwise={_MIXER: ("First token", "Tokens take 0.40 or more of their row’s size from special or first ones.")},
    ),
    "broad": Role(
        "Broad",
        "Tokens attend to nearly everything equally.",
        0.8,
        job=False,
        otherwise={_MIXER: ("Broad", "Tokens take nearly equally much, by size, from all earlier ones.")},
    ),
    "mixed": Role("Mixed", "No role reaches its threshold.", 0.0, job=False),
}


def roles_for(unit: Unit, *, mixes: bool = False) -> tuple[str, ...]:
    """Return possible role names in `ROLES` order; of layers without a softmax if it `mixes`."""
    left_out = {name for name, role in ROLES.items() if (mixes and role.missing) or (unit in SLOTS and role.ordered)}
    return tuple(name for name, role in ROLES.items() if role.of in ("", unit) and name not in left_out)


def roles(traces: "Trace | Sequence[Trace]", stream: str | None = None) -> "pandas.DataFrame":
    """Return each head's role, its share, and the head's name in the field's words.

    A share is a mean over the queries that count: not special, not padding and, without look-ahead, not the first,
    which can only attend to itself. "previous" and "next" leave out neighbours that are sinks; in an image they are the
    patches to the left and to the right, and "above" is the patch above. "same token" and "induction" are the weight
    beyond the mean that other rows give to the same key: a head that attends to "the" from everywhere continues no
    pattern. "broad" is the normalized entropy: the entropy over the logarithm of the number of open keys. From 0.98 on
    a head has no job, because in a short text even equal rows give every key much.

    Layers without a softmax have signed weights. Their shares are of size, |A| over the row's Σ|A|, and meet the same
    thresholds. They have no "above", "induction" and "punctuation": these columns are NaN, and `attrs["missing"]` has
    the reasons.

    Source: Clark et al. 2019, "What Does BERT Look At?", section 3; Olsson et al. 2022, "In-context Learning and
    Induction Heads"; Xiao et al. 2024, "Efficient Streaming Language Models with Attention Sinks".

    Args:
        traces: one text's trace, or those of several texts and one model. Shares are averaged over the texts that have
            them, each text counting equally, before they meet their thresholds.
        stream: the attention type, or "mixer" for layers without a softmax; None for the only one.

    Returns:
        One row per head, index (layer, head): role, a name in `ROLES`; score, the share of that role, or for "mixed"
        the largest share of a job; label, the head's name, such as "previous-token head" or "left-patch head" (see
        `Role.head`); then each role's share, by its name. A share is NaN below two queries that qualify, as "induction"
        in a text without repetition. Cross-attention only has "punctuation", "first" and "broad". A text with more than
        2²⁶ weights has its shares from a sample of its queries, spread over it.

    Raises:
        TraceError: no trace, a missing stream, several streams and none named, or traces of different models or heads.
    """
    import pandas

    several = together(traces, "roles")
    stream = several[0].stream(stream)
    mixes = stream in several[0].mixers
    unit = _MIXER if mixes else several[0].query_tokens(stream).unit
    tables = [role_shares(trace, trace.stream(stream)) for trace in several]
    if any(table.keys() != tables[0].keys() for table in tables):
        sizes = sorted({len(table) for table in tables})
        raise TraceError(f"roles need traces with the same heads; got {sizes} heads")
    shares = torch.stack([torch.stack(list(table.values())) for table in tables]).nanmean(dim=0)
    chosen = [role_of(dict(zip(SHARES, row, strict=True))) for row in shares.tolist()]
    index = pandas.MultiIndex.from_tuples(list(tables[0]), names=["layer", "head"])
    found = pandas.DataFrame(chosen, index=index, columns=["role", "score"])
    found["label"] = [ROLES[role].head(unit) for role in found["role"]]
    found = found.join(pandas.DataFrame(shares.numpy(), index=index, columns=list(SHARES)))
    found.attrs["missing"] = {name: role.missing for name, role in ROLES.items() if mixes and role.missing}
    return described(found, role_columns())


def role_columns(before: str = "") -> dict[str, Column]:
    """Return the columns of tables of roles; `before` is in front of a role's name."""
    shares = {before + name: Column(f"the share of the role {name}", "share of the query") for name in SHARES}
    return {
        **PLACES,
        "role": Column("the head's role, a name of av.ROLES"),
        "score": Column("the share of its role, or of the largest job of a mixed head", "share of the query"),
        "label": Column("the head's name in the field's words"),
        **shares,
    }


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
    """Token facts for role shares: counted queries, whether one may look at another sign, and sink keys.

    Attributes:
        mixes: whether the layers have no softmax, so that some roles are missing.
    """

    rows: QueryRows
    signs: Bool[Tensor, "row key"]
    resting: Bool[Tensor, " key"]
    mixes: bool = False

    @classmethod
    def of(cls, trace: Trace, stream: str, words: Words | None = None) -> "RoleText":
        """Collect the facts of one stream of a run."""
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
        rows = QueryRows.of(queries, keys, alike=are_alike(stream, queries, keys), positions=chosen)
        words = words or Words(keys)
        # A mark at which heads rest, since it is the first token, says nothing of marks.
        marks = ~words.carrying.numpy() & real & ~resting
        signs = numpy.broadcast_to(marks, (len(chosen), len(keys))).copy()
        if rows.alike:
            places, own = numpy.arange(len(keys)), numpy.array(chosen, dtype=numpy.int64)[:, None]
            signs &= places < own if back else places != own
        return cls(rows, torch.from_numpy(signs), torch.from_numpy(resting), stream in trace.mixers)


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
    none = some.weights.new_full(some.weights.shape[:-1], nan).double()
    missing = {name for name, role in ROLES.items() if text.mixes and role.missing}
    rows = torch.stack(
        [none if name in missing else share(some, text).double() for name, share in SHARES.items()], dim=-1
    )
    wording = (~rows.isnan()).sum(dim=1) >= _FEWEST
    return torch.where(wording, rows.nanmean(dim=1), nan)
