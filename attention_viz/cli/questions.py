"""What can be asked about several runs and about what wrote a number: compare, why, effects, patch, circuits."""

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
    purpose = "Which heads differ most between two texts, or, of one head, where its weights do."
    command = command_of(added, "compare", purpose, example, None)
    command.set_defaults(run=causes.compare, usage_error=command.error)
    add_text(command, "--text")
    _add_other(command, "the text to compare with")
    command.add_argument("--layer", type=place, metavar="N", help="of one head: its layer, from 0")
    command.add_argument("--head", type=place, metavar="N", help="of one head: its number, from 0")
    command.add_argument(
        "--align",
        choices=("position", "token"),
        default="position",
        help="position: a word is compared with the one that replaces it (default); token: the same words only",
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
    purpose = "What wrote a number: a next word's logit, or the score of a pair, as the sum of what each part wrote."
    command = command_of(added, "why", purpose, example, None)
    command.set_defaults(run=causes.why, usage_error=command.error)
    add_text(command, "--text")
    command.add_argument("--token", metavar="WORD", help="the word that might come next")
    command.add_argument("--against", metavar="WORD", help="another, whose logit is taken away")
    command.add_argument(
        "--position",
        type=int,
        default=-1,
        metavar="N",
        help="after which token (default: -1, the last)",
    )
    command.add_argument("--layer", type=place, metavar="N", help="of a score: its layer, from 0")
    command.add_argument("--head", type=place, metavar="N", help="of a score: its head, from 0")
    command.add_argument("--query", metavar="WORD", help="of a score: the word that looks, or its position")
    command.add_argument("--key", metavar="WORD", help="of a score: the word that is looked at, or its position")
    command.add_argument(
        "--relative",
        action="store_true",
        help="of a score: less the mean score of the other keys",
    )
    command.add_argument("--top", type=count, default=20, metavar="N", help="how many rows a side (default: 20)")
    add_stream(command)
    add_format(command)


def add_effects(added: "Commands") -> None:
    """What becomes of a number without each head."""
    example = (
        'effects "When Mary and John went to the store, John gave a drink to" --token Mary --model '
        "SmolLM2-135M-Instruct"
    )
    purpose = "Which heads matter for a next word: its logit or probability without each head, largest effect first."
    command = command_of(added, "effects", purpose, example, causes.effects)
    add_text(command, several=True)
    command.add_argument("--token", required=True, metavar="WORD", help="the word that might come next")
    command.add_argument("--against", metavar="WORD", help="another, whose logit is taken away")
    command.add_argument("--probability", action="store_true", help="of its probability, in place of its logit")
    command.add_argument(
        "--position", type=int, default=-1, metavar="N", help="after which token (default: -1, the last)"
    )
    command.add_argument(
        "--to",
        choices=("mean", "zero"),
        default="mean",
        help="what a head hands on: its mean over the positions of this text (default), or 0",
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
    purpose = "What each head does to a next word's logit when it is put from one text into another: its total effect."
    command = command_of(added, "patch", purpose, example, causes.patch)
    add_text(command, "--text")
    _add_other(command, "one that differs where it matters")
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
        "--confirm", type=place, metavar="N", help="run only so many, those with the largest estimates"
    )
    command.add_argument("--top", type=count, default=20, metavar="N", help="how many rows (default: 20)")
    add_format(command)


def add_circuits(added: "Commands") -> None:
    """What weights alone tell."""
    purpose = "What weights alone tell of each head, or which earlier heads one of them reads; no text is needed."
    command = command_of(added, "circuits", purpose, "circuits --model induction --layer 1 --head 1", None)
    command.set_defaults(run=causes.circuits, usage_error=command.error)
    add_model(command)
    command.add_argument("--layer", type=place, metavar="N", help="of a head that reads others: its layer, from 0")
    command.add_argument("--head", type=place, metavar="N", help="of a head that reads others: its head, from 0")
    command.add_argument(
        "--top", type=count, default=20, metavar="N", help="how many heads that it reads (default: 20)"
    )
    add_stream(command)
    add_format(command)


def _add_other(command: "ArgumentParser", purpose: str) -> None:
    """The second of two texts, or a trace in a file in its place."""
    command.add_argument("--other", metavar="TEXT", help=purpose)
    command.add_argument("--other-trace", metavar="FILE", help="a trace that was saved, in place of that text")
