"""A visitor's request: a text, its settings and the model."""

from dataclasses import dataclass

__all__ = ["OWN", "OwnModule", "Request"]

# The name of our own module, which needs no loading.
OWN = "scratch"


@dataclass(frozen=True)
class OwnModule:
    """Our own module's settings; `positions` is "sinusoidal" or "none"."""

    d_model: int = 8
    heads: int = 2
    seed: int = 0
    positions: str = "sinusoidal"


@dataclass(frozen=True)
class Request:
    """A text and its model; equal requests give equal traces.

    Attributes:
        model: a catalogue name, a folder's path or "owner/name@revision".
        second: an encoder's other sentence; empty for none.
        target: an encoder-decoder's output; empty for its own.
        more: tokens a decoder adds.
        evict: how many first and last keys it caches; None for all.
        own: our own module's settings; None for defaults.
        shown: a picture or sound for a text: a name in `SAMPLES` or an upload's.
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
