"""Kinds of URL parameters: how each is written, read and limited."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from attention_viz.inputs.media.shipped import SAMPLES
from attention_viz.serving.settings import SETTINGS
from attention_viz.trace.shown.kind import InputKind

__all__ = [
    "AnyText",
    "Names",
    "OneOf",
    "ParameterKind",
    "SampleName",
    "WholeNumber",
    "fits_link",
    "nearest",
    "notice",
    "number_words",
]

# What is allowed: fixed, or told by what else is chosen and by what the page knows, such as a state or a trace.
Options = Collection[Any] | Callable[[Any, Any], Collection[Any]]


def fits_link(text: str) -> bool:
    """Return whether a text is short enough for a link."""
    return len(text) <= SETTINGS.longest_link


def notice(name: str, text: str, allowed: str, instead: str) -> str:
    """Explain an impossible part of the URL."""
    short = text if len(text) <= 40 else text[:39] + "…"
    return f"The address asks for {name} “{short}”. Allowed here: {allowed}. Shown instead: {instead}."


def nearest(value: object, options: Collection[Any], otherwise: Any) -> Any:
    """Return the nearest option to any value.

    Args:
        otherwise: preferred if an option; else the first or nearest.
    """
    for one in (value, otherwise):
        if isinstance(options, range):
            if type(one) is int and one >= options[0]:
                return min(one, options[-1])
        elif any(type(one) is type(option) and one == option for option in options):
            return one
    return next(iter(options))


@dataclass(frozen=True)
class ParameterKind:
    """The base of all kinds: any value, written as text."""

    def allowed(self, choice: object, known: object) -> Collection[Any] | None:
        """Return the options; None for anything."""
        return None

    @property
    def type(self) -> type:
        """What a value is, where there is one."""
        return str

    @property
    def depends(self) -> bool:
        """Return whether options depend on the selection or known facts."""
        return callable(getattr(self, "options", None))

    def meant(self, text: str, known: object) -> str:
        """Replace a synonym in the URL by its option."""
        return text

    def read(self, name: str, text: str, instead: Any, allowed: Collection[Any] | None) -> tuple[Any, list[str]]:
        """Return the URL's value, and a sentence for each impossible part."""
        return text[: SETTINGS.longest_input], []

    def write(self, value: Any) -> str | None:
        """Return the value's URL text; None if links can't carry it."""
        return str(value)

    def within(self, value: Any, allowed: Collection[Any] | None, otherwise: Any) -> Any:
        """Return the value if allowed, else the nearest option."""
        return value if allowed is None else nearest(value, allowed, otherwise)

    def to_widget(self, value: Any) -> Any:
        """What a picker holds for a value."""
        return value

    def from_widget(self, chosen: Any) -> Any:
        """The value for which a picker holds that."""
        return chosen

    def documented(self) -> str:
        """Describe the options for the documents; "" if they vary."""
        return ""


@dataclass(frozen=True)
class AnyText(ParameterKind):
    """Any text; links leave out long ones.

    Attributes:
        longest: characters kept; None for the longest input.
    """

    longest: int | None = None

    def read(self, name: str, text: str, instead: Any, allowed: Collection[Any] | None) -> tuple[Any, list[str]]:
        """The text, cut where it is too long."""
        return text[: self.longest or SETTINGS.longest_input], []

    def write(self, value: Any) -> str | None:
        """The text, where a link can carry it."""
        return value if fits_link(value) else None


@dataclass(frozen=True)
class OneOf(ParameterKind):
    """One of several names or numbers.

    Attributes:
        synonyms: other URL names, by known facts.
        nothing: None's name, if allowed.
    """

    options: Options = ()
    synonyms: Callable[[Any], Mapping[str, str]] | None = None
    nothing: str = ""

    def allowed(self, choice: object, known: object) -> Collection[Any]:
        """The names."""
        return self.options(choice, known) if callable(self.options) else self.options

    def meant(self, text: str, known: object) -> str:
        """The name, where this is another for it."""
        return text if self.synonyms is None else self.synonyms(known).get(text, text)

    def read(self, name: str, text: str, instead: Any, allowed: Collection[Any] | None) -> tuple[Any, list[str]]:
        """The option of that name."""
        options = {str(one): one for one in allowed or ()}
        if text in options:
            return options[text], []
        several = " and ".join(options) if len(options) == 2 else ", ".join(options)
        return instead, [notice(name, text, several, self.nothing if instead is None else str(instead))]

    def within(self, value: Any, allowed: Collection[Any] | None, otherwise: Any) -> Any:
        """Return the option, or its replacement."""
        return None if value is None and self.nothing else nearest(value, allowed or (), otherwise)

    def documented(self) -> str:
        """The names."""
        return (
            ""
            if callable(self.options)
            else ", ".join(f"`{one}`" if isinstance(one, str) else str(one) for one in self.options)
        )


@dataclass(frozen=True)
class WholeNumber(ParameterKind):
    """A whole number in plain digits.

    Attributes:
        options: a range, or ascending numbers.
        nothing: None's name, if allowed.
    """

    options: Sequence[int] | Callable[[Any, Any], Sequence[int]] = range(1)
    nothing: str = ""

    @property
    def type(self) -> type:
        """A whole number."""
        return int

    def allowed(self, choice: object, known: object) -> Sequence[int]:
        """From where to where, or which."""
        return self.options(choice, known) if callable(self.options) else self.options

    def read(self, name: str, text: str, instead: Any, allowed: Collection[Any] | None) -> tuple[Any, list[str]]:
        """The number, if it is one of those."""
        # int() also takes "１２", "1_0", " 3 ".
        number = int(text) if text.isascii() and text.isdecimal() and len(text) < 7 else -1
        numbers = allowed if isinstance(allowed, Sequence) else range(1)
        if number in numbers:
            return number, []
        return instead, [notice(name, text, number_words(numbers), self.nothing if instead is None else str(instead))]

    def within(self, value: Any, allowed: Collection[Any] | None, otherwise: Any) -> Any:
        """Return the nearest number, or all if allowed."""
        if self.nothing and (type(value) is not int or value not in (allowed or ())):
            return None
        numbers = allowed if isinstance(allowed, Sequence) else range(1)
        if type(value) is int and not isinstance(numbers, range):
            return next((one for one in numbers if one >= value), numbers[-1])
        return nearest(value, numbers, otherwise)

    def to_widget(self, value: Any) -> Any:
        """Return the number; all by name, since None means unset."""
        return self.nothing if value is None else value

    def from_widget(self, chosen: Any) -> Any:
        """The number; None for all of them."""
        return None if self.nothing and chosen == self.nothing else chosen

    def documented(self) -> str:
        """Describe the range if it never varies."""
        return "" if callable(self.options) else number_words(self.options)


def number_words(numbers: Sequence[int]) -> str:
    """Name numbers: "0 to 5", or "1, 3" with gaps."""
    return f"{numbers[0]} to {numbers[-1]}" if isinstance(numbers, range) else ", ".join(map(str, numbers))


@dataclass(frozen=True)
class Names(ParameterKind):
    """Any of several names, in option order, separated by full stops."""

    options: Callable[[Any, Any], Collection[str]] = lambda choice, known: ()

    @property
    def type(self) -> type:
        """Several names."""
        return tuple

    def allowed(self, choice: object, known: object) -> Collection[Any]:
        """The names."""
        return self.options(choice, known)

    def read(self, name: str, text: str, instead: Any, allowed: Collection[Any] | None) -> tuple[Any, list[str]]:
        """Those of the names that there are."""
        there, asked = allowed or (), [one for one in text.split(".") if one]
        unknown = [one for one in asked if one not in there]
        notices = [notice(name, ".".join(unknown), ", ".join(there), "what of it there is")] if unknown else []
        return tuple(one for one in there if one in asked), notices

    def write(self, value: Any) -> str:
        """The names, with full stops between."""
        return ".".join(value)

    def within(self, value: Any, allowed: Collection[Any] | None, otherwise: Any) -> Any:
        """Those of the names that there are."""
        return tuple(one for one in allowed or () if one in value)


@dataclass(frozen=True)
class SampleName(ParameterKind):
    """A sample picture's or sound's name; links leave out uploads."""

    of: InputKind

    @property
    def names(self) -> tuple[str, ...]:
        """What ships."""
        return tuple(name for name, one in SAMPLES.items() if one.kind == self.of)

    def read(self, name: str, text: str, instead: Any, allowed: Collection[Any] | None) -> tuple[Any, list[str]]:
        """The sample of that name."""
        if text in self.names:
            return text, []
        return instead, [notice(name, text, ", ".join(self.names), instead if instead in self.names else "your own")]

    def write(self, value: Any) -> str | None:
        """Return the sample's name; nothing for an upload."""
        return value if value in self.names else None

    def documented(self) -> str:
        """The names."""
        return ", ".join(f"`{one}`" for one in self.names)
