"""Where a trace comes from, and how far it can be trusted."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any

__all__ = ["Fidelity", "Provenance"]

# How far two runs may be from one in float64 and still differ by rounding alone.
_ROUNDING = 1e-3
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
        told: notes, a sentence each: what to know of the model that ran and of what was read, what it was taken out of,
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
    told: tuple[str, ...] = ()
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
    def left_out(self) -> tuple[str, ...]:
        """The modules whose attention runs beside the streams and isn't in the trace, and by what means."""
        return tuple(one.removeprefix(_LEFT_OUT) for one in self.told if one.startswith(_LEFT_OUT))

    def leaving_out(self, parts: Iterable[str]) -> "Provenance":
        """The same with notes that some parts of the model attend, too, and aren't in the trace."""
        notes = (f"{_LEFT_OUT}{part}" for part in parts)
        return replace(self, told=tuple(dict.fromkeys((*self.told, *notes))))

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
        return {**values, "versions": dict(self.versions)}


@dataclass(frozen=True)
class Fidelity:
    """How far the run with our attention is from the same run without it.

    Attributes:
        output_error: largest difference in the model's output, relative to its largest number.
        weight_error: largest difference in any attention weight, relative to the largest weight of its layer.
        bound: what either may reach in this precision.
        reference: what ours was compared with, in words.
        seconds: what the comparison took, apart from the recorded run.
        rows: of how many queries in each layer the weights were compared, in all heads; None where of all. The output
            is always compared whole.
        output_from_exact: how far our output is from that of a run in float64, relative to its largest number; 0 where
            no such run was needed, since both errors are within the bound.
        weight_from_exact: likewise of the weights.
        eager_output_from_exact: how far the model's own output is from it.
        eager_weight_from_exact: likewise of the weights.
    """

    output_error: float
    weight_error: float
    bound: float
    reference: str
    seconds: float = 0.0
    rows: int | None = None
    output_from_exact: float = 0.0
    weight_from_exact: float = 0.0
    eager_output_from_exact: float = 0.0
    eager_weight_from_exact: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether one of the two rules holds, of the output and of the weights; an error that is no number breaks both.

        Either they are within the bound; or they are no further from a run in float64 than twice the model's own are,
        so that what is between the two is rounding, of which both have their share.
        """
        return self.within_bound or self.as_exact_as_eager

    @property
    def within_bound(self) -> bool:
        """Whether both errors are within the bound."""
        return self.output_error <= self.bound and self.weight_error <= self.bound

    @property
    def as_exact_as_eager(self) -> bool:
        """Whether both are no further from a run in float64 than twice the model's own, where there was such a run."""
        pairs = (
            (self.output_error, self.output_from_exact, self.eager_output_from_exact),
            (self.weight_error, self.weight_from_exact, self.eager_weight_from_exact),
        )
        return all(
            error <= self.bound or (theirs > 0 and ours <= 2 * theirs <= _ROUNDING) for error, ours, theirs in pairs
        )

    @property
    def rule(self) -> str:
        """Which rule stands, or is broken, as a part of a sentence."""
        if self.within_bound or not self.as_exact_as_eager:
            return f"{'' if self.within_bound else 'not '}within {self.bound:.0e}"
        return (
            "no further from a run in float64 than twice what the model itself is: the output "
            f"{self.output_from_exact:.1e} beside {self.eager_output_from_exact:.1e}, the weights "
            f"{self.weight_from_exact:.1e} beside {self.eager_weight_from_exact:.1e}"
        )

    def before(self, change: str) -> "Fidelity":
        """A fidelity with these errors whose reference says that they are those of the run before a change."""
        return replace(self, reference=f"{self.reference}, before {change}") if change else self
