"""Try many model families, each with a time limit, in processes that are restarted now and then."""

import contextlib
import logging
import multiprocessing
import os
import re
import signal
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor
from transformers.modeling_utils import PreTrainedModel
from transformers.utils import logging as transformers_logging

import attention_viz as av
from attention_viz.errors import AttentionVizError
from attention_viz.models.model import AttentionModel

__all__ = [
    "LEFT_OUT",
    "SCALES",
    "SEEN",
    "TooLongError",
    "asks",
    "at_most",
    "cell",
    "differences",
    "first_line",
    "of_parts",
    "reason_of",
    "rows",
    "tell",
    "tells",
    "tried",
    "wrapped",
]

# The heading in docs/families.md above images and audio, which follow the text families.
SEEN = "# Pictures and sound"
# The meaning of that column in both tables.
LEFT_OUT = (
    "*Left out*: modules that also attend, outside the attention shown and over other positions, such as a pooling "
    "head. The model's name, each trace's notes and the badge list them. If a model attends in a layer that is shown "
    "by means that can't be recorded, it is refused."
)

_T = TypeVar("_T")
_Result = TypeVar("_Result")

# Families that one process tries before the next: what they leave in memory goes with it.
_EACH = 60
# From large to small: the first at which attention is neither uniform nor on one token only, so that a mistake shows.
SCALES = (8.0, 4.0, 2.0, 1.0)
_PEAKED = 0.97
# How much more than its even share the heaviest key has to get.
_UNIFORM = 1.4
_LARGEST_SCORE = 30


class TooLongError(BaseException):
    """A timeout; not an `Exception`, which a model's code or ours would treat as the model's fault."""


@contextlib.contextmanager
def at_most(seconds: int) -> Generator[None]:
    """Stop after this much processor time, or ten times as much clock time, as on a busy machine."""

    def stop(*_: object) -> None:
        raise TooLongError

    signal.signal(signal.SIGALRM, stop)
    signal.signal(signal.SIGPROF, stop)
    signal.alarm(10 * seconds)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.setitimer(signal.ITIMER_PROF, 0)


def wrapped(model: PreTrainedModel, inputs: Mapping[str, Tensor] | None = None) -> tuple[AttentionModel, str]:
    """Wrap a model, if refused with the attention that the refusal advises; return it with a note on that."""
    try:
        return av.wrap(model, inputs=inputs), ""
    except AttentionVizError as error:
        if 'set_attn_implementation("eager")' not in str(error):
            raise
    model.set_attn_implementation("eager")
    return av.wrap(model, inputs=inputs), "with eager attention, since its sdpa gets other masks"


def tells(trace: av.Trace) -> bool:
    """Return whether a mistake would show: attention neither uniform nor all on one token, scores above rounding."""
    if not trace.layers:
        return _passes_on(trace)
    last = trace.attention(trace.layer_numbers(trace.attention_streams[-1])[-1], trace.attention_streams[-1])
    heaviest = float(last.head(0).weights[-3:].amax(dim=-1).mean())
    calls = [layer.attention for stream in trace.attention_streams for layer in trace.layers[stream]]
    largest = max(float(call.scaled.abs().max()) for call in calls)
    return _UNIFORM / last.shape[-1] < heaviest < _PEAKED and largest < _LARGEST_SCORE


def _passes_on(trace: av.Trace) -> bool:
    """Return whether layers without a softmax carry more than a token's own value."""
    sizes = [layer.mixer.weights.abs() for layers in trace.mixers.values() for layer in layers]
    return all(float(one.sum() - one.diagonal(dim1=-2, dim2=-1).sum()) > 0.01 * float(one.sum()) for one in sizes)


def first_line(error: BaseException) -> str:
    """Return a foreign error's message, shortened."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' '.join(lines)[:160]}"


def reason_of(error: AttentionVizError, before: str = "") -> str:
    """Return a refusal's reason without the fix, which is the same for all; `before` if larger weights gave one.

    Numbers that overflow or round at a scale say nothing of the family.
    """
    if before and "overflow" not in before and "by rounding" not in before:
        return before
    return str(error.__cause__ if isinstance(error.__cause__, AttentionVizError) else error)


def cell(text: str) -> str:
    """Escape a text for a table cell."""
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def of_parts(left_out: Iterable[Sequence[str]]) -> str:
    """Return how many families leave something out, to follow the number of exact ones; "" if none does."""
    count = sum(bool(parts) for parts in left_out)
    return f" ({count} with a part left out)" if count else ""


def asks(description: str | None) -> ArgumentParser:
    """Return the argument parser of both scripts."""
    parser = ArgumentParser(description=description)
    parser.add_argument("names", nargs="*", help="only these families, without writing the table")
    parser.add_argument("--every", type=int, default=1, help="only every Nth family, without writing the table")
    parser.add_argument("--update", action="store_true", help="replace the named families' rows in the table")
    parser.add_argument("--compare", action="store_true", help="print differences from the table, without writing it")
    return parser


def rows(table: str) -> dict[str, dict[str, str]]:
    """Return each family and class's outcome and cells from a table, without notes and reasons.

    "opened" becomes yes or no: the number there is rounding.
    """
    found, outcome, names = dict[str, dict[str, str]](), "", list[str]()
    for line in table.splitlines():
        if line.startswith("## "):
            outcome = line.removeprefix("## ").partition(",")[0].lower()
        if not line.startswith("| ") or line.startswith("| ---"):
            continue
        cells = [one.strip() for one in re.split(r"(?<!\\)\|", line)[1:-1]]
        if cells[:2] == ["family", "class"]:
            names = cells[2:]
            continue
        said = {name: cell for name, cell in zip(names, cells[2:], strict=True) if name not in ("note", "why")}
        if "opened" in said:
            said["opened"] = "no" if said["opened"].startswith("no: ") else "yes"
        found[" ".join(cells[:2])] = {"outcome": outcome, **said}
    return found


def differences(before: Mapping[str, Mapping[str, str]], after: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Return the families and classes whose outcome or cells changed, appeared or disappeared, with the change."""
    lines = list[str]()
    for name in sorted({*before, *after}):
        old, new = before.get(name), after.get(name)
        if old is None or new is None:
            lines.append(f"{name}: {'new, ' + new['outcome'] if new else 'gone, was ' + (old or {})['outcome']}")
            continue
        changed = [one for one in new if one in old and old[one] != new[one]]
        if changed:
            lines.append(
                f"{name}: " + "; ".join(f"{one} {old[one] or 'none'} → {new[one] or 'none'}" for one in changed)
            )
    return lines


def tell(before: str, after: str, *, whole: bool) -> int:
    """Print the differences from a table; return 1, for the shell, if any outcome is wrong."""
    old, new = rows(before), rows(after)
    kept = old if whole else {name: said for name, said in old.items() if name in new}
    made = re.search(r"transformers (\S+) and torch (\S+)\. ", before)
    changes = differences(kept, new)
    than = f"transformers {made[1]} and torch {made[2]}" if made else "the table"
    print(
        f"{len(changes)} of {len(new)} differ from {than}{':' if changes else '.'}",
        *changes,
        sep="\n  ",
        flush=True,
    )
    wrong = [name for name, said in new.items() if said["outcome"] == "wrong"]
    print(f"{len(wrong)} are wrong{': ' + ', '.join(wrong) if wrong else ''}.", flush=True)
    return 1 if wrong else 0


def tried(one: Callable[[_T], _Result], chosen: Sequence[_T]) -> Iterator[_Result]:
    """Yield each one's result, in order, from as many processes as there are processors."""
    torch.set_num_threads(1)  # a process with threads can't be forked
    way: Any = "fork" if "fork" in multiprocessing.get_all_start_methods() else "spawn"
    with multiprocessing.get_context(way).Pool(os.cpu_count(), _quiet, maxtasksperchild=_EACH) as pool:
        yield from pool.imap(one, chosen)


def _quiet() -> None:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    transformers_logging.set_verbosity_error()
    logging.disable(logging.CRITICAL)
    torch.set_num_threads(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
