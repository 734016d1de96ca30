"""What a model says of itself, by the names that its users know."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attention_viz.errors import ShapeError
from attention_viz.inputs.labelling import label_ids
from attention_viz.protocol.facts import ModelFacts
from attention_viz.trace.kept import KeptLayers

if TYPE_CHECKING:
    from transformers.modeling_utils import PreTrainedModel
    from transformers.tokenization_utils_base import PreTrainedTokenizerBase

__all__ = ["Described"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Described:
    """A transformers model that knows its facts.

    Attributes:
        facts: what it is and can do.
        hf_model: the transformers model itself.
        tokenizer: what turns text into its tokens, where there is one.
    """

    facts: ModelFacts
    hf_model: "PreTrainedModel"
    tokenizer: "PreTrainedTokenizerBase | None"

    @property
    def nbytes(self) -> int:
        """How many bytes its parameters and buffers take in memory."""
        tensors = (*self.hf_model.parameters(), *self.hf_model.buffers())
        return sum(tensor.numel() * tensor.element_size() for tensor in tensors)

    @property
    def mask_id(self) -> int | None:
        """The id of the token behind which an encoder guesses; None where there is none."""
        return getattr(self.tokenizer, "mask_token_id", None)

    def labels(self, ids: Sequence[int]) -> tuple[str, ...]:
        """The tokens of these ids, as the tokenizer writes them; the ids as text where there is no tokenizer."""
        return label_ids(self.tokenizer, ids).labels

    @property
    def streams(self) -> tuple[str, ...]:
        """The kinds of attention its traces have.

        ("encoder",) where tokens see the whole text, ("decoder",) where they see only what came before, ("encoder",
        "decoder", "cross") where it reads one text and says another.
        """
        return self.facts.streams

    @property
    def stream(self) -> str:
        """The first of its streams; most models have but one."""
        return self.streams[0]

    @property
    def answers(self) -> bool:
        """Whether it is an encoder–decoder."""
        return self.facts.is_encoder_decoder

    @property
    def predicts(self) -> bool:
        """Whether its output tells how likely each token is: the next one, or the one behind a mask."""
        return self.facts.predicts

    @property
    def heads(self) -> Mapping[str, tuple[int, ...]]:
        """Of each stream, how many heads each attention layer has, in the order of `layer_numbers`."""
        return self.facts.heads

    @property
    def layer_count(self) -> int:
        """How many attention layers its first stream has."""
        return len(self.heads[self.stream])

    def layer_numbers(self, stream: str | None = None) -> tuple[int, ...]:
        """The model's own numbers of a stream's attention layers, rising, as traces and edits name them.

        Args:
            stream: which; None for the only one there is.

        Raises:
            ShapeError: there is no such stream, or none was named where there are several.
        """
        if stream not in self.streams and (stream is not None or len(self.streams) > 1):
            asked = "no stream was named" if stream is None else f"the stream {stream!r} was asked for"
            raise ShapeError(f"{asked}; the model has {', '.join(self.streams)}")
        return tuple(self.facts.layer_numbers(stream))

    @property
    def layers(self) -> Mapping[str, KeptLayers]:
        """Of each stream, the numbers of the layers with attention and of those without."""
        return {
            stream: KeptLayers.all_of(self.layer_numbers(stream), self.facts.without.get(stream, ()))
            for stream in self.streams
        }

    @property
    def layers_without_attention(self) -> tuple[str, ...]:
        """The model's own numbers of those layers that do something else instead, as in hybrids."""
        return self.facts.layers_without_attention

    @property
    def left_out(self) -> tuple[str, ...]:
        """The modules that attend beside its streams, such as a head that pools, and aren't in its traces."""
        return self.facts.left_out
