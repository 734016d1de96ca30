"""Render chat templates within bounds: a template is a model's program and may run forever."""

import hashlib
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from cachetools import LRUCache

from attention_viz.errors import UnusableText, first_line
from attention_viz.inputs.isolated.answering import fill_template
from attention_viz.inputs.isolated.asking import TextProcess
from attention_viz.sources.bounded.limits import Limits
from attention_viz.sources.bounded.process import isolates

# How long a template may take for a text.
SECONDS = 5.0
_LIMITS = Limits(memory=300_000_000, seconds=SECONDS, processor=SECONDS, answer=20_000_000)
# Processes for templates of tokenizers that are in this process; see `asking` for how many of them run.
_processes = LRUCache[str, TextProcess](16)
_lock = threading.Lock()


def render_chat(
    model: str,
    template: str,
    messages: Sequence[Mapping[str, Any]],
    tokens: Mapping[str, object],
    process: TextProcess | None = None,
    *,
    answers: bool = True,
) -> str:
    """Return a conversation as the template writes it, by default ready for an answer."""
    written = [dict(message) for message in messages]
    if process is None and not isolates():
        return _render_here(model, template, written, tokens, answers=answers)
    process = process or _process_of(model, template)
    values: dict[str, Any] = {"template": template, "messages": written, "tokens": dict(tokens), "answers": answers}
    answer = process.ask("template", values, what="chat template", seconds=SECONDS)
    return answer.content.decode("utf-8", "surrogatepass")


def _render_here(
    model: str, template: str, messages: list[dict[str, Any]], tokens: Mapping[str, Any], *, answers: bool
) -> str:
    try:
        return fill_template(template, messages, tokens, answers=answers)
    except Exception as error:
        raise UnusableText(
            f"{model}'s chat template refuses this text: {type(error).__name__}: {first_line(error)}"
        ) from None


def _process_of(model: str, template: str) -> TextProcess:
    with _lock:
        key = hashlib.sha256(f"{model}\n{template}".encode("utf-8", "surrogatepass")).hexdigest()
        if key not in _processes:
            _processes[key] = TextProcess(model, limits=_LIMITS)
        return _processes[key]
