"""What somebody asks to be run: a text, what belongs to it, and the model."""

from dataclasses import dataclass

__all__ = ["OWN", "OwnModule", "Request"]

# The name of our own module, which needs no loading.
OWN = "scratch"


@dataclass(frozen=True)
class OwnModule:
    """The settings of our own module.

    Attributes:
        positions: "sinusoidal", or "none" where nothing tells the places of words apart.
    """

    d_model: int = 8
    heads: int = 2
    seed: int = 0
    positions: str = "sinusoidal"


@dataclass(frozen=True)
class Request:
    """A text and the model that is to read it; two that are equal give the same trace.

    Attributes:
        model: a name in the catalogue, the path of a folder, or an id on the hub, "owner/name@revision".
        second: another sentence that an encoder reads together with the text; empty for none.
        target: the text that an encoder–decoder should produce; empty for its own.
        more: how many tokens a decoder adds to the text.
        evict: how many first and last keys stay in its cache meanwhile; None for all.
        special_tokens: whether the tokenizer adds those that belong around a text.
        chat: whether the text stands in the model's chat template.
        own: the settings of our own module, where that is the model; None for what it has by itself.
        shown: the picture or the sound that is read in place of a text: a name in `SAMPLES`, or that of an upload.
    """

    model: str
    text: str = ""
    second: str = ""
    target: str = ""
    more: int = 0
    evict: tuple[int, int] | None = None
    special_tokens: bool = True
    chat: bool = False
    own: OwnModule | None = None
    shown: str = ""
