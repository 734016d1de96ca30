"""Choose a decoder's next token, and decide when a text ends."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy
import torch
from jaxtyping import Float
from torch import Tensor

from attention_viz.errors import ShapeError, TraceError, UnusableText
from attention_viz.inputs.text import vocabulary
from attention_viz.operation.shapes import is_whole
from attention_viz.trace.decoding import Decoding

if TYPE_CHECKING:
    from transformers.modeling_utils import PreTrainedModel
    from transformers.tokenization_utils_base import PreTrainedTokenizerBase

    from attention_viz.trace.provenance import Provenance

# What ends a text: texts and token ids.
Stop = str | int | Sequence[str | int]
# How many tokens before the first generated one are decoded with it, as a tokenizer may drop a text's first space.
_BEFORE = 8
_NEW_SEEDS = 2**31


@dataclass(frozen=True)
class NextToken:
    """How to choose the next token, and which texts and ids end the generation after them."""

    decoding: Decoding
    stop: tuple[str | int, ...] = ()

    @classmethod
    def of(cls, sample: object, temperature: object, top_p: object, seed: object, stop: object) -> "NextToken":
        """Check the arguments of `AttentionModel.generate`, which come from outside."""
        if not isinstance(sample, bool):
            raise ShapeError(f"sample must be True or False; got {sample!r}")
        numbers = cast("Any", (temperature, top_p, seed))
        return cls(Decoding("sampled" if sample else "greedy", *numbers), _listed(stop))

    def check(self, name: str, model: "PreTrainedModel", tokenizer: "PreTrainedTokenizerBase | None") -> None:
        """Refuse a stop that this model can't generate."""
        known = vocabulary(model)
        for one in self.stop:
            if isinstance(one, str):
                if not one:
                    raise UnusableText("a stop text is empty; pass a text that ends the generation, or leave out stop")
                if any("\ud800" <= mark <= "\udfff" or mark == "\ufffd" for mark in one):
                    raise UnusableText(f"the stop text {one!a} has half a character, which no model generates")
                if tokenizer is None:
                    raise UnusableText(f"{name} has no tokenizer to find {one!r} with; pass stop=[…] as token ids")
            elif not 0 <= one < known:
                raise ShapeError(f"stop takes token ids from 0 to {known - 1:,}; got {one}")

    def seeded(self, before: "Provenance | None" = None) -> "NextToken":
        """Return it with a seed: that of a trace sampled in this way, or a new one from torch's generator."""
        decoding = self.decoding
        if decoding.method != "sampled" or decoding.seed is not None:
            return self
        last = before.decoding[-1] if before is not None and before.decoding else None
        seed = None if last is None or replace(last.alone, seed=None) != decoding else last.seed
        seed = int(torch.randint(_NEW_SEEDS, ())) if seed is None else seed
        return replace(self, decoding=replace(decoding, seed=seed))

    def choose(self, logits: Float[Tensor, " token"], number: int, never: Iterable[int] = ()) -> int:
        """Return the next token's id.

        Args:
            logits: the model's, after the last token.
            number: how many tokens were generated before. A seed gives each number the same random draw, so that a
                continued trace gets the tokens of a run in one go.
            never: ids that aren't generated.
        """
        never = [one for one in never if one < len(logits)]
        if never:
            logits = logits.clone()
            logits[never] = -torch.inf
        if bool(logits.isnan().any()):
            raise TraceError("the model's logits aren't numbers, so no token can be chosen; load it in float32")
        if self.decoding.method != "sampled":
            return int(logits.argmax())
        likely = sampled_from(logits, self.decoding.temperature, self.decoding.top_p).double().cpu()
        sums = likely.cumsum(0)
        drawn = numpy.random.default_rng([cast("int", self.decoding.seed), number]).random() * float(sums[-1])
        # Rounding may put the number beyond the last token that can be drawn.
        last = int(likely.nonzero()[-1])
        return min(int(torch.searchsorted(sums, drawn, right=True)), last)

    def ends(self, tokenizer: "PreTrainedTokenizerBase | None", ids: Sequence[int], generated: int) -> bool:
        """Return whether the last of these ids completes a stop; the last `generated` aren't the user's."""
        if ids[-1] in [one for one in self.stop if not isinstance(one, str)]:
            return True
        texts = [one for one in self.stop if isinstance(one, str)]
        if not texts or tokenizer is None:
            return False
        now, before = (_text(tokenizer, part, len(ids) - generated) for part in (ids, ids[:-1]))
        return any(now.rfind(one) > before.rfind(one) for one in texts)


def sampled_from(logits: Float[Tensor, " token"], temperature: float, top_p: float) -> Float[Tensor, " token"]:
    """Return the probabilities to sample from, as transformers' logits processors make them.

    Temperature divides the logits. Then only the fewest likeliest tokens stay whose probabilities sum to at least
    `top_p`, at least one. Source: Holtzman et al. 2020, "The Curious Case of Neural Text Degeneration", section 3.1.
    """
    scores = logits.detach().float() / temperature
    if not scores.max().isfinite():  # the temperature is so low that float32 has no such number
        scores = (logits.detach().float() - logits.max()) / temperature
    if top_p < 1:
        rising, order = scores.sort()
        out = rising.softmax(dim=-1).cumsum(dim=-1) <= 1 - top_p
        out[-1] = False
        scores = scores.masked_fill(out.scatter(0, order, out), -torch.inf)
    return scores.softmax(dim=-1)


def _listed(stop: object) -> tuple[str | int, ...]:
    listed = tuple(cast("Sequence[object]", stop)) if isinstance(stop, list | tuple) else (stop,)
    wrong = [one for one in listed if not isinstance(one, str) and not is_whole(one)]
    if wrong:
        raise ShapeError(f"stop takes a text, a token id or a list of them; got {wrong[0]!r}")
    return tuple(one if isinstance(one, str) else int(cast("int", one)) for one in listed)


def _text(tokenizer: "PreTrainedTokenizerBase", ids: Sequence[int], typed: int) -> str:
    """Return the text of the ids after the typed ones, spaces included."""
    start = max(0, typed - _BEFORE)
    before, whole = (str(tokenizer.decode(list(one))) for one in (ids[start:typed], ids[start:]))
    # The first generated token may complete a character.
    return whole[len(before.rstrip("\ufffd")) :]
