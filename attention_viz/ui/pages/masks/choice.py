"""Which mask was chosen, kept in the address, and the cells that follow from it."""

import base64
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy
from jaxtyping import Bool

from attention_viz.errors import ShapeError
from attention_viz.serving.settings import SETTINGS
from attention_viz.ui.address import State
from attention_viz.ui.parts.notices import notice, with_number

if TYPE_CHECKING:
    from attention_viz.edits.kinds import Allow
    from attention_viz.trace.tokens import Tokens

__all__ = [
    "LONGEST_DRAWN",
    "MASKS",
    "ROWS",
    "MaskChoice",
    "edits",
    "from_code",
    "read_choice",
    "to_code",
    "write_choice",
]

Cells = Bool[numpy.ndarray, "query key"]

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

# The rows of a batch of two sentences; of two of the same length, the first counts as the shorter.
ROWS = ("shorter", "longer")

# The longest row that a drawing can have: beyond it, cells are too small to be hit, and links too long.
LONGEST_DRAWN = 128


@dataclass(frozen=True)
class MaskChoice:
    """Everything that the Masks page lets a person choose beyond the sentence, model, layer and head.

    Attributes:
        mask: a name in `MASKS`.
        window: how wide, for "window".
        prefix: how many tokens are open to everyone, for "prefix".
        cells: what was drawn, as `to_code` writes it.
        beside_text: the other sentence of the batch, for "padding" and "both"; "second" in the address.
        row: which row of the batch is shown, "shorter" (with the padding) or "longer".
        in_layer: the only layer that the mask acts in; None for all.
        in_head: the only head, likewise.
    """

    mask: str = "causal"
    window: int = 2
    prefix: int = 2
    cells: str = ""
    beside_text: str = "A boat drifted by"
    row: str = "shorter"
    in_layer: int | None = None
    in_head: int | None = None

    @property
    def batched(self) -> bool:
        """Whether two sentences stand in one batch."""
        return self.mask in ("padding", "both")


def read_choice(parameters: Mapping[str, str], state: State) -> tuple[MaskChoice, list[str]]:
    """What an address asks for, and a plain sentence for each part of it that can't be had.

    A window, a prefix or cells that don't fit the text are taken as they are: what is wrong with them is said where
    the mask is made.

    Args:
        parameters: the address's query parameters, as anybody may have typed them.
        state: the model that was chosen, which says how many layers and heads there are.
    """
    choice, notices = MaskChoice(), list[str]()
    mask = parameters.get("mask", choice.mask)
    if mask in MASKS:
        choice = replace(choice, mask=mask)
    else:
        notices.append(notice("mask", mask, ", ".join(MASKS), choice.mask))
    row = parameters.get("row", choice.row)
    if row in ROWS:
        choice = replace(choice, row=row)
    else:
        notices.append(notice("row", row, " and ".join(ROWS), choice.row))
    if choice.batched:
        choice = replace(choice, beside_text=parameters.get("second", choice.beside_text)[: SETTINGS.longest_input])
    choice = replace(choice, cells=parameters.get("cells", ""))
    for name, low, high in (("window", 0, 9999), ("prefix", 0, 9999)):
        choice = with_number(choice, name, parameters, low, high, notices)
    for name, count in (("in_layer", state.layer_count), ("in_head", state.head_count)):
        choice = with_number(choice, name, parameters, 0, count - 1, notices)
    return choice, notices


def write_choice(choice: MaskChoice) -> dict[str, str]:
    """The query parameters that reproduce a choice: only those that the mask has a use for."""
    parameters = {"mask": choice.mask}
    if choice.mask in ("window", "prefix"):
        parameters[choice.mask] = str(getattr(choice, choice.mask))
    if choice.mask == "drawn" and choice.cells:
        parameters["cells"] = choice.cells
    if choice.batched:
        parameters |= {"row": choice.row}
        if len(choice.beside_text) <= SETTINGS.longest_link:
            parameters["second"] = choice.beside_text
    if choice.mask != "none":
        chosen = {"in_layer": choice.in_layer, "in_head": choice.in_head}
        parameters |= {name: str(number) for name, number in chosen.items() if number is not None}
    return parameters


def edits(choice: MaskChoice, tokens: "Tokens", stream: str | None = None) -> "tuple[Allow, ...]":
    """The chosen mask as an edit of the model; nothing for "none".

    Args:
        choice: what was chosen.
        tokens: of the text that looks at itself.
        stream: whose attention, of a model that has several kinds.

    Raises:
        ShapeError: a window, prefix or drawing that doesn't fit the text.
    """
    import torch

    from attention_viz.edits.kinds import Allow
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
    if choice.mask not in make:
        return ()
    return (Allow(make[choice.mask](), choice.in_layer, choice.in_head, stream),)


def to_code(blocked: Cells) -> str:
    """Drawn cells in few letters that an address can carry: the number of tokens, and the blocked cells packed."""
    packed = zlib.compress(numpy.packbits(blocked).tobytes(), 9)
    return f"{len(blocked)}-{base64.urlsafe_b64encode(packed).decode().rstrip('=')}"


def from_code(code: str, count: int) -> Cells:
    """The blocked cells of a drawing for that many tokens; none for an empty code.

    Raises:
        ShapeError: the code was made by nothing of ours, or for a text of another length.
    """
    if not code:
        return numpy.zeros((count, count), dtype=bool)
    number, _, letters = code.partition("-")
    length = int(number) if number.isascii() and number.isdecimal() and len(number) < 5 else 0
    if not 1 <= length <= LONGEST_DRAWN:
        raise _unreadable(code)
    if length != count:
        raise ShapeError(
            f"the cells that were drawn are for {length} tokens; this text has {count}. Go back to a text of {length} "
            "tokens to use them, or start a new drawing"
        )
    return (
        numpy.unpackbits(_unpacked(code, letters, -(-count * count // 8)), count=count * count)
        .reshape(count, count)
        .astype(bool)
    )


def _unpacked(code: str, letters: str, size: int) -> numpy.ndarray:
    """The bytes behind the letters, never more than asked for, however small the code that unfolds to them."""
    unpacker = zlib.decompressobj()
    try:
        packed = base64.b64decode(letters + "=" * (-len(letters) % 4), altchars=b"-_", validate=True)
        content = unpacker.decompress(packed, size + 1)
    except (ValueError, zlib.error):
        raise _unreadable(code) from None
    if len(content) != size:
        raise _unreadable(code)
    return numpy.frombuffer(content, dtype=numpy.uint8)


def _unreadable(code: str) -> ShapeError:
    short = code if len(code) <= 40 else code[:39] + "…"
    return ShapeError(
        f"the cells “{short}” were asked for, which is no drawing made here: a drawing is the number of tokens, up to "
        f"{LONGEST_DRAWN}, a dash, and letters that this page wrote"
    )
