"""Untrained attention from scratch on seeded word vectors."""

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attention_viz.edits.edit import Edit, edited, snapshots
from attention_viz.edits.places import check_places
from attention_viz.errors import ShapeError, TextTooLong, UnsupportedModel, UnusableText
from attention_viz.operation import masks
from attention_viz.operation.modules import MultiHeadAttention, Projection
from attention_viz.operation.shapes import check_sizes, check_tensor, uneven
from attention_viz.protocol.facts import ModelFacts
from attention_viz.protocol.model import Model
from attention_viz.scratch.vectors import seeded_numbers, sinusoidal, word_id, word_vectors
from attention_viz.scratch.verify import measure
from attention_viz.trace.kept import KeptLayers, chosen_layers
from attention_viz.trace.rerun import Rerun
from attention_viz.trace.splitting import split_words
from attention_viz.trace.tokens import Tokens, check_text
from attention_viz.trace.trace import Layer, Provenance, Trace
from attention_viz.trace.trace_data import attach

__all__ = ["POSITIONS", "Scratch", "scratch"]

POSITIONS = ("sinusoidal", "none")

_LARGEST_WIDTH = 1024
_LONGEST_TEXT = 1024

_STREAM = "encoder"

# A sign that is read as one word, and that hardly anybody types.
_PADDING = "▢"


def scratch(
    text: str,
    *,
    d_model: int = 8,
    heads: int = 2,
    seed: int = 0,
    positions: str = "sinusoidal",
    allowed: Bool[Tensor, "*#head #query #key"] | None = None,
) -> Trace:
    """Run a text of any length through our own multi-head attention with seeded, untrained weights.

    Args:
        text: split into words by `split_words`.
        d_model: width of a word's vector.
        heads: how many heads share it.
        seed: another seed, other vectors and other weights.
        positions: "sinusoidal" adds each word's place to its vector, "none" doesn't.
        allowed: True where a query may look at a key; (query, key), or with the heads before them. With
            `masks.causal` the trace is that of a decoder.

    Raises:
        UnusableText: nothing visible in the text.
        ShapeError: sizes, positions or a mask that don't fit.
    """
    return Scratch(d_model, heads, seed, positions).run(text, allowed)


@dataclass(frozen=True)
class Scratch(Model):
    """Our own module in the place of a pretrained model: one layer of multi-head attention, weights from a seed.

    Attributes:
        d_model: width of a word's vector, up to 1024.
        heads: how many heads share it.
        seed: another seed, other vectors and other weights.
        positions: "sinusoidal" or "none".
    """

    d_model: int = 8
    heads: int = 2
    seed: int = 0
    positions: str = "sinusoidal"

    def __post_init__(self) -> None:
        """Refuse impossible sizes by name."""
        check_sizes(d_model=self.d_model, heads=self.heads)
        if self.d_model > _LARGEST_WIDTH:
            raise ShapeError(f"d_model {self.d_model} was asked for; {self.name} goes up to {_LARGEST_WIDTH}")
        if self.d_model % self.heads:
            raise ShapeError(uneven(self.d_model, self.heads))
        if type(self.seed) is not int:
            raise ShapeError(f"seed has to be a whole number; got {self.seed!r}")
        if self.positions not in POSITIONS:
            raise ShapeError(f"positions {self.positions!r} was asked for; there are {', '.join(POSITIONS)}")

    def trace(
        self,
        text: str,
        second_text: str | None = None,
        *,
        target: str | None = None,
        edits: Sequence[Edit] = (),
        layers: Sequence[int] | None = None,
        special_tokens: bool = True,
        chat: bool = False,
    ) -> Trace:
        """Run a text through the module and keep what it computed.

        Args:
            text: what to read, up to `limit` words.
            second_text: refused, as this model reads one sentence.
            target: refused, as this model has no decoder to say it.
            edits: changes made inside, such as `Allow`. A run with others than masks, which torch's own module can't be
                given, carries the fidelity of the run without them.
            layers: which layers are kept: the only one, 0, as by default.
            special_tokens: either way nothing is added: this model has no such tokens.
            chat: refused, as this model has no chat template.

        Raises:
            UnusableText: nothing visible in the text, a second one, or a chat template.
            TextTooLong: more words than `limit`.
            UnsupportedModel: a target.
            ShapeError: an edit that doesn't fit, or for another layer than the only one; or another layer to keep.
        """
        if layers is not None:
            _ = chosen_layers(layers, {self.stream: KeptLayers.first(self.layer_count)})
        self._check_one_text(second_text, chat)
        if target is not None:
            raise UnsupportedModel(f"a target was given, and {self.name} is no encoder–decoder: it has an encoder only")
        check_text(text)
        count = len(split_words(text))
        if count > self.limit:
            raise TextTooLong(self.name, count, self.limit)
        return self.run(text, None, edits)

    def trace_padded(
        self,
        text: str,
        padding: int,
        *,
        edits: Sequence[Edit] = (),
        special_tokens: bool = True,
        chat: bool = False,
    ) -> Trace:
        """Run a text with so many words of padding after it, which every word sees; else as `trace`."""
        trace = self.trace(text + f" {_PADDING}" * padding, edits=edits, special_tokens=special_tokens, chat=chat)
        tokens = trace.query_tokens()
        tokens = tokens.padded_after(len(tokens) - padding)
        return trace.derived(queries={self.stream: tokens}, keys={self.stream: tokens})

    def run(
        self, text: str, allowed: Bool[Tensor, "*#head #query #key"] | None = None, edits: Sequence[Edit] = ()
    ) -> Trace:
        """As `trace`, at any length and with a mask of the module's own; causal, it makes this a decoder.

        Raises:
            UnusableText: nothing visible in the text.
            ShapeError: a mask that doesn't fit, or an edit for another layer than the only one.
        """
        check_text(text)
        words = split_words(text)
        if not words:
            problem = "holds only characters that aren't seen" if text.strip() else "is empty"
            raise UnusableText(f"the text {problem}: type at least one word")
        if allowed is not None:
            check_tensor("allowed", allowed)
        check_places(edits, {self.stream: KeptLayers.first(self.layer_count)})
        count, module = len(words), self.module()
        stream = "encoder" if allowed is None or not _is_causal(allowed, count) else "decoder"
        with torch.no_grad():
            embeddings = self.embed(words)
            own = module.attention(embeddings, allowed)
            attention = edited(snapshots(edits, {self.stream: None}), (self.stream, 0), own)
            joined = module.join(attention)
        ids, spelling = tuple(word_id(word) for word in words), ("text",) * count
        tokens = {stream: Tokens(words, ids, tuple(range(count)), spelling=spelling)}
        layers = {stream: (Layer(attention, "0", embeddings, joined),)}
        provenance = replace(self._provenance(), text=text, edits=tuple(str(edit) for edit in edits))
        measured = attention if all(edit.masks_only for edit in edits) else own
        return attach(
            Trace(layers, tokens, tokens, joined, provenance),
            Rerun(lambda: measure(module, embeddings, measured, attention, joined)),
        )

    @property
    def name(self) -> str:
        """What it is called, in messages and in its traces."""
        return "scratch"

    @property
    def limit(self) -> int:
        """How many words it reads at once."""
        return _LONGEST_TEXT

    @property
    def facts(self) -> ModelFacts:
        """What it is and can do: one layer that looks at the whole text, and nothing else."""
        return ModelFacts({_STREAM: (self.heads,)}, trained=False)

    @property
    def nbytes(self) -> int:
        """How many bytes it keeps in memory: none, since its weights are worked out for each run."""
        return 0

    def behind(self, door: AbstractContextManager[object]) -> "Scratch":
        """The module as it is: its runs are too small to wait for one another."""
        return self

    @property
    def mask_id(self) -> int | None:
        """The id of the token behind which an encoder guesses: there is none."""
        return None

    def labels(self, ids: Sequence[int]) -> tuple[str, ...]:
        """The ids as text, since a word can't be had back from its id."""
        return tuple(str(number) for number in ids)

    def count_tokens(self, text: str, before: str | None, *, special_tokens: bool, chat: bool) -> int:
        """Count the words of a text; `special_tokens` makes no difference."""
        self._check_one_text(before, chat)
        return len(split_words(text))

    def _check_one_text(self, other_text: str | None, chat: bool) -> None:
        if other_text:
            raise UnusableText(f"a second sentence was given, and {self.name} reads one sentence only")
        if chat:
            raise UnusableText(f"a chat template was asked for, and {self.name} has none")

    def embed(self, words: Sequence[str]) -> Float[Tensor, "word d_model"]:
        """What enters the attention: each word's vector, with its place added where positions are on."""
        vectors = word_vectors(words, self.d_model, self.seed)
        return vectors + sinusoidal(len(words), self.d_model) if self.positions == "sinusoidal" else vectors

    def module(self) -> MultiHeadAttention:
        """The module with its seeded weights; it has no bias, as in Vaswani et al. 2017, section 3.2.2."""
        module = MultiHeadAttention(self.d_model, self.heads, bias=False)
        # As large as they come in, so that scores spread by more than 1 and rows have favourites: torch's own start
        # makes queries and keys a third as large, and untrained attention looks uniform.
        module.load_state_dict({name: self._matrix(name) / math.sqrt(self.d_model) for name in module.state_dict()})
        return module.eval()

    def projections(self, layer: int = 0, stream: str | None = None) -> dict[str, Projection]:
        """The module's four matrices by name: "query", "key", "value" and "output".

        Args:
            layer: the only one, 0.
            stream: the only one: "encoder", or "decoder" where a mask of its own made the module one.

        Raises:
            ShapeError: another layer or stream than the only one.
        """
        if stream not in (None, "encoder", "decoder"):
            raise ShapeError(f"the stream {stream!r} was asked for; {self.name} has one stream, {self.stream}")
        if layer != 0:
            raise ShapeError(f"layer {layer} was asked for; {self.name} has one layer, 0")
        weights = self.module().state_dict()
        return {name.removesuffix(".weight"): Projection(weight.mT) for name, weight in weights.items()}

    def _matrix(self, name: str) -> Tensor:
        return seeded_numbers(f"{self.seed}/weights/{name}", self.d_model**2).reshape(self.d_model, self.d_model)

    def _provenance(self) -> Provenance:
        settings = f"d_model={self.d_model} heads={self.heads} seed={self.seed} positions={self.positions}"
        return Provenance(self.name, revision=settings, versions={"torch": torch.__version__})


def _is_causal(allowed: Tensor, count: int) -> bool:
    expected = masks.causal(count).to(allowed.device)
    return allowed.ndim >= 2 and allowed.shape[-2:] == expected.shape and bool((allowed == expected).all())
