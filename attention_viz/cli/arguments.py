"""The commands' maker and shared options."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click

from attention_viz.cli.output import FORMATS, check_format
from attention_viz.errors import UnsupportedModel
from attention_viz.sources.load_options import DTYPES, QUANTIZATIONS, memory_of
from attention_viz.trace.kind import MEDIA

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]

TEXT = "the text, or - to read standard input"
MODEL = "a name from `attention-viz models`, a folder, or a hub id"

# A shell with our completion script sets this variable.
COMPLETE = "_ATTENTION_VIZ_COMPLETE"
# The kinds of paths that shells offer for values with these names.
_PATHS = {"FILE": "file", "CORPUS": "file", "DIR": "dir", "MODEL": "dir"}


def command(
    purpose: str, example: str, *parameters: click.Parameter, note: str = ""
) -> Callable[[Callable[[SimpleNamespace], int]], click.Command]:
    """Make a command of the decorated function, which returns the exit code."""

    def made(run: Callable[[SimpleNamespace], int]) -> click.Command:
        def call(**parsed: object) -> int:
            return run(SimpleNamespace(**parsed))

        return click.Command(
            run.__name__,
            callback=call,
            params=list(parameters),
            help=purpose,
            short_help=purpose,
            epilog=f"Example:\n\n\b\nattention-viz {example}\n\n{note}",
        )

    return made


def option(name: str, metavar: str | None, purpose: str, **more: Any) -> click.Option:
    """Return an option; without a metavar, its type names the values."""
    return click.Option(
        [name], metavar=metavar, help=purpose, show_default=True, shell_complete=_completer(metavar), **more
    )


def argument(name: str, purpose: str, **more: Any) -> click.Argument:
    """Return a positional argument."""
    return click.Argument([name], metavar=name.upper(), help=purpose, shell_complete=_completer(name.upper()), **more)


def model(*, required: bool = True) -> click.Option:
    """Return the model option; optional if a trace file names the model."""
    purpose = MODEL if required else f"{MODEL}; optional with a saved trace, which names its model"
    return option("--model", "MODEL", purpose, required=required)


def placing() -> tuple[click.Option, ...]:
    """Return the options that say where and how the model is held."""
    return (
        option("--device", "NAME", "device of the model: cpu, cuda:1, balanced …", default="auto"),
        option(
            "--model-dtype", None, "dtype of the model's numbers", type=click.Choice(["auto", *DTYPES]), default="auto"
        ),
        option("--quantization", None, "round the model's matrices", type=click.Choice(QUANTIZATIONS)),
        option("--max-memory", "LIMITS", "most memory per device, such as cuda:0=20GiB,cpu=60GiB", type=limits),
    )


def limits(words: str) -> dict[int | str, int | str]:
    """Parse memory limits, such as cuda:0=20GiB,cpu=60GiB."""
    found = dict[int | str, int | str]()
    for part in words.split(","):
        device, sign, limit = (one.strip() for one in part.partition("="))
        if not sign or not device or device in found:
            raise click.BadParameter(f"got {part.strip()!r}; give each device once, as in cuda:0=20GiB,cpu=60GiB")
        found[device] = int(limit) if limit.isdecimal() else limit
    try:
        memory_of(found)
    except UnsupportedModel as error:
        raise click.BadParameter(str(error)) from None
    return found


def inputs(name: str = "text", *, several: bool = False, again: bool = False) -> tuple[click.Parameter, ...]:
    """Return the options for a text, or a trace file instead.

    Args:
        name: "text" as an argument, "--text" as an option.
        again: the command runs a saved trace's text again.
    """
    nargs = -1 if several else 1
    text = argument("text", TEXT, nargs=nargs, required=False) if name == "text" else option(name, "TEXT", TEXT)
    texts = option("--texts", "FILE", "a file with one text per line, read in addition to TEXT")
    runs = "its model reruns the text" if again else "no model runs for it"
    trace = option("--trace", "FILE", f"a saved trace instead of a text; {runs}", multiple=True)
    return (text, *([texts] if several else []), trace, model(required=False), *placing())


def media() -> tuple[click.Parameter, ...]:
    """Return the options for an image or audio instead of a text."""
    return tuple(
        option(f"--{kind}", "FILE", f"{kind.one} instead of a text, for a model that {kind.does}") for kind in MEDIA
    )


def top(purpose: str, default: int | None = 20) -> click.Option:
    """Return the option that limits rows."""
    return option("--top", "N", purpose, type=count, default=default)


def _completer(metavar: str | None) -> "Completer | None":
    kind = _PATHS.get(metavar or "")

    def complete(_context: click.Context, _parameter: click.Parameter, word: str) -> "list[CompletionItem]":
        from click.shell_completion import CompletionItem

        names = list[str]()
        if metavar == "MODEL":
            from attention_viz.sources import CATALOGUE

            names = [name for name in CATALOGUE if name.startswith(word)]
        return [CompletionItem(word, kind or ""), *map(CompletionItem, names)]

    return complete if kind else None


def port(word: str | int) -> int:
    """Parse a port number."""
    return _number(word, 1, 65535)


def count(word: str | int) -> int:
    """Parse a whole number from 1."""
    return _number(word, 1, None)


def place(word: str | int) -> int:
    """Parse a whole number from 0."""
    return _number(word, 0, None)


def places(words: str) -> tuple[int, ...]:
    """Parse whole numbers from 0, such as 0,3,5."""
    return tuple(place(one.strip()) for one in words.split(","))


def _number(word: str | int, least: int, most: int | None) -> int:
    word = str(word)
    number = int(word) if word.isascii() and word.isdigit() else -1
    if number < least or (most is not None and number > most):
        span = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise click.BadParameter(f"got {word!r}; give a whole number {span}")
    return number


STREAM = option(
    "--stream",
    "NAME",
    "attention type of an encoder–decoder: encoder, decoder or cross; mixer for layers without a softmax",
)
TEXT_FORMAT = option(
    "--format", None, "sentences, or one JSON object", type=click.Choice(["text", "json"]), default="text"
)
FORMAT = option(
    "--format", None, "output format", type=click.Choice(list(FORMATS)), default="table", callback=check_format
)
