"""A page as data: URL parameters, controls, slots, parts."""

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

__all__ = ["Page", "Part", "Parts", "Slots", "View", "raise_again"]


@dataclass(frozen=True)
class Slots:
    """A page's slots, reserved so that nothing jumps.

    Attributes:
        picture: names its computation until drawn.
        apart: whether the picture is elsewhere, leaving `picture` empty for a run at hand.
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
    """A part of a page.

    Attributes:
        slot: "picture" for the main one.
        draw: may return a function to call last, after the badge.
    """

    slot: str
    draw: Callable[[], object]


@dataclass(frozen=True)
class Parts:
    """Everything shown of a run.

    Attributes:
        parts: in drawing order.
        exports: None for none.
        slides: None for none.
        runs: verified runs by badge label; a single one needs none.
        switched: whether the page computed something otherwise afterwards, for the badge.
    """

    parts: Sequence[Part]
    exports: Callable[[], object] | None = None
    slides: Callable[[], object] | None = None
    runs: Sequence[tuple[str, Run]] = ()
    switched: bool = False


def raise_again(error: AttentionVizError) -> None:
    """Raise a loading error as a part, shown in its slot."""
    raise error


class View(Protocol):
    """A page's module `view`, imported late because it imports torch."""

    def load(self, state: State, slots: Slots) -> Any:
        """Return the run; None after a problem, shown on the page."""
        ...

    def settle(self, selection: Selection, run: Any) -> Selection:
        """Return the selection with the run's consequences; idempotent."""
        ...

    def study(self, run: Any, selection: Selection, slots: Slots) -> Any:
        """Compute the selection's results, with the picture's slot filled."""
        ...

    def view(self, run: Any, selection: Selection) -> Parts:
        """Return the page's parts; nothing is drawn yet."""
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
        name: its folder in `attention_viz/ui/pages`, and in the URL.
        layout: reserves the slots, top to bottom.
        groups: its parameters beside the shared ones.
        example: its default, if the URL names no other model.
        controls: also answers the URL before any run.
        written: URL parameters, if not all; see `carried`.
        unfit: returns a function that explains why nothing can be shown, or None.
        recorded: shows a recorded run; returns the real one's loader, or None.
        address_follows_run: whether options depend on the run, which then precedes the URL.
        first: answers URL parts for the header.
        badges: none, one, or several with labels.
        heads_first: whether a long text's head is sent first.
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
        """Return the shared names and groups in the page's URL."""
        return (selection.shared, self.groups) if self.written is None else self.written(selection)

    def address(self, selection: Selection) -> dict[str, str]:
        """Return a selection's URL parameters on this page."""
        state, groups = self.carried(selection)
        parts = [write_address(state), *(selection.written(group) for group in groups)]
        return {name: text for part in parts for name, text in part.items()}
