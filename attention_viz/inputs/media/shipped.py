"""List the images and sounds that ship as examples; they are free of rights."""

from dataclasses import dataclass
from pathlib import Path

from attention_viz.trace.kind import InputKind

_FOLDER = Path(__file__).with_name("samples")
_OURS = "drawn by `draw_shapes` for this; free of rights"


@dataclass(frozen=True)
class Sample:
    """An image or sound that ships; `whose` says who made it, and why it is free."""

    file: str
    kind: InputKind
    shows: str
    whose: str

    @property
    def path(self) -> Path:
        """Its file."""
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
    "shapes-two": Sample("shapes-two.png", InputKind.BESIDE, "a red circle and a blue square", _OURS),
    "shapes-three": Sample("shapes-three.png", InputKind.BESIDE, "a yellow triangle and two more shapes", _OURS),
    "shapes-alike": Sample("shapes-alike.png", InputKind.BESIDE, "three shapes, two of them black", _OURS),
    "shapes-four": Sample("shapes-four.png", InputKind.BESIDE, "four shapes of four colours", _OURS),
    "shapes-one": Sample("shapes-one.png", InputKind.BESIDE, "a blue cross", _OURS),
}
