"""The command that prints the schemas of JSON answers."""

import json
from types import SimpleNamespace

import click

from attention_viz.cli.arguments import argument, command


@command(
    "Print the JSON Schema of a command's JSON, or list all schemas.",
    "schema findings",
    argument("name", "the command or tool; without it, list them", required=False),
)
def schema(arguments: SimpleNamespace) -> int:
    """Print a schema, or one line per schema: its name, version and meaning."""
    from attention_viz.cli.answers.kinds import ANSWERS, schema_of

    if arguments.name is None:
        width = max(map(len, ANSWERS))
        for name, kind in ANSWERS.items():
            of = f"{kind.meaning} By `attention-viz mcp` alone." if kind.tool_only else kind.meaning
            print(f"{name:{width}}  {kind.version}  {of}")
        return 0
    if arguments.name not in ANSWERS:
        raise click.UsageError(f"no schema {arguments.name!r}; choose from {', '.join(ANSWERS)}")
    print(json.dumps(schema_of(arguments.name), indent=2))
    return 0
