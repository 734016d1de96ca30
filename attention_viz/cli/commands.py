"""Each command: calls the library, prints the result."""

from argparse import Namespace
from typing import TYPE_CHECKING

from attention_viz.cli.files import check_target, part_of, write
from attention_viz.cli.given import given, given_text, model_behind, model_of, shown, whole
from attention_viz.cli.output import one_line, report, show, show_pairs

if TYPE_CHECKING:
    import pandas

__all__ = ["completion", "find", "findings", "heads", "models", "trace", "verify"]

_EXAMPLE = "The bank of the river was flooded"


def trace(arguments: Namespace) -> int:
    """Write what a model computed on a text."""
    path, part = check_target(arguments), part_of(arguments)
    second, target = (None if one is None else whole(one) for one in (arguments.second, arguments.target))
    made = shown(arguments, target)
    if made is None:
        ((made,), _) = given(arguments, second, target)
    write(made, path, part)
    report(f"Wrote {path}")
    return 0


def findings(arguments: Namespace) -> int:
    """Print a text's findings; several texts' with their text."""
    import pandas

    import attention_viz as av
    from attention_viz.analysis.findings.findings import none_because

    traces, _ = given(arguments)
    columns = ["finding", "strength", "kind", "stream", "layer", "head", "query", "key"]
    found = [(trace, av.findings(trace, arguments.top)) for trace in traces]
    for trace, some in found:
        if not some:
            report(f"nothing stands out in “{one_line(trace.provenance.text or '')}”: {none_because(trace)}")
    rows = [
        (trace.provenance.text, one.text, one.strength, one.kind, one.stream, one.layer, one.head, one.query, one.key)
        for trace, some in found
        for one in some
    ]
    table = pandas.DataFrame(rows, columns=["text", *columns])
    show(table if len(traces) > 1 else table.drop(columns="text"), arguments.format)
    return 0


def heads(arguments: Namespace) -> int:
    """Print heads' metrics, largest of the first on top."""
    import attention_viz as av
    from attention_viz.analysis.head_table import COUNT, RANDOM

    known = [*av.METRICS, *([RANDOM] if arguments.repeated_random else [])]
    names: list[str] = [] if arguments.metric is None else [one.strip() for one in arguments.metric.split(",")]
    for name in names:
        if name not in known:
            needs = "; it needs --repeated-random" if name == RANDOM else f"; there are {', '.join(known)}"
            arguments.usage_error(f"argument --metric: there is no {name!r}{needs}")
    if arguments.top is not None and not names:
        arguments.usage_error("argument --top: the largest of which metric? name it with --metric")
    traces, model = given(arguments)
    if arguments.repeated_random:
        _, traces = model_behind(arguments, traces, model)
    asked = traces[0] if len(traces) == 1 else traces
    table = av.head_table(asked, arguments.stream, repeated_random=arguments.repeated_random)
    if names:
        table = table.sort_values(by=names[0], ascending=False, kind="stable")
        # Who asks for the test wants to see it, named or not.
        asked_for: dict[str, None] = dict.fromkeys([*names, *([RANDOM] if arguments.repeated_random else [])])
        kept = [name + ending for name in asked_for for ending in ("", "_spread", "_error", COUNT)]
        table = table[[name for name in kept if name in table]].head(arguments.top or len(table))
    shown = table.reset_index()
    show(_without_counts(shown) if arguments.format == "table" else shown, arguments.format)
    return 0


def _without_counts(table: "pandas.DataFrame") -> "pandas.DataFrame":
    from attention_viz.analysis.head_table import COUNT, few_behind
    from attention_viz.analysis.metrics import METRICS

    if none := [name for name in METRICS if name in table and table[name].isna().to_numpy().all()]:
        report(f"Nothing that was read has what these metrics ask for, so they have no number: {', '.join(none)}")
    if few := few_behind(table):
        said = ", ".join(f"{name} on {count}" for name, count in few.items())
        report(f"These means rest on few tokens and say little: {said}")
    return table.drop(columns=[name for name in table if str(name).endswith(COUNT)])


def find(arguments: Namespace) -> int:
    """Print the heads that link two words."""
    import attention_viz as av

    (made,), _ = given(arguments)
    found = av.find_heads(made, query=arguments.query, key=arguments.key, stream=arguments.stream)
    show(found.head(arguments.top), arguments.format)
    return 0


def completion(arguments: Namespace) -> int:
    """Print a shell's completion script."""
    from attention_viz.cli.completion import script

    print(script(arguments.whole, arguments.shell), end="")
    return 0


def verify(arguments: Namespace) -> int:
    """Print our error; return 1 if too large."""
    from attention_viz.sources import CATALOGUE

    known = CATALOGUE.get(arguments.model)
    own = known.examples[0] if known and known.examples else _EXAMPLE
    text = own if arguments.text is None else given_text(arguments.text)
    fidelity = model_of(arguments.model).verify(text)
    show_pairs(
        {
            "output_error": _measured(fidelity.output_error),
            "weight_error": _measured(fidelity.weight_error),
            "bound": f"{fidelity.bound:.3g}",
            "reference": fidelity.reference,
            "rule": fidelity.rule,
            "ok": "yes" if fidelity.ok else "no",
        }
    )
    return 0 if fidelity.ok else 1


def _measured(error: float | None) -> str:
    return "unmeasured" if error is None else f"{error:.3g}"


def models(arguments: Namespace) -> int:
    """Print the catalogue, or download models."""
    from attention_viz.sources import catalogue

    if arguments.install is not None or arguments.convert:
        from attention_viz.sources.install import install, installable

        for name in arguments.install or installable(here=arguments.install is None):
            install(name, report)
        return 0
    show(catalogue().reset_index(), arguments.format)
    return 0
