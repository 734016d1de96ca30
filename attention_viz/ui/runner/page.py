"""A page as data: what it keeps in the URL, its controls, its slots; and the parts that its view returns."""

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
    """The slots of a page, reserved from the first moment on, so that nothing jumps when a part arrives.

    Attributes:
        picture: the main picture's slot, which says what is computed until it is there.
        apart: whether the picture is drawn in a slot of its own beside, so that this one stays empty for a run at hand.
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
    """Everything that a page shows of a run.

    Attributes:
        parts: in the order in which they are drawn.
        exports: draws the export menu; None if there is nothing to export.
        slides: hands the slides to the browser; None for no slides.
        runs: the runs that are verified, each with the label of its badge; a single one needs none.
        switched: whether the page computed something otherwise afterwards, which the badge says.
    """

    parts: Sequence[Part]
    exports: Callable[[], object] | None = None
    slides: Callable[[], object] | None = None
    runs: Sequence[tuple[str, Run]] = ()
    switched: bool = False


def raise_again(error: AttentionVizError) -> None:
    """Raise an error that came while a page was loaded: as a part, it is shown in its slot."""
    raise error


class View(Protocol):
    """A page's module `view`: it is imported once the page's controls are drawn, since torch comes with it."""

    def load(self, state: State, slots: Slots) -> Any:
        """Return the run, after running what isn't at hand; None after a problem, which is on the page."""
        ...

    def settle(self, selection: Selection, run: Any) -> Selection:
        """Return the selection with what follows from the run; twice is the same as once."""
        ...

    def study(self, run: Any, selection: Selection, slots: Slots) -> Any:
        """Return what is computed from the run for this selection, with the picture's slot filled meanwhile."""
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
        name: its folder in `attention_viz/ui/pages`, and its name in the URL.
        layout: reserves the slots, top to bottom.
        groups: what it keeps in the URL beside what all pages share.
        example: its own default for a URL, if the URL names no other model.
        controls: draws the page's own controls, and answers what the URL asks of them before anything has run.
        written: the shared values and the groups that the URL carries, if not all of them; see `carried`.
        unfit: returns a function that says why nothing can be shown; None if something can.
        recorded: shows a recorded run until the real one is there, and returns what makes that; None if it shows none.
        address_follows_run: whether options of its parameters depend on the run, so that the URL is written after it.
        first: answers what the URL asks and the header depends on.
        badges: whether it has a badge, or several, each with a label.
        heads_first: whether the chosen head of a long text reaches the browser before all else.
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
        """Return the shared values and the groups that the page's URL carries."""
        return (selection.shared, self.groups) if self.written is None else self.written(selection)

    def address(self, selection: Selection) -> dict[str, str]:
        """Return the URL parameters that reproduce a selection on this page."""
        state, groups = self.carried(selection)
        parts = [write_address(state), *(selection.written(group) for group in groups)]
        return {name: text for part in parts for name, text in part.items()}
