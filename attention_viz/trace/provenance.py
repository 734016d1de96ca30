"""A trace's origin and fidelity."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any

from attention_viz.trace.chat.segments import Segment
from attention_viz.trace.decoding import Decoding, in_words, one_more, pick
from attention_viz.trace.kind import MEDIA, InputKind

# The edit that a trace of merged words names.
MERGED = "pieces of words merged afterwards"

# How far from a more exact run a run may be and still be called rounded: in float32, and in how many times the bound of
# half precision, which is above this.
_ROUNDED, ROUNDED_BOUNDS, _HALF = 1e-3, 10, 1e-3
# How a note begins that names attention which isn't in the trace.
_LEFT_OUT = "Left out: "


def renamed(old: str, new: str) -> property:
    """Return a property for an attribute's old name, which warns."""

    def read(self: Any) -> Any:
        name = type(self).__name__
        warnings.warn(f"{name}.{old} is called {name}.{new} now", DeprecationWarning, stacklevel=2)
        return getattr(self, new)

    return property(read)


@dataclass(frozen=True)
class Provenance:
    """A trace's origin: enough to compute it again.

    Attributes:
        model: the name it was loaded by, or the class of a wrapped model.
        text: the input text; None if there were only ids.
        second_text: the second sentence, if there was one.
        target: an encoder–decoder's decoder text, if its tokens can be written as text.
        picture: the image's file name and size; None without an image.
        sound: the audio's file name and length; None without audio.
        video: the video's file name, frames and size; None without a video.
        notes: a sentence each on the model and its input: its enclosing model, changes made before, duplicate special
            tokens, and attention that isn't in the trace (see `left_out`).
        generated: how many tokens at the end were generated, before any edits: by the model itself, or by something
            else if `decoding` says so.
        decoding: how these tokens were chosen, in order: one `Decoding` per run of tokens that were chosen alike.
        special_tokens: whether the tokenizer added its special tokens.
        chat: whether the text is a user's message, or a chat's messages, in the tokenizer's chat template.
        messages: a chat's messages, (role, content) each; empty for a text. `text` then has them with their roles.
        segments: each message's tokens; see `Trace.segments`.
        answer: the role and position that a generated answer begins with; None if nothing awaits one.
        revision: the model's version, if known.
        sha256: of the weights file, if there is one.
        dtype: of the model's numbers, such as "float32".
        versions: of the packages that computed it, by name.
        edits: the changes made inside the model, in words, in order.
        reading: the attribution method, a name of `READINGS`; "raw" for the recorded weights.
        route: how our attention got into the model: "interface" if transformers' attention interface calls it, or
            "interception" if it replaces products and softmaxes in the model's own calls to torch.
        output: the name of the model's output that `Trace.output` is: "logits", "last_hidden_state", "text_embeds" …;
            empty if unknown.
        stored: the part of the run that a file kept, if not all: "terms" or "weights", "float16", or both, as passed to
            `Trace.save`; empty if nothing was lost.
        stored_weight_error: the largest absolute difference between a weight of the run and of the file.
        stored_output_error: the largest absolute difference between a number of the run's output and of the file's.
        added: masks of ones, by name, that were added for the model, so that it reads every position.
    """

    model: str
    text: str | None = None
    second_text: str | None = None
    target: str | None = None
    picture: str | None = None
    sound: str | None = None
    video: str | None = None
    notes: tuple[str, ...] = ()
    generated: int = 0
    decoding: tuple[Decoding, ...] = ()
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
    messages: tuple[tuple[str, str], ...] = ()
    segments: tuple[Segment, ...] = ()
    answer: tuple[str, int] | None = None

    def __post_init__(self) -> None:
        """Make `versions` read-only, and treat generated tokens as the likeliest if nothing else is known."""
        object.__setattr__(self, "versions", MappingProxyType(dict(self.versions)))
        if self.generated > 0 and not self.decoding:
            object.__setattr__(self, "decoding", (Decoding(tokens=self.generated),))

    @property
    def media(self) -> dict[InputKind, str]:
        """The descriptions of the image or audio, by kind."""
        return {kind: words for kind in MEDIA if (words := getattr(self, kind)) is not None}

    @property
    def left_out(self) -> tuple[str, ...]:
        """The modules whose attention isn't in the trace, and how they attend."""
        return tuple(one.removeprefix(_LEFT_OUT) for one in self.notes if one.startswith(_LEFT_OUT))

    def leaving_out(self, parts: Iterable[str]) -> "Provenance":
        """Return a copy with notes on parts of the model whose attention isn't in the trace."""
        more = (f"{_LEFT_OUT}{part}" for part in parts)
        return replace(self, notes=tuple(dict.fromkeys((*self.notes, *more))))

    @property
    def generated_in_words(self) -> str:
        """How many tokens were generated, and how they were chosen, as a part of a sentence; empty if none were."""
        return in_words(self.decoding)

    def with_token(self, way: Decoding) -> "Provenance":
        """Return a copy with one more generated token, chosen in this way."""
        return replace(self, generated=self.generated + 1, decoding=one_more(self.decoding, way))

    def generating(self, numbers: Sequence[int]) -> "Provenance":
        """Return a copy with some of the generated tokens, by their numbers from 0, rising."""
        return replace(self, generated=len(numbers), decoding=pick(self.decoding, numbers))

    def after(self, count: int) -> "Provenance":
        """Return a copy for a text that begins after virtual tokens."""
        moved = tuple(replace(one, start=one.start + count, end=one.end + count) for one in self.segments)
        answer = None if self.answer is None else (self.answer[0], self.answer[1] + count)
        return replace(self, segments=moved, answer=answer) if count else self

    @property
    def stored_in_words(self) -> str:
        """The file's loss against the run's numbers, as a part of a sentence; empty if none."""
        *_, last = self.stored.split(", ")
        if last in ("", "terms"):
            return ""
        said = ["only the weights were stored, without queries, keys and values"] if "weights" in self.stored else []
        said += [f"the numbers were rounded to {last}"] if last != "weights" else []
        far = f"no weight differs by more than {self.stored_weight_error:.1e} from the run's"
        more = f", and no output number by more than {self.stored_output_error:.1e}" if self.stored_output_error else ""
        return f"{'; '.join(said)}: {far}{more}"

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for a file's header."""
        values = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        values["told"] = values.pop("notes")  # its name in every file so far
        values["decoding"] = [asdict(one) for one in self.decoding]
        values["segments"] = [[one.role, one.start, one.end] for one in self.segments]
        for name in ("messages", "segments", "answer"):  # most texts aren't chats
            if not values[name]:
                del values[name]
        return {**values, "versions": dict(self.versions)}

    told = renamed("told", "notes")


@dataclass(frozen=True)
class Fidelity:
    """The distance of the run with our attention from the same run without it; None if not measured.

    Attributes:
        output_error: largest difference from the model's own output, relative to its largest number.
        weight_error: largest difference in any attention weight, relative to the largest weight of its layer.
        bound: the largest allowed error in this precision.
        reference: the reference run, in words, with the model's own attention implementation.
        seconds: the comparison's duration, without the recorded run.
        rows: how many queries per layer had their weights compared, in all heads; None for all. The whole output is
            always compared.
        output_from_exact: distance of our output from a more exact run, in float64, or in float32 for half precision,
            relative to its largest number. That run is made only if an error exceeds the bound.
        weight_from_exact: distance of our weights from it.
        eager_output_from_exact: distance of the model's own output from it.
        eager_weight_from_exact: distance of the reference weights from it.
        eager_from_own: distance of transformers' eager attention from the model's own output; measured if the model
            runs another implementation and an error exceeds the bound.
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
        """Whether output and weights pass one of two rules; unmeasured errors fail both.

        Either both errors are within the bound, or each error beyond it is rounding: our distance from a more exact run
        is at most twice the model's own.
        """
        return self.within_bound or self.as_exact_as_eager

    @property
    def largest_error(self) -> float | None:
        """The larger measured error; None if neither was measured."""
        return max((one for one in (self.output_error, self.weight_error) if one is not None), default=None)

    @property
    def within_bound(self) -> bool:
        """Whether both errors are within the bound."""
        return all(error is not None and error <= self.bound for error in (self.output_error, self.weight_error))

    @property
    def as_exact_as_eager(self) -> bool:
        """Whether each error is within the bound, or at most twice as far from a more exact run as the model's own."""
        return all(
            error is not None and (error <= self.bound or self._is_rounding(ours, theirs))
            for error, ours, theirs in self._pairs
        )

    @property
    def rule(self) -> str:
        """The rule that holds or fails, as a part of a sentence, with whether an error beyond the bound is a fault.

        That is unknown if no more exact run was made, or if the model's own run is far from it.
        """
        if self.within_bound:
            return f"within {self.bound:.0e}"
        missed, eager = f"not within {self.bound:.0e}", self.eager_from_own
        if not self._is_judged and eager is not None and eager > self.bound:
            return f"{missed}, and eager attention's output differs by {eager:.0e} from the model's own"
        if not self._is_judged:
            return missed
        distances = ", ".join(
            f"{what} {ours:.1e}, the model's {theirs:.1e}"
            for what, (_, ours, theirs) in zip(("output", "weights"), self._pairs, strict=True)
            if ours is not None and theirs is not None
        )
        exact = f"a run in {'float32' if self.bound > _HALF else 'float64'}"
        if self.as_exact_as_eager:
            return f"rounding: at most twice as far from {exact} as the model itself: {distances}"
        if self.is_fault:
            return f"a fault: {missed}; more than twice as far from {exact} as the model itself: {distances}"
        if any(theirs is not None and 2 * theirs > self._rounded for _, _, theirs in self._pairs):
            return f"{missed}; too far from {exact}, like the model itself, to tell rounding from a fault: {distances}"
        return f"{missed}; from {exact}: {distances}"

    @property
    def is_fault(self) -> bool:
        """Whether a more exact run shows that an error beyond the bound isn't rounding."""
        return any(
            error is not None and error > self.bound and ours is not None and theirs is not None and ours > 2 * theirs
            for error, ours, theirs in self._pairs
        )

    @property
    def _is_judged(self) -> bool:
        return any(ours is not None and theirs is not None for _, ours, theirs in self._pairs)

    @property
    def _pairs(self) -> tuple[tuple[float | None, float | None, float | None], ...]:
        """Output and weights: error, our distance from a more exact run, the model's."""
        return (
            (self.output_error, self.output_from_exact, self.eager_output_from_exact),
            (self.weight_error, self.weight_from_exact, self.eager_weight_from_exact),
        )

    def _is_rounding(self, ours: float | None, theirs: float | None) -> bool:
        return ours is not None and theirs is not None and ours <= 2 * theirs <= self._rounded

    @property
    def _rounded(self) -> float:
        """The limit on twice the model's own distance from a more exact run, for an error to count as rounding."""
        return ROUNDED_BOUNDS * self.bound if self.bound > _HALF else _ROUNDED

    def at_least(self, output_error: float, weight_error: float = 0.0) -> "Fidelity":
        """Return a copy with at least these errors; beyond the bound, no more exact run excuses them."""
        output, weights = max(self.output_error or 0.0, output_error), max(self.weight_error or 0.0, weight_error)
        found = replace(self, output_error=output, weight_error=weights)
        if output_error > self.bound:
            found = replace(found, output_from_exact=None, eager_output_from_exact=None)
        if weight_error > self.bound:
            found = replace(found, weight_from_exact=None, eager_weight_from_exact=None)
        return found

    def before(self, change: str) -> "Fidelity":
        """Return a copy whose reference says that its errors are those before a change."""
        return replace(self, reference=f"{self.reference}, before {change}") if change else self
