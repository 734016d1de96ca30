"""Text handling common to all models."""

from abc import ABC, abstractmethod

from attention_viz.trace.fitting import Fit, fit_text
from attention_viz.trace.provenance import Fidelity
from attention_viz.trace.trace import Trace

__all__ = ["TextModel"]


class TextModel(ABC):
    """A model that counts its tokens and reads texts."""

    def fit(
        self,
        text: str,
        limit: int | None = None,
        *,
        before: str | None = None,
        special_tokens: bool = True,
        chat: bool = False,
    ) -> Fit:
        """Which part of a text the model can read at once, and what would have to be cut.

        Args:
            text: what to read.
            limit: a lower limit than the model's own, in tokens; those of our own module are words.
            before: of a second sentence, the first, which is read whole.
            special_tokens: as in `trace`.
            chat: as in `trace`.

        Raises:
            UnusableText: no tokenizer to read it with, or another sentence or a chat template for our own module.
        """

        def count(part: str) -> int:
            return self._count(part, before, special_tokens=special_tokens, chat=chat)

        bounds = [bound for bound in (limit, self._longest()) if bound is not None]
        return fit_text(text, count, min(bounds, default=None))

    def verify(self, text: str) -> Fidelity:
        """How far the model's output with our attention is from its output without, on this text."""
        return self.trace(text).fidelity

    @abstractmethod
    def trace(self, text: str) -> Trace:
        """Run a text through the model and keep what it computed."""

    @abstractmethod
    def _longest(self) -> int | None:
        """None if unknown."""

    @abstractmethod
    def _count(self, text: str, before: str | None, *, special_tokens: bool, chat: bool) -> int:
        """`before` is the preceding sentence."""
