"""Options of compare, why, effects, patch and circuits."""

from typing import TYPE_CHECKING

from attention_viz.cli import causes
from attention_viz.cli.arguments import add_format, add_model, add_stream, add_text, command_of, count, place

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from attention_viz.cli.arguments import Commands

__all__ = ["add_circuits", "add_compare", "add_effects", "add_patch", "add_why"]


def add_compare(added: "Commands") -> None:
    """Two texts, in one head or in all."""
    example = (
        'compare --text "The bank of the river was flooded" --other "The bank of the city was flooded" --model '
        "SmolLM2-135M-Instruct"
    )
    purpose = "List the heads that differ most between two texts, or the weights of one head that do."
    command = command_of(added, "compare", purpose, example, None)
    command.set_defaults(run=causes.compare, usage_error=command.error)
    add_text(command, "--text")
    _add_other(command, "the text to compare with")
    command.add_argument("--layer", type=place, metavar="N", help="compare one head only: its layer, from 0")
    command.add_argument("--head", type=place, metavar="N", help="compare one head only: its number, from 0")
    command.add_argument(
        "--align",
        choices=("position", "token"),
        default="position",
        help="position: compare a word with the one that replaces it (default); token: compare the same words only",
    )
    command.add_argument("--top", type=count, default=20, metavar="N", help="how many rows (default: 20)")
    add_stream(command)
    add_format(command)


def add_why(added: "Commands") -> None:
    """What wrote a number."""
    example = (
        'why --text "When Mary and John went to the store, John gave a drink to" --token Mary --against John '
        "--model SmolLM2-135M-Instruct"
    )
    purpose = "Open a number, a next word's logit or the score of a pair, into what each part of the model wrote of it."
    command = command_of(added, "why", purpose, example, None)
    command.set_defaults(run=causes.why, usage_error=command.error)
    add_text(command, "--text", again=True)
    command.add_argument("--token", metavar="WORD", help="the word that might come next")
    command.add_argument("--against", metavar="WORD", help="subtract the logit of this word")
    _add_position(command)
    command.add_argument("--layer", type=place, metavar="N", help="for a score: the layer, from 0")
    command.add_argument("--head", type=place, metavar="N", help="for a score: the head, from 0")
    command.add_argument("--query", metavar="WORD", help="for a score: the word that looks, or its position")
    command.add_argument("--key", metavar="WORD", help="for a score: the word that is looked at, or its position")
    command.add_argument(
        "--relative",
        action="store_true",
        help="for a score: subtract the mean score of the other keys",
    )
    command.add_argument(
        "--top",
        type=count,
        default=20,
        metavar="N",
        help="how many rows at most for each side of a score, or for the logit (default: 20)",
    )
    add_stream(command)
    add_format(command)


def add_effects(added: "Commands") -> None:
    """What becomes of a number without each head."""
    example = (
        'effects "When Mary and John went to the store, John gave a drink to" --token Mary --model '
        "SmolLM2-135M-Instruct"
    )
    purpose = (
        "Take out each head by itself and print how a next word's logit or probability changes, largest effect first."
    )
    command = command_of(added, "effects", purpose, example, causes.effects)
    add_text(command, several=True, again=True)
    command.add_argument("--token", required=True, metavar="WORD", help="the word that might come next")
    command.add_argument("--against", metavar="WORD", help="subtract the logit of this word")
    command.add_argument(
        "--probability", action="store_true", help="measure the probability of WORD instead of its logit"
    )
    _add_position(command)
    command.add_argument(
        "--to",
        choices=("mean", "zero"),
        default="mean",
        help="what takes the place of a head's output: its mean over the positions of this text (default), or 0",
    )
    command.add_argument("--top", type=count, default=20, metavar="N", help="how many heads (default: 20)")
    add_stream(command)
    add_format(command)


def add_patch(added: "Commands") -> None:
    """Heads put from one text into another."""
    example = (
        'patch --text "When Mary and John went to the store, John gave a drink to" --other "When Mary and John went to '
        'the store, Mary gave a drink to" --token Mary --against John --model SmolLM2-135M-Instruct'
    )
    purpose = "Put each head from one text into another and print how a next word's logit changes: its total effect."
    command = command_of(added, "patch", purpose, example, causes.patch)
    add_text(command, "--text", again=True)
    _add_other(command, "the text to take heads from; it should differ in one thing")
    command.add_argument("--token", required=True, metavar="WORD", help="the word that might come next")
    command.add_argument("--against", metavar="WORD", help="subtract the logit of this word")
    _add_position(command)
    command.add_argument(
        "--direction",
        choices=("noising", "denoising"),
        default="noising",
        help="noising: put heads of the other text into this one (default); denoising: heads of this text into the "
        "other",
    )
    command.add_argument(
        "--parts",
        choices=("heads", "mlps"),
        default="heads",
        help="what is put into the text: heads (default), or the MLP of each layer",
    )
    command.add_argument(
        "--by",
        choices=("head", "position"),
        default="head",
        help="head: at all positions at once (default); position: at each position alone",
    )
    command.add_argument(
        "--aligned", action="store_true", help="allow texts of different lengths, whose tokens are then paired"
    )
    command.add_argument(
        "--confirm", type=place, metavar="N", help="run only the N with the largest estimates by gradient"
    )
    command.add_argument("--top", type=count, default=20, metavar="N", help="how many rows (default: 20)")
    add_format(command)


def add_circuits(added: "Commands") -> None:
    """What weights alone tell."""
    purpose = (
        "Print what the weights alone tell of each head, or which earlier heads one head reads; no text is needed."
    )
    command = command_of(added, "circuits", purpose, "circuits --model induction --layer 1 --head 1", None)
    command.set_defaults(run=causes.circuits, usage_error=command.error)
    add_model(command)
    command.add_argument("--layer", type=place, metavar="N", help="the layer of the head that reads others, from 0")
    command.add_argument("--head", type=place, metavar="N", help="the number of the head that reads others, from 0")
    command.add_argument(
        "--top",
        type=count,
        default=20,
        metavar="N",
        help="with --layer and --head: how many of the heads that it reads (default: 20)",
    )
    add_stream(command)
    add_format(command)


def _add_other(command: "ArgumentParser", purpose: str) -> None:
    command.add_argument("--other", metavar="TEXT", help=purpose)
    command.add_argument("--other-trace", metavar="FILE", help="a saved trace in place of --other")


def _add_position(command: "ArgumentParser") -> None:
    command.add_argument(
        "--position",
        type=int,
        default=-1,
        metavar="N",
        help="the token after which WORD comes; -1 is the last (default)",
    )
