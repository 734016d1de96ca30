"""Chat templates, within bounds: a template is a program that came with the model, and may run for ever."""

import json
import queue
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any, cast

from attention_viz.errors import UnusableText

__all__ = ["SECONDS", "render_chat"]

# How long a template may take for a text, and how long the program that renders it may take to start.
SECONDS, _STARTING = 5.0, 60.0

_COMMAND = (sys.executable, "-m", "attention_viz.models.inputs.template_worker")
# Programs that are waiting for work: they are kept, since to start one takes a second.
_idle: "queue.SimpleQueue[_Worker]" = queue.SimpleQueue()
_MOST_IDLE = 2


class _Worker:
    """A program that renders templates, one after the other."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(_COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._answers: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=self._listen, name="chat template", daemon=True).start()
        self._answer(_STARTING)

    def ask(self, request: Mapping[str, Any]) -> dict[str, str]:
        """The worker's answer.

        Raises:
            TimeoutError: there was none in time; the worker has been ended.
        """
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = self._answer(SECONDS) or '{"error": "the program that renders it ended"}'
        return cast("dict[str, str]", json.loads(answer))

    @property
    def alive(self) -> bool:
        """Whether it can be asked again."""
        return self._process.poll() is None

    def end(self) -> None:
        """End the program, and free what it held."""
        self._process.kill()
        self._process.communicate()

    def _answer(self, seconds: float) -> str:
        try:
            return self._answers.get(timeout=seconds)
        except queue.Empty:
            self.end()
            raise TimeoutError from None

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._answers.put(line)
        self._answers.put("")  # it ended


def render_chat(model: str, template: str, messages: Sequence[Mapping[str, str]], tokens: Mapping[str, object]) -> str:
    """A conversation as the template writes it, ready for an answer.

    Args:
        model: the model's name, for messages.
        template: in Jinja, as the tokenizer has it.
        messages: of each, "role" and "content".
        tokens: the tokenizer's special tokens by name, as templates use them.

    Raises:
        UnusableText: the template refuses the text, or takes too long or too much memory for it.
    """
    try:
        worker = _idle.get_nowait()
    except queue.Empty:
        worker = _Worker()
    try:
        answer = worker.ask({"template": template, "messages": list(messages), "tokens": dict(tokens)})
    except TimeoutError:
        raise UnusableText(f"the chat template of {model}'s tokenizer takes longer than {SECONDS:g} seconds") from None
    if worker.alive and _idle.qsize() < _MOST_IDLE:
        _idle.put(worker)
    else:
        worker.end()
    if "error" in answer:
        raise UnusableText(f"the chat template of {model}'s tokenizer refuses this text ({answer['error']})")
    return answer["text"]
