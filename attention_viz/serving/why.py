"""Decomposed numbers, their values with heads ablated or patched, and heads by their weights."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from attention_viz.circuits.asked import Logit, Score
from attention_viz.errors import AttentionVizError, UnsupportedModel
from attention_viz.serving.cache import SharedCache
from attention_viz.serving.run import Request, Run
from attention_viz.serving.runs import ask, run_request
from attention_viz.serving.uploads import beside
from attention_viz.trace.spelling import SPACE

if TYPE_CHECKING:
    import pandas
    from torch import Tensor

    from attention_viz.analysis.findings.finding import WordEffect
    from attention_viz.circuits.patching.patching import Patching, Put
    from attention_viz.edits.edit import Edit
    from attention_viz.models.model import AttentionModel
    from attention_viz.protocol.model import Model
    from attention_viz.trace.trace import Trace

Head = tuple[int, int]

# The words that a head's output promotes, and those that it suppresses: the strongest of either first.
Words = tuple[tuple[str, ...], tuple[str, ...]]

# The number of words of either kind.
_TOLD = 3
# What all opened numbers may take together, in bytes.
_ROOM = 60_000_000


@dataclass(frozen=True, eq=False)
class WrittenNumber:
    """A decomposed number as its rows and `remainder`, without the run."""

    of: Score | Logit
    total: float
    remainder: float
    table: "pandas.DataFrame"
    fetched: "pandas.DataFrame"

    @property
    def nbytes(self) -> int:
        """The bytes of its tables."""
        return int(self.table.memory_usage(deep=True).sum() + self.fetched.memory_usage(deep=True).sum())


def written(run: Run, request: Request, of: Score | Logit) -> WrittenNumber:
    """Decompose a number of a run."""
    return beside(request.shown, _written).get(
        (request, of), lambda: ask(request, lambda model: _open(model, run.trace, of))
    )


def named_token(request: Request, trace: "Trace", position: int, word: str, like: int | None = None) -> int:
    """Return the token id for a typed text."""
    from attention_viz.inputs.vocabulary import token_of

    logits = trace.output_at(position).float()

    def find(model: "Model") -> int:
        known = pretrained(model)
        return token_of(known.name, known.tokenizer, logits, word, like=like)

    return ask(request, find)


def without_heads(
    run: Run,
    request: Request,
    of: Score | Logit,
    heads: Sequence[Head],
    stream: str | None,
    report: Callable[[int], object] = lambda _: None,
) -> Mapping[Head, float]:
    """Return the number with each head ablated; cache each batch."""
    from attention_viz.recording.batches.batched_edits import rows_at_once

    known = known_silenced(request, of, heads, stream)
    missing = [head for head in heads if head not in known]
    size = rows_at_once(run.trace)
    for start in range(0, len(missing), size):
        report(len(known))
        found = _silence(run, request, of, missing[start : start + size], stream)
        for head, number in found.items():
            known[head] = beside(request.shown, _silenced).get(
                (request, of, stream, head), lambda number=number: number
            )
    return {head: known[head] for head in heads}


def known_silenced(request: Request, of: Score | Logit, heads: Sequence[Head], stream: str | None) -> dict[Head, float]:
    """Return the cached numbers of `without_heads`."""
    found = ((head, beside(request.shown, _silenced).peek((request, of, stream, head))) for head in heads)
    return {head: number for head, number in found if number is not None}


def words_written(run: Run, request: Request, stream: str, place: Head, position: int) -> Words:
    """Return a head's promoted words; none if it can't be decomposed."""
    return beside(request.shown, _words).get(
        (request, stream, place, position), lambda: _read_words(run.trace, request, stream, place, position)
    )


def effect_written(run: Run, request: Request, stream: str, place: Head, position: int) -> "WordEffect | None":
    """Return a head's effect on the next word over its rival; None if it is unknown, as in long texts."""
    from attention_viz.analysis.findings.finding import WordEffect
    from attention_viz.circuits.next_word import next_word_effects

    def read(_: "Model") -> WordEffect | None:
        known = next_word_effects(run.trace, position)
        effect = None if known is None else known.heads.get((stream, *place))
        return None if known is None or effect is None else WordEffect(effect, known.word, known.rival)

    return beside(request.shown, _effects).get((request, stream, place, position), lambda: ask(request, read))


def layer_by_layer(run: Run, request: Request) -> "pandas.DataFrame":
    """Return each layer's three likeliest tokens by position."""
    from attention_viz.circuits.logit_lens import logit_lens

    return beside(request.shown, _layers).get(
        request, lambda: ask(request, lambda model: logit_lens(pretrained(model), run.trace, count=_TOLD))
    )


def _read_words(trace: "Trace", request: Request, stream: str, place: Head, position: int) -> Words:
    from attention_viz.circuits.writing import writes

    # Some of the strongest are one word with and without a space before it.
    count, (layer, head) = 3 * _TOLD, place
    whole = None if layer in _whole(trace) else head
    try:
        found = ask(request, lambda model: writes(pretrained(model), trace, layer, whole, position, count, stream))
    except AttentionVizError:
        return (), ()
    write = trace.query_tokens(trace.streams[-1]).write
    words = [write(token).strip(f"{SPACE} ") for token in found["token"]]
    half = len(words) // 2
    promoted, suppressed = (
        tuple([word for word in dict.fromkeys(one) if word][:_TOLD]) for one in (words[:half], words[: half - 1 : -1])
    )
    return promoted, suppressed


def _silence(
    run: Run, request: Request, of: Score | Logit, heads: Sequence[Head], stream: str | None
) -> Mapping[Head, float]:
    from attention_viz.edits.kinds.ablation import Ablate
    from attention_viz.recording.batches.batched_edits import try_each

    whole = _whole(run.trace)
    tries: list[list[Edit]] = [
        [Ablate(layer, None if layer in whole else head, stream=stream)] for layer, head in heads
    ]
    if isinstance(of, Score):
        return dict(zip(heads, _scores(run.trace, request, of, heads, stream, tries), strict=True))
    outputs = ask(request, lambda model: try_each(model, run.trace, tries))
    return {head: _logit(output[of.position], of) for head, output in zip(heads, outputs, strict=True)}


def _whole(trace: "Trace") -> set[int]:
    """Return the layers whose channels count as one head."""
    return {
        layer
        for stream, layers in trace.mixers.items()
        for layer, one in zip(trace.layer_numbers(stream), layers, strict=True)
        if one.mixer.per == "channel"
    }


def _scores(
    trace: "Trace",
    request: Request,
    of: Score,
    heads: Sequence[Head],
    stream: str | None,
    tries: "Sequence[Sequence[Edit]]",
) -> list[float]:
    """Compute in one batch, or run by run if batching isn't reliable."""
    from attention_viz.circuits.patching.silencing import score_in, silenced_scores

    whose = stream or trace.attention_streams[0]
    if all(layer in trace.layer_numbers(whose) for layer, _ in heads):
        found = ask(request, lambda model: silenced_scores(pretrained(model), trace, of, heads, whose))
        if found is not None:
            return found
    runs = [run_request(request, edits=edits, cached=False).trace for edits in tries]
    return [float(score_in(one.attention(of.layer, of.stream), of)) for one in runs]


def _logit(row: "Tensor", of: Logit) -> float:
    assert isinstance(of.token, int)
    against = float(row[of.against]) if isinstance(of.against, int) else 0.0
    return float(row[of.token]) - against


def _open(model: "Model", trace: "Trace", of: Score | Logit) -> WrittenNumber:
    from attention_viz.circuits.decomposition import decompose

    found = decompose(pretrained(model), trace, of)
    return WrittenNumber(of, found.total, found.remainder, found.table, found.fetched())


def pretrained(model: "Model") -> "AttentionModel":
    """Return the model, or refuse our own untrained module."""
    from attention_viz.models.model import AttentionModel

    if not isinstance(model, AttentionModel):
        raise UnsupportedModel(f"{model.name} has random weights, never trained; choose a pretrained model")
    return model


_written: "SharedCache[tuple[Request, Score | Logit], WrittenNumber]" = SharedCache(_ROOM, lambda one: one.nbytes)
_words: "SharedCache[tuple[Request, str, Head, int], Words]" = SharedCache(1_000_000, lambda _: 800)
_effects: "SharedCache[tuple[Request, str, Head, int], WordEffect | None]" = SharedCache(1_000_000, lambda _: 300)
_layers: "SharedCache[Request, pandas.DataFrame]" = SharedCache(
    _ROOM // 3, lambda one: int(one.memory_usage(deep=True).sum())
)
_silenced: "SharedCache[tuple[Request, Score | Logit, str | None, Head], float]" = SharedCache(1_000_000, lambda _: 200)


# What all tables may take together, in bytes.
_ROOM_WEIGHTS = 20_000_000


@dataclass(frozen=True, eq=False)
class ByWeights:
    """A head's `av.circuits` and earlier `av.compositions`; a sentence if unknown."""

    circuits: "pandas.DataFrame | str"
    into: "pandas.DataFrame | str"


def by_weights(request: Request, stream: str, place: Head) -> ByWeights:
    """Return a head's numbers; the request's text doesn't matter."""
    asked = request.model, stream, place
    return _found.get(asked, lambda: ask(request, lambda model: _open_weights(model, request.model, stream, place)))


def _open_weights(model: "Model", name: str, stream: str, place: Head) -> ByWeights:
    from attention_viz.circuits.compositions import compositions_of
    from attention_viz.circuits.weights import circuits_of, proven

    # Both come of the same matrices, which are too large to be kept.
    known = proven(pretrained(model), stream)
    circuits = _circuits.get((name, stream), lambda: _phrase(lambda: circuits_of(known)))
    return ByWeights(circuits, _phrase(lambda: compositions_of(known, [place])))


def _phrase(make: "Callable[[], pandas.DataFrame]") -> "pandas.DataFrame | str":
    try:
        return make()
    except AttentionVizError as error:
        return str(error)


def _size(table: "pandas.DataFrame | str") -> int:
    return 2 * len(table) if isinstance(table, str) else int(table.memory_usage(deep=True).sum())


_circuits: "SharedCache[tuple[str, str], pandas.DataFrame | str]" = SharedCache(_ROOM_WEIGHTS, _size)
_found: "SharedCache[tuple[str, str, Head], ByWeights]" = SharedCache(
    _ROOM_WEIGHTS, lambda one: _size(one.circuits) + _size(one.into)
)


@dataclass(frozen=True, eq=False)
class Patched:
    """A number here and in the other text, and its value with each head of that text: first-order or run so far."""

    number: float
    other_number: float | None
    lengths: tuple[int, int]
    estimates: Mapping[Head, float]
    runs: dict[Head, float] = field(default_factory=dict[Head, float])

    @property
    def known(self) -> dict[Head, float]:
        """Each head's run value, else its estimate."""
        return {**self.estimates, **self.runs}


def patched(run: Run, request: Request, other: str, of: Logit) -> Patched:
    """Return first-order patches and runs; `other` is paired by token if lengths differ."""
    return beside(request.shown, _patched).get((request, other, of), lambda: _begun(run, request, other, of)[1])


def run_patches(
    run: Run, request: Request, other: str, of: Logit, report: Callable[[int], object] = lambda _: None
) -> Patched:
    """Run every head's patch; keep each finished batch."""
    found = patched(run, request, other, of)
    if len(found.runs) == len(found.estimates):
        return found
    made, _ = _begun(run, request, other, of)
    waiting = [put for put in _of_heads(made, run) if (put.layer, put.head) not in found.runs]
    batches = made.batches(waiting)
    while True:
        report(len(found.runs))
        effects = ask(request, lambda _model: next(batches, None))
        if effects is None:
            return found
        found.runs.update({(put.layer, put.head or 0): made.number + effect for put, effect in effects.items()})


def _begun(run: Run, request: Request, other: str, of: Logit) -> tuple["Patching", Patched]:
    from attention_viz.circuits.patching.patching import Patching

    theirs = run_request(replace(request, text=other)).trace
    stream = run.trace.streams[0]
    lengths = len(run.trace.query_tokens(stream)), len(theirs.query_tokens(stream))

    def begin(model: "Model") -> "Patching":
        return Patching.begin(pretrained(model), run.trace, theirs, of, aligned=lengths[0] != lengths[1])

    made = ask(request, begin)
    puts = _of_heads(made, run)
    estimates = {(put.layer, put.head or 0): made.number + made.estimates[put] for put in puts}
    return made, Patched(made.number, made.other_number, lengths, estimates)


def _of_heads(made: "Patching", run: Run) -> "list[Put]":
    """Return the patches of heads that share a map; without a softmax, only if no layer has both kinds."""
    from attention_viz.explorer.why_payload import streams_beside

    return [put for put in made.puts if put.stream in (None, *streams_beside(run.trace, run.trace.streams[0]))]


_patched: "SharedCache[tuple[Request, str, Logit], Patched]" = SharedCache(
    20_000_000, lambda one: 400 * (1 + len(one.estimates))
)
