"""Commands' common parts: adding one, and shared arguments."""

import argparse
from typing import TYPE_CHECKING

from attention_viz.cli.output import FORMATS

if TYPE_CHECKING:
    from collections.abc import Callable

    Commands = argparse._SubParsersAction[argparse.ArgumentParser]  # pyright: ignore[reportPrivateUsage] -- has no other

__all__ = [
    "MODEL",
    "TEXT",
    "add_format",
    "add_model",
    "add_stream",
    "add_text",
    "command_of",
    "count",
    "place",
    "places",
    "port",
]

TEXT = "the text; - reads it from standard input"
MODEL = "a name that `attention-viz models` lists, a folder, or a hub id"


def command_of(
    added: "Commands",
    name: str,
    purpose: str,
    example: str,
    run: "Callable[[argparse.Namespace], int] | None",
) -> argparse.ArgumentParser:
    """A command with its help; `run` does it."""
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


def add_model(command: argparse.ArgumentParser, *, required: bool = True) -> None:
    """Add the model option; optional if a trace file knows its own."""
    command.add_argument(
        "--model",
        required=required,
        metavar="MODEL",
        help=MODEL if required else f"{MODEL}; not needed with a saved trace, which names its model",
    )


def add_text(
    command: argparse.ArgumentParser, name: str = "text", *, several: bool = False, again: bool = False
) -> None:
    """Add a text, or a trace file instead."""
    if name == "text":
        command.add_argument("text", nargs="*" if several else "?", metavar="TEXT", help=TEXT)
    else:
        command.add_argument(name, metavar="TEXT", help=TEXT)
    if several:
        command.add_argument("--texts", metavar="FILE", help="a file with one text on each line; added to every TEXT")
    runs = "its model runs its text again" if again else "no model runs for it"
    command.add_argument("--trace", action="append", metavar="FILE", help=f"a saved trace in place of a text; {runs}")
    add_model(command, required=False)
    command.set_defaults(usage_error=command.error)


def add_stream(command: argparse.ArgumentParser) -> None:
    """Which attention of an encoder–decoder."""
    command.add_argument(
        "--stream", metavar="NAME", help="which attention of an encoder–decoder: encoder, decoder or cross"
    )


def add_format(command: argparse.ArgumentParser) -> None:
    """How a table is printed."""
    command.add_argument("--format", choices=FORMATS, default="table", help="how to print it (default: table)")


def port(word: str) -> int:
    """A port's number."""
    return _number(word, 1, 65535)


def count(word: str) -> int:
    """A whole number from 1."""
    return _number(word, 1, None)


def place(word: str) -> int:
    """A whole number from 0."""
    return _number(word, 0, None)


def places(word: str) -> tuple[int, ...]:
    """Whole numbers from 0, such as 0,3,5."""
    return tuple(place(one.strip()) for one in word.split(","))


def _number(word: str, least: int, most: int | None) -> int:
    number = int(word) if word.isascii() and word.isdigit() else -1
    if number < least or (most is not None and number > most):
        span = f"{least} or more" if most is None else f"{least} to {most}"
        raise argparse.ArgumentTypeError(f"{word!r}: it has to be a whole number, {span}")
    return number
