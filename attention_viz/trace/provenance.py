"""A trace's origin and fidelity."""

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any

from attention_viz.trace.kind import MEDIA, InputKind


def renamed(old: str, new: str) -> property:
    """Return a property for an attribute's old name, which warns."""

    def read(self: Any) -> Any:
        name = type(self).__name__
        warnings.warn(f"{name}.{old} is called {name}.{new} now", DeprecationWarning, stacklevel=2)
        return getattr(self, new)

    return property(read)


# The edit that a trace of merged words names.
MERGED = "pieces of words merged afterwards"

# How far from a more exact run a run may be and still be called rounded: in float32, and in how many times the bound of
# half precision, which is above this.
_ROUNDED, ROUNDED_BOUNDS, _HALF = 1e-3, 10, 1e-3
# How a note begins that names attention which isn't in the trace.
_LEFT_OUT = "Left out: "


@dataclass(frozen=True)
class Provenance:
    """Where a trace comes from: enough to make it again.

    Attributes:
        model: the name it was loaded by, or the class of a model that was wrapped in memory.
        text: what the person typed; None where only ids were given.
        second_text: the second sentence, where there was one.
        target: what an encoder–decoder says, where its tokens could be written as text.
        picture: what picture was read, by the name of its file, and its size; None where there was none.
        sound: likewise of a sound, and how long it is.
        notes: a sentence each: what to know of the model that ran and of what was read, what it was taken out of,
            what was done to it before, special tokens that are there twice, and which attention isn't in the trace;
            see `left_out`.
        generated: how many tokens at the end of what was read or said the model chose by itself, before
            any edits.
        special_tokens: whether the tokenizer added those that belong around a text.
        chat: whether the text stands in the tokenizer's chat template, as a user's message.
        revision: which version of the model, where one is known.
        sha256: of the weights file, where there is one.
        dtype: of the model's numbers, such as "float32".
        versions: of the packages that computed it, by name.
        edits: what was changed inside the model, in words, in order.
        reading: how the weights are read, a name of `READINGS`; "raw" where they are those that ran.
        route: how our attention came into the model: "interface" where transformers' attention interface calls it, or
            "interception" where it stands in for products and softmaxes that the model's own code asks torch for.
        output: which of the things that the model returns `Trace.output` is, by its name there: "logits",
            "last_hidden_state", "text_embeds" …; empty where that isn't known.
        stored: what a file kept of the run, where that was less than all: "terms" or "weights", "float16", or both, as
            `Trace.save` was told; empty where nothing was lost.
        stored_weight_error: the largest absolute difference between a weight of the run and that which the file gives.
        stored_output_error: likewise of the output's numbers.
        added: masks of ones, by name, that the model was given though nobody passed them: every position is read.
    """

    model: str
    text: str | None = None
    second_text: str | None = None
    target: str | None = None
    picture: str | None = None
    sound: str | None = None
    notes: tuple[str, ...] = ()
    generated: int = 0
    special_tokens: bool = True
    chat: bool = False
    revision: str | None = None
    sha256: str | None = None
    dtype: str = "float32"
    versions: Mapping[str, str] = field(default_factory=dict[str, str], hash=False)
    edits: tuple[str, ...] = ()
    reading: str = "raw"
    route: str = "interface"
    output: str = ""
    added: tuple[str, ...] = ()
    stored: str = ""
    stored_weight_error: float = 0.0
    stored_output_error: float = 0.0

    def __post_init__(self) -> None:
        """Close it to changes."""
        object.__setattr__(self, "versions", MappingProxyType(dict(self.versions)))

    @property
    def media(self) -> dict[InputKind, str]:
        """What was read that is no text, in words: the picture or the sound."""
        return {kind: words for kind in MEDIA if (words := getattr(self, kind)) is not None}

    @property
    def left_out(self) -> tuple[str, ...]:
        """The modules whose attention runs beside the streams and isn't in the trace, and by what means."""
        return tuple(one.removeprefix(_LEFT_OUT) for one in self.notes if one.startswith(_LEFT_OUT))

    def leaving_out(self, parts: Iterable[str]) -> "Provenance":
        """The same with notes that some parts of the model attend, too, and aren't in the trace."""
        more = (f"{_LEFT_OUT}{part}" for part in parts)
        return replace(self, notes=tuple(dict.fromkeys((*self.notes, *more))))

    @property
    def stored_in_words(self) -> str:
        """What became of the run's numbers in a file, as a part of a sentence; empty where they are the run's."""
        *_, last = self.stored.split(", ")
        if last in ("", "terms"):
            return ""
        said = ["only the weights were stored, no queries, keys and values"] if "weights" in self.stored else []
        said += [f"the numbers were rounded to {last}"] if last != "weights" else []
        far = f"no weight is further than {self.stored_weight_error:.1e} from the run's"
        more = f", no number of the output than {self.stored_output_error:.1e}" if self.stored_output_error else ""
        return f"{'; '.join(said)}: {far}{more}"

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain values, for a file's header."""
        values = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        values["told"] = values.pop("notes")  # its name in every file so far
        return {**values, "versions": dict(self.versions)}

    told = renamed("told", "notes")


@dataclass(frozen=True)
class Fidelity:
    """How far the run with our attention is from the same run without it. Numbers that nobody measured are None.

    Attributes:
        output_error: largest difference from the output of the model's own run, relative to its largest number.
        weight_error: largest difference in any attention weight, relative to the largest weight of its layer.
        bound: what either may reach in this precision.
        reference: what ours was compared with, in words; names the attention implementation that the model runs.
        seconds: what the comparison took, apart from the recorded run.
        rows: of how many queries in each layer the weights were compared, in all heads; None where of all. The output
            is always compared whole.
        output_from_exact: how far our output is from that of a more exact run, in float64, or in float32 for half
            precision, relative to its largest number. Such a run is made only if an error is beyond the bound.
        weight_from_exact: likewise of the weights.
        eager_output_from_exact: how far the output of the model's own run is from it.
        eager_weight_from_exact: how far the weights are that ours were compared with.
        eager_from_own: how far transformers' eager attention is from the model's own output; measured if that runs
            another implementation and an error is beyond the bound.
    """

    output_error: float | None
    weight_error: float | None
    bound: float
    reference: str
    seconds: float = 0.0
    rows: int | None = None
    output_from_exact: float | None = None
    weight_from_exact: float | None = None
    eager_output_from_exact: float | None = None
    eager_weight_from_exact: float | None = None
    eager_from_own: float | None = None

    def __post_init__(self) -> None:
        """Treat NaN errors as not measured."""
        for name in ("output_error", "weight_error"):
            if getattr(self, name) != getattr(self, name):
                object.__setattr__(self, name, None)

    @property
    def ok(self) -> bool:
        """Whether one of the two rules holds, of the output and of the weights; what nobody measured breaks both.

        Either they are within the bound; or they are no further from a more exact run than twice the model's own are,
        so that what is between the two is rounding, of which both have their share.
        """
        return self.within_bound or self.as_exact_as_eager

    @property
    def largest_error(self) -> float | None:
        """The larger of the two errors, of those that were measured."""
        return max((one for one in (self.output_error, self.weight_error) if one is not None), default=None)

    @property
    def within_bound(self) -> bool:
        """Whether both errors are within the bound."""
        return all(error is not None and error <= self.bound for error in (self.output_error, self.weight_error))

    @property
    def as_exact_as_eager(self) -> bool:
        """Whether both are no further from a more exact run than twice the model's own, if there was such a run."""
        return all(
            error is not None and (error <= self.bound or self._is_rounding(ours, theirs))
            for error, ours, theirs in self._pairs
        )

    @property
    def rule(self) -> str:
        """Which rule holds or is broken, as a part of a sentence, and beyond the bound, whether it is a fault.

        Nothing tells the two apart if no more exact run was made, or if the model's own run is far from it.
        """
        if self.within_bound:
            return f"within {self.bound:.0e}"
        missed, eager = f"not within {self.bound:.0e}", self.eager_from_own
        if not self._is_judged and eager is not None and eager > self.bound:
            return f"{missed}, and eager attention gives an output {eager:.0e} off the model's own"
        if not self._is_judged:
            return missed
        distances = ", ".join(
            f"the {what} {ours:.1e} beside {theirs:.1e}"
            for what, (_, ours, theirs) in zip(("output", "weights"), self._pairs, strict=True)
            if ours is not None and theirs is not None
        )
        exact = f"a run in {'float32' if self.bound > _HALF else 'float64'}"
        if self.as_exact_as_eager:
            return f"rounding: no further from {exact} than twice what the model itself is: {distances}"
        if self.is_fault:
            return f"a fault: {missed}; further from {exact} than twice what the model itself is: {distances}"
        if any(theirs is not None and 2 * theirs > self._rounded for _, _, theirs in self._pairs):
            return f"{missed}; too far from {exact} to tell rounding from a fault, as the model itself is: {distances}"
        return f"{missed}; of {exact}, {distances}"

    @property
    def is_fault(self) -> bool:
        """Whether an error beyond the bound is no rounding, as far as a more exact run tells."""
        return any(
            error is not None and error > self.bound and ours is not None and theirs is not None and ours > 2 * theirs
            for error, ours, theirs in self._pairs
        )

    @property
    def _is_judged(self) -> bool:
        return any(ours is not None and theirs is not None for _, ours, theirs in self._pairs)

    @property
    def _pairs(self) -> tuple[tuple[float | None, float | None, float | None], ...]:
        """Return output and weights: error, our distance from a more exact run, the model's."""
        return (
            (self.output_error, self.output_from_exact, self.eager_output_from_exact),
            (self.weight_error, self.weight_from_exact, self.eager_weight_from_exact),
        )

    def _is_rounding(self, ours: float | None, theirs: float | None) -> bool:
        return ours is not None and theirs is not None and ours <= 2 * theirs <= self._rounded

    @property
    def _rounded(self) -> float:
        """Bound this precision's distance from a more exact run."""
        return ROUNDED_BOUNDS * self.bound if self.bound > _HALF else _ROUNDED

    def at_least(self, output_error: float, weight_error: float = 0.0) -> "Fidelity":
        """A fidelity with these errors if they are larger; beyond the bound no more exact run excuses them."""
        output, weights = max(self.output_error or 0.0, output_error), max(self.weight_error or 0.0, weight_error)
        found = replace(self, output_error=output, weight_error=weights)
        if output_error > self.bound:
            found = replace(found, output_from_exact=None, eager_output_from_exact=None)
        if weight_error > self.bound:
            found = replace(found, weight_from_exact=None, eager_weight_from_exact=None)
        return found

    def before(self, change: str) -> "Fidelity":
        """A fidelity with these errors whose reference says that they are those of the run before a change."""
        return replace(self, reference=f"{self.reference}, before {change}") if change else self
