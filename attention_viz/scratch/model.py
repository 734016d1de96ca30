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
from attention_viz.trace.kind import check_text
from attention_viz.trace.rerun import Rerun
from attention_viz.trace.splitting import split_words
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Layer, Provenance, Trace
from attention_viz.trace.trace_data import attach

__all__ = ["POSITIONS", "Scratch", "scratch"]

POSITIONS = ("sinusoidal", "none")

_LARGEST_WIDTH = 1024
_LONGEST_TEXT = 1024

_STREAM = "encoder"

# A sign that counts as one word and is hardly ever typed.
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
        heads: number of heads that share it.
        seed: seed of the vectors and weights.
        positions: "sinusoidal" adds each word's position to its vector, "none" doesn't.
        allowed: True where a query may attend to a key; (query, key), or with the heads before them. With
            `masks.causal` the trace is that of a decoder.

    Raises:
        UnusableText: nothing visible in the text.
        ShapeError: sizes, positions or a mask that don't fit.
    """
    return Scratch(d_model, heads, seed, positions).run(text, allowed)


@dataclass(frozen=True)
class Scratch(Model):
    """Our own module instead of a pretrained model: one layer of multi-head attention with seeded weights.

    Attributes:
        d_model: width of a word's vector, up to 1024.
        heads: number of heads that share it.
        seed: seed of the vectors and weights.
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
            raise ShapeError(f"{self.name} takes d_model up to {_LARGEST_WIDTH}; got {self.d_model}")
        if self.d_model % self.heads:
            raise ShapeError(uneven(self.d_model, self.heads))
        if type(self.seed) is not int:
            raise ShapeError(f"seed must be a whole number; got {self.seed!r}")
        if self.positions not in POSITIONS:
            raise ShapeError(f"unknown positions {self.positions!r}; choose {', '.join(POSITIONS)}")

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
        """Run a text through the module and record it.

        Args:
            text: the text to read, up to `limit` words.
            second_text: refused: this model reads one sentence.
            target: refused: this model has no decoder.
            edits: changes made inside, such as `Allow`. Torch's own module can take masks only; with other edits,
                fidelity is that of the run without them.
            layers: the layers to keep: the only one, 0, as by default.
            special_tokens: ignored: this model has no such tokens.
            chat: refused: this model has no chat template.

        Raises:
            UnusableText: nothing visible in the text, a second one, or a chat template.
            TextTooLong: more words than `limit`.
            UnsupportedModel: a target.
            ShapeError: an edit that doesn't fit, or a layer other than 0 to edit or keep.
        """
        if layers is not None:
            _ = chosen_layers(layers, {self.stream: KeptLayers.first(self.layer_count)})
        self._check_one_text(second_text, chat)
        if target is not None:
            raise UnsupportedModel(f"{self.name} has an encoder only, so it takes no target; use an encoder–decoder")
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
        """Run a text with this many words of padding after it, visible to every word; else as `trace`."""
        trace = self.trace(text + f" {_PADDING}" * padding, edits=edits, special_tokens=special_tokens, chat=chat)
        tokens = trace.query_tokens()
        tokens = tokens.padded_after(len(tokens) - padding)
        return trace.derived(queries={self.stream: tokens}, keys={self.stream: tokens})

    def run(
        self, text: str, allowed: Bool[Tensor, "*#head #query #key"] | None = None, edits: Sequence[Edit] = ()
    ) -> Trace:
        """Run a text of any length, with a mask for the module; a causal mask makes it a decoder. Else as `trace`.

        Raises:
            UnusableText: nothing visible in the text.
            ShapeError: a mask that doesn't fit, or an edit for a layer other than 0.
        """
        check_text(text)
        words = split_words(text)
        if not words:
            problem = "has only invisible characters" if text.strip() else "is empty"
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
        """Its name in messages and traces."""
        return "scratch"

    @property
    def limit(self) -> int:
        """The number of words it reads at once."""
        return _LONGEST_TEXT

    @property
    def facts(self) -> ModelFacts:
        """Its properties: one layer that attends to the whole text."""
        return ModelFacts({_STREAM: (self.heads,)}, trained=False)

    @property
    def nbytes(self) -> int:
        """The bytes that it keeps in memory: 0, since each run computes its weights."""
        return 0

    def behind(self, door: AbstractContextManager[object]) -> "Scratch":
        """Return the module itself: its runs are too small to wait for one another."""
        return self

    @property
    def mask_id(self) -> int | None:
        """None: it has no mask token."""
        return None

    def labels(self, ids: Sequence[int]) -> tuple[str, ...]:
        """Return the ids as text, since an id doesn't give its word back."""
        return tuple(str(number) for number in ids)

    def count_tokens(self, text: str, before: str | None, *, special_tokens: bool, chat: bool) -> int:
        """Count the words of a text; `special_tokens` makes no difference."""
        self._check_one_text(before, chat)
        return len(split_words(text))

    def _check_one_text(self, other_text: str | None, chat: bool) -> None:
        if other_text:
            raise UnusableText(f"{self.name} reads one sentence only; leave out the second")
        if chat:
            raise UnusableText(f"{self.name} has no chat template; leave out chat")

    def embed(self, words: Sequence[str]) -> Float[Tensor, "word d_model"]:
        """Return the attention's input: each word's vector, with its position added if positions are on."""
        vectors = word_vectors(words, self.d_model, self.seed)
        return vectors + sinusoidal(len(words), self.d_model) if self.positions == "sinusoidal" else vectors

    def module(self) -> MultiHeadAttention:
        """Return the module with its seeded weights and no bias, as in Vaswani et al. 2017, section 3.2.2."""
        module = MultiHeadAttention(self.d_model, self.heads, bias=False)
        # Keep the input's size, so that scores spread by more than 1. Torch's own initialization makes queries and keys
        # a third as large, and untrained attention looks uniform.
        module.load_state_dict({name: self._matrix(name) / math.sqrt(self.d_model) for name in module.state_dict()})
        return module.eval()

    def projections(self, layer: int = 0, stream: str | None = None) -> dict[str, Projection]:
        """Return the module's four matrices by name: "query", "key", "value" and "output".

        Args:
            layer: the only one, 0.
            stream: the only one: "encoder", or "decoder" if a causal mask made the module one.

        Raises:
            ShapeError: another layer or stream.
        """
        if stream not in (None, "encoder", "decoder"):
            raise ShapeError(f"unknown stream {stream!r}; {self.name} has one stream, {self.stream}")
        if layer != 0:
            raise ShapeError(f"no layer {layer}; {self.name} has one layer, 0")
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
