"""A page as data."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from streamlit.delta_generator import DeltaGenerator

from attention_viz.errors import AttentionVizError
from attention_viz.serving.runs import Run
from attention_viz.ui.address import State, write_address
from attention_viz.ui.controls.pickers import ControlRow
from attention_viz.ui.parts.drawing import PicturePlace
from attention_viz.ui.selection import Group, Selection


@dataclass(frozen=True)
class Slots:
    """A page's slots, reserved at once, so that nothing jumps when a part arrives.

    Attributes:
        picture: shows progress until the main picture is there.
        apart: whether the picture has another slot, so that this one stays empty for a cached run.
    """

    picture: PicturePlace
    height: int
    named: Mapping[str, DeltaGenerator] = field(default_factory=dict[str, DeltaGenerator])
    apart: bool = False

    def __getitem__(self, name: str) -> DeltaGenerator:
        """Return the slot of that name."""
        return self.picture.picture() if name == "picture" else self.named[name]


@dataclass(frozen=True)
class Part:
    """A part, and its slot's name; `draw` may return a function that the runner calls last, after the badge."""

    slot: str
    draw: Callable[[], object]


@dataclass(frozen=True)
class Parts:
    """A page's parts in drawing order.

    Attributes:
        runs: the verified runs, each with its badge's label; a single one needs none.
        switched: whether the page recomputed a step in another way, which the badge says.
    """

    parts: Sequence[Part]
    exports: Callable[[], object] | None = None
    slides: Callable[[], object] | None = None
    runs: Sequence[tuple[str, Run]] = ()
    switched: bool = False


def raise_again(error: AttentionVizError) -> None:
    """Raise a loading error; as a part, it is shown in its slot."""
    raise error


class View(Protocol):
    """A page's module `view`, imported after the page's controls are drawn, because it imports torch."""

    def load(self, state: State, slots: Slots) -> Any:
        """Return the run; None after a problem, shown on the page."""
        ...

    def settle(self, selection: Selection, run: Any) -> Selection:
        """Return the selection with the run's consequences; idempotent."""
        ...

    def study(self, run: Any, selection: Selection, slots: Slots) -> Any:
        """Return the run's results, with the picture's slot filled meanwhile."""
        ...

    def view(self, run: Any, selection: Selection) -> Parts:
        """Return the page's parts without drawing."""
        ...


def _shared(selection: Selection) -> State:
    return selection.shared


def _no_example(_address: Mapping[str, str]) -> State | None:
    return None


def _none(_state: State, _row: ControlRow) -> None:
    """Draw no controls."""


def _fits(_state: State) -> Callable[[], object] | None:
    return None


@dataclass(frozen=True)
class Page:
    """A page of the app.

    Attributes:
        name: its name in the URL, and its folder in `attention_viz/ui/pages` (see `titles.folder_of`).
        example: its default if the URL names no other model.
        controls: draws the page's controls, and answers the URL before anything has run.
        written: the state and groups in the URL, if not all.
        unfit: returns a function that explains why nothing can be shown; None if something can.
        recorded: shows a recorded run, and returns what makes the real one; None if it shows none.
        address_follows_run: whether the URL is written after the run, because its options depend on that.
        first: answers the URL's part that the header depends on.
        heads_first: whether a long text's chosen head is sent before all else.
    """

    label: str
    name: str
    row: Callable[[], ControlRow]
    layout: Callable[[State, ControlRow], Slots]
    groups: tuple[Group[Any], ...] = ()
    example: Callable[[Mapping[str, str]], State | None] = _no_example
    state: Callable[[Selection], State] = _shared
    controls: Callable[[State, ControlRow], None] = _none
    written: Callable[[Selection], tuple[State, Sequence[Group[Any]]]] | None = None
    unfit: Callable[[State], Callable[[], object] | None] = _fits
    recorded: Callable[[State, Slots], Callable[[], None] | None] | None = None
    address_follows_run: bool = False
    first: Callable[[], object] | None = None
    badges: Literal["one", "several", "none"] = "one"
    heads_first: bool = False

    def carried(self, selection: Selection) -> tuple[State, Sequence[Group[Any]]]:
        """Return the state and groups in the page's URL."""
        return (selection.shared, self.groups) if self.written is None else self.written(selection)

    def address(self, selection: Selection) -> dict[str, str]:
        """Return the URL parameters that reproduce a selection on this page."""
        state, groups = self.carried(selection)
        parts = [write_address(state), *(selection.written(group) for group in groups)]
        return {name: text for part in parts for name, text in part.items()}
