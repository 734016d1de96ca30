"""What a model is and can do, so far as it is known: of others than the catalogue's once they are loaded."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attention_viz.models import CATALOGUE

if TYPE_CHECKING:
    from attention_viz.models import AttentionModel
    from attention_viz.scratch.model import Scratch

__all__ = ["UNKNOWN", "Nature", "learn", "nature"]

# Nobody has loaded it yet: any number that somebody asks for may turn out to be right.
UNKNOWN = 10_000


@dataclass(frozen=True)
class Nature:
    """What a model is and can do.

    Attributes:
        heads: of each stream, the heads of each layer; nothing as long as nobody has loaded it.
        predicts: whether it tells how likely each token is.
        template: whether its tokenizer has a template for chats.
        marks: whether its tokenizer adds special tokens around a text.
        without: the model's own numbers of layers that have no attention.
    """

    heads: Mapping[str, tuple[int, ...]]
    predicts: bool = False
    template: bool = False
    marks: bool = False
    without: tuple[str, ...] = ()

    @property
    def answers(self) -> bool:
        """Whether it reads one text and says another."""
        return "cross" in self.heads

    @property
    def pairs(self) -> bool:
        """Whether it reads two sentences together; our own module, which marks nothing, doesn't."""
        return tuple(self.heads) == ("encoder",) and self.marks

    @property
    def goes_on(self) -> bool:
        """Whether it can go on with a text."""
        return tuple(self.heads) == ("decoder",) and self.predicts

    @property
    def layer_names(self) -> tuple[str, ...]:
        """The model's own numbers of the layers that have attention; nothing where they are numbered as here."""
        if not self.without:
            return ()
        every = range(self.layer_count(None) + len(self.without))
        return tuple(str(number) for number in every if str(number) not in self.without)

    def layer_count(self, stream: str | None) -> int:
        """How many layers there are to choose from."""
        heads = self._of(stream)
        return UNKNOWN if heads is None else len(heads)

    def head_count(self, stream: str | None, layer: int) -> int:
        """How many heads there are to choose from in a layer."""
        heads = self._of(stream)
        return UNKNOWN if heads is None else heads[min(layer, len(heads) - 1)]

    def _of(self, stream: str | None) -> tuple[int, ...] | None:
        return self.heads.get(stream or "") or next(iter(self.heads.values()), None)


_known: dict[str, Nature] = {
    name: Nature(
        {stream: (entry.heads,) * entry.layers for stream in entry.streams},
        predicts=entry.predicts,
        marks=entry.marks,
    )
    for name, entry in CATALOGUE.items()
}


def nature(model: str) -> Nature:
    """What is known of a model."""
    return _known.get(model, Nature({}))


def learn(name: str, model: "AttentionModel | Scratch") -> None:
    """Note what a model turned out to be."""
    from attention_viz.scratch.model import Scratch

    if isinstance(model, Scratch):
        return
    tokenizer = model.tokenizer
    _known[name] = Nature(
        model.heads,
        predicts=model.predicts,
        template=tokenizer is not None and bool(tokenizer.chat_template),
        marks=tokenizer is not None and tokenizer.num_special_tokens_to_add() > 0,
        without=model.layers_without_attention,
    )
