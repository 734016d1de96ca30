"""What an exercise consists of: a question, what is given, hints in steps, and an answer that is checked by computing."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

__all__ = ["Cells", "Choice", "Exercise", "Feedback", "Number", "Table"]


@dataclass(frozen=True)
class Table:
    """Numbers that are given, as they stand on the page.

    Attributes:
        title: what they are.
        rows: the rows' names.
        columns: the columns' names.
        numbers: (row, column), rounded as they are shown: the exercise is computed from these very numbers.
    """

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    numbers: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Number:
    """An answer that is a number.

    Attributes:
        value: the right one.
        within: how far beside it an answer may be, for rounding.
    """

    value: float
    within: float


@dataclass(frozen=True)
class Choice:
    """An answer that is one of several.

    Attributes:
        options: what there is to choose from.
        right: which of them are right, by place.
    """

    options: tuple[str, ...]
    right: frozenset[int]


@dataclass(frozen=True)
class Cells:
    """An answer that is a set of cells of a matrix, such as those that a mask has to block.

    Attributes:
        rows: the rows' names.
        columns: the columns' names.
        start: the cells that are marked when the exercise opens.
        right: the cells that should be.
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    start: frozenset[tuple[int, int]]
    right: frozenset[tuple[int, int]]


@dataclass(frozen=True)
class Feedback:
    """What is said to an answer.

    Attributes:
        right: whether it is.
        words: the arithmetic, up to where it went wrong.
    """

    right: bool
    words: str


@dataclass(frozen=True, eq=False)
class Exercise:
    """One task, made from the reader's sentence and a seed.

    Attributes:
        kind: a name in `EXERCISES`.
        question: what is asked, in plain text.
        given: the numbers to work with.
        answer: what is right.
        hints: from a nudge to nearly the whole way, shown one at a time.
        explain: the arithmetic with the numbers of this exercise, in plain text, in the light of an answer as it was
            parsed: a number, a place among the options, or cells.
    """

    kind: str
    question: str
    given: Sequence[Table]
    answer: Number | Choice | Cells
    hints: tuple[str, ...]
    explain: Callable[[object], str]

    @property
    def solution(self) -> str:
        """The right answer as text, for the answer sheet."""
        raise NotImplementedError

    def check(self, given: str) -> Feedback:
        """Whether an answer, as somebody typed or chose it, is right, and the arithmetic.

        Args:
            given: a number ("0.58", also "0,58" or "58%"), the words of an option or its place, or cells as in
                "0>2,1>2", query first.
        """
        raise NotImplementedError


Makers = Mapping[str, Callable[..., Exercise]]
