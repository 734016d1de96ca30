"""Work on one chunk: run, measure and sum its texts."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace

import torch

from attention_viz.corpus.one_text import OneText, one_text
from attention_viz.corpus.part import CorpusPart
from attention_viz.corpus.pictured import Pictured
from attention_viz.corpus.regions import RegionSums
from attention_viz.corpus.tally import Tally
from attention_viz.errors import TextTooLong, UnsupportedModel, UnusablePicture, UnusableText
from attention_viz.inputs.media.picture import Picture
from attention_viz.inputs.text import InputRow, read
from attention_viz.models.model import AttentionModel
from attention_viz.operation.numerics import REORDERED
from attention_viz.trace.trace import Trace

# A batch has so many positions at most, what fills it up included, and so many texts: with more of them the model's
# matrices no longer fit the processor's caches, and more of a batch is what fills it up.
_POSITIONS, _TEXTS = 1024, 16
# More characters than this a token are never read: a text of a million is not tokenized for its first hundred words.
_CHARACTERS = 40


@dataclass(frozen=True)
class ScanSettings:
    """Settings for reading texts.

    Attributes:
        length: tokens, special ones included.
        layers: None for all.
        rows: most queries per text; None for all, or 256 of a very long one.
        together: whether to batch.
        stream: the only measured stream, without a softmax; None for all attention.
        pictures: whether each text has an image.
    """

    length: int
    layers: tuple[int, ...] | None = None
    rows: int | None = None
    together: bool = True
    stream: str | None = None
    pictures: bool = False


@dataclass(frozen=True)
class _Read:
    number: int
    text: str
    reading: InputRow

    @property
    def tokens(self) -> int:
        """The number of input tokens."""
        return len(self.reading.tokens)


@dataclass(frozen=True, eq=False)
class Worker:
    """Measures chunks.

    Attributes:
        heads: number in the measured layers.
        measuring: lock for threads that take turns at measuring.
    """

    model: AttentionModel
    settings: ScanSettings
    heads: int
    measuring: AbstractContextManager[object] = field(default_factory=nullcontext)

    def run(self, start: int, texts: Sequence[str]) -> CorpusPart:
        """Return the sums of one chunk."""
        if self.settings.pictures:
            return self._run_beside(start, texts)
        read, cut = self.read_all(start, texts)
        found = dict[int, OneText]()
        for batch in self._batches(read):
            traces = self.traces(batch)
            with self.measuring:
                for one, trace in zip(batch, traces, strict=True):
                    found[one.number] = one_text(trace, self.settings.rows, self.settings.stream)
        return self._summed(read, found, len(texts), cut)

    def _run_beside(self, start: int, entries: Sequence[str]) -> CorpusPart:
        """Return the sums of a chunk of texts with images, one at a time."""
        read, cut, regions = list[_Read](), 0, RegionSums.empty(self.heads)
        found = dict[int, OneText]()
        for number, entry in enumerate(entries, start):
            try:
                one, trace, shorter = self._beside(number, entry)
            except (UnusableText, UnusablePicture, TextTooLong):
                continue
            with self.measuring:
                found[number] = one_text(trace, self.settings.rows)
                own = RegionSums.of(trace, trace.attention_streams)
            regions = regions.and_then(own.in_text(number))
            read.append(one)
            cut += shorter
        return replace(self._summed(read, found, len(entries), cut), regions=regions)

    def _beside(self, number: int, entry: str) -> tuple[_Read, Trace, bool]:
        """Return one text with its image as read, its run, and whether the text was cut."""
        one = Pictured.of_entry(entry)
        text, reading = self.read(one.text)
        one.check()
        trace = self.model.trace(text, picture=Picture(one.path), layers=self.settings.layers)
        return _Read(number, one._replace(text=text).entry, reading), trace, len(text) < len(one.text)

    def _summed(self, read: Sequence[_Read], found: Mapping[int, OneText], count: int, cut: int) -> CorpusPart:
        numbers = [one.number for one in read]
        tally = Tally.of(numbers, [found[number] for number in numbers]) if read else Tally.empty(self.heads)
        tokens = sum(one.tokens for one in read)
        said = {one.number: one.text for one in read}
        own = CorpusPart(tally, said, count, cut, count - len(read), tokens)
        return CorpusPart.empty(self.heads).and_then(own)

    def read_all(self, start: int, texts: Sequence[str]) -> tuple[list[_Read], int]:
        """Return texts with something to read, and the number cut."""
        read, cut = list[_Read](), 0
        for number, text in enumerate(texts, start):
            try:
                kept, reading = self.read(text)
            except UnusableText:
                continue
            cut += len(kept) < len(text)
            read.append(_Read(number, kept, reading))
        return read, cut

    def read(self, text: str) -> tuple[str, InputRow]:
        """Return a text cut at whole words, and the model's input."""
        text = text[: self.settings.length * _CHARACTERS]
        reading = self._reading(text)
        if len(reading.tokens) > self.settings.length:
            text = self.model.fit(text, self.settings.length).kept
            reading = self._reading(text)
        return text, reading

    def _reading(self, text: str) -> InputRow:
        return read(self.model.name, self.model.tokenizer, text)

    def traces(self, texts: "Sequence[_Read]") -> list[Trace]:
        """Yield their runs."""
        layers = self.settings.layers
        if self.settings.together:
            return self.model.traces_of([(one.text, one.reading) for one in texts], layers)
        if (stream := self.settings.stream) is not None:
            # A trace of some layers has no mixers.
            return [_with_layers(self.model.trace(one.text), stream, layers) for one in texts]
        return [self.model.trace(one.text, layers=layers) for one in texts]

    def runs(self, texts: Sequence[str]) -> Iterator[Trace]:
        """Yield texts' runs in order, a few at a time, without empty ones."""
        if self.settings.pictures:
            yield from (self._beside(number, entry)[1] for number, entry in enumerate(texts))
            return
        for start in range(0, len(texts), _TEXTS):
            read = self.read_all(start, texts[start : start + _TEXTS])[0]
            found = {
                one.number: trace
                for batch in self._batches(read)
                for one, trace in zip(batch, self.traces(batch), strict=True)
            }
            yield from (found[number] for number in sorted(found))

    def _batches(self, texts: "Sequence[_Read]") -> Iterator[list[_Read]]:
        """Batch by length, against padding."""
        batch = list[_Read]()
        for one in sorted(texts, key=lambda one: one.tokens):
            if (batch and (len(batch) + 1) * one.tokens > _POSITIONS) or len(batch) == _TEXTS:
                yield batch
                batch = []
            batch.append(one)
        if batch:
            yield batch


def runs_together(model: AttentionModel, settings: ScanSettings, texts: Sequence[str]) -> bool:
    """Return whether batching preserves weights; encoder-decoders generate one by one."""
    # A batch records no layers without a softmax, and reads no images.
    if not model.fills_up or settings.stream is not None or settings.pictures:
        return False
    worker = Worker(model, settings, 0)
    read = [one.text for one in worker.read_all(0, texts)[0]]
    try:
        together = model.trace_together(read, settings.layers) if read else []
    except UnsupportedModel:
        return False
    alone = (model.trace(text, layers=settings.layers) for text in read)
    return all(_same(one, other) for one, other in zip(together, alone, strict=True))


def _with_layers(trace: Trace, stream: str, layers: tuple[int, ...] | None) -> Trace:
    if layers is None:
        return trace
    numbered = zip(trace.layer_numbers(stream), trace.mixers[stream], strict=True)
    return trace.derived(mixers={stream: tuple(one for number, one in numbered if number in layers)})


def _same(one: Trace, other: Trace) -> bool:
    return all(
        bool((a.attention.weights - b.attention.weights).abs().max() <= REORDERED)
        for stream in one.attention_streams
        for a, b in zip(one.layers[stream], other.layers[stream], strict=True)
    )


def fingerprint_of(model: AttentionModel) -> str:
    """Return the sha256 of the weights' file, or of the numbers if there is none."""
    if model.origin.sha256 is not None:
        return model.origin.sha256
    found = hashlib.sha256()
    for name, tensor in sorted(model.hf_model.state_dict().items()):
        found.update(name.encode())
        found.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
    return found.hexdigest()
