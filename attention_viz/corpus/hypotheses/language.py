"""The language of hypotheses: which query–key pairs a hypothesis is about. It is parsed here and never executed.

pattern     = either { "or" either }
either      = term { "and" term }
term        = "not" term | "(" pattern ")" | comparison
comparison  = value [ ("==" | "!=" | "<" | "<=" | ">" | ">=") value | "in" "(" text { "," text } ")" ]
value       = side { ".previous" | ".next" } "." attribute [ ("+" | "-") number ] | text | number
side        = "query" | "key"

Python's own parser can't read it. `ast.parse` takes a backslash in a text for an escape, refuses 007 and line ends, and
fails at 5,000 sums. It also drops brackets, whose depth is limited here, and doesn't say what is needed at a place.
"""

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy

from attention_viz.corpus.hypotheses.signs import Sign, signs_of
from attention_viz.corpus.hypotheses.values import ATTRIBUTES, HypothesisAxis
from attention_viz.errors import HypothesisError

if TYPE_CHECKING:
    from numpy.typing import NDArray

_STEPS = {"previous": -1, "next": 1}
_COMPARE: Mapping[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
# Brackets within brackets, and characters; a longer hypothesis is refused.
_DEEPEST, _LONGEST = 50, 10_000
# What is made of the two axes: of a value its values, of a pattern where it holds, (query or 1, key or 1).
_Axes = tuple[HypothesisAxis, HypothesisAxis]
_Pattern = Callable[[_Axes], "NDArray[Any]"]


class _Values(NamedTuple):
    """Values per pair, (query or 1, key or 1), if known."""

    numbers: "NDArray[Any]"
    known: "NDArray[Any]"


class _Value(NamedTuple):
    kind: str
    of: Callable[[_Axes], _Values]
    place: int


@dataclass(frozen=True)
class Hypothesis:
    """A hypothesis about the keys that a query attends to, and its attributes."""

    said: str
    asked: frozenset[str]
    _pattern: _Pattern

    def holds(self, queries: HypothesisAxis, keys: HypothesisAxis) -> "NDArray[Any]":
        """Return the pairs it holds for, (query, key)."""
        return numpy.broadcast_to(self._pattern((queries, keys)), (len(queries.tokens), len(keys.tokens)))


def read_hypothesis(said: str) -> Hypothesis:
    """Parse a hypothesis such as `query.previous.text == key.text and not query.is_pronoun`."""
    if len(said) > _LONGEST:
        raise HypothesisError(
            f"the hypothesis has {len(said):,} characters; at most {_LONGEST:,} are allowed", said, _LONGEST
        )
    reader = _StoryReader(said, list(signs_of(said)))
    pattern = reader.pattern()
    reader.end()
    return Hypothesis(said, frozenset(reader.asked), pattern)


class _StoryReader:
    def __init__(self, said: str, signs: list[Sign]) -> None:
        self.asked = set[str]()
        self._said = said
        self._signs = signs
        self._at = 0
        self._depth = 0

    def pattern(self) -> _Pattern:
        """Parse parts joined by "or"."""
        found = self._joined(self._either, "or", numpy.logical_or)
        return found

    def end(self) -> None:
        """Check that nothing follows."""
        if self._next.kind != "end":
            raise self._refuse('"and", "or", or the end')

    def _either(self) -> _Pattern:
        return self._joined(self._term, "and", numpy.logical_and)

    def _joined(self, part: Callable[[], _Pattern], word: str, join: Callable[[Any, Any], Any]) -> _Pattern:
        parts = [part()]
        while self._take(word):
            parts.append(part())
        if len(parts) == 1:
            return parts[0]

        def whole(axes: _Axes) -> "NDArray[Any]":
            found = parts[0](axes)
            for one in parts[1:]:
                found = join(found, one(axes))
            return found

        return whole

    def _term(self) -> _Pattern:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise HypothesisError(f"more than {_DEEPEST} nested brackets and negations", self._said, self._place)
        if self._take("not"):
            inner = self._term()
            found: _Pattern = lambda axes: ~inner(axes)  # noqa: E731
        elif self._take("("):
            found = self.pattern()
            self._need(")")
        else:
            found = self._comparison()
        self._depth -= 1
        return found

    def _comparison(self) -> _Pattern:
        one = self._value()
        if self._take("in"):
            return self._one_of(one)
        sign = self._next
        if sign.said not in _COMPARE:
            if one.kind != "truth":
                raise self._refuse(
                    f"a comparison ({', '.join(_COMPARE)} or in), as {one.kind}s are neither true nor false"
                )
            return lambda axes: (lambda values: values.numbers & values.known)(one.of(axes))
        self._at += 1
        other = self._value()
        self._check_kinds(one, other, sign)
        compare = _COMPARE[sign.said]

        def holds(axes: _Axes) -> "NDArray[Any]":
            a, b = one.of(axes), other.of(axes)
            # What a token that isn't there has is neither equal nor unequal to anything.
            return numpy.asarray(compare(a.numbers, b.numbers), dtype=bool) & a.known & b.known

        return holds

    def _check_kinds(self, one: _Value, other: _Value, sign: Sign) -> None:
        if one.kind != other.kind:
            raise HypothesisError(f"can't compare a {one.kind} with a {other.kind}", self._said, sign.place)
        if one.kind != "number" and sign.said not in ("==", "!="):
            raise HypothesisError(
                f"{sign.said} compares numbers, and these are {one.kind}s; use == or !=",
                self._said,
                sign.place,
            )

    def _one_of(self, one: _Value) -> _Pattern:
        if one.kind != "text":
            raise HypothesisError(
                f"“in” needs a text before it, such as query.text; got a {one.kind}", self._said, one.place
            )
        self._need("(")
        words = [self._text()]
        while self._take(","):
            words.append(self._text())
        self._need(")")

        def holds(axes: _Axes) -> "NDArray[Any]":
            values = one.of(axes)
            return numpy.isin(values.numbers.astype(str), words) & values.known

        return holds

    def _text(self) -> str:
        if self._next.kind != "text":
            raise self._refuse('a text in quotes, such as "the"')
        self._at += 1
        return self._signs[self._at - 1].said[1:-1].casefold()

    def _value(self) -> _Value:
        sign = self._next
        if sign.kind == "text":
            return _constant("text", self._text(), sign.place)
        if sign.kind == "number":
            self._at += 1
            return _constant("number", int(sign.said), sign.place)
        if sign.said in ("query", "key"):
            self._at += 1
            return self._moved(self._of_side(sign))
        raise self._refuse('query, key, a number, a text in quotes, "not" or a bracket')

    def _of_side(self, side: Sign) -> _Value:
        step = 0
        while True:
            self._need(".")
            name = self._next
            if name.said in _STEPS:
                step += _STEPS[name.said]
            elif name.said in ATTRIBUTES:
                break
            else:
                raise self._refuse(f"previous, next, {', '.join(ATTRIBUTES)}")
            self._at += 1
        self._at += 1
        self.asked.add(name.said)
        asked, across = ATTRIBUTES[name.said], side.said == "key"

        def of(axes: _Axes) -> _Values:
            values = numpy.asarray(asked.of(axes[across]))
            found, known = _stepped(values, step)
            shape = (1, -1) if across else (-1, 1)
            return _Values(found.reshape(shape), known.reshape(shape))

        return _Value(asked.kind, of, side.place)

    def _moved(self, value: _Value) -> _Value:
        by = 0
        while (sign := self._next).said in ("+", "-"):
            if value.kind != "number":
                raise HypothesisError(
                    f"{sign.said} needs a number before it; got a {value.kind}", self._said, sign.place
                )
            self._at += 1
            if self._next.kind != "number":
                raise self._refuse("a number")
            by += int(self._next.said) * (1 if sign.said == "+" else -1)
            self._at += 1
        # One function whatever the length: a chain of them would be as deep as the hypothesis is long.
        return _added(value, by) if by else value

    @property
    def _next(self) -> Sign:
        return self._signs[self._at]

    @property
    def _place(self) -> int:
        return self._next.place

    def _take(self, word: str) -> bool:
        found = self._next.said == word and self._next.kind in ("name", "sign")
        self._at += found
        return found

    def _need(self, word: str) -> None:
        if not self._take(word):
            raise self._refuse(f"“{word}”")

    def _refuse(self, needed: str) -> HypothesisError:
        found = "the end" if self._next.kind == "end" else f"“{self._next.said:.60}”"
        return HypothesisError(f"found {found}; expected {needed}", self._said, self._place)


def _constant(kind: str, value: Any, place: int) -> _Value:
    numbers = numpy.empty((1, 1), dtype=object if kind == "text" else int)
    numbers[0, 0] = value
    known = _Values(numbers, numpy.ones((1, 1), dtype=bool))

    def of(_axes: _Axes) -> _Values:
        return known

    return _Value(kind, of, place)


def _added(value: _Value, by: int) -> _Value:
    def of(axes: _Axes) -> _Values:
        found = value.of(axes)
        return _Values(found.numbers + by, found.known)

    return _Value(value.kind, of, value.place)


def _stepped(values: "NDArray[Any]", step: int) -> "tuple[NDArray[Any], NDArray[Any]]":
    places = numpy.arange(len(values)) + step
    known = (places >= 0) & (places < len(values))
    return values[numpy.where(known, places, 0)], known
