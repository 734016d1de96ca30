"""The tools: their arguments, and the library's calls behind them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from attention_viz.analysis.metrics import METRICS
from attention_viz.cli.agents import bounded, kept
from attention_viz.cli.agents.picture import HeadPicture, draw_head
from attention_viz.cli.answers import asking
from attention_viz.cli.answers.answer import Answer
from attention_viz.cli.answers.keys import Key, flag, text, whole
from attention_viz.errors import AttentionVizError
from attention_viz.serving import permissions
from attention_viz.serving.door import ANALYSES
from attention_viz.serving.runs import ask
from attention_viz.serving.settings import SETTINGS
from attention_viz.serving.verifying import verify
from attention_viz.serving.why import pretrained

if TYPE_CHECKING:
    from attention_viz.circuits.asked import Logit
    from attention_viz.cli.agents.calls import ToolCall
    from attention_viz.trace.trace import Trace

# Characters of a word or name, and the most rows.
_LONGEST_WORD, _MOST_ROWS = 200, 10_000


@dataclass(frozen=True)
class Tool:
    """A tool: its purpose, its arguments, and the function that answers.

    Attributes:
        run: takes the call and its arguments; returns an answer of the tool's kind, and a picture with it if it draws.
    """

    purpose: str
    parameters: Mapping[str, Key]
    run: "Callable[[ToolCall, SimpleNamespace], Answer | HeadPicture]"

    @property
    def takes(self) -> dict[str, Key]:
        """All arguments, with that of every tool."""
        return {**self.parameters, "characters": _CHARACTERS}


def _models(_call: "ToolCall", _given: SimpleNamespace) -> Answer:
    others = [permissions.display_name(one) for one in permissions.folders()]
    notes = [f"Allowed folders: {', '.join(others)}"] if others else []
    return replace(asking.catalogue_answer(), notes=notes)


def _trace(call: "ToolCall", given: SimpleNamespace) -> Answer:
    import pandas

    name, run = kept.made(call, given.model, given.text, given.second or "", given.target or "")
    verify(run, call.still_wanted)
    trace = run.trace
    found = [
        {"name": one, "layers": list(layers), "heads": [trace.head_count(layer, one) for layer in layers]}
        for one in trace.streams
        for layers in [trace.layer_numbers(one)]
    ]
    facts = {
        "trace": name,
        "text": trace.provenance.text,
        "streams": found,
        **asking.fidelity_facts(trace.fidelity),
    }
    table = pandas.DataFrame(_tokens(trace), columns=["stream", "position", "token", "written"])
    notes = [*trace.provenance.notes, *asking.hybrid_notes([trace])]
    return Answer("trace", trace.provenance.model, facts, table, notes)


def _tokens(trace: "Trace") -> list[tuple[str, int, str, str]]:
    """Return each stream's query tokens; those of several streams once."""
    found, seen = list[tuple[str, int, str, str]](), set[tuple[str, ...]]()
    for stream in trace.streams:
        tokens = trace.query_tokens(stream)
        if tokens.labels not in seen:
            seen.add(tokens.labels)
            pairs = zip(tokens.labels, tokens.numbered, strict=True)
            found += [(stream, at, label, written) for at, (label, written) in enumerate(pairs)]
    return found


def _findings(call: "ToolCall", given: SimpleNamespace) -> Answer:
    _, run = kept.run_of(call, given.trace)
    with ANALYSES:
        return asking.findings_in([run.trace], given.top)


def _heads(call: "ToolCall", given: SimpleNamespace) -> Answer:
    _, run = kept.run_of(call, given.trace)
    hint = "give stream=mixer"
    with ANALYSES:
        return asking.heads_of([run.trace], [given.metric], given.top, given.stream, hint=hint)


def _find(call: "ToolCall", given: SimpleNamespace) -> Answer:
    _, run = kept.run_of(call, given.trace)
    with ANALYSES:
        return asking.heads_between(run.trace, given.query, given.key, given.stream, given.top)


def _why(call: "ToolCall", given: SimpleNamespace) -> Answer:
    score = [given.layer, given.head, given.query, given.key]
    asks_score = any(one is not None for one in score)
    if asks_score == (given.token is not None) or (asks_score and None in score):
        raise AttentionVizError("give token, or layer, head, query and key together")
    request, run = kept.run_of(call, given.trace)
    if asks_score:
        pair = given.query, given.key
        of = asking.score_of(run.trace, given.layer, given.head, pair, given.stream, relative=given.relative)
    else:
        of = _logit(given)
    return ask(request, lambda model: asking.contributions(pretrained(model), run.trace, of, given.top))


def _effects(call: "ToolCall", given: SimpleNamespace) -> Answer:
    import attention_viz as av

    if given.probability and given.against is not None:
        raise AttentionVizError("probability takes no second word; leave out against")
    request, run = kept.run_of(call, given.trace)
    of = av.Probability(given.token, given.position) if given.probability else _logit(given)
    return ask(
        request,
        lambda model: asking.head_effects(
            pretrained(model), [run.trace], of, given.to, given.stream, given.top, lambda _: call.still_wanted
        ),
    )


def _patch(call: "ToolCall", given: SimpleNamespace) -> Answer:
    request, run = kept.run_of(call, given.trace)
    other_request, other = kept.run_of(call, given.other)
    if other_request.model != request.model:
        raise AttentionVizError(f"both traces must be of one model; got {request.model} and {other_request.model}")
    options = {name: getattr(given, name) for name in ("direction", "parts", "by", "aligned", "confirm")}
    return ask(
        request,
        lambda model: asking.patches(
            pretrained(model), run.trace, other.trace, _logit(given), given.top, call.still_wanted, **options
        ),
    )


def _picture(call: "ToolCall", given: SimpleNamespace) -> HeadPicture:
    _, run = kept.run_of(call, given.trace)
    with ANALYSES:
        return draw_head(run.trace, given.layer, given.head, given.stream, given.format, given.characters)


def _logit(given: SimpleNamespace) -> "Logit":
    import attention_viz as av

    return av.Logit(given.token, given.position, given.against)


def _word(meaning: str, **more: Any) -> Key:
    return text(meaning, most=_LONGEST_WORD, **more)


def _rows(default: int | None) -> Key:
    meaning = "maximum number of rows"
    return whole(meaning, least=1, most=_MOST_ROWS, optional=default is not None, default=default)


_CHARACTERS = whole(
    "longest answer; a longer one is cut, and says so",
    least=bounded.LEAST,
    most=bounded.MOST,
    optional=True,
    default=bounded.USUAL,
)
_ID = _word("the id that the tool trace returned")
_STREAM = _word("attention type, if there are several: see streams of the tool trace", optional=True)
_LAYER, _HEAD = whole("layer, by the model's own number", least=0), whole("head, from 0", least=0)
_TOKEN = _word("the candidate next word; with a blank before it if it begins a word, such as “ Mary”")
_AGAINST = _word("subtract the logit of this word", optional=True)
_POSITION = whole("position of the token before the word; -1 is the last", optional=True, default=-1)
_LONG = text("", most=SETTINGS.longest_input)


def _either(meaning: str, first: str, second: str) -> Key:
    return text(meaning, optional=True, default=first, values=(first, second))


TOOLS: Mapping[str, Tool] = {
    "models": Tool("List the models.", {}, _models),
    "trace": Tool(
        "Run a model on a text, verify the run, and keep it. Returns an id for the other tools, the attention types "
        "with their layers and heads, and all tokens with their positions.",
        {
            "model": _word("a name from the tool models"),
            "text": replace(_LONG, meaning="the text"),
            "second": replace(_LONG, meaning="a second sentence, for encoders that read pairs", optional=True),
            "target": replace(_LONG, meaning="the output of an encoder–decoder; by default its own", optional=True),
        },
        _trace,
    ),
    "findings": Tool(
        "List notable attention in a text, best first, each in a sentence with its layer, head, query and key.",
        {"trace": _ID, "top": _rows(5)},
        _findings,
    ),
    "heads": Tool(
        "Rank heads by a metric, such as induction or previous.",
        {"trace": _ID, "metric": text("the metric", values=tuple(METRICS)), "top": _rows(None), "stream": _STREAM},
        _heads,
    ),
    "find": Tool(
        "Rank heads by how much one word attends to another.",
        {
            "trace": _ID,
            "query": _word("the word that attends"),
            "key": _word("the word attended to"),
            "top": _rows(10),
            "stream": _STREAM,
        },
        _find,
    ),
    "why": Tool(
        "Decompose a next word's logit, or a pair's score, into the contributions of the model's parts. Give token, "
        "or layer, head, query and key together.",
        {
            "trace": _ID,
            "token": replace(_TOKEN, optional=True),
            "against": _AGAINST,
            "position": _POSITION,
            "layer": replace(_LAYER, optional=True),
            "head": replace(_HEAD, optional=True),
            "query": _word("the query's position, or a word that occurs once", optional=True),
            "key": _word("the key's position, or a word that occurs once", optional=True),
            "relative": flag("subtract the mean score of the other keys", optional=True, default=False),
            "top": _rows(20),
            "stream": _STREAM,
        },
        _why,
    ),
    "effects": Tool(
        "Ablate each head in turn, and rank the heads by the change of a next word's logit or probability. Runs the "
        "model many times.",
        {
            "trace": _ID,
            "token": _TOKEN,
            "against": _AGAINST,
            "probability": flag("measure the probability of the word", optional=True, default=False),
            "position": _POSITION,
            "to": _either("replace a head's output with its mean over the text, or with 0", "mean", "zero"),
            "top": _rows(20),
            "stream": _STREAM,
        },
        _effects,
    ),
    "patch": Tool(
        "Patch each head's activations from another trace, and rank the heads by the change of a next word's logit. "
        "Runs the model many times.",
        {
            "trace": _ID,
            "other": replace(_ID, meaning="the id of the other text's trace; it should differ in one thing"),
            "token": _TOKEN,
            "against": _AGAINST,
            "position": _POSITION,
            "direction": _either("noising patches the other text's heads into this one", "noising", "denoising"),
            "parts": _either("patch heads, or the MLP of each layer", "heads", "mlps"),
            "by": _either("patch all positions at once, or each alone", "head", "position"),
            "aligned": flag("allow texts of different lengths, and pair their tokens", optional=True, default=False),
            "confirm": whole("run only the N patches with the largest estimates", least=0, optional=True),
            "top": _rows(20),
        },
        _patch,
    ),
    "picture": Tool(
        "Draw one head's attention weights.",
        {
            "trace": _ID,
            "layer": _LAYER,
            "head": _HEAD,
            "stream": _STREAM,
            "format": _either("svg, or png, which needs Chrome, Chromium or Edge", "svg", "png"),
        },
        _picture,
    ),
}
