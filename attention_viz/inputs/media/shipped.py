"""Pictures and sounds that ship, to try a model with; nobody has rights in them."""

from dataclasses import dataclass
from pathlib import Path

from attention_viz.trace.kind import InputKind

_FOLDER = Path(__file__).with_name("samples")


@dataclass(frozen=True)
class Sample:
    """A picture or a sound that ships.

    Attributes:
        shows: what is to be seen or heard.
        whose: who made it, and why it is free.
    """

    file: str
    kind: InputKind
    shows: str
    whose: str

    @property
    def path(self) -> Path:
        """Where it is."""
        return _FOLDER / self.file


SAMPLES: dict[str, Sample] = {
    "chelsea": Sample("chelsea.jpg", InputKind.PICTURE, "a cat", "Stéfan van der Walt; CC0"),
    "astronaut": Sample("astronaut.jpg", InputKind.PICTURE, "an astronaut", "NASA; public domain"),
    "window": Sample(
        "window.flac",
        InputKind.SOUND,
        "“She opened the window and looked at the river.”",
        "spoken by espeak-ng for this; free of rights",
    ),
}
