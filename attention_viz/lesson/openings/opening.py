"""What all openings have in common."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

__all__ = ["Mark", "Opening", "Reply"]

Mark = Literal["right", "near", "wrong"]


@dataclass(frozen=True)
class Reply:
    """The reply to a guess, in the current language."""

    mark: Mark
    words: str

    @property
    def right(self) -> bool:
        """Whether the guess is right."""
        return self.mark == "right"


class Opening(Protocol):
    """A gesture in place of bars; a guess is whole numbers, as in the URL.

    Attributes:
        kind: its module in the browser.
        bars: whether the answer also shows the question's numbers as bars.
        how: the instruction, in the current language.
        replies: to a guess, by its `outcome`.
    """

    kind: ClassVar[str]
    bars: ClassVar[bool]

    @property
    def how(self) -> str:
        """The instruction."""
        ...

    @property
    def replies(self) -> tuple[Reply, ...]:
        """All replies."""
        ...

    @property
    def numbers(self) -> tuple[int, int]:
        """How many numbers a guess has, and the largest that each can be."""
        ...

    def outcome(self, numbers: tuple[int, ...]) -> int:
        """Return the place of the reply to a guess, as the browser computes it, too."""
        ...

    def before(self) -> Mapping[str, object]:
        """Describe the drawing before the answer, as JSON values."""
        ...

    def after(self) -> Mapping[str, object]:
        """Describe the additions of the answer, as JSON values."""
        ...
