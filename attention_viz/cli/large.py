"""The command for models that may not fit."""

from dataclasses import fields
from types import SimpleNamespace

import click

from attention_viz.cli.arguments import MODEL, argument, command, count, option, placing
from attention_viz.cli.given import placed
from attention_viz.cli.output import one_line


@command(
    "Print a model's need of memory before it is loaded, whether it fits, and options that would.",
    "plan SmolLM2-135M-Instruct --quantization int8",
    argument("model", MODEL),
    option("--tokens", "N", "length of the text to be traced", type=count, default=1_000),
    *placing(),
    option("--format", None, "sentences, or one JSON object", type=click.Choice(["text", "json"]), default="text"),
    note="The exit code is 1 if the model doesn't fit.",
)
def plan(arguments: SimpleNamespace) -> int:
    """Print a plan; return 1 if the model doesn't fit."""
    import attention_viz as av

    found = av.load_plan(arguments.model, tokens=arguments.tokens, **placed(arguments))
    if arguments.format == "json":
        import json

        values = {one.name: getattr(found, one.name) for one in fields(found)}
        print(json.dumps({**values, "trace_per_1000": found.trace_per_1000, "fits": found.fits}, indent=2))
    else:
        print("\n".join(map(one_line, str(found).splitlines())))
    return 1 if found.fits is False else 0
