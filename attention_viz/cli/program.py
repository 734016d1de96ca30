"""The whole command line, in the order of the help."""

from collections.abc import Sequence

import click

from attention_viz import __version__
from attention_viz.cli import causes, commands
from attention_viz.cli.agents.command import mcp
from attention_viz.cli.app import app
from attention_viz.cli.corpora import scan
from attention_viz.cli.course import course
from attention_viz.cli.exits import USAGE
from attention_viz.cli.large import plan
from attention_viz.cli.output import one_line, report
from attention_viz.cli.schemas import schema

PROGRAM = "attention-viz"


class _InOrder(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


program = _InOrder(
    help="See what attention in a transformer really computes.",
    epilog="attention-viz COMMAND --help describes one command. Exit codes: 0 success, 1 internal error, "
    "2 wrong usage, 3 refused, 4 not found, 5 failed check.",
    no_args_is_help=False,
    options_metavar="[--help] [--version]",
    subcommand_metavar="COMMAND ...",
    context_settings={"help_option_names": ["-h", "--help"]},
)
click.version_option(__version__, message="%(prog)s %(version)s")(program)
for one in (
    *(app, commands.trace, commands.findings, commands.heads, commands.find),
    *(causes.compare, causes.why, causes.effects, causes.patch, causes.circuits),
    *(scan, course, commands.verify, plan, commands.models, mcp, schema, commands.completion),
):
    program.add_command(one)


def run(words: Sequence[str]) -> int:
    """Run one command and return its exit code; report wrong usage as 2."""
    try:
        with program.make_context(PROGRAM, list(words)) as context:
            return program.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.UsageError as error:
        if error.ctx:
            report(error.ctx.get_usage())
        path = error.ctx.command_path if error.ctx else PROGRAM
        report(f"{path}: error: {one_line(error.format_message())}")
        return USAGE
