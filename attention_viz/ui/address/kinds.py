"""Kinds of URL parameters."""

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from attention_viz.errors import UnusablePicture
from attention_viz.inputs.media.drawn import EXAMPLE, is_drawn, name_of, shapes_of
from attention_viz.inputs.media.shipped import SAMPLES
from attention_viz.serving.settings import SETTINGS
from attention_viz.serving.uploads import joined, names_of
from attention_viz.trace.kind import InputKind

# Digits of the shortest number that may be a secret: no position has as many.
_SHORTEST_SECRET = 6
# The longest names of several images, in characters.
_LONGEST_NAMES = 1_000
# float() also takes "１", "1_0", "nan" and " 3 ".
_DECIMAL = re.compile(r"[0-9]{1,3}(\.[0-9]{1,2})?")

# The allowed values: fixed, or computed from the other choices and the page's knowledge, such as a state or a trace.
Options = Collection[Any] | Callable[[Any, Any], Collection[Any]]


def fits_link(text: str) -> bool:
    """Return whether a text fits into a link."""
    return len(text) <= SETTINGS.longest_link


def notice(name: str, text: str, allowed: str, instead: str) -> str:
    """Explain an impossible part of the URL."""
    short = text if len(text) <= 40 else text[:39] + "…"
    # Whoever takes `key` for the teacher's key shouldn't read it out to the class; a position has few digits.
    secret = name == "key" and not (text.isdecimal() and len(text) < _SHORTEST_SECRET)
    asked = "a key that isn’t here" if secret else f"{name} “{short}”"
    return f"The URL asks for {asked}. Allowed here: {allowed}. Shown instead: {instead}."


def nearest(value: object, options: Collection[Any], otherwise: Any) -> Any:
    """Return the first of both that is an option, or the last number if it is larger; else the first option."""
    row = _in_a_row(options)
    for one in (value, otherwise):
        if row:
            if type(one) is int and one >= row[0]:
                return min(one, row[-1])
        elif any(type(one) is type(option) and one == option for option in options):
            return one
    return next(iter(options))


def _in_a_row(options: Collection[Any]) -> range:
    """Return consecutive whole numbers as a range; else an empty one."""
    if isinstance(options, range) or not options or any(type(one) is not int for one in options):
        return options if isinstance(options, range) else range(0)
    row = range(min(options), max(options) + 1)
    return row if [*row] == [*options] else range(0)


class ParameterKind:
    """Any value, written as text; `options` is None for anything."""

    options: Any = None
    holds: type[Any] = str

    def allowed(self, choice: object, known: object) -> Collection[Any] | None:
        """Return the options; None for anything."""
        options: Any = self.options(choice, known) if callable(self.options) else self.options
        return options

    def meant(self, text: str, known: object) -> str:
        """Replace a synonym in the URL by its option."""
        return text

    def read(self, name: str, text: str, instead: Any, allowed: Collection[Any] | None) -> tuple[Any, list[str]]:
        """Return the URL's value, and a sentence for each impossible part."""
        raise NotImplementedError

    def write(self, value: Any) -> str | None:
        """Return the value's URL text; None if links can't carry it."""
        return str(value)

    def within(self, value: Any, allowed: Collection[Any] | None, otherwise: Any) -> Any:
        """Return the value if allowed, else the nearest option."""
        return value

    def to_widget(self, value: Any) -> Any:
        """Convert a value for its picker."""
        return value

    def from_widget(self, chosen: Any) -> Any:
        """Convert a picker's value back."""
        return chosen

    def documented(self) -> str:
        """Describe the options for the documents; "" if they vary."""
        return ""


@dataclass(frozen=True)
class AnyText(ParameterKind):
    """Any text, cut after `longest` characters.

    Attributes:
        carried: whether links carry it.
        reader: parses the parameter's name, the URL's text and the value instead.
    """

    longest: int | None = None
    carried: Callable[[str], bool] = fits_link
    reader: Callable[[str, str, Any], tuple[Any, list[str]]] = lambda name, text, instead: (text, [])

    def read(self, name: str, text: str, instead: Any, allowed: Collection[Any] | None) -> tuple[Any, list[str]]:
        """Return the text's value."""
        return self.reader(name, text[: self.longest or SETTINGS.longest_input], instead)

    def write(self, value: Any) -> str | None:
        """Return the text if a link can carry it."""
        return value if self.carried(value) else None


@dataclass(frozen=True)
class OneOf(ParameterKind):
    """One of several names or numbers.

    Attributes:
        nothing: None's name, if allowed.
        others: the name of values beyond the options, which links leave out; "" if there are none.
    """

    options: Options = ()
    nothing: str = ""
    synonyms: Callable[[Any], Mapping[str, str]] | None = None
    others: str = ""

    def meant(self, text: str, known: object) -> str:
        """Return a synonym's option."""
        return text if self.synonyms is None else self.synonyms(known).get(text, text)

    def read(self, name: str, text: str, instead: Any, allowed: Collection[Any] | None) -> tuple[Any, list[str]]:
        """Return the option of that name."""
        options = {str(one): one for one in allowed or ()}
        if text in options:
            return options[text], []
        several = " and ".join(options) if len(options) == 2 and not self.others else ", ".join(_folded(options))
        return instead, [notice(name, text, several, self._called(instead, options))]

    def _called(self, value: Any, options: Collection[str]) -> str:
        if value is None:
            return self.nothing
        return self.others if self.others and value not in options else str(value)

    def write(self, value: Any) -> str | None:
        """Return the option's name; None for another value."""
        return None if self.others and value not in (self.allowed(None, None) or ()) else str(value)

    def within(self, value: Any, allowed: Collection[Any] | None, otherwise: Any) -> Any:
        """Return the option, or its replacement."""
        free = self.others or (value is None and self.nothing)
        return value if free else nearest(value, allowed or (), otherwise)

    def documented(self) -> str:
        """List the names."""
        options = () if callable(self.options) else self.options
        names = all(isinstance(one, str) for one in options)
        return ", ".join(_folded(options, "`{}`") if names else map(str, options))


def _folded(names: Iterable[str], form: str = "{}") -> list[str]:
    """Return the names; "x 2", "x 3" and so on as one range."""
    ranges = dict[str, list[str]]()
    for name in names:
        plain, _, number = name.rpartition(" ")
        ranges.setdefault(plain if plain and number.isdecimal() else name, []).append(name)
    found = list[str]()
    for plain, several in ranges.items():
        numbered = [form.format(one) for one in several if one != plain]
        found += [form.format(plain)] if plain in several else []
        found += numbered if len(numbered) < 3 else [f"{numbered[0]} to {numbered[-1]}"]
    return found


@dataclass(frozen=True)
class WholeNumber(OneOf):
    """A whole number in plain digits."""

    options: Sequence[int] | Callable[[Any, Any], Sequence[int]] = range(1)
    holds = int

    def read(self, name: str, text: str, instead: Any, allowed: Collection[Any] | None) -> tuple[Any, list[str]]:
        """Return the number if it is an option."""
        # int() also takes "１２", "1_0", " 3 ".
        number = int(text) if text.isascii() and text.isdecimal() and len(text) < 7 else -1
        numbers = _numbers(allowed)
        if number in numbers:
            return number, []
        return instead, [notice(name, text, number_words(numbers), self._called(instead, ()))]

    def within(self, value: Any, allowed: Collection[Any] | None, otherwise: Any) -> Any:
        """Return the nearest number, or all if allowed."""
        if self.nothing and (type(value) is not int or value not in (allowed or ())):
            return None
        numbers = _numbers(allowed)
        if type(value) is int and not isinstance(numbers, range):
            return next((one for one in numbers if one >= value), numbers[-1])
        return nearest(value, numbers, otherwise)

    def to_widget(self, value: Any) -> Any:
        """Return the number; all by name, since None means unset."""
        return self.nothing if value is None else value

    def from_widget(self, chosen: Any) -> Any:
        """Return the number; None for all of them."""
        return None if self.nothing and chosen == self.nothing else chosen

    def documented(self) -> str:
        """Describe the range if it never varies."""
        return "" if callable(self.options) else number_words(self.options)


def _numbers(allowed: Collection[Any] | None) -> Sequence[int]:
    return allowed if isinstance(allowed, Sequence) else range(1)


def number_words(numbers: Sequence[int]) -> str:
    """Name numbers: "0 to 5", or "1, 3" with gaps."""
    return f"{numbers[0]} to {numbers[-1]}" if isinstance(numbers, range) else ", ".join(map(str, numbers))


@dataclass(frozen=True)
class DecimalNumber(ParameterKind):
    """A number from `least` to `most` with at most two decimals."""

    least: float = 0.0
    most: float = 1.0
    holds = float

    def read(self, name: str, text: str, instead: Any, allowed: Collection[Any] | None) -> tuple[Any, list[str]]:
        """Return the number if it is in the range."""
        number = float(text) if _DECIMAL.fullmatch(text) else math.nan
        if self.least <= number <= self.most:
            return number, []
        return instead, [notice(name, text, self.documented(), self.write(instead))]

    def write(self, value: Any) -> str:
        """Write the number without trailing zeros."""
        return f"{value:.2f}".rstrip("0").rstrip(".")

    def within(self, value: Any, allowed: Collection[Any] | None, otherwise: Any) -> Any:
        """Return the nearest number in the range, with two decimals."""
        value = value if type(value) is float and math.isfinite(value) else otherwise
        return round(min(max(value, self.least), self.most), 2)

    def documented(self) -> str:
        """Describe the range."""
        return f"{self.least:g} to {self.most:g}"


@dataclass(frozen=True)
class Names(ParameterKind):
    """Any of several names, in option order, separated by full stops."""

    options: Options = ()
    holds = tuple

    def read(self, name: str, text: str, instead: Any, allowed: Collection[Any] | None) -> tuple[Any, list[str]]:
        """Return the names that are options."""
        there, asked = allowed or (), [one for one in text.split(".") if one]
        unknown = [one for one in asked if one not in there]
        notices = [notice(name, ".".join(unknown), ", ".join(there), "those that exist")] if unknown else []
        return tuple(one for one in there if one in asked), notices

    def write(self, value: Any) -> str:
        """Join the names with full stops."""
        return ".".join(value)

    def within(self, value: Any, allowed: Collection[Any] | None, otherwise: Any) -> Any:
        """Return the names that are options."""
        return tuple(one for one in allowed or () if one in value)


@dataclass(frozen=True)
class NamesInOrder(Names):
    """Any of several names in an order of one's own, separated by full stops."""

    def read(self, name: str, text: str, instead: Any, allowed: Collection[Any] | None) -> tuple[Any, list[str]]:
        """Return the names that are options, in the URL's order."""
        found, notices = super().read(name, text, instead, allowed)
        return tuple(dict.fromkeys(one for one in text.split(".") if one in found)), notices

    def within(self, value: Any, allowed: Collection[Any] | None, otherwise: Any) -> Any:
        """Return the names that are options."""
        return tuple(one for one in value if one in (allowed or ()))


@dataclass(frozen=True)
class PictureName(OneOf):
    """A sample's name or a drawing's, or up to `most` of them; links leave out uploads."""

    most: int = 1

    def read(self, name: str, text: str, instead: Any, allowed: Collection[Any] | None) -> tuple[Any, list[str]]:
        """Return the name if there is such a sample, or its shapes can be drawn; of several names those that exist."""
        several = names_of(text[:_LONGEST_NAMES])
        if self.most == 1 or len(several) == 1:
            return self._read_one(name, text, instead, allowed)
        found, notices = list[str](), list[str]()
        if len(several) > self.most or len(text) > _LONGEST_NAMES:
            notices.append(notice(name, text, f"1 to {self.most} images", f"the first {self.most}"))
        for one in several[: self.most]:
            value, wrong = self._read_one(name, one, "", allowed)
            found += [value] if value else []
            notices += [f"The URL names an image that doesn’t exist, “{one[:40]}”; it was left out."] if wrong else []
        return joined(found) or instead, notices

    def _read_one(self, name: str, text: str, instead: Any, allowed: Collection[Any] | None) -> tuple[Any, list[str]]:
        if not is_drawn(text):
            return super().read(name, text, instead, allowed)
        try:
            return name_of(shapes_of(text)), []
        except UnusablePicture as error:
            return instead, [f"{notice(name, text, EXAMPLE, str(instead))} Reason: {error}."]

    def write(self, value: Any) -> str | None:
        """Return the name of a sample or drawing, or of several; None with an upload."""
        written = [one if is_drawn(one) else super(PictureName, self).write(one) for one in names_of(value)]
        return None if None in written else value


def sample(kind: InputKind, most: int = 1) -> OneOf:
    """Return the kind of a sample's name, or of up to `most` images' names; links leave out uploads."""
    samples = tuple(name for name, one in SAMPLES.items() if one.kind.medium == kind)
    if kind == InputKind.PICTURE:
        return PictureName(samples, others="your own", most=most)
    return OneOf(samples, others="your own")
