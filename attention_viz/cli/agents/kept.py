"""Traces by id: the requests behind them, whose runs are cached by bytes and made again once evicted."""

import hashlib
from dataclasses import astuple
from typing import TYPE_CHECKING

from attention_viz.errors import AttentionVizError, UnsupportedModel, UnusableText
from attention_viz.protocol.fitting import Fit
from attention_viz.serving import permissions
from attention_viz.serving.cache import SharedCache
from attention_viz.serving.models import facts_of
from attention_viz.serving.run import Request, Run
from attention_viz.serving.runs import fit, is_loaded, load_model, run_request
from attention_viz.serving.settings import SETTINGS
from attention_viz.trace.kind import InputKind

if TYPE_CHECKING:
    from attention_viz.cli.agents.calls import ToolCall

# Bytes of all requests' texts.
_ROOM = 20_000_000


def made(call: "ToolCall", model: str, text: str, second: str, target: str) -> tuple[str, Run]:
    """Run a text, and keep its request under an id."""
    request = Request(permissions.canonical_name(model), text, second, target)
    loaded(call, request.model)
    _check_reads(request)
    _check_length(request)
    run = _run(request)
    name = "t" + hashlib.sha256(repr(astuple(request)).encode("utf-8", "replace")).hexdigest()[:12]
    _requests.get(name, lambda: request)
    return name, run


def run_of(call: "ToolCall", name: str) -> tuple[Request, Run]:
    """Return an id's request and run."""
    request = _requests.peek(name)
    if request is None:
        raise AttentionVizError(f"no trace “{name[:40]}”; make one with the tool trace, and use the id that it returns")
    loaded(call, request.model)
    return request, _run(request)


def loaded(call: "ToolCall", name: str) -> None:
    """Load an allowed model; a stopped call leaves it to others that wait."""
    if (reason := permissions.refusal(name)) is not None:
        raise AttentionVizError(f"{reason}. The tool models lists what is open; mcp --models FOLDER and --hub open more")
    if not is_loaded(name):
        load_model(name, call.still_wanted)


def _run(request: Request) -> Run:
    run = run_request(request)
    for one in (run.fit, run.second):
        if one is not None and one.cut:
            raise _too_long(one, one.limit)
    return run


def _too_long(found: Fit, longest: int | None) -> UnusableText:
    return UnusableText(f"the text has {found.count:,} tokens; {longest:,} are read at most, so shorten it")


def _check_reads(request: Request) -> None:
    name, facts = request.model, facts_of(request.model)
    if facts.reads is not InputKind.TEXT:
        raise UnsupportedModel(f"{name} {facts.reads.does}; the tools pass texts alone, so choose another model")
    if request.target and not facts.is_encoder_decoder:
        raise UnsupportedModel(f"{name} isn't an encoder–decoder, so leave out target")
    if request.second and not facts.reads_pairs:
        raise UnsupportedModel(f"{name} reads no pairs of sentences, so leave out second")


def _check_length(request: Request) -> None:
    """Refuse a text before it runs; a second one counts once it does."""
    found, longest = fit(request, request.text), SETTINGS.longest_study
    if found.count > longest or found.cut:
        raise _too_long(found, min(longest, found.limit or longest))


_requests: "SharedCache[str, Request]" = SharedCache(
    _ROOM, lambda one: 200 + 4 * sum(len(text) for text in (one.model, one.text, one.second, one.target))
)
