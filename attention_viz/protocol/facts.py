"""Model facts, from the catalogue, then from the loaded model."""

import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from attention_viz.trace.kind import SLOT_STREAMS, InputKind
from attention_viz.trace.slots import has_target

__all__ = ["UNKNOWN_COUNT", "ModelFacts"]

# Layers and heads of a model that isn't loaded yet: any requested number may turn out to be right.
UNKNOWN_COUNT = 10_000


@dataclass(frozen=True)
class ModelFacts:
    """A model's properties.

    Attributes:
        heads: for each stream, the heads of each layer; empty until the model is loaded.
        predicts: whether its output scores each token.
        has_chat_template: whether its tokenizer has a template for chats.
        adds_special_tokens: whether its tokenizer adds special tokens around a text.
        numbers: for a stream, the model's own numbers of the layers in `heads`, unless these are 0, 1, 2 …
        without: for a stream, the numbers of the layers without attention, as in hybrids.
        left_out: modules outside these streams that attend and aren't recorded, and how they do it.
        trained: whether its weights were learned.
        reads: its input: "text", "picture", "sound", or "tensors" with names of its own.
        mixers: for each stream of layers without a softmax, the heads of each layer; their numbers are in `numbers`.
        channels: the stream and number of each of these layers that has a matrix per channel, not per head.
        why_alone: why it can't read an image or audio beside the text; empty if nothing prevents it.
        why_no_video: why it can't read a video beside a text, though it takes frames; empty if it can; None if it
            takes none.
        reads_several: whether it reads several images with one text.
        generates: whether Transformers can generate with it.
        adds_tokens: whether it adds tokens of its own to a text, which can't be continued here.
    """

    heads: Mapping[str, tuple[int, ...]]
    predicts: bool = False
    has_chat_template: bool = False
    adds_special_tokens: bool = False
    numbers: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    without: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    left_out: tuple[str, ...] = ()
    trained: bool = True
    reads: InputKind = InputKind.TEXT
    mixers: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    channels: frozenset[tuple[str, int]] = frozenset()
    why_alone: str = ""
    why_no_video: str | None = None
    reads_several: bool = False
    generates: bool = False
    adds_tokens: bool = False

    @property
    def streams(self) -> tuple[str, ...]:
        """The kinds of attention it has: "encoder", "decoder", "cross", or the names of its towers."""
        return tuple(self.heads)

    @property
    def is_encoder_decoder(self) -> bool:
        """Whether it reads one text and generates another."""
        return has_target(self.heads)

    @property
    def reads_pairs(self) -> bool:
        """Whether it reads two sentences together; our own module, which adds no special tokens, doesn't."""
        return self.streams == ("encoder",) and self.adds_special_tokens

    @property
    def continues_text(self) -> bool:
        """Whether it can continue a text."""
        # Patches that attend to later ones make an "encoder" of a decoder's words.
        reading = tuple(one for one in self.streams if one not in SLOT_STREAMS)
        beside = self.generates and reading == ("picture", "encoder")
        return self.predicts and not self.adds_tokens and (beside or reading in (("decoder",), ("picture", "decoder")))

    def layer_count(self, stream: str | None) -> int:
        """Return a stream's number of layers, by default the first's; `UNKNOWN_COUNT` before the model is loaded."""
        heads = self._heads_of(stream)
        return UNKNOWN_COUNT if heads is None else len(heads)

    @property
    def layers_without_attention(self) -> tuple[str, ...]:
        """The model's own numbers of layers without attention, as text, for all streams together."""
        return tuple(map(str, sorted({number for numbers in self.without.values() for number in numbers})))

    def layer_numbers(self, stream: str | None) -> Sequence[int]:
        """Return the numbers of a stream's attention layers, by default the first's; any before the model is loaded."""
        heads = self._heads_of(stream)
        stream = stream if stream in self.heads or stream in self.mixers else next(iter(self.heads), "")
        return range(UNKNOWN_COUNT) if heads is None else self.numbers.get(stream or "", range(len(heads)))

    def head_count(self, stream: str | None, layer: int) -> int:
        """Return a layer's number of heads; `UNKNOWN_COUNT` before the model is loaded.

        A missing layer counts as the next one.
        """
        heads = self._heads_of(stream)
        if heads is None:
            return UNKNOWN_COUNT
        numbers = self.layer_numbers(stream)
        return heads[min(bisect.bisect_left(numbers, layer), len(heads) - 1)]

    def _heads_of(self, stream: str | None) -> tuple[int, ...] | None:
        known = {**self.heads, **self.mixers}
        return known.get(stream or "") or next(iter(known.values()), None)
