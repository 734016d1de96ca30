"""What a model is and can do: said by the catalogue before it is loaded, and by the model itself from then on."""

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["UNKNOWN_COUNT", "ModelFacts"]

# Of layers and heads of a model that nobody has loaded yet: any number that is asked for may turn out to be right.
UNKNOWN_COUNT = 10_000


@dataclass(frozen=True)
class ModelFacts:
    """What a model is and can do.

    Attributes:
        heads: of each stream, the heads of each layer; empty as long as nobody has loaded the model.
        predicts: whether its output tells how likely each token is.
        has_chat_template: whether its tokenizer has a template for chats.
        adds_special_tokens: whether its tokenizer adds special tokens around a text.
        layers_without_attention: the model's own numbers of layers that do something else, as in hybrids.
        trained: whether its weights were learnt; random ones say nothing that could be asked about.
        reads: what it reads: "text", "picture", "sound", or "tensors" of names of its own.
    """

    heads: Mapping[str, tuple[int, ...]]
    predicts: bool = False
    has_chat_template: bool = False
    adds_special_tokens: bool = False
    layers_without_attention: tuple[str, ...] = ()
    trained: bool = True
    reads: str = "text"

    @property
    def streams(self) -> tuple[str, ...]:
        """The kinds of attention it has: "encoder", "decoder", "cross", or the names of its towers."""
        return tuple(self.heads)

    @property
    def is_encoder_decoder(self) -> bool:
        """Whether it reads one text and says another."""
        return "cross" in self.heads

    @property
    def reads_pairs(self) -> bool:
        """Whether it reads two sentences together; our own module, which adds no special tokens, doesn't."""
        return self.streams == ("encoder",) and self.adds_special_tokens

    @property
    def continues_text(self) -> bool:
        """Whether it can go on with a text."""
        return self.streams == ("decoder",) and self.predicts

    @property
    def layer_names(self) -> tuple[str, ...]:
        """The model's own numbers of the layers that have attention; empty where they are numbered as here."""
        if not self.layers_without_attention:
            return ()
        every = range(self.layer_count(None) + len(self.layers_without_attention))
        return tuple(str(number) for number in every if str(number) not in self.layers_without_attention)

    def layer_count(self, stream: str | None) -> int:
        """How many layers a stream has, by default the first; `UNKNOWN_COUNT` before the model is loaded."""
        heads = self._heads_of(stream)
        return UNKNOWN_COUNT if heads is None else len(heads)

    def head_count(self, stream: str | None, layer: int) -> int:
        """How many heads a layer of a stream has; `UNKNOWN_COUNT` before the model is loaded."""
        heads = self._heads_of(stream)
        return UNKNOWN_COUNT if heads is None else heads[min(layer, len(heads) - 1)]

    def _heads_of(self, stream: str | None) -> tuple[int, ...] | None:
        return self.heads.get(stream or "") or next(iter(self.heads.values()), None)
