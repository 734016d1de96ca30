"""What an exercise consists of: a question, what is given, hints in steps, and an answer that is checked."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from attention_viz.analysis.slides import ShownPicture
from attention_viz.edits.words import listed
from attention_viz.lesson.words import readings
from attention_viz.views.style.wording import with_minus

__all__ = ["Cells", "Exercise", "Feedback", "NumberAnswer", "OptionAnswer", "Slip", "Table", "written"]

_CELL = re.compile(r"(\d+) ?> ?(\d+)")
# What sums of decimals are off by.
_DUST = 1e-9


def written(value: float) -> str:
    """A number as people write it by hand: at most three decimals, no zeros at the end, a true minus."""
    text = f"{value:.3f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else with_minus(text)


def _mark(number: float) -> str:
    return "✕" if number else "·"


@dataclass(frozen=True)
class Table:
    """Numbers that are given, as they stand on the page.

    Attributes:
        numbers: (row, column), rounded as they are shown: the exercise is computed from these very numbers.
        marks: whether these are no numbers but marks: ✕ for 1, · for 0.
    """

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    numbers: tuple[tuple[float, ...], ...]
    marks: bool = False

    @property
    def cells(self) -> tuple[tuple[str, ...], ...]:
        """(row, column), as they are written."""
        write = _mark if self.marks else written
        return tuple(tuple(map(write, row)) for row in self.numbers)


@dataclass(frozen=True)
class NumberAnswer:
    """An answer that is a number.

    Attributes:
        within: how far beside it an answer may be, for rounding.
    """

    value: float
    within: float

    form = "An answer is one number, such as 0.58, 0,58, 58 %, −1 or 1/3."

    def read(self, text: str) -> float | None:
        """What was typed, as a number; of two ways to read it, as in "1,024", the one nearer to the right answer."""
        return min(readings(text), key=lambda one: abs(one - self.value), default=None)

    def accepts(self, given: object) -> bool:
        """Whether this is right, up to rounding."""
        return isinstance(given, float | int) and abs(given - self.value) <= self.within + _DUST

    def resembles(self, given: object, other: object) -> bool:
        """Whether two answers are the same up to rounding."""
        if not (isinstance(given, float | int) and isinstance(other, float | int)):
            return False
        return abs(given - other) <= self.within + _DUST

    def quoted(self, given: object) -> str:
        """An answer, in words."""
        return f"You said {written(given)}" if isinstance(given, float | int) else ""

    @property
    def solution(self) -> str:
        """The right one, in words."""
        return written(self.value)


@dataclass(frozen=True)
class OptionAnswer:
    """An answer that is one of several.

    Attributes:
        options: what there is to choose from, no two alike.
        right: which of them are right, by place.
    """

    options: tuple[str, ...]
    right: frozenset[int]

    @property
    def form(self) -> str:
        """How an answer is to be written, in words."""
        return f"An answer is one of these: {listed(self.options)}."

    def read(self, text: str) -> int | None:
        """The place of the option of these words; where none has them, the text may be a place itself, from 0."""
        wanted = " ".join(text.split())
        for same in (str, str.casefold):
            found = [at for at, option in enumerate(self.options) if same(" ".join(option.split())) == same(wanted)]
            if len(found) == 1:
                return found[0]
        place = int(wanted) if re.fullmatch(r"[0-9]{1,3}", wanted) else len(self.options)
        return place if place < len(self.options) else None

    def accepts(self, given: object) -> bool:
        """Whether this place is among the right ones."""
        return given in self.right

    def resembles(self, given: object, other: object) -> bool:
        """Whether two answers are the same place."""
        return given == other

    def quoted(self, given: object) -> str:
        """An answer, in words."""
        return f"You said “{self.options[given]}”" if isinstance(given, int) else ""

    @property
    def solution(self) -> str:
        """The right one, in words."""
        return " or ".join(self.options[at] for at in sorted(self.right))


@dataclass(frozen=True)
class Cells:
    """An answer that is a set of cells of a matrix, such as those that a mask has to block.

    Attributes:
        start: the cells that are marked when the exercise opens.
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    start: frozenset[tuple[int, int]]
    right: frozenset[tuple[int, int]]

    form = "An answer is a list of cells, query first, counted from 0, such as 0>2,1>2; nothing where none is marked."

    def read(self, text: str) -> frozenset[tuple[int, int]] | None:
        """The cells; None where the text is something else, or a cell isn't in the matrix."""
        parts = [part.strip() for part in re.split(r"[,;]", text.replace("→", ">")) if part.strip()]
        found = [_CELL.fullmatch(part) for part in parts]
        cells = frozenset((int(one[1]), int(one[2])) for one in found if one)
        inside = all(row < len(self.rows) and column < len(self.columns) for row, column in cells)
        return cells if all(found) and inside else None

    def accepts(self, given: object) -> bool:
        """Whether these are exactly the right cells."""
        return given == self.right

    def resembles(self, given: object, other: object) -> bool:
        """Whether two answers are the same cells."""
        return given == other

    def quoted(self, given: object) -> str:
        """How much is wrong with an answer, in words, and a row in which to look."""
        if not isinstance(given, frozenset):
            return ""
        wrong = sorted(self.right ^ given)
        count, among = (f"{len(wrong)} cells are wrong", "one of them ") if len(wrong) != 1 else ("1 cell is wrong", "")
        return f"{count}, {among}in the row of “{self.rows[wrong[0][0]]}”" if wrong else count

    @property
    def wrong(self) -> frozenset[tuple[int, int]]:
        """The cells that are to be changed."""
        return self.start ^ self.right

    @property
    def solution(self) -> str:
        """What is to be changed, in words."""
        return ", ".join(
            f"{'block' if cell in self.right else 'open'} {self._name(cell)}" for cell in sorted(self.wrong)
        )

    def _name(self, cell: tuple[int, int]) -> str:
        return f"“{self.rows[cell[0]]}” → “{self.columns[cell[1]]}”"


@dataclass(frozen=True)
class Slip:
    """A common mistake: the wrong answer that it leads to, and what is said to it.

    Attributes:
        answer: what somebody who takes it answers, computed: a number, a place among the options, or cells.
        words: what was probably done, after "You said 5: …".
    """

    answer: float | int | frozenset[tuple[int, int]]
    words: str


@dataclass(frozen=True)
class Feedback:
    """The reply to an answer.

    Attributes:
        right: whether it is.
        words: the arithmetic, or where it went wrong.
        understood: whether it could be read at all; what couldn't is no wrong answer, and `words` says how one looks.
    """

    right: bool
    words: str
    understood: bool = True


@dataclass(frozen=True, eq=False)
class Exercise:
    """One task, made from the reader's sentence and a seed. All of its texts are plain text with the reader's words.

    Attributes:
        hints: from a nudge to nearly the whole way, shown one at a time.
        working: the arithmetic with the numbers of this exercise, to the end. It is shown once the answer is right, or
            when somebody asks for the solution; to a wrong answer, without what it comes to.
        slips: ways to go wrong that are recognised by the number they lead to; the first that fits is shown.
        desk: what is said after the question to whoever has the page at hand; a class before a screen has not.
        seen: a picture that the question is about, for a class; None where it is about none.
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
        """The right answer as text, for the answer sheet."""
        return self.answer.solution

    def explain(self, given: object) -> str:
        """What to say to an answer as it was parsed: a number, a place among the options, or cells.

        To a wrong one it is what was probably done, and of a number the arithmetic up to its result: not the answer.
        """
        if self.answer.accepts(given):
            return self.working
        slip = next((one for one in self.slips if self.answer.resembles(given, one.answer)), None)
        sentence = f"{self.answer.quoted(given)}: {slip.words}" if slip else f"{self.answer.quoted(given)}."
        return f"{sentence} {self.arithmetic}".strip()

    @property
    def arithmetic(self) -> str:
        """Of a number, the working with a question mark for what it comes to; nothing of other answers."""
        if not isinstance(self.answer, NumberAnswer):
            return ""
        return re.sub(rf"= {re.escape(self.solution)}(?![\d.,]*\d)", "= ?", self.working)

    def check(self, given: str) -> Feedback:
        """Whether an answer, as somebody typed or chose it, is right, and the arithmetic.

        Args:
            given: a number ("0.58", also "0,58", "58 %" or "1/3"), the words of an option or its place from 0, or
                cells as in "0>2,1>2", query first.
        """
        parsed = self.answer.read(given)
        if parsed is None:
            return Feedback(False, self.answer.form, understood=False)
        return Feedback(self.answer.accepts(parsed), self.explain(parsed))
