"""Commands about several runs, or about a number's causes."""

import math
from argparse import Namespace
from typing import TYPE_CHECKING

from attention_viz.cli.given import given, model_behind, pretrained, report_without, trace_of
from attention_viz.cli.output import report, show, show_with_origin
from attention_viz.errors import AttentionVizError

if TYPE_CHECKING:
    from attention_viz.circuits.asked import Score
    from attention_viz.trace.tokens import Tokens
    from attention_viz.trace.trace import Trace

__all__ = ["circuits", "compare", "effects", "patch", "why"]


def compare(arguments: Namespace) -> int:
    """Print heads that differ most, or one head's cells."""
    import attention_viz as av

    where = (arguments.layer, arguments.head)
    if (where[0] is None) != (where[1] is None):
        arguments.usage_error("needed: --layer and --head together, or neither")
    (one,), model = given(arguments)
    two, _ = trace_of(arguments, arguments.other, arguments.other_trace, one, model, "--other")
    texts = {"text": one.provenance.text, "other": two.provenance.text}
    origin: dict[str, object] = {"model": one.provenance.model, **texts}
    if where[0] is None:
        table = av.head_divergences(one, two, stream=arguments.stream, align=arguments.align)
        ranked = table.reset_index()
    else:
        found = av.compare(one, two, *where, stream=arguments.stream, align=arguments.align)
        origin["divergence"] = found.mean
        table = found.table()
        ranked = table.sort_values("difference", key=abs, ascending=False, kind="stable", na_position="last")
    origin |= {str(name): one for name, one in table.attrs.items()}
    show_with_origin(origin, ranked.head(arguments.top), arguments.format)
    return 0


def why(arguments: Namespace) -> int:
    """Print what wrote a number, largest first."""
    import attention_viz as av

    score = [getattr(arguments, name) for name in ("layer", "head", "query", "key")]
    asks_score = any(one is not None for one in score)
    if asks_score == (arguments.token is not None) or (asks_score and None in score):
        arguments.usage_error("needed: --token, or --layer, --head, --query and --key together")
    (read,), loaded = given(arguments)
    model, (made,) = model_behind(arguments, [read], loaded)
    if asks_score:
        stream = made.stream(arguments.stream)
        query = _position(made.query_tokens(stream), arguments.query)
        key = _position(made.key_tokens(stream), arguments.key)
        asked = av.Score(arguments.layer, arguments.head, query, key, arguments.stream, arguments.relative)
    else:
        asked = av.Logit(arguments.token, arguments.position, arguments.against)
    found = av.decompose(model, made, asked)
    if isinstance(asked, av.Score) and _is_blocked(made, asked):
        report("The mask blocks this pair: whatever its score is, its weight is 0")
    origin = {
        "of": str(asked),
        "model": made.provenance.model,
        "text": made.provenance.text,
        "total": found.total,
        "remainder": found.remainder if arguments.format == "json" else f"{found.remainder:.1e}",
        "held": found.held,
        "position_bias": found.position_bias or None,
        "softcap": found.softcap,
    }
    largest = found.table.groupby("side", sort=False).head(arguments.top)
    show_with_origin(origin, largest, arguments.format)
    return 0


def circuits(arguments: Namespace) -> int:
    """Print heads by weights, or one head's sources."""
    import pandas

    import attention_viz as av

    place = (arguments.layer, arguments.head)
    if (place[0] is None) != (place[1] is None):
        arguments.usage_error("needed: --layer and --head together, or neither")
    model = pretrained(arguments.model)
    report_without({model.name: model.layers})
    if place[0] is None:
        found: pandas.DataFrame = av.circuits(model, arguments.stream)
        table = found.reset_index()
    else:
        found = av.compositions(model, arguments.stream, into=[place])
        largest = found[["q", "k", "v"]].max(axis=1).sort_values(ascending=False, kind="stable")
        table = found.loc[largest.index[: arguments.top]]
    for name, why in found.attrs["missing"].items():
        report(f"{name}: {why}")
    show(table, arguments.format)
    return 0


def effects(arguments: Namespace) -> int:
    """Print a number without each head, largest effect first."""
    import attention_viz as av
    from attention_viz.circuits.patching.effects import mean_effects

    if arguments.probability and arguments.against is not None:
        arguments.usage_error("argument --probability: it has no other word; leave out --against")
    read, loaded = given(arguments)
    model, traces = model_behind(arguments, read, loaded)
    asked = (
        av.Probability(arguments.token, arguments.position)
        if arguments.probability
        else av.Logit(arguments.token, arguments.position, arguments.against)
    )
    tables = [
        av.effects(
            model,
            one,
            asked,
            to=arguments.to,
            stream=arguments.stream,
            report=lambda done, of, text=at: report(f"text {text} of {len(traces)}: {done} of {of} heads done"),
        )
        for at, one in enumerate(traces, start=1)
    ]
    table = mean_effects(tables)
    origin = {
        "model": model.name,
        **({"text": traces[0].provenance.text} if len(traces) == 1 else {"texts": len(traces)}),
        **{str(name): one for name, one in table.attrs.items()},
    }
    show_with_origin(origin, table.head(arguments.top).reset_index(), arguments.format)
    return 0


def patch(arguments: Namespace) -> int:
    """Print heads' patch effects, largest first."""
    import attention_viz as av

    (read,), loaded = given(arguments)
    second, loaded = trace_of(arguments, arguments.other, arguments.other_trace, read, loaded, "--other")
    model, (text, other) = model_behind(arguments, [read, second], loaded)
    asked = av.Logit(arguments.token, arguments.position, arguments.against)
    table = av.patch(
        model,
        text,
        other,
        asked,
        direction=arguments.direction,
        parts=arguments.parts,
        by=arguments.by,
        aligned=arguments.aligned,
        confirm=arguments.confirm,
        report=lambda done, of: report(f"{done} of {of} runs done"),
    )
    origin = {
        "of": str(asked),
        "model": model.name,
        "text": text.provenance.text,
        "other": other.provenance.text,
        **{str(name): one for name, one in table.attrs.items()},
    }
    # Those that were not run come last, by their estimates.
    ranked = table.assign(_run=table["effect"].abs(), _guess=table["estimate"].abs())
    ranked = ranked.sort_values(["_run", "_guess"], ascending=False).drop(columns=["_run", "_guess"])
    show_with_origin(origin, ranked.head(arguments.top).reset_index(), arguments.format)
    return 0


def _is_blocked(trace: "Trace", asked: "Score") -> bool:
    row = trace.attention(asked.layer, asked.stream).head(asked.head).rows(slice(asked.query, asked.query + 1))
    return float(row.masked[0, asked.key]) == -math.inf


def _position(tokens: "Tokens", asked: str) -> int:
    if asked.isascii() and asked.isdigit():
        return int(asked)
    found = [pieces[-1] for pieces in tokens.places(asked)]
    if len(found) == 1:
        return found[0]
    phrase = ", ".join(map(str, found))
    raise AttentionVizError(f"the word “{asked}” is at positions {phrase}; name one of them")
