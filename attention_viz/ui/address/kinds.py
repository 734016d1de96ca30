"""The kinds of what an address can carry: how each is written, read, and brought within what is allowed."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from attention_viz.models.inputs.media.shipped import SAMPLES
from attention_viz.serving.settings import SETTINGS

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
    """Whether a link can carry a text; one that is longer is left out of it."""
    return len(text) <= SETTINGS.longest_link


def notice(name: str, text: str, allowed: str, instead: str) -> str:
    """What to say of a part of the address that can't be had."""
    short = text if len(text) <= 40 else text[:39] + "…"
    return f"The address asks for {name} “{short}”. Allowed here: {allowed}. Shown instead: {instead}."


def nearest(value: object, options: Collection[Any], otherwise: Any) -> Any:
    """A value that is among the options, whatever a widget, an address or another model has left behind.

    Args:
        otherwise: what to take instead, if it is an option itself; the first or the nearest option, if not.
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
    """What all kinds have in common: anything is allowed, and is written as text."""

    def allowed(self, choice: object, known: object) -> Collection[Any] | None:
        """What may be chosen; None for anything.

        Args:
            known: what the page knows, such as a state or a trace.
        """
        return None

    @property
    def type(self) -> type:
        """What a value is, where there is one."""
        return str

    @property
    def depends(self) -> bool:
        """Whether what is allowed depends on what else is chosen or known."""
        return callable(getattr(self, "options", None))

    def meant(self, text: str, known: object) -> str:
        """What an address means by a text that says the same as another."""
        return text

    def read(self, name: str, text: str, instead: Any, allowed: Collection[Any] | None) -> tuple[Any, list[str]]:
        """What an address asks for, and a plain sentence for each part of it that can't be had."""
        return text[: SETTINGS.longest_input], []

    def write(self, value: Any) -> str | None:
        """The text that stands for a value in the address; None where a link can't carry it."""
        return str(value)

    def within(self, value: Any, allowed: Collection[Any] | None, otherwise: Any) -> Any:
        """The value itself where it is allowed, else the nearest that is."""
        return value if allowed is None else nearest(value, allowed, otherwise)

    def to_widget(self, value: Any) -> Any:
        """What a picker holds for a value."""
        return value

    def from_widget(self, chosen: Any) -> Any:
        """The value for which a picker holds that."""
        return chosen

    def documented(self) -> str:
        """How its line in the documents begins to say what is allowed; empty where that differs from case to case."""
        return ""


@dataclass(frozen=True)
class AnyText(ParameterKind):
    """Any text; one that is too long for a link is left out of it.

    Attributes:
        longest: after how many characters it is cut; None for the longest text that can be typed here.
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
    """One of several names, or of several numbers.

    Attributes:
        synonyms: by what the page knows, what else an address may call an option.
        nothing: what None is called, where that may be chosen, too.
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
        """The option itself, or what is to be taken instead."""
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
        options: from where to where, or which, rising.
        nothing: what None is called, where that may be chosen, too.
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
        """The number, or the nearest; where all can be meant at once, all instead of one that there isn't."""
        if self.nothing and (type(value) is not int or value not in (allowed or ())):
            return None
        numbers = allowed if isinstance(allowed, Sequence) else range(1)
        if type(value) is int and not isinstance(numbers, range):
            return next((one for one in numbers if one >= value), numbers[-1])
        return nearest(value, numbers, otherwise)

    def to_widget(self, value: Any) -> Any:
        """The number; all by their name, as to a picker None means that nothing was chosen yet."""
        return self.nothing if value is None else value

    def from_widget(self, chosen: Any) -> Any:
        """The number; None for all of them."""
        return None if self.nothing and chosen == self.nothing else chosen

    def documented(self) -> str:
        """From where to where, where that is always the same."""
        return "" if callable(self.options) else number_words(self.options)


def number_words(numbers: Sequence[int]) -> str:
    """Name numbers: "0 to 5", or "1, 3" where some are left out."""
    return f"{numbers[0]} to {numbers[-1]}" if isinstance(numbers, range) else ", ".join(map(str, numbers))


@dataclass(frozen=True)
class Names(ParameterKind):
    """Any of several names, parted by full stops; in their own order, each once.

    Attributes:
        options: the names, by what is chosen and what the page knows.
    """

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
    """A picture or a sound that ships, by its name; what a visitor brought is left out of a link."""

    of: str

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
        """The sample's name; nothing for what a visitor brought."""
        return value if value in self.names else None

    def documented(self) -> str:
        """The names."""
        return ", ".join(f"`{one}`" for one in self.names)
