"""Processes for texts, one for each tokenizer in use: started when needed, ended when others are needed more."""

import itertools
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from attention_viz.errors import UnusableText
from attention_viz.models.bounded.framing import Message
from attention_viz.models.bounded.limits import Limits
from attention_viz.models.bounded.process import Broken, Process, Stopped, prepare

__all__ = ["LIMITS", "LONGEST_TEXT", "TextProcess", "get_ready"]

# Characters: more than any model here reads, and less than keeps a machine busy for long.
LONGEST_TEXT = 2_000_000
# An honest tokenizer took 200 MB for a text of a million letters.
LIMITS = Limits(memory=600_000_000, seconds=60, processor=20, answer=64_000_000)
# How long a text may take; to load the largest published vocabularies takes longer on a busy machine.
SECONDS = 20.0
# How many processes are kept, beside those at work; to start one again takes some tenths of a second.
_MOST = 8
# After so many ends in a row nothing is asked of a tokenizer for so many seconds.
_ENDS, _PAUSE = 2, 60.0

_MODULE = "attention_viz.models.inputs.isolated.answering"


def get_ready() -> None:
    """Begin to import what a process for texts needs, in the background."""
    prepare(_MODULE)


class TextProcess:
    """A process for the texts of one tokenizer, or for chat templates alone; it serves one thread at a time.

    Attributes:
        name: the model's, for messages.
    """

    def __init__(
        self,
        name: str,
        folder: Path | None = None,
        limits: Limits | None = None,
        module: str = _MODULE,
        image: str | None = None,
        how: Mapping[str, Any] | None = None,
    ) -> None:
        """Prepare it; the process itself starts with the first question.

        Args:
            name: the model's, for messages.
            folder: where the tokenizer is; None for none.
            limits: what the process may take; `LIMITS` by default.
            module: what answers there.
            image: another module, after whose imports this one starts soon.
            how: what else it is loaded with.
        """
        self._module, self._image, self._how = module, image, how or {}
        self.name = name
        self._folder = None if folder is None else folder.absolute()
        self._limits = limits or LIMITS
        self._turn = threading.Lock()
        self._process: Process | None = None
        self._described: Message | None = None
        self._ends, self._paused_until, self._why = 0, 0.0, ""
        self.used = 0

    def load(self, check: Callable[[], None] = lambda: None) -> Message:
        """Load the tokenizer and return what is known of it.

        Args:
            check: called again and again meanwhile; what it raises ends that.

        Raises:
            Stopped: it takes too long or too much memory.
            Broken: it can't be loaded.
        """
        try:
            with self._turn:
                self._running(check)
        except Broken as error:
            raise Broken(self._without_path(error)) from None
        assert self._described is not None
        return self._described

    def ask(
        self,
        do: str,
        values: Mapping[str, Any],
        content: bytes = b"",
        *,
        what: str = "tokenizer",
        thing: str = "text",
        seconds: float | None = None,
        longest: int | None = None,
    ) -> Message:
        """Return the answer to a question.

        Args:
            do: what is to be done, one of the ways of `answering`.
            values: with what.
            content: with which text or numbers.
            what: is at work then, for messages.
            thing: what it works on, for messages.
            seconds: how long it may take; `SECONDS` by default.
            longest: how many bytes the answer may have; as many as the limits say by default.

        Raises:
            UnusableText: it takes too long or too much memory, breaks down, or did so twice just before.
        """
        subject = f"{self.name}'s {what}"
        within = min(SECONDS, self._limits.seconds) if seconds is None else seconds
        if not self._turn.acquire(timeout=within):
            raise UnusableText(
                f"{subject} was busy with other texts for {within:g} seconds: try it again, or take another model"
            )
        try:
            self._check_pause(subject)
            request = Message({"do": do, **values}, content)
            answer = self._running().ask(request, seconds=within, longest=longest)
        except Stopped as error:
            self._count_end(str(error))
            what_helps = "shorten it" if thing == "text" else "take a smaller one"
            raise UnusableText(f"{subject} {error} for this {thing}: {what_helps}, or take another model") from None
        except Broken as error:
            how = "refuses" if do == "template" else "broke down over"
            raise UnusableText(f"{subject} {how} this {thing}: {self._without_path(error)}") from None
        finally:
            self._turn.release()
        self._ends = 0
        return answer

    def _running(self, check: Callable[[], None] = lambda: None) -> Process:
        """Return the process with its tokenizer loaded; start it if it doesn't run."""
        self.used = next(_uses)
        if self._process is None or not self._process.alive:
            process = Process(self._module, self._limits, image=self._image)
            if self._folder is not None:
                values = {"do": "load", "folder": str(self._folder), "name": self.name, **self._how}
                self._check_same(process.ask(Message(values), check))
            self._process = process
            _keep(self)
        return self._process

    def _check_same(self, described: Message) -> None:
        """Refuse another tokenizer than the one that the model was loaded with."""
        if self._described is None:
            self._described = described
        elif described != self._described:
            raise UnusableText(f"files of {self.name} changed since the model was loaded: load the model again")

    def _check_pause(self, subject: str) -> None:
        left = self._paused_until - time.monotonic()
        if left > 0:
            raise UnusableText(
                f"{subject} is refused for {left:.0f} more seconds: its process was ended {_ENDS} times in a row, as "
                f"it {self._why}"
            )

    def _count_end(self, why: str) -> None:
        self._ends, self._why = self._ends + 1, why
        if self._ends >= _ENDS:
            self._paused_until = time.monotonic() + _PAUSE

    def _without_path(self, error: Exception) -> str:
        """Return a foreign error's message without the model's path: visitors of a server read it."""
        return str(error) if self._folder is None else str(error).replace(str(self._folder), self.name)

    def rest(self) -> bool:
        """End the process unless it is at work, and return whether it was ended."""
        if not self._turn.acquire(blocking=False):
            return False
        try:
            if self._process is not None:
                self._process.end()
            self._process = None
        finally:
            self._turn.release()
        return True


_uses = itertools.count(1)
_kept = weakref.WeakSet[TextProcess]()
_keeping = threading.Lock()


def _keep(one: TextProcess) -> None:
    """Keep a process, and end those that were unused for longest if there are too many."""
    with _keeping:
        _kept.add(one)
        longest_unused = sorted((other for other in _kept if other is not one), key=lambda other: other.used)
        for other in longest_unused[: max(0, len(_kept) - _MOST)]:
            if other.rest():
                _kept.discard(other)
