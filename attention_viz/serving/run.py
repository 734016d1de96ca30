"""A visitor's request, and the run that it led to."""

import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from attention_viz.serving.door import ANALYSES, long_text
from attention_viz.trace.once import once

if TYPE_CHECKING:
    from attention_viz.analysis.findings.finding import Finding
    from attention_viz.protocol.fitting import Fit
    from attention_viz.trace.trace import Trace

# The name of our own module, which needs no loading.
OWN = "scratch"
# How many beginnings of a text are kept: who steps through it goes to and fro.
_MOST_BEGINNINGS = 4


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
        more: tokens a decoder generates.
        evict: how many first and last keys it caches; None for all.
        sampling: temperature, top-p and seed of its random tokens; None for the likeliest.
        own: our own module's settings; None for defaults.
        shown: an image or audio replacing the text: a name in `SAMPLES` or an upload's; several images beside
            a text, as `uploads.joined`.
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
    sampling: tuple[float, float, int] | None = None


@dataclass(frozen=True, eq=False)
class Run:
    """A text's run through a model; `fit` is the part read and cut, None for a trace file."""

    trace: "Trace"
    fit: "Fit | None" = None
    second: "Fit | None" = None
    _parts: "dict[str, Run]" = field(default_factory=dict[str, "Run"], init=False, repr=False)
    _beginnings: "dict[int, Run]" = field(default_factory=dict[int, "Run"], init=False, repr=False)

    _links: "dict[tuple[str, int, int], tuple[int, int]]" = field(
        default_factory=dict[tuple[str, int, int], tuple[int, int]], init=False, repr=False
    )

    def beginning(self, count: int) -> "Run":
        """Return a run of a decoder's first tokens; the last ones are cached."""
        from attention_viz.trace.derived import beginning

        found = self._beginnings.get(count) or Run(beginning(self.trace, count), self.fit, self.second)
        while len(self._beginnings) >= _MOST_BEGINNINGS:
            with contextlib.suppress(KeyError, StopIteration):  # somebody else was quicker
                del self._beginnings[next(iter(self._beginnings))]
        self._beginnings[count] = found
        return found

    @once
    def words(self) -> str:
        """The stream of the text's words; without a text, the first."""
        from attention_viz.analysis.measured import word_stream

        return word_stream(self.trace)

    @property
    def tokens(self) -> int:
        """The number of words."""
        return len(self.trace.query_tokens(self.words))

    @property
    def beside(self) -> bool:
        """Whether the model reads the text with an image."""
        return self.trace.seen.picture is not None and self.words != "picture"

    def stream(self, name: str | None) -> str:
        """Return the stream of that name, with a softmax or without, else the words'."""
        return name if name in self.trace.streams else self.words

    def mixes(self, stream: str | None) -> bool:
        """Return whether the stream's layers have no softmax, so that their weights are signed."""
        return self.stream(stream) in self.trace.mixers

    @property
    def several(self) -> bool:
        """Whether the trace has several streams, so that an edit has to name its own."""
        return len(self.trace.streams) > 1

    def place(self, stream: str | None, layer: int, head: int) -> tuple[int, int]:
        """Return the nearest layer, by number, and head."""
        stream = self.stream(stream)
        numbers = self.trace.layer_numbers(stream)
        layer = next((number for number in numbers if number >= layer), numbers[-1])
        return layer, min(head, self.trace.head_count(layer, stream) - 1)

    def alone(self, stream: str | None) -> "Run":
        """Return the trace with one stream of attention only, and its mixers."""
        stream = self.stream(stream)
        alone = stream in self.trace.mixers or self.trace.attention_streams == (stream,)
        return self if alone else Run(self.trace.only(stream), self.fit, self.second)

    def part(self, stream: str | None) -> "Run":
        """Return the stream alone of audio or of a text with an image, else the whole trace."""
        if self.trace.seen.sound is None and not self.beside:
            return self
        stream = self.stream(stream)
        return self._parts.setdefault(stream, self.alone(stream))

    @once
    def drawn(self) -> "Trace":
        """The trace with all channels of a layer together, if each has its own matrix."""
        from attention_viz.analysis.arrived import channels_together

        return channels_together(self.trace) if self.trace.mixers else self.trace

    @once
    def findings(self) -> "tuple[Finding, ...]":
        """The findings worth a look, best first."""
        from attention_viz.circuits.findings import findings

        with ANALYSES, long_text(self.tokens):
            return findings(self.trace)

    def link(self, stream: str, layer: int, head: int) -> tuple[int, int]:
        """Return the positions of the query and key that show a head."""
        from attention_viz.analysis.findings.link import link_of

        place = stream, layer, head
        if place not in self._links:
            self._links[place] = link_of(self.trace, *place, self.findings)
        return self._links[place]
