"""An exercise: a question, its numbers, hints and a checked answer."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

from attention_viz.analysis.slides import ShownPicture
from attention_viz.lesson.translation import LANGUAGES, current_language, in_language, translate
from attention_viz.lesson.words import listed, readings
from attention_viz.views.style.wording import with_minus

__all__ = ["Cells", "Exercise", "Feedback", "NumberAnswer", "OptionAnswer", "Slip", "Table", "written"]

_CELL = re.compile(r"(\d+) ?> ?(\d+)")
# What sums of decimals are off by.
_DUST = 1e-9


def written(value: float) -> str:
    """Format a number: at most three decimals, no trailing zeros, a true minus."""
    text = f"{value:.3f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else with_minus(text)


def _mark(number: float) -> str:
    return "✕" if number else "·"


@dataclass(frozen=True)
class Table:
    """An exercise's numbers, rounded as shown; or marks, ✕ for 1 and · for 0."""

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    numbers: tuple[tuple[float, ...], ...]
    marks: bool = False

    @property
    def cells(self) -> tuple[tuple[str, ...], ...]:
        """The formatted cells, (row, column)."""
        write = _mark if self.marks else written
        return tuple(tuple(map(write, row)) for row in self.numbers)


@dataclass(frozen=True)
class NumberAnswer:
    """A numeric answer, right up to `within`, for rounding."""

    value: float
    within: float

    @property
    def form(self) -> str:
        """Describe how to write an answer."""
        return translate("An answer is one number, such as 0.58, 0,58, 58 %, −1 or 1/3.")

    def read(self, text: str) -> float | None:
        """Parse a number; of two readings ("1,024") take the nearer to the answer."""
        return min(readings(text), key=lambda one: abs(one - self.value), default=None)

    def accepts(self, given: object) -> bool:
        """Return whether an answer is right, up to rounding."""
        return isinstance(given, float | int) and abs(given - self.value) <= self.within + _DUST

    def resembles(self, given: object, other: object) -> bool:
        """Compare two answers up to rounding."""
        if not (isinstance(given, float | int) and isinstance(other, float | int)):
            return False
        return abs(given - other) <= self.within + _DUST

    def quoted(self, given: object) -> str:
        """Quote an answer."""
        return translate("You said {answer}", answer=written(given)) if isinstance(given, float | int) else ""

    @property
    def solution(self) -> str:
        """The right answer as text."""
        return written(self.value)


@dataclass(frozen=True)
class OptionAnswer:
    """A choice of distinct options; `right` holds places, `others` the options in the course's other languages."""

    options: tuple[str, ...]
    right: frozenset[int]
    others: tuple[tuple[str, ...], ...] = ()

    @classmethod
    def written(cls, options: Callable[[], Sequence[str]], right: frozenset[int]) -> "OptionAnswer":
        """Write the options in every language, so that each of them can be typed."""
        others: list[tuple[str, ...]] = []
        for code in LANGUAGES:
            if code != current_language():
                with in_language(code):
                    others.append(tuple(options()))
        return cls(tuple(options()), right, tuple(others))

    @property
    def form(self) -> str:
        """Describe how to write an answer."""
        return translate("An answer is one of these: {options}.", options=listed(self.options))

    def read(self, text: str) -> int | None:
        """Return an option's place from its words or place, from 0; "#2" is always a place, in any language."""
        wanted = " ".join(text.split())
        for options, same in product((self.options, *self.others), (str, str.casefold)):
            found = [at for at, option in enumerate(options) if same(" ".join(option.split())) == same(wanted)]
            if len(found) == 1:
                return found[0]
        place = int(wanted.removeprefix("#")) if re.fullmatch(r"#?[0-9]{1,3}", wanted) else len(self.options)
        return place if place < len(self.options) else None

    def accepts(self, given: object) -> bool:
        """Return whether an option is right."""
        return given in self.right

    def resembles(self, given: object, other: object) -> bool:
        """Return whether two answers are equal."""
        return given == other

    def quoted(self, given: object) -> str:
        """Quote an answer."""
        return translate("You said “{answer}”", answer=self.options[given]) if isinstance(given, int) else ""

    @property
    def solution(self) -> str:
        """The right options as text."""
        *before, last = (self.options[at] for at in sorted(self.right))
        return translate("{before} or {last}", before=", ".join(before), last=last) if before else last


@dataclass(frozen=True)
class Cells:
    """An answer of matrix cells; `start` is marked at first."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    start: frozenset[tuple[int, int]]
    right: frozenset[tuple[int, int]]

    @property
    def form(self) -> str:
        """Describe how to write an answer."""
        return translate(
            "An answer is a list of cells, query first, counted from 0, such as 0>2,1>2; leave it empty for none."
        )

    def read(self, text: str) -> frozenset[tuple[int, int]] | None:
        """Parse cells; None if malformed or outside the matrix."""
        parts = [part.strip() for part in re.split(r"[,;]", text.replace("→", ">")) if part.strip()]
        found = [_CELL.fullmatch(part) for part in parts]
        cells = frozenset((int(one[1]), int(one[2])) for one in found if one)
        inside = all(row < len(self.rows) and column < len(self.columns) for row, column in cells)
        return cells if all(found) and inside else None

    def accepts(self, given: object) -> bool:
        """Return whether exactly the right cells are marked."""
        return given == self.right

    def resembles(self, given: object, other: object) -> bool:
        """Return whether two answers are equal."""
        return given == other

    def quoted(self, given: object) -> str:
        """Describe how much is wrong, and a row to check."""
        if not isinstance(given, frozenset):
            return ""
        wrong = sorted(self.right ^ given)
        if not wrong:
            return translate("0 cells are wrong")
        row = self.rows[wrong[0][0]]
        if len(wrong) == 1:
            return translate("1 cell is wrong, in the row of “{row}”", row=row)
        return translate("{count} cells are wrong, one of them in the row of “{row}”", count=len(wrong), row=row)

    @property
    def wrong(self) -> frozenset[tuple[int, int]]:
        """The cells to change."""
        return self.start ^ self.right

    @property
    def solution(self) -> str:
        """The changes to make, as text."""
        return ", ".join(map(self._change, sorted(self.wrong)))

    def _change(self, cell: tuple[int, int]) -> str:
        query, key = self.rows[cell[0]], self.columns[cell[1]]
        if cell in self.right:
            return translate("block “{query}” → “{key}”", query=query, key=key)
        return translate("open “{query}” → “{key}”", query=query, key=key)


@dataclass(frozen=True)
class Slip:
    """A common mistake: its answer and likely cause, to follow “You said 5: …”."""

    answer: float | int | frozenset[tuple[int, int]]
    words: str


@dataclass(frozen=True)
class Feedback:
    """The reply to an answer.

    Attributes:
        right: whether the answer is right.
        words: the arithmetic, or the mistake.
        understood: whether the answer could be parsed; if not, it isn't wrong, and `words` says how to write one.
    """

    right: bool
    words: str
    understood: bool = True


@dataclass(frozen=True, eq=False)
class Exercise:
    """One task from a sentence and a seed, in plain text.

    Attributes:
        hints: from a nudge to nearly the whole solution.
        working: the arithmetic, without its result after a wrong answer.
        slips: the first that fits is shown.
        desk: extra text for a reader, not for a class.
        seen: a figure for a class.
    """

    kind: str
    question: str
    given: Sequence[Table]
    answer: NumberAnswer | OptionAnswer | Cells
    hints: tuple[str, ...]
    working: str
    slips: tuple[Slip, ...] = ()
    desk: str = ""
    seen: ShownPicture | None = None

    @property
    def solution(self) -> str:
        """The right answer as text."""
        return self.answer.solution

    def explain(self, given: object) -> str:
        """Explain a parsed answer; a wrong one without revealing the right answer."""
        if self.answer.accepts(given):
            return self.working
        slip = self.slip(given)
        sentence = f"{self.answer.quoted(given)}: {slip}" if slip else f"{self.answer.quoted(given)}."
        return f"{sentence} {self.arithmetic}".strip()

    def slip(self, given: object) -> str:
        """Return the likely cause of a parsed answer; "" if unknown."""
        return next((one.words for one in self.slips if self.answer.resembles(given, one.answer)), "")

    @property
    def arithmetic(self) -> str:
        """A number's working with a question mark as result."""
        if not isinstance(self.answer, NumberAnswer):
            return ""
        return re.sub(rf"= {re.escape(self.solution)}(?![\d.,]*\d)", "= ?", self.working)

    def check(self, given: str) -> Feedback:
        """Check a typed or chosen answer: a number, an option's words or place from 0, or cells ("0>2,1>2")."""
        parsed = self.answer.read(given)
        if parsed is None:
            return Feedback(False, self.answer.form, understood=False)
        return Feedback(self.answer.accepts(parsed), self.explain(parsed))
