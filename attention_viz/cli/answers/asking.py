"""The library's answers about a trace, for commands and tools alike."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from attention_viz.cli.answers.answer import Answer
from attention_viz.errors import AttentionVizError

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas

    from attention_viz.circuits.asked import Logit, Probability, Score
    from attention_viz.models import AttentionModel
    from attention_viz.models.loading.load_plan import LoadPlan
    from attention_viz.trace.provenance import Fidelity
    from attention_viz.trace.tokens import Tokens
    from attention_viz.trace.trace import Trace

    Report = Callable[[int, int], object]


def findings_in(traces: "Sequence[Trace]", count: int) -> Answer:
    """Return texts' findings; several texts' with their text."""
    import pandas

    import attention_viz as av
    from attention_viz.analysis.findings.finding import FINDING_COLUMNS
    from attention_viz.analysis.findings.findings import none_because
    from attention_viz.trace.files.arrow import described

    columns = ["finding", "strength", "kind", "stream", "layer", "head", "query", "key", "effect", "word", "rival"]
    found = [(trace, av.findings(trace, count)) for trace in traces]
    rows = [
        (trace.provenance.text, one.text, *(getattr(one, name) for name in columns[1:]))
        for trace, some in found
        for one in some
    ]
    table = pandas.DataFrame(rows, columns=["text", *columns])
    table["effect"] = table["effect"].astype(object).where(table["effect"].notna(), None)
    table = described(table, FINDING_COLUMNS)
    notes = [
        f"no findings in {f'“{text}”' if (text := trace.provenance.text) else 'the trace'}: {none_because(trace)}"
        for trace, some in found
        if not some
    ]
    shown = table if len(traces) > 1 else table.drop(columns="text")
    return Answer("findings", _one_model(traces), table=shown, notes=notes)


def heads_of(
    traces: "Sequence[Trace]",
    names: Sequence[str],
    top: int | None,
    stream: str | None,
    *,
    repeated_random: bool = False,
    hint: str = "add --stream mixer",
) -> Answer:
    """Return heads' metrics, largest of the first on top; all metrics by layer and head without names."""
    import attention_viz as av
    from attention_viz.analysis.head_table import COUNT, RANDOM

    table = av.head_table(traces[0] if len(traces) == 1 else traces, stream, repeated_random=repeated_random)
    missing: Mapping[str, str] = table.attrs["missing"]
    for name in names:
        if name not in table:
            why = missing.get(name, f"it is a metric of layers without a softmax; {hint}")
            raise AttentionVizError(f"can't show {name}: {why}")
    if names:
        table = table.sort_values(by=names[0], ascending=False, kind="stable")
        # Who asks for the test wants to see it, named or not.
        asked_for: dict[str, None] = dict.fromkeys([*names, *([RANDOM] if repeated_random else [])])
        kept = [name + ending for name in asked_for for ending in ("", "_spread", "_error", COUNT)]
        table = table[[name for name in kept if name in table]].head(top or len(table))
    shown = table.reset_index()
    return Answer("heads", _one_model(traces), table=shown, notes=_weak(shown, missing, ranked=bool(names)))


def _weak(table: "pandas.DataFrame", missing: Mapping[str, str], *, ranked: bool) -> list[str]:
    """Return sentences about metrics without a value, and about means over few tokens."""
    from attention_viz.analysis.head_table import few_behind
    from attention_viz.analysis.metrics import METRICS

    notes = list[str]()
    if none := [name for name in METRICS if name in table and table[name].isna().to_numpy().all()]:
        notes.append(f"These metrics have no value, because no token qualifies for them: {', '.join(none)}")
    for name, why in missing.items():
        if name in METRICS and name not in table and not ranked:
            notes.append(f"No {name}: {why}")
    if few := few_behind(table):
        counts = ", ".join(f"{name} on {count}" for name, count in few.items())
        notes.append(f"Few tokens qualify for these metrics, so treat the means with care: {counts}")
    return notes


def heads_between(trace: "Trace", query: str, key: str, stream: str | None, top: int) -> Answer:
    """Return the heads that link two words, largest weight first."""
    import attention_viz as av

    found = av.find_heads(trace, query=query, key=key, stream=stream)
    return Answer("find", trace.provenance.model, table=found.head(top))


def contributions(model: "AttentionModel", trace: "Trace", of: "Score | Logit", top: int) -> Answer:
    """Return a number as the sum of contributions, largest first."""
    import attention_viz as av

    found = av.decompose(model, trace, of)
    blocked = isinstance(of, av.Score) and _is_blocked(trace, of)
    facts = {
        "of": str(of),
        "text": trace.provenance.text,
        "total": found.total,
        "remainder": found.remainder,
        "held": found.held,
        "position_bias": found.position_bias or None,
        "softcap": found.softcap,
    }
    table = found.table.groupby("side", sort=False).head(top)
    notes = ["The mask blocks this pair, so its weight is 0 whatever its score"] if blocked else []
    return Answer("why", trace.provenance.model, facts, table, notes)


def score_of(trace: "Trace", layer: int, head: int, pair: tuple[str, str], stream: str | None, **more: Any) -> "Score":
    """Return the score of a pair of words or positions."""
    import attention_viz as av

    whose = trace.attention_stream(stream)
    query, key = _position(trace.query_tokens(whose), pair[0]), _position(trace.key_tokens(whose), pair[1])
    return av.Score(layer, head, query, key, stream, **more)


def head_effects(
    model: "AttentionModel",
    traces: "Sequence[Trace]",
    of: "Logit | Probability",
    to: str,
    stream: str | None,
    top: int,
    report: "Callable[[int], Report]",
) -> Answer:
    """Return each head's ablation effect, largest first; `report` takes the text's number, from 1."""
    import attention_viz as av
    from attention_viz.circuits.patching.effects import mean_effects

    replaced: Any = to
    tables = [
        av.effects(model, one, of, to=replaced, stream=stream, report=report(at))
        for at, one in enumerate(traces, start=1)
    ]
    table = mean_effects(tables)
    facts = {
        **({"text": traces[0].provenance.text} if len(traces) == 1 else {"texts": len(traces)}),
        **{str(name): one for name, one in table.attrs.items()},
    }
    return Answer("effects", model.name, facts, table.head(top).reset_index())


def patches(
    model: "AttentionModel", text: "Trace", other: "Trace", of: "Logit", top: int, report: "Report", **options: Any
) -> Answer:
    """Return the effects of patching, largest first."""
    import attention_viz as av

    table = av.patch(model, text, other, of, report=report, **options)
    facts = {
        "of": str(of),
        "text": text.provenance.text,
        "other": other.provenance.text,
        **{str(name): one for name, one in table.attrs.items()},
    }
    # Those that were not run come last, by their estimates.
    ranked = table.assign(_run=table["effect"].abs(), _guess=table["estimate"].abs())
    ranked = ranked.sort_values(["_run", "_guess"], ascending=False).drop(columns=["_run", "_guess"])
    return Answer("patch", model.name, facts, ranked.head(top).reset_index())


def catalogue_answer() -> Answer:
    """Return the models of the catalogue."""
    from attention_viz.sources import catalogue

    return Answer("models", None, table=catalogue().reset_index())


def fidelity_facts(fidelity: "Fidelity") -> dict[str, object]:
    """Return the distance of our run from the model's own."""
    names = ("output_error", "weight_error", "bound", "reference", "rule", "ok")
    return {name: getattr(fidelity, name) for name in names}


def plan_answer(plan: "LoadPlan") -> Answer:
    """Return a plan's numbers."""
    values = {one.name: getattr(plan, one.name) for one in fields(plan)}
    return Answer("plan", plan.name, {**values, "trace_per_1000": plan.trace_per_1000, "fits": plan.fits})


def hybrid_notes(traces: "Sequence[Trace]") -> list[str]:
    """Return which layers of each model have no softmax attention."""
    return notes_without({one.provenance.model: one.kept for one in traces})


def notes_without(models: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the notes about layers that models keep or leave out, by model and stream."""
    return [
        f"{name}: {kept.note}{f' in the {stream}' * (len(streams) > 1)}"
        for name, streams in models.items()
        for stream, kept in streams.items()
        if kept.note
    ]


def _one_model(traces: "Sequence[Trace]") -> str | None:
    names = {one.provenance.model for one in traces}
    return names.pop() if len(names) == 1 else None


def _is_blocked(trace: "Trace", of: "Score") -> bool:
    row = trace.attention(of.layer, of.stream).head(of.head).rows(slice(of.query, of.query + 1))
    return float(row.masked[0, of.key]) == -math.inf


def _position(tokens: "Tokens", word: str) -> int:
    if word.isascii() and word.isdigit():
        return int(word)
    found = [pieces[-1] for pieces in tokens.places(word)]
    if len(found) == 1:
        return found[0]
    phrase = ", ".join(map(str, found))
    raise AttentionVizError(f"the word “{word}” is at positions {phrase}; choose one of them")
