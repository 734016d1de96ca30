"""Models and traces for many visitors: each made once, a few at a time."""

import gc
import weakref
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

from attention_viz.errors import UnusableText
from attention_viz.protocol.fitting import Fit
from attention_viz.serving.cache import SharedCache
from attention_viz.serving.door import ANALYSES, FORWARDS, long_text, share_cores
from attention_viz.serving.jobs import Loads
from attention_viz.serving.models import facts_of, find, note, open_source, remember, sweep
from attention_viz.serving.run import OWN, OwnModule, Request, Run
from attention_viz.serving.settings import SETTINGS
from attention_viz.serving.uploads import beside_of, forget_runs, room_of, runs_of, thing_of
from attention_viz.trace.ahead import unsaid
from attention_viz.trace.kind import MEDIA

if TYPE_CHECKING:
    import pandas

    from attention_viz.edits.edit import Edit
    from attention_viz.edits.eviction import Evict
    from attention_viz.inputs.media.beside import Messages
    from attention_viz.models.model import AttentionModel
    from attention_viz.operation.modules import Projection
    from attention_viz.protocol.facts import ModelFacts
    from attention_viz.protocol.model import Model
    from attention_viz.serving.run import Request
    from attention_viz.trace.trace import Trace

__all__ = [
    "Run",
    "ask",
    "candidates",
    "fit",
    "has_run",
    "is_full",
    "is_loaded",
    "lent",
    "load_model",
    "projections",
    "reads_on",
    "run_lesson",
    "run_request",
]

_Answer = TypeVar("_Answer")


def is_loaded(name: str) -> bool:
    """Return whether a model is loaded; ours always is."""
    return name == OWN or name in MODELS


def has_run(request: Request, longest: int | None = None) -> bool:
    """Return whether an equal request has run, of at most `longest` tokens."""
    longest, runs = longest or SETTINGS.longest_text, runs_of(request.shown, TRACES)
    if (request, None, (), longest) in runs:
        return True
    # A text that isn't cut has one run for all pages, as in `draw`.
    most = (request, None, (), SETTINGS.longest_text)
    return most in runs and is_loaded(request.model) and not _is_cut(request, None, longest)


def load_model(name: str, still_wanted: "Callable[[], object]" = lambda: None) -> None:
    """Load a model once for all waiting threads; `still_wanted` stops a wait by raising."""
    _ = MODELS.get(name, lambda: LOADS.wait(name, still_wanted))


def run_request(
    request: Request,
    *,
    beside: str | None = None,
    edits: "Sequence[Edit]" = (),
    cached: bool = True,
    longest: int = SETTINGS.longest_study,
) -> Run:
    """Run at most `longest` tokens, or return an equal request's trace; a longer batch-mate `beside` pads."""
    edits = tuple(edits)
    if longest < SETTINGS.longest_text and not _is_cut(request, beside, longest):
        longest = SETTINGS.longest_text  # the same run as on a page that reads more
    if not cached:
        return _run(request, beside, edits, longest)
    key = (request, beside, tuple(_identity(edit) for edit in edits), longest)
    run = runs_of(request.shown, TRACES).get(key, lambda: _run(request, beside, edits, longest))
    if not is_loaded(request.model):  # it had to go meanwhile, and a trace would keep it
        _forget(request.model)
    return run


def run_lesson(
    model: str, text: str, *, edits: "Sequence[Edit]" = (), beside: str | None = None, picture: str = ""
) -> "Trace":
    """Run a lesson's text, or a sample by name; a lesson's dozens of edited runs aren't kept for all visitors."""
    shown = facts_of(model).reads in MEDIA
    request = Request(model, shown=text) if shown else Request(model, text, shown=picture)
    return run_request(request, beside=beside, edits=edits, cached=not edits).trace


def ask(request: Request, do: "Callable[[Model], _Answer]") -> _Answer:
    """Compute from the model in turn."""
    model = _chosen(request)
    with ANALYSES:
        return do(model)


def unread(request: Request, text: str) -> list[str]:
    """Return a text's parts that the model reads as unknown."""
    from attention_viz.inputs.text import unknown_parts

    return unknown_parts(request.model, getattr(_chosen(request), "tokenizer", None), text)


def fit(request: Request, text: str) -> "Fit":
    """Return how much of a text the model reads."""
    return _chosen(request).fit(text)


def _identity(edit: "Edit") -> tuple[object, ...]:
    values = [getattr(edit, field.name) for field in fields(edit)]
    return type(edit).__name__, *(
        (one.shape, one.numpy().tobytes()) if hasattr(one, "numpy") else one for one in values
    )


def _is_cut(request: Request, beside: str | None, longest: int) -> bool:
    texts = [request.text, request.second, beside or ""]
    # No tokenizer makes two tokens of a byte; a pair of texts gets some more around it, and so does a chat.
    if request.model == OWN or sum(len(text.encode("utf-8", "replace")) for text in texts) < longest // 2:
        return False
    model = _chosen(request)
    special, chat = _wording(model, request)
    if (chat_of := _chat(model, request)) is not None:
        return chat_of.count > longest
    first = model.fit(request.text, longest, special_tokens=special, chat=chat)
    if first.cut or (beside and model.fit(beside, longest, special_tokens=special, chat=chat).cut):
        return True
    if not model.facts.reads_pairs or not request.second.strip():
        return False
    return bool(model.fit(request.second, longest, before=first.kept, special_tokens=special, chat=chat).cut)


def _run(request: Request, beside: str | None, edits: "tuple[Edit, ...]", longest: int) -> Run:
    model = _chosen(request)
    limit = None if request.model == OWN else longest
    with FORWARDS, unsaid():
        if (chat := _chat(model, request)) is not None:
            if beside is not None:
                raise UnusableText("a chat can't be padded to another text; write one message, without roles")
            return _answer(chat, request, limit, edits)
        if beside is not None:
            return _run_padded(model, request, beside, limit, edits)
        return _read(model, request, limit, edits)


@dataclass(frozen=True, eq=False)
class _Chat:
    """A typed chat's messages, their tokens, and the model that reads them."""

    model: "AttentionModel"
    messages: "Messages"
    count: int


def _chat(model: "Model", request: Request) -> _Chat | None:
    """Return a typed chat; None for a text, which may be a user's message."""
    if not _wording(model, request)[1] or model.facts.reads.medium is not None:
        return None
    from attention_viz.inputs.chats import typed_chat
    from attention_viz.models.model import AttentionModel

    found = typed_chat(request.text)
    if found == (("user", request.text),):
        return None
    assert isinstance(model, AttentionModel), "no other model has a chat template"
    messages = [{"role": role, "content": content} for role, content in found]
    return _Chat(model, messages, model.count_tokens(messages, None, special_tokens=True, chat=True))


def _answer(chat: _Chat, request: Request, limit: int | None, edits: "tuple[Edit, ...]") -> Run:
    """Run a chat whole: a part of a message would be another chat."""
    model, messages = chat.model, chat.messages
    if limit is not None and chat.count > limit:
        raise UnusableText(f"the chat has {chat.count:,} tokens and this page reads {limit:,}; leave out some messages")
    with long_text(chat.count):
        if model.facts.continues_text and request.more and not edits:
            evict = _evicted(request)
            options: dict[str, Any] = {"evict": evict, **sampling_of(request)}
            trace = _grown(request, limit, model, lambda: model.generate(messages, request.more, **options), evict)
        else:
            trace = model.trace(messages, edits=edits)
    return Run(trace, Fit(request.text, "", chat.count, limit))


def _run_padded(model: "Model", request: Request, beside: str, limit: int | None, edits: "tuple[Edit, ...]") -> Run:
    from attention_viz.inputs.check import trace_filled

    special, chat = _wording(model, request)
    fit, other = (model.fit(text, limit, special_tokens=special, chat=chat) for text in (request.text, beside))
    length = max(model.fit(one.kept, special_tokens=special, chat=chat).count for one in (fit, other))
    return Run(trace_filled(model, fit.kept, length, edits, special_tokens=special, chat=chat), fit)


def _wording(model: "Model", request: Request) -> tuple[bool, bool]:
    """Return the special tokens and chat template settings that this model supports; the request's may be another's."""
    facts = model.facts
    return not facts.adds_special_tokens or request.special_tokens, facts.has_chat_template and request.chat


def _read(model: "Model", request: Request, limit: int | None, edits: "tuple[Edit, ...]") -> Run:
    """Run the request by the model's kind of input; the request may have been made for another model."""
    special, chat = _wording(model, request)
    if model.facts.reads in MEDIA:
        return _show(model, request, edits)
    if model.facts.reads.has_text and model.facts.reads.medium is not None:
        return _read_beside(model, request, edits)
    if model.facts.reads_pairs and request.second.strip() and not request.text.strip():
        raise UnusableText("the first sentence is empty; type one, since the second is only read with it")
    fit = model.fit(request.text, limit, special_tokens=special, chat=chat)
    with long_text(fit.count):
        return _trace(model, request, fit, limit, edits)


def _trace(model: "Model", request: Request, fit: "Fit", limit: int | None, edits: "tuple[Edit, ...]") -> Run:
    facts, (special, chat) = model.facts, _wording(model, request)
    if facts.continues_text and request.more and not edits:
        return Run(_grow(model, request, fit, limit, special_tokens=special, chat=chat), fit)
    target = request.target if facts.is_encoder_decoder and request.target.strip() else None
    if not facts.reads_pairs or not request.second.strip():
        trace = model.trace(fit.kept, target=target, edits=edits, special_tokens=special, chat=chat)
        return Run(trace, fit)
    second = model.fit(request.second, limit, before=fit.kept, special_tokens=special, chat=chat)
    trace = model.trace(fit.kept, second.kept, edits=edits, special_tokens=special, chat=chat)
    return Run(trace, fit, second)


def _show(model: "Model", request: Request, edits: "tuple[Edit, ...]") -> Run:
    from attention_viz.models.model import AttentionModel

    assert isinstance(model, AttentionModel), "no other model reads images or audio"
    target = request.target if model.answers and request.target.strip() else None
    thing = thing_of(model.facts.reads, request.shown)
    trace = model.trace(thing, target=target, edits=edits)
    return Run(trace, Fit("", "", 0, None))


def _read_beside(model: "Model", request: Request, edits: "tuple[Edit, ...]") -> Run:
    """Run a text with its image or video."""
    from attention_viz.analysis.measured import word_stream
    from attention_viz.models.model import AttentionModel

    assert isinstance(model, AttentionModel), "no other model reads a text with an image"
    given: dict[str, Any] = {**beside_of(request.shown), "chat": _wording(model, request)[1]}
    if request.more and not edits:
        given |= sampling_of(request)
        trace = _grown(request, None, model, lambda: model.generate(request.text, request.more, **given))
    else:
        trace = model.trace(request.text, edits=edits, **given)
    return Run(trace, Fit(request.text, "", len(trace.query_tokens(word_stream(trace))), None))


def _grow(
    model: "Model", request: Request, fit: "Fit", longest: int | None, *, special_tokens: bool, chat: bool
) -> "Trace":
    evict = _evicted(request)
    options: dict[str, Any] = {"evict": evict, "special_tokens": special_tokens, "chat": chat, **sampling_of(request)}
    return _grown(request, longest, model, lambda: model.generate(fit.kept, request.more, **options), evict)


def _evicted(request: Request) -> "Evict | None":
    from attention_viz.edits.eviction import Evict

    return None if request.evict is None else Evict(*request.evict)


def _grown(
    request: Request,
    longest: int | None,
    model: "Model",
    generate: "Callable[[], Iterator[Trace]]",
    evict: "Evict | None" = None,
) -> "Trace":
    """Generate from the beginning, or from an equal request's trace of one token less."""
    less = replace(request, more=request.more - 1)
    less = less if less.more else replace(less, evict=None, sampling=None)
    runs = runs_of(request.shown, TRACES)
    if (before := runs.peek((less, None, (), longest or SETTINGS.longest_text))) is not None:
        steps = chain([before.trace], model.extend(before.trace, 1, evict=evict, **sampling_of(request)))
    else:
        steps = generate()
    # Only the last is kept, as it holds all that the ones before it do.
    return deque(steps, maxlen=1).pop()


def sampling_of(request: Request) -> dict[str, Any]:
    """Return the sampling arguments of `generate`; empty for the likeliest tokens."""
    names = ("temperature", "top_p", "seed")
    return {} if request.sampling is None else {"sample": True, **dict(zip(names, request.sampling, strict=True))}


def chance_of(request: Request, trace: "Trace", position: int) -> tuple[float, int] | None:
    """Return the probability and rank that a generated token had; None if it has none."""
    found = _chosen(request).chances(trace, position)
    likely, ranks = found["probability"].to_list(), found["rank"].to_list()
    return (likely[0], ranks[0]) if likely else None


def projections(request: Request, layer: int, stream: str) -> "Mapping[str, Projection]":
    """Return one layer's known learned matrices by name."""
    return _chosen(request).projections(layer, stream)


def candidates(request: Request, trace: "Trace", count: int, back: int = 0) -> "Mapping[int, pandas.DataFrame]":
    """Return likeliest tokens: after a decoder's last, or at masks."""
    from attention_viz.analysis.measured import word_stream

    model = _chosen(request)
    if not model.facts.predicts or model.facts.is_encoder_decoder:
        return {}
    tokens, mask = trace.query_tokens(word_stream(trace)), model.mask_id
    if reads_on(trace, model.facts):
        # The shorter text of a batch is followed by padding, after which nothing is predicted.
        places = [at for at, padding in enumerate(tokens.padding) if not padding][-1 - back :][:1]
    else:
        places = [at for at, one in enumerate(tokens.numbers) if one == mask]
    return {place: model.candidates(trace, place, count) for place in places}


def reads_on(trace: "Trace", facts: "ModelFacts") -> bool:
    """Return whether a trace's model reads from left to right, so that a next token can follow."""
    from attention_viz.analysis.measured import continues_text

    return facts.continues_text or continues_text(trace)


def is_full(request: Request, trace: "Trace") -> bool:
    """Return whether no position is left for another token."""
    from attention_viz.analysis.measured import word_stream

    limit = _chosen(request).limit
    return limit is not None and len(trace.query_tokens(word_stream(trace))) >= limit


def _chosen(request: Request) -> "Model":
    if request.model != OWN:
        return MODELS.get(request.model, lambda: LOADS.wait(request.model))
    from attention_viz.scratch.model import Scratch

    own = request.own or OwnModule()
    return Scratch(d_model=own.d_model, heads=own.heads, seed=own.seed, positions=own.positions)


def _open(name: str, cancelled: "Callable[[], bool]") -> "Model":
    share_cores()  # so do threads that begin later, for what they compute outside the doors
    source = find(name)
    MODELS.make_room(source.memory)
    model = open_source(source, cancelled)
    remember(name, model.facts)
    note(name, source)
    # Streamlit collects garbage after every rerun; a model's million objects would be walked each time.
    gc.collect()
    gc.freeze()
    return model


def _forget(name: str) -> None:
    """Drop an evicted model's traces and frozen objects, which would keep it in memory."""
    TRACES.discard(lambda key: key[0].model == name)
    forget_runs(name)
    sweep()


LOADS: "Loads[Model]" = Loads(_open)
MODELS: "SharedCache[str, Model]" = SharedCache(SETTINGS.model_memory * 1_000_000, lambda model: model.nbytes, _forget)
TRACES: "SharedCache[tuple[Request, str | None, tuple[Hashable, ...], int], Run]" = SharedCache(
    SETTINGS.trace_memory * 1_000_000, room_of
)


def lent(run: "Run", request: "Request", longest: int) -> "Callable[[], Trace]":
    """Return a function that fetches the shown run for a later file; an evicted one runs again."""
    trace = run.trace
    if run.fit is None or trace.seen.tensors:  # a file, a picture or a sound, which their visitor keeps anyway
        return lambda: trace
    kept = weakref.ref(trace)
    return lambda: kept() or run_request(request, longest=longest).trace
