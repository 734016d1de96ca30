"""The chosen mask in the URL, and its cells."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attention_viz.ui.address.cells import DrawnCells, from_code
from attention_viz.ui.address.codec import Older, parameter
from attention_viz.ui.address.kinds import AnyText, OneOf, WholeNumber
from attention_viz.ui.selection import Group

if TYPE_CHECKING:
    from torch import Tensor

    from attention_viz.edits.kinds.masks import Allow
    from attention_viz.trace.tokens import Tokens

__all__ = [
    "BATCHED",
    "MASKS",
    "MASK_CHOICES",
    "ROWS",
    "SHOWN",
    "MaskChoice",
    "added_cells",
    "edits",
    "window_words",
]

# Every mask by its name in the address: what that means in a few words, and in a sentence.
MASKS = {
    "none": ("as the model is", "Nothing is added to what the model blocks by itself: both sides are the same run."),
    "causal": ("no looking ahead", "Each token may look at itself and at what came before it."),
    "padding": ("fill-up not seen", "Nobody may look at the tokens that only fill up the shorter row."),
    "both": ("padding and causal", "Nobody looks ahead, and nobody looks at the tokens that only fill up the row."),
    "window": ("near ones only", "Each token may look at those less than the window's width away."),
    "prefix": ("the start open to all", "The first tokens are open to everyone; after them, no looking ahead."),
    "drawn": ("by hand", "What you drew."),
}

# Which weights the matrix shows.
SHOWN = ("before", "after", "difference")

# The rows of a batch of two sentences; of two of the same length, the first counts as the shorter.
ROWS = ("shorter", "longer")

# The masks of two sentences in one batch.
BATCHED = ("padding", "both")


def _is(*masks: str) -> Callable[["MaskChoice", object], bool]:
    return lambda choice, _: choice.mask in masks


def _is_any(choice: "MaskChoice", _: object) -> bool:
    return choice.mask != "none"


@dataclass(frozen=True)
class MaskChoice:
    """The Masks page's own URL choices, known by the `State`."""

    mask: str = parameter("causal", OneOf(tuple(MASKS)), "the mask")
    window: int = parameter(2, WholeNumber(range(10_000)), "how wide", applies=_is("window"))
    prefix: int = parameter(2, WholeNumber(range(10_000)), "how many are open to all", applies=_is("prefix"))
    cells: str = parameter("", DrawnCells(), "what was drawn", applies=_is("drawn"), brief=True)
    batch: str = parameter(
        "A boat drifted by",
        AnyText(),
        "the other sentence, for `padding` and `both`",
        applies=_is(*BATCHED),
        older=Older("second", lambda address: address.get("mask") in BATCHED),
    )
    row: str = parameter("shorter", OneOf(ROWS), "which row of the batch", applies=_is(*BATCHED))
    in_layer: int | None = parameter(
        None, WholeNumber(lambda _, state: state.layers, nothing="all"), "the only layer", applies=_is_any
    )
    in_head: int | None = parameter(
        None, WholeNumber(lambda _, state: range(state.head_count), nothing="all"), "the only head", applies=_is_any
    )

    weights: str = parameter("difference", OneOf(SHOWN), "which weights the matrix shows", brief=True)

    @property
    def batched(self) -> bool:
        """Whether two sentences stand in one batch."""
        return self.mask in BATCHED


def window_words(window: int, *, looks_back: bool = False) -> str:
    """Describe a window's reach for each token."""
    around = max(0, window - 1)
    if around == 0:
        return "nothing but itself"
    return f"itself and the {'one' if around == 1 else around} {'before it' if looks_back else 'on each side'}"


MASK_CHOICES = Group(MaskChoice(), "", "masks")


def edits(choice: MaskChoice, tokens: "Tokens", stream: str | None = None) -> "tuple[Allow, ...]":
    """Return the mask as a model edit; empty for "none"."""
    from attention_viz.edits.kinds.masks import Allow

    allowed = added_cells(choice, tokens)
    return () if allowed is None else (Allow(allowed, choice.in_layer, choice.in_head, stream),)


def added_cells(choice: MaskChoice, tokens: "Tokens") -> "Tensor | None":
    """Return the mask's cells, (query, key), True for open; None for "none"."""
    import torch

    from attention_viz.operation import masks

    count = len(tokens)
    real = masks.padding(torch.tensor(tokens.padding).long(), 1).expand(count, count)
    make = {
        "causal": lambda: masks.causal(count),
        "padding": lambda: real.clone(),
        "both": lambda: masks.combine(masks.causal(count), real),
        "window": lambda: masks.sliding_window(count, choice.window),
        "prefix": lambda: masks.prefix(count, choice.prefix),
        "drawn": lambda: torch.from_numpy(~from_code(choice.cells, count)),
    }
    return make[choice.mask]() if choice.mask in make else None
